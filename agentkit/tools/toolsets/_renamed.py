"""A toolset some of whose tools have other names."""

from collections.abc import Mapping

from langchain_core.tools import BaseTool

from agentkit.errors import DefinitionError
from agentkit.tools._kept import Kept
from agentkit.tools._names import check_name
from agentkit.tools.toolsets._base import Runtime, Tools, Toolset, WrapperToolset, label_of
from agentkit.tools.toolsets._names import by_name
from agentkit.tools.toolsets._prefixed import named


class Renamed(WrapperToolset):
    """Made by `renamed`."""

    def __init__(self, source: Toolset | Tools, names: Mapping[str, str]) -> None:
        super().__init__(source)
        self.names = dict(names)
        self._copies: Kept[BaseTool, BaseTool] = Kept(lambda tool: named(tool, self.names[tool.name]))

    def change(self, tools: list[BaseTool], runtime: Runtime) -> list[BaseTool]:  # noqa: ARG002 - the same for every run
        """The tools under their new names."""
        changed = [self._copies(tool) if tool.name in self.names else tool for tool in tools]
        by_name([(label_of(self), changed)])
        return changed


def renamed(source: Toolset | Tools, names: Mapping[str, str]) -> Renamed:
    """The tools of `source`, some of them under other names: `renamed(files, {"read": "read_file"})` (old to new).

    Raises:
        DefinitionError: a new name is refused by providers, or two are equal; (when asked) a new name is taken.
    """
    new = [check_name(name) for name in names.values()]
    if len(set(new)) < len(new):
        raise DefinitionError(f"renamed: two tools would get one name: {', '.join(sorted(new))}")
    return Renamed(source, names)
