"""Connections: one pool for everything, each connection looked at before it is used."""

import select
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor, conninfo
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from agentkit.errors import DatabaseError, DefinitionError

Pool = ConnectionPool[Connection[DictRow]]
AsyncPool = AsyncConnectionPool[AsyncConnection[DictRow]]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """How a database is to be opened; the arguments of `open_memory`."""

    url: str = field(repr=False)  # may hold a password
    pooler: bool = False
    min_size: int = 1
    max_size: int = 10
    schema: str | None = None
    statement_timeout: float | None = None
    connect_timeout: float = 10.0

    def __post_init__(self) -> None:
        if not 0 <= self.min_size <= self.max_size or self.max_size < 1:
            raise DefinitionError(
                f"open_memory: min_size={self.min_size}, max_size={self.max_size}; "
                "0 <= min_size <= max_size and max_size >= 1 must hold"
            )
        if self.schema is not None and (not self.schema or "\x00" in self.schema):
            raise DefinitionError(f"open_memory: {self.schema!r} is no schema name")
        if self.statement_timeout is not None and self.statement_timeout <= 0:
            raise DefinitionError("open_memory: statement_timeout is a number of seconds above 0, or None")

    def connect_kwargs(self) -> dict[str, Any]:
        """Keyword arguments for psycopg's `connect`."""
        kwargs: dict[str, Any] = {
            "autocommit": True,  # what langgraph's savers and stores expect of a connection
            # a transaction-mode pooler gives each transaction another session, which knows no prepared statements
            "prepare_threshold": None if self.pooler else 0,
            "row_factory": dict_row,
        }
        given = self._given()
        # not an option of the embedded URL, so that whoever has the URL can add his own
        if "connect_timeout" not in given:
            kwargs["connect_timeout"] = max(2, round(self.connect_timeout))
        if "application_name" not in given:
            kwargs["application_name"] = "agentkit"
        # poolers refuse startup options; there, each transaction sets its own
        if not self.pooler and (settings := self.session_settings()):
            flags = [f"-c {name}={_escape(value)}" for name, value in settings.items()]
            kwargs["options"] = " ".join([str(given.get("options") or ""), *flags]).strip()
        return kwargs

    def session_settings(self) -> dict[str, str]:
        """Postgres settings every statement of ours must run under."""
        settings = {}
        if self.schema is not None:
            quoted = self.schema.replace('"', '""')
            settings["search_path"] = f'"{quoted}", public'
        if self.statement_timeout is not None:
            settings["statement_timeout"] = str(max(1, round(self.statement_timeout * 1000)))
        return settings

    @property
    def prelude(self) -> str:
        """What each transaction must start with behind a pooler, "" if nothing."""
        if not self.pooler:
            return ""
        return "; ".join(
            f"SET LOCAL {name} = {value if name == 'search_path' else repr(value)}"
            for name, value in self.session_settings().items()
        )

    def _given(self) -> dict[str, Any]:
        try:
            return dict(conninfo.conninfo_to_dict(self.url))
        except psycopg.Error:
            # from None: libpq's message may quote the URL, and with it the password
            raise DatabaseError(
                "the database URL cannot be read; it looks like postgresql://user:password@host:5432/name"
            ) from None


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def make_pool(wanted: Wanted) -> Pool:
    """A pool that is not open yet."""
    return ConnectionPool(
        wanted.url,
        min_size=wanted.min_size,
        max_size=wanted.max_size,
        kwargs=wanted.connect_kwargs(),
        timeout=30.0,
        open=False,
        name="agentkit",
    )


def make_async_pool(wanted: Wanted) -> AsyncPool:
    """As `make_pool`, for one event loop."""
    return AsyncConnectionPool(
        wanted.url,
        min_size=wanted.min_size,
        max_size=wanted.max_size,
        kwargs=wanted.connect_kwargs(),
        timeout=30.0,
        open=False,
        name="agentkit",
    )


def _stirred(fileno: int) -> bool:
    """Whether there is something to read on an idle connection: the server said goodbye, or closed it.

    Costs two microseconds, where asking the server costs a round trip.
    """
    poll: Callable[[], Any] | None = getattr(select, "poll", None)
    if poll is None:
        return True
    poller = poll()
    poller.register(fileno, select.POLLIN | select.POLLHUP | select.POLLERR)
    return bool(poller.poll(0))


@contextmanager
def _connection(pool: Pool) -> Iterator[Connection[DictRow]]:
    """A connection that is alive. The pool's own check would pause ever longer for each dead one it meets."""
    conn = pool.getconn()
    while _stirred(conn.fileno()):
        try:
            ConnectionPool.check_connection(conn)
            break
        except psycopg.OperationalError:
            pool.putconn(conn)  # sees that it is closed, and makes a new one
            conn = pool.getconn()
    try:
        yield conn
    finally:
        pool.putconn(conn)


@asynccontextmanager
async def _aconnection(pool: AsyncPool) -> AsyncIterator[AsyncConnection[DictRow]]:
    conn = await pool.getconn()
    while _stirred(conn.fileno()):
        try:
            await AsyncConnectionPool.check_connection(conn)
            break
        except psycopg.OperationalError:
            await pool.putconn(conn)
            conn = await pool.getconn()
        except BaseException:
            await pool.putconn(conn)
            raise
    try:
        yield conn
    finally:
        await pool.putconn(conn)


_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"


@contextmanager
def cursor(
    pool: Pool, prelude: str = "", *, transaction: bool = False, snapshot: bool = False
) -> Iterator[Cursor[DictRow]]:
    """A cursor on a connection of its own. `snapshot`: a transaction whose statements all see the same data."""
    with _connection(pool) as conn, conn.cursor(binary=True) as cur:
        if not (prelude or transaction or snapshot):
            yield cur
            return
        with conn.transaction():
            if snapshot:
                cur.execute(_SNAPSHOT)
            if prelude:
                cur.execute(prelude, prepare=False, binary=False)
            yield cur


@asynccontextmanager
async def acursor(
    pool: AsyncPool, prelude: str = "", *, transaction: bool = False, snapshot: bool = False
) -> AsyncIterator[AsyncCursor[DictRow]]:
    """As `cursor`."""
    async with _aconnection(pool) as conn, conn.cursor(binary=True) as cur:
        if not (prelude or transaction or snapshot):
            yield cur
            return
        async with conn.transaction():
            if snapshot:
                await cur.execute(_SNAPSHOT)
            if prelude:
                await cur.execute(prelude, prepare=False, binary=False)
            yield cur
