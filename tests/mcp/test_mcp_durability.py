"""What is stored of MCP calls, and what a crash in the middle of one means."""

from contextlib import suppress

import pytest
from langgraph.types import Command
from mcp_servers import COMMAND, GO, THREAD, agent_with, answers, ask, over_http, said

from agentkit.mcp import MCPAdapter
from agentkit.testing import crash
from agentkit.tools.toolsets import prefixed


@pytest.fixture
def shop():
    """A server that outlives the adapters of its callers."""
    with over_http() as server:
        yield server.url


def test_results_of_every_kind_are_stored_and_read_back_as_they_were(checkpointer):
    with MCPAdapter(COMMAND) as adapter:
        names = ["picture", "sound", "files", "fail_with_details", "nothing"]
        agent, _ = agent_with([adapter], ask(*((name, {}) for name in names)), checkpointer=checkpointer)
        given = answers(agent.invoke(GO, THREAD))
    kept = answers(agent.get_state(THREAD).values)
    assert [(m.content, m.artifact, m.status) for m in kept] == [(m.content, m.artifact, m.status) for m in given]
    assert len(kept) == 5


def test_after_a_crash_what_may_be_repeated_is_and_what_may_not_is_unknown(shop, checkpointer):
    """Both calls were running, in a batch, when the process died; another process goes on."""

    def process(*turns):
        adapter = MCPAdapter(shop)
        agent, _ = agent_with([prefixed(adapter, "shop_")], *turns, checkpointer=checkpointer)
        return adapter, agent

    adapter, agent = process(ask(("shop_process_id", {}), ("shop_increment", {"by": 100})))
    with adapter, crash.at(checkpointer, "after effect", call_id="c2"), suppress(crash.Crashed):
        agent.invoke(GO, THREAD)
    adapter, agent = process()
    with adapter:
        pid, paid = answers(agent.invoke(None, THREAD))
        assert pid.text.isdigit()
        assert paid.status == "error"
        assert "unknown" in paid.text
        count = next(t for t in adapter.tools() if t.name == "increment").invoke({"by": 0})[0]["text"]
    assert count == "100"


def test_a_question_is_answered_in_another_process(shop, checkpointer):
    with MCPAdapter(shop) as adapter:
        agent, _ = agent_with([adapter], ask(("brew", {"drink": "tea"})), checkpointer=checkpointer)
        ((asked),) = agent.invoke(GO, THREAD)["__interrupt__"]
    (request,) = asked.value["requests"]
    resume = {"responses": {request["key"]: {"action": "accept", "content": {"cups": 2}}}}
    with MCPAdapter(shop) as adapter:
        agent, _ = agent_with([adapter], checkpointer=checkpointer)
        assert said(agent.invoke(Command(resume=resume), THREAD)) == ["2 cups of tea"]
