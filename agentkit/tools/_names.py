"""Names that a provider accepts."""

import re

from agentkit.errors import DefinitionError

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LONGEST = 64


def check_name(name: object) -> str:
    """The name, if it is one for a tool; otherwise DefinitionError with a name that would do."""
    if not isinstance(name, str):
        raise DefinitionError(f"a tool's name must be a string, not {name!r}")
    if not _NAME.fullmatch(name):
        raise DefinitionError(
            f"tool name {name[:100]!r} is refused by model providers; "
            f"use at most {_LONGEST} letters, digits, '_' and '-', such as {proposed(name)!r}"
        )
    return name


def proposed(name: str) -> str:
    """The snake_case name nearest to a wrong one."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    words = re.findall(r"[A-Za-z0-9]+", parted)
    return "_".join(words).lower()[:_LONGEST].rstrip("_") or "my_tool"
