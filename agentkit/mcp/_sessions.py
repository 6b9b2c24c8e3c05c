"""The sessions of one server: one for all, or one per thread or user, each found by its key. On the portal's loop."""

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agentkit.errors import DefinitionError, InjectionError
from agentkit.mcp._connection import Connection
from agentkit.mcp._servers import Headers, Server
from agentkit.tools import ToolRuntime, identity

Runtime: TypeAlias = ToolRuntime[Any, Any]
Share: TypeAlias = Literal["shared", "thread", "user"]
Key: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Access:
    """Whose session a call uses, and with which credentials.

    share: "shared", or a session per "thread" or "user".
    headers, auth: sent to the server; functions of the run make them per caller.
    """

    share: Share
    headers: Headers | Callable[[Runtime], Headers] | None
    auth: Any

    @property
    def is_personal(self) -> bool:
        """Whether credentials depend on who calls."""
        return callable(self.headers) or _is_function(self.auth)

    def ticket(self, runtime: Runtime | None) -> "Ticket":
        """The session for this run. One user's credentials make a session that no other user's call finds.

        Raises:
            DefinitionError: it depends on the run, and there is none.
            InjectionError: the run has no thread, or nobody it acts for.
        """
        if self.share == "shared" and not self.is_personal:
            return Ticket(key=(), headers=self.headers, auth=self.auth)  # type: ignore[arg-type]
        if runtime is None:
            if self.is_personal:
                raise DefinitionError(
                    "the credentials of this MCP server depend on the run: give the adapter itself to the agent, "
                    "create_agent(tools=[adapter])"
                )
            return Ticket(key=(), headers=self.headers, auth=self.auth)  # type: ignore[arg-type]
        headers = self.headers(runtime) if callable(self.headers) else self.headers
        auth = self.auth(runtime) if _is_function(self.auth) else self.auth
        key: Key = ("thread", _thread_of(runtime)) if self.share == "thread" else ()
        if self.share == "user" or self.is_personal:
            key = (*key, *identity(runtime).namespace)
        if self.is_personal:
            key = (*key, _digest(headers, auth))
        return Ticket(key=key, headers=headers, auth=auth)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ticket:
    """What opens a session, and the key it is kept under."""

    key: Key
    headers: Headers | None
    auth: Any


def _is_function(auth: Any) -> bool:
    # An httpx Auth is an object with methods; a function of the run is just callable.
    return callable(auth) and not hasattr(auth, "auth_flow")


def _thread_of(runtime: Runtime) -> str:
    thread = getattr(runtime.execution_info, "thread_id", None)
    thread = thread or (runtime.config or {}).get("configurable", {}).get("thread_id")
    if not thread:
        raise InjectionError(
            "an MCP server with session='thread' needs a thread: run with a checkpointer and a thread_id"
        )
    return str(thread)


def _digest(headers: Headers | None, auth: Any) -> str:
    """Tells credentials apart without keeping them; an object is its identity."""
    parts = sorted((headers or {}).items())
    text = repr((parts, auth if isinstance(auth, str) else id(auth)))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Sessions:
    """The open sessions of one server.

    Args:
        server: what to connect to.
        timeout: seconds that connecting may take.
        most: how many sessions are kept; beyond that the one unused for longest is closed.
        idle: seconds after which an unused session of a thread or user is closed.
        on_change: told the key of a session whose tools may have changed.
    """

    def __init__(
        self, server: Server, *, timeout: float, most: int, idle: float, on_change: Callable[[Key], None]
    ) -> None:
        self.server = server
        self._timeout = timeout
        self._most = most
        self._idle = idle
        self._on_change = on_change
        self._open: dict[Key, Connection] = {}
        self._pid = os.getpid()
        self._sweeper: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def session(self, ticket: Ticket, *, keep: bool) -> AsyncIterator[Connection]:
        """The session for a ticket, opened at its first use. Not kept, it is closed when the last user leaves it."""
        if self._pid != os.getpid():  # a fork's connections are its parent's
            self._pid, self._open, self._sweeper, self._closing = os.getpid(), {}, None, set()
        connection = self._open.get(ticket.key)
        if connection is None:
            connection = self._open[ticket.key] = self._new(ticket)
        connection.busy += 1
        try:
            yield connection
        finally:
            connection.busy -= 1
            connection.used = time.monotonic()
            if not keep and not connection.busy:
                self._open.pop(ticket.key, None)
                await connection.close()
            else:
                self._sweep()

    async def close(self) -> None:
        """Close all sessions."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        connections, self._open = list(self._open.values()), {}
        await asyncio.gather(*(each.close() for each in connections), *self._closing)

    def _new(self, ticket: Ticket) -> Connection:
        def connect() -> Any:
            return self.server.connect(ticket.headers, ticket.auth)

        return Connection(self.server, connect, self._timeout, lambda: self._on_change(ticket.key))

    def _sweep(self) -> None:
        """Close what nobody used for long, and what is too many; come back when the next one is due."""
        now = time.monotonic()
        unused = sorted((c.used, key) for key, c in self._open.items() if key != () and not c.busy)
        too_many = len(self._open) - self._most
        for position, (used, key) in enumerate(unused):
            if position < too_many or now - used >= self._idle:
                task = asyncio.create_task(self._open.pop(key).close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        if any(key != () for key in self._open):
            self._sweeper = asyncio.get_running_loop().call_later(self._idle, self._sweep)
