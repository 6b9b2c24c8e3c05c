"""A toolset whose tools have a prefix in their names."""

from functools import partial

from langchain_core.tools import BaseTool

from agentkit.tools._kept import Kept
from agentkit.tools._names import check_name
from agentkit.tools.toolsets._base import Runtime, Tools, Toolset, WrapperToolset


class Prefixed(WrapperToolset):
    """Made by `prefixed`."""

    def __init__(self, source: Toolset | Tools, prefix: str) -> None:
        super().__init__(source)
        self.prefix = prefix
        self._copies = Kept(partial(_with_prefix, prefix))

    def change(self, tools: list[BaseTool], runtime: Runtime) -> list[BaseTool]:  # noqa: ARG002 - the same for every run
        """The tools under their new names."""
        return [self._copies(tool) for tool in tools]


def prefixed(source: Toolset | Tools, prefix: str) -> Prefixed:
    """The tools of `source`, each named `{prefix}{name}`: `prefixed(search, "web_")`.

    Raises:
        DefinitionError: the prefix cannot begin a tool's name; (when asked) a name becomes longer than 64 characters.
    """
    check_name(prefix)
    return Prefixed(source, prefix)


def _with_prefix(prefix: str, tool: BaseTool) -> BaseTool:
    return named(tool, prefix + tool.name)


def named(tool: BaseTool, name: str) -> BaseTool:
    """A copy of a tool under another name."""
    return tool.model_copy(update={"name": check_name(name)})
