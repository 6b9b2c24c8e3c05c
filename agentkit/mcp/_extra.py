"""Loading the MCP libraries, or saying how to get them."""

from types import ModuleType
from typing import Any

from agentkit.errors import MissingExtraError

_loaded: ModuleType | None = None


def sdk() -> Any:
    """The MCP libraries' names (`agentkit.mcp._sdk`). Raises MissingExtraError where they are not installed."""
    global _loaded  # noqa: PLW0603 - a module, loaded once
    if _loaded is None:
        try:
            from agentkit.mcp import _sdk
        except ImportError as error:
            raise MissingExtraError(
                f"MCP servers need fastmcp ({error.name or error} is missing): pip install 'agentkit[mcp]'"
            ) from error
        _loaded = _sdk
    return _loaded
