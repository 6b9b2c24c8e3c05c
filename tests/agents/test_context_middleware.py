"""Summaries and clearing make the context smaller and part no call from its result."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from agentkit.agents import create_agent
from agentkit.agents.middleware import ClearResultsMiddleware, SummaryMiddleware
from agentkit.errors import DefinitionError
from agentkit.testing import ScriptedModel, StrictModel, assert_valid, calls
from agentkit.tools import tool

HI = {"messages": [("user", "hi")]}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


HISTORY = [
    HumanMessage("start"),
    calls(("add", {"a": 1, "b": 1}, "k1"), ("add", {"a": 2, "b": 2}, "k2")),
    ToolMessage("2", tool_call_id="k1", name="add"),
    ToolMessage("4", tool_call_id="k2", name="add"),
    AIMessage("two and four"),
    HumanMessage("more"),
]


@pytest.mark.parametrize("keep", range(1, 6))
async def test_a_summary_never_parts_a_call_from_its_result(run, thread, keep):
    writer = ScriptedModel(["SUMMARY"])
    model = ScriptedModel(["ok", "ok again"])
    summary = SummaryMiddleware(writer, max_tokens=1, keep=keep)
    agent = create_agent(StrictModel(model), [add], middleware=[summary], checkpointer=InMemorySaver())
    state = await run.invoke(agent, {"messages": HISTORY}, thread)
    assert_valid(state["messages"])
    assert "SUMMARY" in state["messages"][0].text
    kept = [m.text for m in state["messages"][1:-1]]
    assert kept == [m.text for m in HISTORY][len(HISTORY) - len(kept) :]
    assert len(kept) >= keep
    assert "two and four" in writer.calls[0][0].text or keep > 1


async def test_nothing_is_summarised_while_it_fits(run):
    writer = ScriptedModel([])
    summary = SummaryMiddleware(writer, max_tokens=10_000, keep=2)
    state = await run.invoke(
        create_agent(StrictModel(ScriptedModel(["ok"])), [add], middleware=[summary]), {"messages": HISTORY}
    )
    assert [m.text for m in state["messages"]] == [*(m.text for m in HISTORY), "ok"]


async def test_calls_whose_results_are_mixed_up_are_kept_whole(run):
    mixed = [
        HumanMessage("start"),
        calls(("add", {"a": 1, "b": 1}, "k1")),
        calls(("add", {"a": 2, "b": 2}, "k2")),
        ToolMessage("2", tool_call_id="k1", name="add"),
        ToolMessage("4", tool_call_id="k2", name="add"),
        HumanMessage("go on"),
    ]
    summary = SummaryMiddleware(ScriptedModel(["SUMMARY"]), max_tokens=1, keep=3)
    state = await run.invoke(
        create_agent(StrictModel(ScriptedModel(["ok"])), [add], middleware=[summary]), {"messages": mixed}
    )
    assert_valid(state["messages"])


async def test_old_results_are_hidden_from_the_model_and_kept_in_the_thread(run, thread):
    model = ScriptedModel([calls(("add", {"a": n, "b": n}, f"c{n}")) for n in range(3)] + ["done"])
    clearing = ClearResultsMiddleware(max_tokens=0, keep=1, placeholder="[gone]")
    agent = create_agent(StrictModel(model), [add], middleware=[clearing], checkpointer=InMemorySaver())
    state = await run.invoke(agent, HI, thread)
    assert [m.text for m in model.calls[-1] if m.type == "tool"] == ["[gone]", "[gone]", "4"]
    assert [m.text for m in state["messages"] if m.type == "tool"] == ["0", "2", "4"]


def test_settings_that_make_no_sense_are_refused():
    for make in (lambda: SummaryMiddleware(ScriptedModel([]), max_tokens=0), lambda: ClearResultsMiddleware(keep=-1)):
        with pytest.raises(DefinitionError):
            make()
