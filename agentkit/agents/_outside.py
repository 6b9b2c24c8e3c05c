"""Routing after `update_state`: what is written in a node's name goes where that node would have gone.

Our nodes say themselves where the run goes next, with a Command, which is cheaper than an edge that reads the state
again. langgraph's `update_state(…, as_node=…)` writes without running the node, so each node has a writer that decides
from the state, and does nothing when the node itself has spoken.
"""

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.constants import END
from langgraph.pregel._write import ChannelWrite, ChannelWriteEntry, ChannelWriteTupleEntry
from langgraph.types import Command, Send

from agentkit.agents._routes import Goto
from agentkit.tools._langgraph import state_of

__all__ = ["OutsideWriter", "edge"]


class OutsideWriter(Runnable[Any, Any]):
    """A writer that routes by `decide(state)`, for values that did not come from the node."""

    def __init__(self, decide: Callable[[Mapping[str, Any]], Goto]) -> None:
        self._decide = decide

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_kwargs: Any) -> Any:  # noqa: A002 - langchain-core's name
        """Write the route unless `input` holds one; pass `input` on."""
        if config is not None and not _routed(input):
            goto = self._decide(state_of(config))
            targets = [goto] if isinstance(goto, (str, Send)) else goto
            ChannelWrite.do_write(
                config,
                [t if isinstance(t, Send) else ChannelWriteEntry(f"branch:to:{t}", None) for t in targets if t != END],
            )
        return input

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_kwargs: Any) -> Any:  # noqa: A002 - langchain-core's name
        """See `invoke`; nothing is waited for."""
        return self.invoke(input, config)


def edge(target: str) -> ChannelWrite:
    """A plain edge, except that a node's own Command with a goto goes before it."""

    def writes(value: Any) -> list[tuple[str, Any]] | None:
        return None if target == END or _routed(value) else [(f"branch:to:{target}", None)]

    return ChannelWrite((ChannelWriteTupleEntry(mapper=writes),))  # a tuple: langgraph joins them


def _routed(value: Any) -> bool:
    return isinstance(value, Command) or (
        isinstance(value, (list, tuple)) and any(isinstance(item, Command) for item in value)
    )
