"""A toolset with fewer tools."""

from collections.abc import Callable
from typing import TypeAlias

from langchain_core.tools import BaseTool

from agentkit.tools.toolsets._base import Runtime, Tools, Toolset, WrapperToolset

Predicate: TypeAlias = Callable[[BaseTool, Runtime], bool]


class Filtered(WrapperToolset):
    """Made by `filtered`."""

    def __init__(self, source: Toolset | Tools, predicate: Predicate) -> None:
        super().__init__(source)
        self.predicate = predicate

    def change(self, tools: list[BaseTool], runtime: Runtime) -> list[BaseTool]:
        """The tools that the predicate lets through."""
        return [tool for tool in tools if self.predicate(tool, runtime)]


def filtered(source: Toolset | Tools, predicate: Predicate) -> Filtered:
    """The tools of `source` for which `predicate(tool, runtime)` is true.

    It is asked before each model call and again before a call runs, so it may look at the state, the context and who is
    asking; keep it quick and free of effects. A tool that was offered and is filtered out when its call is to run (a
    right that was taken away while a person was asked) gives an error result.
    """
    return Filtered(source, predicate)
