"""MCPAdapter: MCP servers as a toolset."""

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from langchain_core.tools import BaseTool

from agentkit.errors import DefinitionError
from agentkit.mcp._approval import Approve, check_approve
from agentkit.mcp._catalogue import Catalogue
from agentkit.mcp._pins import Pins
from agentkit.mcp._portal import portal
from agentkit.mcp._servers import Headers, Target, servers_of
from agentkit.mcp._sessions import Access, Key, Runtime, Sessions, Share
from agentkit.mcp._tool import Route, Settings

T = TypeVar("T")

CacheMode = Literal["use", "refresh", "bypass"]

_FRESH = 300.0  # seconds
_IDLE = 600.0  # seconds
_SESSIONS = 100


class MCPAdapter:
    """Tools of MCP servers.

    `async with MCPAdapter(target) as adapter` (or `with`) holds the connections for the length of the block, and
    `await adapter.list_tools()` gives the tools. The adapter is a toolset too: `create_agent(tools=[adapter])` asks it
    at each model call, so that a list that changes, and sessions and rights per user, are followed.

    Connections are held by tasks of their own on one background event loop: opening, calling and closing may happen in
    different tasks, threads and event loops, in sync and in async code. A connection that was lost is opened again at
    the next call. A call that was cancelled or took too long is cancelled on the server. Progress that a server reports
    goes to `runtime.progress`; what it asks a person interrupts the run, as LangChain's adapter does
    (`{"type": "mcp_elicitation", …}`). Not opened, the adapter connects when it is needed and stays connected until
    `close`, or the end of the process; after it was closed, each call connects for itself.

    A result has the server's text, images, audio, files and links as content blocks, and `{"structured_content": …}` as
    artifact. A server's error, a lost server and an overdue answer are error results.

    Args:
        target: an http(s) URL; a `Path` to a .py or .js server, or to a .json configuration; a command as a list of
            words (`["mcp-server-time"]`); a dict `{"mcpServers": {name: …}}`; a fastmcp `Client`, `ClientGroup` or
            transport; a server object in this process. With several servers tool names are `{server}_{tool}`.
        session: "shared" (default), or a session of its own for each "thread" or "user", for servers that keep state.
        headers: sent with every request; or a function of the run that makes them. Credentials that depend on the run
            make a session per caller: they never go with another's call.
        auth: a bearer token, "oauth" or an httpx auth; or a function of the run that gives one.
        env: environment variables of a local server, beside a small safe set of this process's own.
        cwd: the folder that a local server runs in.
        timeout: seconds that a call may take; None for no limit.
        connect_timeout: seconds that connecting may take.
        max_output: characters of text in a result; the whole stays in the artifact.
        max_bytes: the size of one image, audio or file in a result; a larger one is left out with a note.
        approve: which calls a person approves first: "destructive" (all that are not said to be harmless), "all", or a
            function of the tool. It interrupts the run in the form of LangChain's HumanInTheLoopMiddleware.
        pin: a file of pinned tools. The first listing writes it; later a new or changed tool is refused (`refused`)
            until `accept` is called.
        required: whether asking for tools fails when a server cannot be reached; if not, a warning is logged and the
            others go on.
        name: what a single server is called, in messages and in the pin file.
        prefix: put before every tool name.

    Raises:
        DefinitionError: the target is none of these, or a setting makes no sense.
        MissingExtraError: the MCP libraries are not installed.

    Example:
        async with MCPAdapter("https://example.com/mcp") as adapter:
            agent = create_agent(model, await adapter.list_tools())
    """

    def __init__(  # noqa: PLR0913 - each is one thing that people set
        self,
        target: Target,
        *,
        session: Share = "shared",
        headers: Headers | Callable[[Runtime], Headers] | None = None,
        auth: Any = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float | None = 60.0,
        connect_timeout: float = 20.0,
        max_output: int | None = 100_000,
        max_bytes: int | None = 10_000_000,
        approve: Approve = None,
        pin: str | Path | None = None,
        required: bool = True,
        name: str | None = None,
        prefix: str = "",
    ) -> None:
        if session not in ("shared", "thread", "user"):
            raise DefinitionError(f"session={session!r} is not known: give 'shared', 'thread' or 'user'")
        check_approve(approve)
        for field, seconds in (("timeout", timeout), ("connect_timeout", connect_timeout)):
            if seconds is not None and not seconds > 0:
                raise DefinitionError(f"{field}={seconds!r} makes no sense: give seconds above 0")
        servers = servers_of(target, name=name, env=env, cwd=cwd)
        if (headers is not None or auth is not None) and not any(server.takes_headers for server in servers):
            raise DefinitionError("headers and auth need a server with a URL; give a local one its secrets by env=")
        self._access = Access(share=session, headers=headers, auth=auth)
        self._settings = Settings(timeout=timeout, max_output=max_output, max_bytes=max_bytes, approve=approve)
        self._opened = 0
        self._closed = False
        pins = None if pin is None else Pins(Path(pin))
        self._catalogues = [
            self._catalogue(
                server,
                prefix + (f"{server.name}_" if len(servers) > 1 else ""),
                pins,
                connect_timeout=connect_timeout,
                required=required,
            )
            for server in servers
        ]
        self.label = f"MCPAdapter({', '.join(server.name for server in servers)})"
        self._closer = _closer([catalogue.route.sessions for catalogue in self._catalogues])
        weakref.finalize(self, _forget, self._closer).atexit = False

    def _catalogue(
        self, server: Any, prefix: str, pins: Pins | None, *, connect_timeout: float, required: bool
    ) -> Catalogue:
        changes: list[Catalogue] = []

        def on_change(key: Key) -> None:
            changes[0].outdated(key)

        keep = weakref.WeakMethod(self._keeps)
        sessions = Sessions(server, timeout=connect_timeout, most=_SESSIONS, idle=_IDLE, on_change=on_change)
        route = Route(
            guard=None,
            sessions=sessions,
            access=self._access,
            settings=self._settings,
            keep=lambda: method() if (method := keep()) is not None else False,
            tool="",
            repeatable=False,
        )
        changes.append(Catalogue(route, prefix=prefix, pins=pins, fresh=_FRESH, required=required))
        return changes[0]

    def _keeps(self) -> bool:
        return not self._closed

    @property
    def refused(self) -> dict[str, str]:
        """Why tools are not offered, by the server's name for them: they changed, or their schema is wrong."""
        return {name: why for catalogue in self._catalogues for name, why in catalogue.refused.items()}

    # as a toolset

    def tools(self, runtime: Runtime | None = None) -> list[BaseTool]:
        """The tools, in sync code; without a run, those of the session that belongs to nobody.

        Raises:
            MCPServerError: a server cannot be reached and never could.
            DefinitionError: credentials depend on the run, and there is none.
        """
        known = self._known(runtime)
        return known if known is not None else self._start(self._list(runtime, "use")).result()

    async def atools(self, runtime: Runtime | None = None) -> list[BaseTool]:
        """The tools. Raises as `tools` does."""
        known = self._known(runtime)
        return known if known is not None else await asyncio.wrap_future(self._start(self._list(runtime, "use")))

    async def list_tools(self, *, cache_mode: CacheMode = "use") -> list[BaseTool]:
        """The tools of all servers.

        Args:
            cache_mode: "use" what was listed in the last minutes, or ask the servers anew ("refresh", "bypass").

        Raises:
            MCPServerError: a server cannot be reached and never could.
        """
        if cache_mode == "use":
            return await self.atools()
        return await asyncio.wrap_future(self._start(self._list(None, cache_mode)))

    # lifecycle

    async def __aenter__(self) -> Self:
        await asyncio.wrap_future(self._start(self._open()))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._leaves():
            await self.aclose()

    def __enter__(self) -> Self:
        self._start(self._open()).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._leaves():
            self.close()

    async def aclose(self) -> None:
        """Close all connections, and the processes of local servers. May be called from anywhere, more than once."""
        self._closed = True
        await asyncio.shield(asyncio.wrap_future(self._start(self._closer())))

    def close(self) -> None:
        """`aclose`, in sync code."""
        self._closed = True
        self._start(self._closer()).result()

    async def use(self, work: Callable[[Any], Awaitable[T]], *, server: str | None = None) -> T:
        """Do something else with a server: `await adapter.use(lambda client: client.list_prompts())`.

        Args:
            work: an async function of the connected fastmcp client; it runs on the loop that holds the connection.
            server: which one, where there are several.

        Raises:
            DefinitionError: there is no such server.
            MCPServerError: it cannot be reached.
        """
        chosen = [each for each in self._catalogues if server in (None, each.server)]
        if len(chosen) != 1:
            names = ", ".join(each.server for each in self._catalogues)
            raise DefinitionError(f"which server? server= is one of: {names}")
        return await asyncio.wrap_future(self._start(self._use(chosen[0], work)))

    async def accept(self) -> None:
        """Pin the tools as the servers offer them now: what was refused for a change is offered from now on."""
        await asyncio.wrap_future(self._start(self._accept()))

    # on the portal's loop

    def _start(self, work: Any) -> "Future[Any]":
        owner = portal()
        owner.closers.add(self._closer)
        return owner.start(work)

    async def _open(self) -> None:
        self._closed = False
        try:
            if not self._access.is_personal and self._access.share == "shared":
                await self._list(None, "refresh" if not self._opened else "use")
        except BaseException:
            if not self._opened:
                await self._closer()
            raise
        self._opened += 1

    def _leaves(self) -> bool:
        self._opened = max(0, self._opened - 1)
        return self._opened == 0

    def _known(self, runtime: Runtime | None) -> list[BaseTool] | None:
        key = self._access.ticket(runtime).key
        found: list[BaseTool] = []
        for catalogue in self._catalogues:
            tools = catalogue.known(key)
            if tools is None:
                return None
            found += tools
        return found

    async def _list(self, runtime: Runtime | None, cache_mode: CacheMode) -> list[BaseTool]:
        ticket = self._access.ticket(runtime)

        async def of(catalogue: Catalogue) -> Sequence[BaseTool]:
            known = catalogue.known(ticket.key) if cache_mode == "use" else None
            return known if known is not None else await catalogue.fetch(ticket, keep=self._keeps())

        lists = await asyncio.gather(*map(of, self._catalogues))
        return [tool for tools in lists for tool in tools]

    async def _use(self, catalogue: Catalogue, work: Callable[[Any], Awaitable[T]]) -> T:
        ticket = self._access.ticket(None)
        async with catalogue.route.sessions.session(ticket, keep=self._keeps()) as connection:
            return await work(await connection.client())

    async def _accept(self) -> None:
        await asyncio.gather(*(catalogue.accept() for catalogue in self._catalogues))


def _closer(sessions: Sequence[Sessions]) -> Callable[[], Any]:
    """Closes these sessions; holds no reference to the adapter."""

    async def close() -> None:
        await asyncio.gather(*(each.close() for each in sessions))

    return close


def _forget(closer: Callable[[], Any]) -> None:
    """An adapter that nobody holds any more closes what it left open."""
    owner = portal()
    if closer in owner.closers:
        owner.closers.discard(closer)
        owner.start(closer())
