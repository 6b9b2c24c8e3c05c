"""Small words for tests about batches of tool calls."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.graph import END, START, StateGraph

from agentkit.messages import add_history, check_history
from agentkit.tools import ToolNode, fan_out


def ask(*calls: tuple[str, dict[str, Any], str | None], id: str = "ai-1") -> AIMessage:  # noqa: A002 - as messages call it
    """An AI message with calls (name, args, id)."""
    tool_calls = [{"name": name, "args": args, "id": call_id, "type": "tool_call"} for name, args, call_id in calls]
    return AIMessage(content="", tool_calls=tool_calls, id=id)


class Run:
    """Invoke a node or a graph in sync or in async code."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return self.kind

    @property
    def is_async(self) -> bool:
        return self.kind == "async"

    def __call__(self, runnable: Any, given: Any, config: Any = None, **kwargs: Any) -> Any:
        if not self.is_async:
            return runnable.invoke(given, config, **kwargs)
        return asyncio.run(runnable.ainvoke(given, config, **kwargs))

    def stream(self, graph: Any, given: Any, config: Any = None, **kwargs: Any) -> list[Any]:
        if not self.is_async:
            return list(graph.stream(given, config, **kwargs))

        async def collect() -> list[Any]:
            return [item async for item in graph.astream(given, config, **kwargs)]

        return asyncio.run(collect())


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_history]
    note: str
    count: Annotated[int, lambda left, right: left + right]


def graph_of(node: ToolNode, *, form: str = "state", state: Any = State, **compiled: Any) -> Any:
    """A hand-written graph around a ToolNode: entered with a whole state, or with one Send per call."""
    graph: Any = StateGraph(state)
    graph.add_node("tools", node)
    if form == "send":
        graph.add_conditional_edges(START, fan_out(), ["tools", END])
    else:
        graph.add_edge(START, "tools")
    return graph.compile(**compiled)


def results(output: Any) -> list[ToolMessage]:
    """The results in what a node or graph returned, in order."""
    if isinstance(output, dict):
        return [message for message in output["messages"] if isinstance(message, ToolMessage)]
    found: list[ToolMessage] = []
    for item in output:
        if isinstance(item, ToolMessage):
            found.append(item)
        elif isinstance(item, dict):
            found += results(item)
        elif isinstance(getattr(item, "update", None), dict):
            found += results({"messages": item.update.get("messages", [])})
    return found


def paired(messages: list[AnyMessage]) -> bool:
    """Whether a history is one that a strict provider takes."""
    faults = check_history(messages)
    assert not faults, faults
    return True


def texts(output: Any) -> list[Any]:
    return [message.content for message in results(output)]


Check = Callable[[Any], bool]
