"""One transaction for what a tool does and for the record that it did it: exactly once, as far as Postgres reaches.

The transaction opens when the tool first asks for it, and is committed by the record of the call's result, which is
written on the same connection. Whatever happens before that (an error, a question, a cancel, the end of the process)
leaves neither effect nor record, so the call can safely run again. Two processes that run one call at the same time
write the record under the same key: the second one finds it there and takes everything back.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver

from agentkit.errors import CallTimeoutError, InjectionError, NotStorableError
from agentkit.tools._ledger import CHANNEL, Event
from agentkit.tools._ledger_io import Ledger

_RECORD = """
INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
VALUES (%s, %s, %s, %s, '', 0, %s, %s, %s) ON CONFLICT DO NOTHING
"""
_NAMESPACE = uuid.UUID("5d3f0f0c-9d07-5b0e-8f5e-0f3f6d9a7c21")


class RecordedElsewhereError(Exception):
    """Another process has recorded this call meanwhile; what this one did was taken back."""


class Transaction:
    """The transaction of one call: `with runtime.transaction() as conn` or `async with`.

    `conn` is a psycopg connection. Never commit on it: leaving the block keeps what was done for the commit that comes
    with the result; an exception that leaves the block takes back what the block did. Blocks of one call share the
    transaction.
    """

    def __init__(self, ledger: Ledger, name: str) -> None:
        self._ledger = ledger
        self._name = name
        self._source: Source | None = None
        self._conn: Any = None
        self._pool: Any = None
        self._rows: Any = None
        self._over = False
        self._blocks: list[Any] = []

    @property
    def is_open(self) -> bool:
        """Whether something was begun that is neither committed nor taken back."""
        return self._conn is not None

    def opened(self) -> "Transaction":
        """What `runtime.transaction()` gives. Raises InjectionError where there is no Postgres."""
        if self._source is None:
            self._source = source_of(self._ledger.saver)
        return self

    # --- for tools -----------------------------------------------------------------------------------------------

    def __enter__(self) -> Any:
        block = self._block()
        conn = block.__enter__()
        self._blocks.append(block)
        return conn

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return cast("bool | None", self._blocks.pop().__exit__(kind, error, trace))

    async def __aenter__(self) -> Any:
        block = self._ablock()
        conn = await block.__aenter__()
        self._blocks.append(block)
        return conn

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return cast("bool | None", await self._blocks.pop().__aexit__(kind, error, trace))

    @contextmanager
    def _block(self) -> Iterator[Any]:
        if self._conn is not None:
            with self._conn.transaction():  # a savepoint, since one is open
                yield self._conn
            return
        self._begin()
        try:
            yield self._conn
        except BaseException as error:
            self.rollback(error)
            raise

    @asynccontextmanager
    async def _ablock(self) -> AsyncIterator[Any]:
        if self._conn is not None:
            async with self._conn.transaction():
                yield self._conn
            return
        await self._abegin()
        try:
            yield self._conn
        except BaseException as error:
            await self.arollback(error)
            raise

    # --- for the node --------------------------------------------------------------------------------------------

    def commit(self, event: Event) -> None:
        """Commit with the record. Raises RecordedElsewhereError or NotStorableError when it was taken back instead."""
        try:
            cursor = self._conn.execute(_RECORD, self._row(event), binary=True)
            self._check(cursor.rowcount)
            self._conn.execute("COMMIT")
        except BaseException as error:
            self.rollback(error)
            raise
        self._release()

    async def acommit(self, event: Event) -> None:
        """As `commit`; a sync connection is used in a thread."""
        if self._is_sync:
            await asyncio.to_thread(self.commit, event)
            return
        try:
            cursor = await self._conn.execute(_RECORD, self._row(event), binary=True)
            self._check(cursor.rowcount)
            await self._conn.execute("COMMIT")
        except BaseException as error:
            await self.arollback(error)
            raise
        await self._arelease()

    def rollback(self, error: BaseException) -> None:
        """Take everything back; nothing to do where nothing was begun."""
        if self._conn is None:
            return
        try:
            if _may_still_run(error):
                self._conn.close()
            elif not self._conn.closed:
                self._conn.execute("ROLLBACK")
        finally:
            self._release()

    async def arollback(self, error: BaseException) -> None:
        """As `rollback`."""
        if self._conn is None:
            return
        if self._is_sync:
            await asyncio.to_thread(self.rollback, error)
            return
        try:
            if _may_still_run(error):
                await self._conn.close()
            elif not self._conn.closed:
                await self._conn.execute("ROLLBACK")
        finally:
            await self._arelease()

    def end(self) -> None:
        """The call is over: a body that runs on after its time limit gets no other transaction."""
        self._over = True

    @property
    def _is_sync(self) -> bool:
        from psycopg import Connection

        return isinstance(self._conn, Connection)

    def _check(self, count: int) -> None:
        if not count:
            raise RecordedElsewhereError(self._name)

    def _row(self, event: Event) -> tuple[Any, ...]:
        place = self._ledger.place["configurable"]
        try:
            kind, blob = self._ledger.saver.serde.dumps_typed(event)
        except Exception as error:
            raise NotStorableError(f"cannot be stored: {type(error).__name__}: {str(error)[:200]}") from error
        task = str(uuid.uuid5(_NAMESPACE, "/".join(event["k"])))
        return (place["thread_id"], place["checkpoint_ns"], place["checkpoint_id"], task, CHANNEL, kind, blob)

    # --- connections ---------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        from psycopg import Connection
        from psycopg.rows import tuple_row

        self._refuse_when_over()
        source = self._source or source_of(self._ledger.saver)
        conn = source.pool.getconn() if source.has_pool(asynchronous=False) else None
        if conn is None:
            conn = Connection.connect(source.conninfo, **source.kwargs)
        else:
            self._pool = source.pool
        self._conn, self._rows, conn.row_factory = conn, conn.row_factory, tuple_row
        try:
            conn.execute("BEGIN")
            if source.prelude:
                conn.execute(source.prelude, prepare=False)
        except BaseException:
            self._release()
            raise

    async def _abegin(self) -> None:
        from psycopg import AsyncConnection
        from psycopg.rows import tuple_row

        self._refuse_when_over()
        source = self._source or source_of(self._ledger.saver)
        conn = await source.pool.getconn() if source.has_pool(asynchronous=True) else None
        if conn is None:
            conn = await AsyncConnection.connect(source.conninfo, **source.kwargs)
        else:
            self._pool = source.pool
        self._conn, self._rows, conn.row_factory = conn, conn.row_factory, tuple_row
        try:
            await conn.execute("BEGIN")
            if source.prelude:
                await conn.execute(source.prelude, prepare=False)
        except BaseException:
            await self._arelease()
            raise

    def _refuse_when_over(self) -> None:
        if self._over:
            raise InjectionError(f"{self._name} asks for a transaction after its call has ended")

    def _release(self) -> None:
        conn, pool, self._conn, self._pool = self._conn, self._pool, None, None
        conn.row_factory = self._rows
        if pool is not None:
            pool.putconn(conn)
        else:
            conn.close()

    async def _arelease(self) -> None:
        conn, pool, self._conn, self._pool = self._conn, self._pool, None, None
        conn.row_factory = self._rows
        if pool is not None:
            await pool.putconn(conn)
        else:
            await conn.close()


def _may_still_run(error: BaseException) -> bool:
    """Whether the body may go on after this: then its connection must not be given to anybody else."""
    return isinstance(error, CallTimeoutError | asyncio.CancelledError)


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where connections to a saver's database come from: its pool, or new ones made as its own was."""

    pool: Any
    conninfo: str
    kwargs: dict[str, Any]
    prelude: str

    def has_pool(self, *, asynchronous: bool) -> bool:
        """Whether there is a pool of this kind."""
        from psycopg_pool import AsyncConnectionPool, ConnectionPool

        return isinstance(self.pool, AsyncConnectionPool if asynchronous else ConnectionPool)


