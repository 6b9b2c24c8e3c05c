"""One session with one server, held by one task from opening to close. Everything here runs on the portal's loop."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from agentkit.errors import CallTimeoutError
from agentkit.mcp._errors import MCPServerError, lost, reason_of, refused
from agentkit.mcp._extra import sdk
from agentkit.mcp._servers import Server

logger = logging.getLogger(__name__)

_CLOSE = 6.0  # seconds until a session that does not end is cancelled


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A call on its way to a server.

    answers: what a person answered so far; `responses` and `state` of the round that is to be continued, where the
        protocol has rounds.
    repeatable: whether the server may see it twice.
    """

    tool: str
    args: dict[str, Any]
    timeout: float | None
    meta: dict[str, Any] | None
    repeatable: bool
    answers: tuple[Any, ...] = ()
    responses: Any = None
    state: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What a server asks before it goes on: `requests` by key. With `rounds` it is continued, else begun anew."""

    requests: dict[str, Any]
    state: str | None = None
    rounds: bool


class _Lost(Exception):  # noqa: N818 - why a connection was lost
    """The session ended during a call."""


@dataclass(eq=False, slots=True)
class _InFlight:
    """A call that a server is working on, for what it asks meanwhile."""

    answers: tuple[Any, ...]
    asked: int = 0
    question: "asyncio.Future[Question]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Connection:
    """A session with a server. Opened when it is first used, and again when it was lost.

    Args:
        server: what to connect to.
        connect: makes the client.
        timeout: seconds that connecting may take.
        on_change: called when the server says that its tools have changed, and at each new session.
    """

    def __init__(
        self, server: Server, connect: Callable[[], Any], timeout: float, on_change: Callable[[], None]
    ) -> None:
        self.server = server
        self.used = 0.0
        self.busy = 0
        self._connect = connect
        self._timeout = timeout
        self._on_change = on_change
        self._lock = asyncio.Lock()
        self._client: Any = None
        self._owner: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._calls: list[_InFlight] = []

    async def client(self) -> Any:
        """The connected client. Raises MCPServerError where there is no connecting."""
        async with self._lock:
            if self._client is not None and not _is_dead(self._client):
                return self._client
            await self._end()
            client = self._connect()
            if not self.server.asks_itself:
                client.set_elicitation_callback(self._asked)
            self._listen(client)
            self._stop = asyncio.Event()
            ready = asyncio.get_running_loop().create_future()
            self._owner = asyncio.create_task(_hold(client, ready, self._stop), name=f"mcp {self.server.name}")
            try:
                async with asyncio.timeout(self._timeout):
                    await asyncio.shield(ready)
            except BaseException as error:
                self._owner.cancel()  # it may wait for a server that never answers
                await self._end()
                if isinstance(error, TimeoutError):
                    raise MCPServerError(
                        f"MCP server {self.server.name!r} did not answer within {self._timeout:g} s"
                    ) from error
                if not isinstance(error, Exception):
                    raise
                why = reason_of(error, sdk().failed_status(client))
                raise MCPServerError(f"MCP server {self.server.name!r} cannot be reached: {why}") from error
            self._client = client
            self._on_change()
            return client

    async def close(self) -> None:
        """End the session, and the server's process where it has one."""
        async with self._lock:
            await self._end()

    async def call(self, call: Call, tell: Callable[..., None]) -> Any:
        """The server's result for a call, or the Question it asks.

        Raises:
            MCPServerError: the server is not there, or went away during the call.
            CallTimeoutError: it did not answer in time; it was told to stop.
        """
        try:
            return await self._attempt(call, tell)
        except _Lost as error:
            if not call.repeatable:
                raise MCPServerError(
                    f"MCP server {self.server.name!r} went away while it ran {call.tool}: what became of the call is "
                    f"not known ({error})"
                ) from error.__cause__
        try:
            return await self._attempt(call, tell)
        except _Lost as error:
            raise MCPServerError(
                f"MCP server {self.server.name!r} went away twice while it ran {call.tool} ({error})"
            ) from error.__cause__

    async def _attempt(self, call: Call, tell: Callable[..., None]) -> Any:
        client = await self.client()
        try:
            return await self._call(client, call, tell)
        except Exception as error:
            status = sdk().failed_status(client)
            if lost(error):
                await self._lose(client)
                raise _Lost(reason_of(error, status)) from error
            if refused(error, status):
                raise MCPServerError(
                    f"MCP server {self.server.name!r} did not run {call.tool}: {reason_of(error, status)}"
                ) from error
            raise

    async def _call(self, client: Any, call: Call, tell: Callable[..., None]) -> Any:
        inflight = _InFlight(call.answers)
        self._calls.append(inflight)
        working = asyncio.create_task(self._send(client, call, tell))
        try:
            async with asyncio.timeout(call.timeout):
                await asyncio.wait({working, inflight.question}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                return inflight.question.result()
            return working.result()
        except TimeoutError as error:
            if working.done():
                raise
            raise CallTimeoutError(
                f"{call.tool} of MCP server {self.server.name!r} took over {call.timeout:g} s and was told to stop"
            ) from error
        finally:
            self._calls.remove(inflight)
            inflight.question.cancel()
            if not working.done():
                working.cancel()  # the library tells the server
                await asyncio.wait({working}, timeout=_CLOSE)
            if working.done() and not working.cancelled():
                working.exception()  # seen

    async def _send(self, client: Any, call: Call, tell: Callable[..., None]) -> Any:
        lib = sdk()

        async def progress(done: float, total: float | None = None, note: str | None = None) -> None:
            tell(done, total, note)

        if self.server.asks_itself:
            return await client.call_tool_mcp(call.tool, call.args, progress_handler=progress, meta=call.meta)
        sending = client.session.call_tool(
            call.tool,
            call.args,
            progress_callback=progress,
            meta=call.meta,
            input_responses=call.responses,
            request_state=call.state,
            allow_input_required=True,
        )
        # Over HTTP an error can end the session rather than the request; fastmcp's own calls are watched in this way.
        watched = getattr(client, "_await_with_session_monitoring", None)
        result = await (sending if watched is None else watched(sending))
        if isinstance(result, lib.InputRequiredResult):
            return Question(requests=result.input_requests or {}, state=result.request_state, rounds=True)
        return result

    async def _asked(self, _message: str, _type: Any, params: Any, _context: Any) -> Any:
        """A server asks during a call (protocols before 2026-07-28): by one question at a time.

        The call is given up, a person is asked, and the call is begun anew with the answers that are known by then.
        """
        lib = sdk()
        if len(self._calls) != 1:
            raise RuntimeError("a question can be asked only while one call is open on this connection")
        (call,) = self._calls
        position, call.asked = call.asked, call.asked + 1
        if position < len(call.answers):
            return call.answers[position]
        if not call.question.done():
            request = lib.ElicitRequest(method="elicitation/create", params=params)
            call.question.set_result(Question(requests={f"question_{position + 1}": request}, rounds=False))
        return await asyncio.get_running_loop().create_future()  # until the call is given up

    def _listen(self, client: Any) -> None:
        """Hear when the server's tools change, beside whatever the caller's client hears already."""
        handler = client._session_kwargs.get("message_handler")  # noqa: SLF001 - there is no public way to add one
        changed = self._on_change

        async def hear(message: Any) -> None:
            if type(message).__name__ == "ToolListChangedNotification":
                changed()
            if handler is not None:
                await handler(message)

        client._session_kwargs["message_handler"] = hear  # noqa: SLF001 - as above

    async def _lose(self, client: Any) -> None:
        """End the session of this client; another call may have opened a new one by now, which stays."""
        async with self._lock:
            if self._client is client:
                await self._end()

    async def _end(self) -> None:
        owner, self._owner, self._client = self._owner, None, None
        if owner is None:
            return
        self._stop.set()
        await asyncio.wait({owner}, timeout=_CLOSE)
        if not owner.done():
            owner.cancel()
            await asyncio.wait({owner}, timeout=_CLOSE)


async def _hold(client: Any, ready: "asyncio.Future[None]", stop: asyncio.Event) -> None:
    """Keep a client connected until told to stop: the one task that enters it and leaves it."""
    try:
        async with client:
            if not ready.done():
                ready.set_result(None)
            await stop.wait()
    except Exception as error:
        if not ready.done():
            ready.set_exception(error)
            ready.exception()  # seen, also where nobody waits any more
        else:
            logger.debug("an MCP session did not end well", exc_info=True)
    finally:
        with suppress(Exception):
            await client.close()  # a transport may keep its process without


def _is_dead(client: Any) -> bool:
    """Whether a client that was connected has lost its session."""
    if not client.is_connected():
        return True
    runner = getattr(client._session_state, "session_task", None)  # noqa: SLF001 - not to be learnt otherwise
    if runner is not None and runner.done():
        return True
    dispatcher = getattr(client.session, "_dispatcher", None)
    return bool(getattr(dispatcher, "_closed", False))
