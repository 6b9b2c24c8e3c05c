"""Edges that a node's own word goes before.

Our nodes say themselves where the run goes next, with a Command, which is cheaper than an edge that reads the state
again. But langgraph's `update_state(…, as_node=…)` writes in a node's name without running it, and then the route has
to be found from the state. The writers here do that, and do nothing when the node itself has spoken.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langgraph.config import get_config
from langgraph.constants import END, TASKS
from langgraph.pregel._write import ChannelWrite, ChannelWriteTupleEntry
from langgraph.types import Command, Send

from agentkit.agents._routes import Goto
from agentkit.tools._langgraph import state_of

__all__ = ["decided_edge", "edge"]


def edge(target: str) -> ChannelWrite:
    """A plain edge."""
    return _writer(lambda: target)


def decided_edge(decide: Callable[[Mapping[str, Any]], Goto]) -> ChannelWrite:
    """An edge that leads where `decide(state)` says."""

    def target() -> Goto:
        try:
            state = state_of(get_config())
        except RuntimeError:  # there is no run: langgraph draws the graph
            return ()
        return decide(state)

    return _writer(target)


def _writer(target: Callable[[], Goto]) -> ChannelWrite:
    def writes(value: Any) -> Sequence[tuple[str, Any]] | None:
        if _routed(value):
            return None
        goto = target()
        targets = [goto] if isinstance(goto, (str, Send)) else goto
        return [(TASKS, t) if isinstance(t, Send) else (f"branch:to:{t}", None) for t in targets if t != END]

    return ChannelWrite((ChannelWriteTupleEntry(mapper=writes),))  # a tuple: langgraph joins neighbours


def _routed(value: Any) -> bool:
    """Whether `value` came from a node that decides for itself."""
    return isinstance(value, Command) or (
        isinstance(value, (list, tuple)) and any(isinstance(item, Command) for item in value)
    )
