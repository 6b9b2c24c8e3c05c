"""Several toolsets as one."""

import asyncio

from langchain_core.tools import BaseTool

from agentkit.tools._accepted import as_tool_object
from agentkit.tools._kept import Kept
from agentkit.tools.toolsets._base import Accept, OpensOthers, Runtime, Tools, Toolset, aask, as_toolset, ask, label_of
from agentkit.tools.toolsets._names import by_name


class Combined(OpensOthers):
    """The tools of several sources, in their order. Made by `combined`."""

    def __init__(self, sources: tuple[Toolset | Tools, ...]) -> None:
        self._parts = tuple(map(as_toolset, sources))
        self._accept: Accept = Kept(as_tool_object)

    @property
    def label(self) -> str:
        """What it is called in messages."""
        return f"combined({', '.join(map(label_of, self._parts))})"

    def tools(self, runtime: Runtime) -> list[BaseTool]:
        """The tools of all sources. Raises DefinitionError where two share a name."""
        return self._merged([ask(part, runtime, self._accept) for part in self._parts])

    async def atools(self, runtime: Runtime) -> list[BaseTool]:
        """The tools of all sources, which are asked at the same time."""
        return self._merged(await asyncio.gather(*(aask(part, runtime, self._accept) for part in self._parts)))

    def _merged(self, lists: list[list[BaseTool]]) -> list[BaseTool]:
        return list(by_name(zip(map(label_of, self._parts), lists, strict=True)).values())


def combined(*sources: Toolset | Tools) -> Combined:
    """One toolset of several; opening it opens them all.

    Raises:
        DefinitionError: (when asked) two sources have a tool of one name. `prefixed` keeps them apart.
    """
    return Combined(sources)