def source_of(saver: BaseCheckpointSaver[Any]) -> Source:
    """The database behind a saver. Raises InjectionError where it is no Postgres."""
    from psycopg import AsyncConnection, Connection
    from psycopg.conninfo import make_conninfo
    from psycopg_pool import AsyncConnectionPool, ConnectionPool

    conn = getattr(saver, "conn", None)
    prelude = str(getattr(saver, "prelude", ""))
    if isinstance(conn, ConnectionPool | AsyncConnectionPool):
        kwargs = {**(conn.kwargs if isinstance(conn.kwargs, dict) else {}), "autocommit": True}
        return Source(pool=conn, conninfo=str(conn.conninfo), kwargs=kwargs, prelude=prelude)
    if isinstance(conn, Connection | AsyncConnection):
        secret = {"password": conn.info.password} if conn.info.password else {}
        conninfo = make_conninfo(conn.info.dsn, **secret)
        return Source(pool=None, conninfo=conninfo, kwargs={"autocommit": True}, prelude=prelude)
    raise InjectionError(
        f"a transaction needs a Postgres checkpointer, and this run has a {type(saver).__name__}; "
        "use agentkit.memory.open_memory(), or PostgresSaver / AsyncPostgresSaver of langgraph"
    )


@dataclass(frozen=True, slots=True)
class Commit:
    """The step that commits a call's transaction with its record."""

    transaction: Transaction
    ledger: Ledger
    event: Event

    def run(self) -> None:
        """Commit in this thread."""
        self.transaction.commit(self.event)
        self.ledger.learn(self.event)

    async def arun(self) -> None:
        """Commit on the event loop."""
        await self.transaction.acommit(self.event)
        self.ledger.learn(self.event)


@dataclass(frozen=True, slots=True)
class Rollback:
    """The step that takes a call's transaction back."""

    transaction: Transaction
    error: BaseException

    def run(self) -> None:
        """Roll back in this thread."""
        self.transaction.rollback(self.error)

    async def arun(self) -> None:
        """Roll back on the event loop."""
        await self.transaction.arollback(self.error)


@dataclass(frozen=True, slots=True)
class Transacted:
    """The step that runs a body whose attempt leaves nothing behind when it fails."""

    body: Any
    transaction: Transaction

    @property
    def call(self) -> Any:
        """The call that is run."""
        return self.body.call

    def run(self) -> Any:
        """Run it in this thread."""
        try:
            return self.body.run()
        except BaseException as error:
            self.transaction.rollback(error)
            raise

    async def arun(self) -> Any:
        """Run it on the event loop."""
        try:
            return await self.body.arun()
        except BaseException as error:
            await self.transaction.arollback(error)
            raise
