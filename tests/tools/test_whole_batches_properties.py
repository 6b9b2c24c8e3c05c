"""Whatever tools, wrappers and models do, the history of a batch is one that a strict provider takes."""

import asyncio
import contextlib
from typing import Annotated, Any

import pytest
from batches import State
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command

from agentkit.errors import PairingError
from agentkit.messages import repair_history
from agentkit.reducers import last
from agentkit.testing import ScriptedModel, StrictModel, assert_valid
from agentkit.tools import ToolNode, ToolPolicy, ToolRuntime, fan_out, tool

EXAMPLES = 1000
FAILURES = (ValueError("no"), asyncio.CancelledError(), SystemExit(1), KeyError("k"), RecursionError())
KINDS = (
    "text", "none", "dict", "blocks", "empty list", "bytes", "own", "foreign", "two", "two in a command", "command",
    "no result", "goto", "list", "mixed list", "wipe", "raise", "cancel", "exit", "edit", "transcript", "nul",
    "odd content",
)  # fmt: skip


def returned(kind: str, call_id: str) -> Any:
    """One kind of thing that a tool or a wrapper gives back for a call."""
    own = ToolMessage("own", tool_call_id=call_id)
    other = ToolMessage("foreign", tool_call_id="somebody-else")
    inner = AIMessage("", tool_calls=[{"name": "x", "args": {}, "id": "inner", "type": "tool_call"}])
    values: dict[str, Any] = {
        "text": "text",
        "none": None,
        "dict": {"a": [1, {"b": object()}]},
        "blocks": [{"type": "text", "text": "block"}],
        "empty list": [],
        "bytes": b"\xff\x00",
        "own": own,
        "foreign": other,
        "two": [own, ToolMessage("again", tool_call_id=call_id)],
        "two in a command": Command(update={"messages": [own, ToolMessage("again", tool_call_id=call_id)]}),
        "command": Command(update={"messages": [own], "note": "n", "count": 1}),
        "no result": Command(update={"note": "n"}),
        "goto": Command(goto=END),
        "list": [Command(update={"count": 1}), own],
        "mixed list": [own, "text", 3],
        "wipe": Command(update={"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage("new"), own]}),
        "edit": Command(update={"messages": [ToolMessage("edit", tool_call_id="old", id="old-result"), own]}),
        "transcript": Command(update={"messages": [own, inner, ToolMessage("in", tool_call_id="inner")]}),
        "odd content": ToolMessage.model_construct(content=None, tool_call_id=call_id, status="success"),
        "nul": "a\x00b\ud800",
    }
    failures = {"raise": FAILURES[0], "cancel": FAILURES[1], "exit": FAILURES[2]}
    if kind in failures:
        raise failures[kind]
    return values[kind]


@tool
def plain(kind: str, delay: int, runtime: ToolRuntime) -> Any:
    """Give something back."""
    return returned(kind, runtime.tool_call_id or "")


@tool(policy=ToolPolicy(sequential=True))
def alone(kind: str, delay: int, runtime: ToolRuntime) -> Any:
    """Give something back, alone."""
    return returned(kind, runtime.tool_call_id or "")


@tool(policy=ToolPolicy(dedupe=True, limit=1))
async def awaited(kind: str, delay: int, runtime: ToolRuntime) -> Any:
    """Give something back after a few turns of the loop."""
    for _ in range(delay):
        await asyncio.sleep(0)
    return returned(kind, runtime.tool_call_id or "")


calls = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["plain", "alone", "awaited", "nosuch"]),
            "args": st.one_of(
                st.fixed_dictionaries({"kind": st.sampled_from(KINDS), "delay": st.integers(0, 3)}),
                st.just({"wrong": 1}),
            ),
            "id": st.sampled_from(["c1", "c2", "c3", "c4", None, ""]),
            "type": st.just("tool_call"),
        }
    ),
    min_size=1,
    max_size=4,
)
wrappers = st.sampled_from(["none", "pass", "catch", "replace", "other id", "twice"])


class Noted(State):
    note: Annotated[str, last]


def wrapper(kind: str, replaced: str) -> Any:
    async def wrap(request: Any, handler: Any) -> Any:
        if kind == "catch":
            try:
                return await handler(request)
            except Exception as error:
                return f"caught {error}"
        if kind == "replace":
            return returned(replaced, request.tool_call["id"])
        if kind == "other id":
            return await handler(request.override(tool_call={**request.tool_call, "id": "other"}))
        if kind == "twice":
            await handler(request)
        return await handler(request)

    return None if kind == "none" else wrap


def graph_for(node: ToolNode, message: AIMessage, *, send: bool, saver: bool) -> Any:
    """The batch between two strict models; the second repairs as an agent does before it is called."""
    second = StrictModel(ScriptedModel(["done"]))

    def answer(state: dict[str, Any]) -> dict[str, Any]:
        repaired, _ = repair_history(state["messages"])
        return {"messages": [second.invoke([HumanMessage("."), *repaired])]}

    graph: Any = StateGraph(Noted)
    graph.add_node("model", lambda state: {"messages": [message]})
    graph.add_node("tools", node)
    graph.add_node("answer", answer)
    graph.add_edge(START, "model")
    if send:
        graph.add_conditional_edges("model", fan_out(), ["tools"])
    else:
        graph.add_edge("model", "tools")
    graph.add_edge("tools", "answer")
    return graph.compile(checkpointer=InMemorySaver() if saver else None)


OLD = [
    HumanMessage("hi", id="h"),
    AIMessage("", tool_calls=[{"name": "plain", "args": {}, "id": "old", "type": "tool_call"}], id="old-ai"),
    ToolMessage("old", tool_call_id="old", id="old-result"),
]


@pytest.mark.timeout(600)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(calls=calls, wrap=wrappers, replaced=st.sampled_from(KINDS), send=st.booleans(), saver=st.booleans())
def test_a_strict_provider_never_refuses_the_history_of_a_repairing_node(
    calls: list[dict[str, Any]], wrap: str, replaced: str, send: bool, saver: bool
) -> None:
    if (send and any(not call["id"] for call in calls)) or len({call["id"] for call in calls}) < len(calls):
        send = False  # an edge cannot rename the calls it sends; create_agent's model node does, before
    message = AIMessage("", tool_calls=calls, id="ai")
    node = ToolNode([plain, alone, awaited], awrap_tool_call=wrapper(wrap, replaced), pairing="repair")
    graph = graph_for(node, message, send=send, saver=saver)
    output = asyncio.run(graph.ainvoke({"messages": OLD}, {"configurable": {"thread_id": "t"}}))
    repaired, faults = repair_history(output["messages"])
    assert_valid(repaired)
    wiped = "wipe" in (replaced, *(call["args"].get("kind") for call in calls))
    assert wiped or not faults


@pytest.mark.timeout(600)
@settings(max_examples=EXAMPLES // 5, deadline=None, suppress_health_check=list(HealthCheck))
@given(calls=calls, wrap=wrappers, replaced=st.sampled_from(KINDS))
def test_a_strict_node_gives_a_valid_history_or_a_clear_error(
    calls: list[dict[str, Any]], wrap: str, replaced: str
) -> None:
    node = ToolNode([plain, alone, awaited], awrap_tool_call=wrapper(wrap, replaced))
    graph = graph_for(node, AIMessage("", tool_calls=calls, id="ai"), send=False, saver=False)
    with contextlib.suppress(PairingError):
        output = asyncio.run(graph.ainvoke({"messages": OLD}))
        assert_valid(repair_history(output["messages"])[0])
