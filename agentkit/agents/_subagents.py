"""Named agents that run inside an agent, as `run.subagents` of a v3 event stream.

langgraph lists every subgraph as `run.subgraphs`; a subagent is one that carries the name `create_agent(name=…)` gives.
"""

from typing import Any

from langgraph.stream.run_stream import AsyncSubgraphRunStream, SubgraphRunStream
from langgraph.stream.transformers import SubgraphTransformer

__all__ = ["AsyncSubagentRunStream", "SubagentRunStream", "SubagentTransformer"]


class SubagentRunStream(SubgraphRunStream):
    """The run of one named agent inside another."""

    cause: Any = None
    """The tool call that started it, as `{"type": "toolCall", "tool_call_id": …}`; None where that is not known."""

    @property
    def name(self) -> str | None:
        """The agent's name."""
        return self.graph_name


class AsyncSubagentRunStream(AsyncSubgraphRunStream):
    """The run of one named agent inside another, in an async stream."""

    cause: Any = None
    """The tool call that started it, as `{"type": "toolCall", "tool_call_id": …}`; None where that is not known."""

    @property
    def name(self) -> str | None:
        """The agent's name."""
        return self.graph_name


class SubagentTransformer(SubgraphTransformer):
    """Makes a handle on `run.subagents` for each named agent that starts directly inside this scope."""

    def init(self) -> dict[str, Any]:
        """Where the handles appear."""
        return {"subagents": self._log}

    def _on_started(self, ns: tuple[str, ...], graph_name: str | None, trigger_call_id: str | None) -> None:
        if self._lc_by_ns.get(ns) is None or self._mux is None or ns in self._handles:
            return
        try:
            child = self._mux._make_child(ns)  # noqa: SLF001 - how langgraph's own transformer does it
        except RuntimeError:
            return  # this mux does not nest
        handle_class = AsyncSubagentRunStream if child.is_async else SubagentRunStream
        handle = handle_class(mux=child, path=ns, graph_name=graph_name, trigger_call_id=trigger_call_id)
        handle.cause = self._pending_cause
        self._handles[ns] = handle
        self._log.push(handle)
