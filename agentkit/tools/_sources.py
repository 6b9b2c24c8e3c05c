"""The toolsets of one node, asked together, and their tools merged with the fixed ones."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.runtime import Runtime

from agentkit.tools._accepted import as_tool_object
from agentkit.tools._kept import Kept
from agentkit.tools._runtime import ToolRuntime
from agentkit.tools._steps import Story
from agentkit.tools.toolsets._base import Accept, Toolset, aask, ask, is_toolset, label_of
from agentkit.tools.toolsets._names import by_name

_KEPT = 64  # different answers that are held: one per set of rights, phase of the state, …


class Sources:
    """The toolsets among a node's tools.

    Args:
        fixed: the tools given as such, by name.
        toolsets: those asked at each use.
        check: called once with each new set of their tools; raises where they do not fit the graph.
    """

    def __init__(
        self,
        fixed: Mapping[str, BaseTool],
        toolsets: Sequence[Toolset],
        check: Callable[[Mapping[str, BaseTool]], None] | None = None,
    ) -> None:
        self.check = check
        self._fixed = fixed
        self._toolsets = tuple(toolsets)
        self._accept: Accept = Kept(as_tool_object)
        self._merged: OrderedDict[tuple[int, ...], dict[str, BaseTool]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._toolsets)

    def ask(self, state: Any, runtime: Runtime[Any], config: RunnableConfig) -> Story[dict[str, BaseTool]]:
        """The tools of all toolsets by name: the same dict for the same tools.

        Raises:
            DefinitionError: two tools share a name; something is no tool; `check` refuses them.
            Exception: whatever a toolset raises.
        """
        asking = ToolRuntime(
            state=state,
            context=runtime.context,
            config=config,
            stream_writer=runtime.stream_writer,
            tool_call_id=None,
            store=runtime.store,
            tools=list(self._fixed.values()),
            execution_info=runtime.execution_info,
            server_info=runtime.server_info,
        )
        found: list[list[BaseTool]] = yield _Ask(self._toolsets, asking, self._accept)
        key = tuple(id(tool) for tools in found for tool in tools)
        merged = self._merged.get(key)  # holds its tools, so that no other tool can have their ids
        if merged is None:
            merged = by_name(zip(map(label_of, self._toolsets), found, strict=True), self._fixed)
            if self.check is not None:
                self.check({**self._fixed, **merged})
            merged = self._merged.setdefault(key, merged)
            if len(self._merged) > _KEPT:
                self._merged.popitem(last=False)
        return merged


@dataclass(frozen=True, slots=True)
class _Ask:
    """The step that asks; several toolsets at the same time where that is possible."""

    toolsets: tuple[Toolset, ...]
    runtime: ToolRuntime[Any, Any]
    accept: Accept

    def run(self) -> list[list[BaseTool]]:
        return [ask(toolset, self.runtime, self.accept) for toolset in self.toolsets]

    async def arun(self) -> list[list[BaseTool]]:
        if len(self.toolsets) == 1:
            return [await aask(self.toolsets[0], self.runtime, self.accept)]
        return await asyncio.gather(*(aask(each, self.runtime, self.accept) for each in self.toolsets))


def parted(tools: Sequence[Any]) -> tuple[list[Any], list[Toolset]]:
    """The tools and the toolsets of a list, each in order."""
    toolsets: list[Toolset] = [each for each in tools if is_toolset(each)]
    return [each for each in tools if not is_toolset(each)], toolsets
