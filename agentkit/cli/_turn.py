"""One turn: what a graph streams, put on the screen."""

from collections.abc import Iterator, Mapping
from contextlib import aclosing
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel
from langgraph.types import Command, Interrupt

from agentkit.cli._view import View

__all__ = ["run_turn"]

AnyGraph = Pregel[Any, Any, Any, Any]


async def run_turn(
    graph: AnyGraph, given: Mapping[str, Any] | Command[Any], config: RunnableConfig, view: View
) -> list[Interrupt]:
    """Run the graph on what is given, showing what happens as it happens.

    Returns:
        What the graph asks for before it can go on; empty where it has ended.
    """
    asked: list[Interrupt] = []
    shown: set[str] = set()
    stream = graph.astream(given, config, stream_mode=["messages", "updates", "custom"])
    try:
        async with aclosing(stream) as events:  # type: ignore[type-var]  # an async generator, declared as an iterator
            mode: str
            data: Any
            async for mode, data in events:
                match mode:
                    case "messages":
                        _text(data[0], data[1], view)
                    case "custom" if isinstance(data, Mapping) and data.get("type") == "tool_progress":
                        view.progress(data)
                    case "updates":
                        asked += data.get("__interrupt__", ())
                        for message in _messages(data):
                            _calls(message, shown, view)
    finally:
        view.end()
    return asked


def _text(message: BaseMessage, metadata: Mapping[str, Any], view: View) -> None:
    """What the model of the graph itself says; models inside tools and subgraphs work silently."""
    nested = "|" in str(metadata.get("langgraph_checkpoint_ns", ""))
    if isinstance(message, AIMessage) and message.text and not nested and metadata.get("langgraph_node") != "tools":
        view.text(message.text)


def _messages(update: Mapping[str, Any]) -> Iterator[BaseMessage]:
    for changes in update.values():
        for change in changes if isinstance(changes, list | tuple) else [changes]:
            written = change.get("messages", ()) if isinstance(change, Mapping) else ()
            for message in written if isinstance(written, list | tuple) else [written]:
                if isinstance(message, BaseMessage):
                    yield message


def _calls(message: BaseMessage, shown: set[str], view: View) -> None:
    if isinstance(message, ToolMessage):
        view.result(message)
    elif isinstance(message, AIMessage):
        for call in message.tool_calls:
            key = f"{message.id}/{call['id']}"
            if key not in shown:  # hooks may write the same message again
                shown.add(key)
                view.call(call)
