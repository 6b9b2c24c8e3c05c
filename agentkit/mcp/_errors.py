"""What goes wrong with MCP servers, and how it is said."""

from collections.abc import Iterator

from langchain_core.tools import ToolException

from agentkit.errors import AgentkitError
from agentkit.mcp._extra import sdk
from agentkit.tools._redact import redact, shorten

_UNAUTHORIZED = (401, 403)
_NO_ANSWER = "Server returned an error response"  # the SDK's words where the body holds no answer


class MCPServerError(AgentkitError, ConnectionError):
    """An MCP server cannot be reached, or went away. In a call it becomes an error result."""

    code = "mcp_server"


class MCPToolError(AgentkitError, ToolException):
    """A tool of an MCP server failed and its call had no id, so that its error could not become a result."""

    code = "mcp_tool"


def refused(error: BaseException, status: int | None) -> bool:
    """Whether an error is no answer of the server to a request, but an HTTP error in place of one."""
    return status is not None and any(
        isinstance(each, sdk().MCPError) and (status in _UNAUTHORIZED or _NO_ANSWER in str(each))
        for each in _causes(error)
    )


def lost(error: BaseException) -> bool:
    """Whether an error means that the session is gone, so that another one may do better."""
    lib = sdk()
    for each in _causes(error):
        if isinstance(each, lib.MCPError):
            return each.code == lib.CONNECTION_CLOSED or "Session terminated" in str(each)
        if type(each).__name__ in ("ClosedResourceError", "BrokenResourceError", "EndOfStream"):
            return True
        if type(each).__module__.split(".")[0] in ("httpx", "httpx2", "httpcore", "httpcore2"):
            return True
        if isinstance(each, RuntimeError) and ("Session task" in str(each) or "not connected" in str(each)):
            return True
        if isinstance(each, ConnectionError) and not isinstance(each, MCPServerError):
            return True
    return False


def reason_of(error: BaseException, status: int | None = None) -> str:
    """Why a server was not reached or did not do as told, in a line and without secrets."""
    if status in _UNAUTHORIZED:
        return f"it refused the credentials (HTTP {status}); check headers= and auth="
    if status is not None:
        return f"it answered with HTTP {status}"
    deepest = list(_causes(error))[-1]
    text = " ".join(str(deepest).split()) or type(deepest).__name__
    return shorten(redact(text), 300)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what is grouped in it, and what it came from."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
        if each.__cause__ is not None:
            waiting.append(each.__cause__)
