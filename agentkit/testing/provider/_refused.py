"""How a provider says no."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpError:
    """An answer that is an error: for scripts that want a provider to be busy, over its limit or broken.

    status: such as 429, 500 or 529 (Anthropic's "overloaded").
    kind: the error's type, as the provider names it.
    """

    status: int
    message: str
    kind: str = "api_error"


class Refused(Exception):  # noqa: N818  # it is an answer of the server, not an error in it
    """A request that the provider refuses with status 400."""

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code


def items(value: Any) -> list[Any]:
    """A list as it is; nothing as an empty one."""
    return value if isinstance(value, list) else []
