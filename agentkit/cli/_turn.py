"""One turn: what a graph streams, put on the screen."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel
from langgraph.types import Command, Interrupt

from agentkit.cli._view import View

__all__ = ["AnyGraph", "keys", "run_turn"]

AnyGraph = Pregel[Any, Any, Any, Any]


async def run_turn(
    graph: AnyGraph,
    given: Mapping[str, Any] | Command[Any],
    config: RunnableConfig,
    view: View,
    shown: set[str] | None = None,
) -> list[Interrupt]:
    """Run the graph on what is given, showing what happens as it happens.

    `shown` has the keys of what was shown in this thread; what is shown now is added to it.

    Returns:
        What the graph asks for before it can go on; empty where it has ended.
    """
    asked: list[Interrupt] = []
    seen: set[str] = set() if shown is None else shown
    modes = ["messages", "updates", "custom"]
    stream = graph.astream(given, config, stream_mode=modes, subgraphs=True)  # type: ignore[arg-type]  # a list of names
    try:
        async with aclosing(stream) as events:  # type: ignore[type-var]  # an async generator, declared as an iterator
            async for event in events:
                place, mode, data = cast("tuple[tuple[str, ...], str, Any]", event)
                if mode == "custom":
                    if isinstance(data, Mapping) and data.get("type") == "tool_progress":
                        view.progress(data)
                elif any(step.startswith("tools:") for step in place):
                    continue  # an agent inside a tool: what it does shows as the tool's call
                elif mode == "messages":
                    _text(data[0], data[1], view)
                else:
                    asked += data.get("__interrupt__", ()) if not place else ()
                    _calls(_messages(data), seen, view)
    finally:
        view.end()
    return asked


def _text(message: BaseMessage, metadata: Mapping[str, Any], view: View) -> None:
    """What the model of the graph, or of an agent that is a node of it, says; models inside tools work silently."""
    if isinstance(message, AIMessage) and message.text and metadata.get("langgraph_node") != "tools":
        view.text(message.text)


def _messages(update: Mapping[str, Any]) -> Iterator[BaseMessage]:
    for changes in update.values():
        for change in changes if isinstance(changes, list | tuple) else [changes]:
            written = change.get("messages", ()) if isinstance(change, Mapping) else ()
            for message in written if isinstance(written, list | tuple) else [written]:
                if isinstance(message, BaseMessage):
                    yield message


def keys(message: BaseMessage) -> Iterator[str]:
    """What is shown of a message, besides its text: its calls, or that it is a result."""
    if isinstance(message, ToolMessage):
        yield f"result {message.id or message.tool_call_id}"
    elif isinstance(message, AIMessage):
        yield from (f"call {message.id}/{call['id']}" for call in message.tool_calls)


def _calls(messages: Iterable[BaseMessage], seen: set[str], view: View) -> None:
    """Each call and each result once: a parent graph writes again what its subgraph has written, and hooks do too."""
    for message in messages:
        new = [key not in seen for key in keys(message)]
        seen.update(keys(message))
        if isinstance(message, ToolMessage) and any(new):
            view.result(message)
        elif isinstance(message, AIMessage):
            for call, is_new in zip(message.tool_calls, new, strict=True):
                if is_new:
                    view.call(call)
