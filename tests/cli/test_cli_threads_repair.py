"""`agentkit threads check` and `repair`."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from agentkit.agents import check_thread, create_agent, repair_thread
from agentkit.memory import open_memory
from agentkit.testing import ScriptedModel, assert_valid, crash
from agentkit.tools import tool

GRAPH = '''
from langgraph.types import interrupt
from agentkit.agents import create_agent
from agentkit.testing import ScriptedModel
from agentkit.tools import tool


@tool
def pay(n: int) -> str:
    """Pay."""
    return f"paid {n}"


@tool
def ask(q: str) -> str:
    """Ask."""
    return f"{q}={interrupt(q)}"


def build(checkpointer=None, store=None):
    return create_agent(ScriptedModel([]), [pay, ask], checkpointer=checkpointer, store=store)
'''


def call(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


@pytest.fixture
def graph(tmp_path: Path) -> str:
    path = tmp_path / "shop.py"
    path.write_text(GRAPH, encoding="utf-8")
    return str(path)


def left_open(url: str, thread: str, point: str = "after effect") -> None:
    """A thread with one call finished, one waiting for an answer and one that was in flight."""
    from langgraph.types import interrupt

    @tool
    def pay(n: int) -> str:
        """Pay."""
        return f"paid {n}"

    @tool
    def ask(q: str) -> str:
        """Ask."""
        return f"{q}={interrupt(q)}"

    first = AIMessage("", tool_calls=[call("pay", "c1", n=1), call("ask", "c2", q="ok?"), call("pay", "c3", n=3)])
    with open_memory(url) as memory:
        agent = create_agent(ScriptedModel([first]), [pay, ask], checkpointer=memory.checkpointer)
        with crash.at(memory.checkpointer, point, call_id="c3"), suppress(crash.Crashed):  # type: ignore[arg-type]
            agent.invoke(
                {"messages": [HumanMessage("go")]},
                {"configurable": {"thread_id": thread}, "max_concurrency": 1},
                durability="sync",
            )


def test_check_shows_what_the_ledger_knows_of_each_open_call(agentkit: Any, graph: str, postgres_url: str) -> None:
    left_open(postgres_url, "t1")
    said = agentkit("threads", "check", "t1", "--graph", graph)
    assert said.code == 0, said
    rows = {line.split()[1]: line for line in said.out.splitlines() if line.startswith(("pay", "ask"))}
    assert "finished" in rows["c1"]
    assert "waiting" in rows["c2"]
    assert "in flight" in rows["c3"]


def test_repair_leaves_alone_what_a_resumed_run_goes_on_with(agentkit: Any, graph: str, postgres_url: str) -> None:
    left_open(postgres_url, "t2")
    said = agentkit("threads", "repair", "t2", "--graph", graph)
    assert (said.code, said.out.split(";")[0]) == (0, "there was nothing to mend")
    assert "c3" in agentkit("threads", "check", "t2", "--graph", graph).out


def test_repair_gives_up_open_calls_with_what_is_known_of_them(agentkit: Any, graph: str, postgres_url: str) -> None:
    left_open(postgres_url, "t3")
    said = agentkit("threads", "repair", "t3", "--graph", graph, "--give-up")
    assert said.code == 0, said
    assert said.out.count("mended:") == 3
    with open_memory(postgres_url) as memory:
        agent = create_agent(ScriptedModel([]), [], checkpointer=memory.checkpointer)
        messages = agent.get_state({"configurable": {"thread_id": "t3"}}).values["messages"]
    assert_valid(messages)
    texts = [message.content for message in messages[2:]]
    assert texts[0] == "paid 1"
    assert texts[1].startswith("Not completed")
    assert texts[2].startswith("Outcome unknown")


def test_a_thread_that_does_not_exist_is_told(agentkit: Any, graph: str) -> None:
    said = agentkit("threads", "check", "nosuch", "--graph", graph)
    assert said.code == 2
    assert "there is no thread 'nosuch'" in said.err


def test_faults_in_the_middle_of_a_history_are_shown_and_mended(checkpointer: Any) -> None:
    agent = create_agent(ScriptedModel(["a", "b"]), [], checkpointer=checkpointer)
    config = {"configurable": {"thread_id": "t"}}
    agent.invoke({"messages": [HumanMessage("one")]}, config)
    broken = AIMessage("", tool_calls=[call("pay", "c1", n=1)], id="broken")
    agent.update_state(config, {"messages": [broken, HumanMessage("two"), AIMessage("end")]})
    report = check_thread(agent, "t")
    assert [fault.kind for fault in report.faults] == ["missing"]
    assert len(repair_thread(agent, "t")) == 1
    assert check_thread(agent, "t").faults == []
    assert_valid(agent.get_state(config).values["messages"])
    assert repair_thread(agent, "t") == []


def test_a_missing_thread_is_an_error(checkpointer: Any) -> None:
    agent = create_agent(ScriptedModel([]), [], checkpointer=checkpointer)
    with pytest.raises(LookupError, match="no thread 'x'"):
        check_thread(agent, "x")
