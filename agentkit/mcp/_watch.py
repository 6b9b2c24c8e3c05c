"""Seeing how a server answers over HTTP: the MCP libraries keep the status to themselves."""

from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx2

_FAILED = 400


class Watch(httpx2.Auth):
    """Passes requests through another authentication, and remembers the status of the last response.

    Args:
        inner: the authentication that does the work; None for none, or for what stands in the URL.
        url: the server's URL.
    """

    def __init__(self, inner: httpx2.Auth | None, url: str) -> None:
        parts = urlsplit(url)
        if inner is None and parts.username:
            inner = httpx2.BasicAuth(unquote(parts.username), unquote(parts.password or ""))
        self._inner = inner if inner is not None else httpx2.Auth()
        self.requires_request_body = self._inner.requires_request_body
        self.requires_response_body = self._inner.requires_response_body
        self.failed: int | None = None

    async def async_auth_flow(self, request: Any) -> AsyncGenerator[Any, Any]:
        """One request, with whatever requests the inner authentication makes around it."""
        flow = self._inner.async_auth_flow(request)
        try:
            request = await anext(flow)
            while True:
                response = yield request
                self.failed = response.status_code if response.status_code >= _FAILED else None
                request = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()


def watched(transport: Any) -> Any:
    """The transport, which is nobody else's, with its responses watched."""
    transport.auth = Watch(transport.auth, str(transport.url))
    return transport


def failed_status(client: Any) -> int | None:
    """The HTTP status of the last response where it was an error; None for other transports."""
    auth = getattr(client.transport, "auth", None)
    return auth.failed if isinstance(auth, Watch) else None
