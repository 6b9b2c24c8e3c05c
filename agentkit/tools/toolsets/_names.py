"""Merging tools of several sources by name."""

from collections.abc import Iterable, Mapping, Sequence

from langchain_core.tools import BaseTool

from agentkit.errors import DefinitionError


def by_name(
    groups: Iterable[tuple[str, Sequence[BaseTool]]], fixed: Mapping[str, BaseTool] | None = None
) -> dict[str, BaseTool]:
    """The tools of all groups by name, in order.

    Args:
        groups: what a source is called, and its tools.
        fixed: tools whose names are taken already.

    Raises:
        DefinitionError: two tools share a name; it names both sides.
    """
    fixed = fixed or {}
    found: dict[str, BaseTool] = {}
    owners: dict[str, str] = {}
    for label, tools in groups:
        for tool in tools:
            name = tool.name
            if name in fixed or name in owners:
                other = (
                    f"toolset {owners[name]}" if name in owners else f"the listed tools ({type(fixed[name]).__name__})"
                )
                raise DefinitionError(
                    f"two tools are named {name!r}: one of {other} and one of toolset {label}; "
                    "use prefixed() or renamed() on one of them, or filtered() to drop one"
                )
            found[name], owners[name] = tool, label
    return found
