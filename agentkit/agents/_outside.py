"""Edges that a node's own word goes before.

Our nodes say themselves where the run goes next, with a Command, which is cheaper than an edge that reads the state
again. But langgraph's `update_state(…, as_node=…)` writes in a node's name without running it, and then the route has
to be found from the state. The writers here do that, and do nothing when the node itself has spoken.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.constants import END
from langgraph.pregel._read import PregelNode
from langgraph.pregel._write import ChannelWrite, ChannelWriteEntry, ChannelWriteTupleEntry
from langgraph.types import Command, Send

from agentkit.agents._routes import Goto
from agentkit.tools._langgraph import state_of

__all__ = ["add_edge", "decide_outside"]


def add_edge(node: PregelNode, target: str) -> None:
    """Give `node` a plain edge to `target`."""

    def writes(value: Any) -> Sequence[tuple[str, Any]] | None:
        return None if target == END or _routed(value) else [(f"branch:to:{target}", None)]

    node.writers.append(ChannelWrite((ChannelWriteTupleEntry(mapper=writes),)))  # a tuple: langgraph joins neighbours


def decide_outside(node: PregelNode, decide: Callable[[Mapping[str, Any]], Goto]) -> None:
    """Let what is written in `node`'s name go where `decide(state)` says."""
    entries = tuple(entry for writer in node.writers if isinstance(writer, ChannelWrite) for entry in writer.writes)
    node.writers[:] = [_DecidingWrite(entries, decide)]  # one writer: langgraph would join two and lose what ours adds


class _DecidingWrite(ChannelWrite):
    """Writes what the node wrote, and a route if the node named none."""

    def __init__(self, entries: Sequence[Any], decide: Callable[[Mapping[str, Any]], Goto]) -> None:
        super().__init__(entries)
        self._decide = decide

    def _write(self, input: Any, config: RunnableConfig) -> Any:  # noqa: A002 - langgraph's name
        super()._write(input, config)
        if not _routed(input):
            state = state_of(config)
            if state.get("messages"):  # else langgraph only draws the graph
                self._route(self._decide(state), config)
        return input

    async def _awrite(self, input: Any, config: RunnableConfig) -> Any:  # noqa: A002 - langgraph's name
        return self._write(input, config)

    def _route(self, goto: Goto, config: RunnableConfig) -> None:
        targets = [goto] if isinstance(goto, (str, Send)) else goto
        self.do_write(
            config,
            [t if isinstance(t, Send) else ChannelWriteEntry(f"branch:to:{t}", None) for t in targets if t != END],
        )


def _routed(value: Any) -> bool:
    """Whether `value` came from a node that decides for itself."""
    return isinstance(value, Command) or (
        isinstance(value, (list, tuple)) and any(isinstance(item, Command) for item in value)
    )
