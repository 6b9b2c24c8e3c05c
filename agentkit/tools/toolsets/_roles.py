"""A toolset that gives each role its own tools."""

from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from langchain_core.tools import BaseTool

from agentkit.errors import DefinitionError
from agentkit.tools.toolsets._base import Runtime, Tools, Toolset, WrapperToolset

EVERYBODY = "*"


def roles_of(runtime: Runtime) -> frozenset[str]:
    """The roles of whoever a run acts for, from what a client cannot forge.

    On a server: `permissions` and `roles` of the authenticated user; nothing that a client sets counts there. Off the
    server: `roles` of the run's context (dataclass, pydantic model or dict).
    """
    server = runtime.server_info
    if server is None:
        return frozenset(_texts(_field(runtime.context, "roles")))
    user = getattr(server, "user", None)
    return frozenset([*_texts(_field(user, "permissions")), *_texts(_field(user, "roles"))])


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        return (value,)
    return [str(each) for each in value] if isinstance(value, Iterable) else ()


class ForRoles(WrapperToolset):
    """Made by `for_roles`."""

    def __init__(
        self,
        source: Toolset | Tools,
        mapping: Mapping[str, Collection[str]],
        roles: Callable[[Runtime], Collection[str]],
    ) -> None:
        super().__init__(source)
        self.mapping = {role: tuple(patterns) for role, patterns in mapping.items()}
        self.roles = roles

    def change(self, tools: list[BaseTool], runtime: Runtime) -> list[BaseTool]:
        """The tools that one of the caller's roles has."""
        held = {EVERYBODY, *self.roles(runtime)}
        patterns = [pattern for role, each in self.mapping.items() if role in held for pattern in each]
        return [tool for tool in tools if any(fnmatchcase(tool.name, pattern) for pattern in patterns)]


def for_roles(
    source: Toolset | Tools,
    mapping: Mapping[str, Collection[str]],
    *,
    roles: Callable[[Runtime], Collection[str]] = roles_of,
) -> ForRoles:
    """The tools of `source` that the caller's roles allow; what no role has is offered to nobody.

    Args:
        source: a toolset, or a list of tools.
        mapping: the tool names of each role, with `*` and `?` as in file names; the role `"*"` is everybody's:
            `{"*": ["search_*"], "admin": ["*"]}`.
        roles: who has which roles; `roles_of` by default.

    Raises:
        DefinitionError: a role has a text where a list of names belongs.
    """
    for role, patterns in mapping.items():
        if isinstance(patterns, str):
            raise DefinitionError(f"for_roles: role {role!r} needs a list of tool names: write [{patterns!r}]")
    return ForRoles(source, mapping, roles)
