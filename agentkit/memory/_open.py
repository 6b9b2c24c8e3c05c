"""Opening a memory: one pool, one checkpointer, one store, set up and ready."""

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import psycopg_pool
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore

from agentkit.errors import DatabaseError
from agentkit.memory import _setup
from agentkit.memory._pool import Wanted, make_async_pool, make_pool
from agentkit.memory._saver import AsyncPostgresSaver, PostgresSaver


@dataclass(frozen=True, kw_only=True)
class Memory:
    """An open database: `checkpointer` for threads, `store` for what outlives them. Closed by its context."""

    url: str = field(repr=False)
    checkpointer: PostgresSaver
    store: PostgresStore


@dataclass(frozen=True, kw_only=True)
class AsyncMemory:
    """As `Memory`, for the event loop it was opened in."""

    url: str = field(repr=False)
    checkpointer: AsyncPostgresSaver
    store: AsyncPostgresStore


@contextmanager
def database(url: str | None = None) -> Iterator[str]:
    """The URL of the database to use: `url`, else `AGENTKIT_DATABASE_URL`, else an embedded Postgres kept running.

    Raises:
        DatabaseError: the embedded Postgres cannot be started.
        MissingExtraError: there is no URL, and the embedded Postgres is not installed.
    """
    known = url or os.environ.get("AGENTKIT_DATABASE_URL")
    if known:
        yield known
        return
    if sys.platform == "win32":
        raise DatabaseError("the embedded Postgres needs Linux or macOS; set AGENTKIT_DATABASE_URL")
    from agentkit.memory._embedded import EmbeddedServer  # its modules exist on POSIX only

    with EmbeddedServer().use() as embedded:
        yield embedded


@contextmanager
def open_memory(
    url: str | None = None,
    *,
    pooler: bool = False,
    min_size: int = 1,
    max_size: int = 10,
    schema: str | None = None,
    statement_timeout: float | None = None,
) -> Iterator[Memory]:
    """Opens the memory in a Postgres database, making its tables if they are missing.

    Args:
        url: a libpq URL; else `AGENTKIT_DATABASE_URL`; else an embedded Postgres in the user's data folder.
        pooler: the URL leads to a transaction-mode pooler such as pgbouncer.
        min_size: connections kept open.
        max_size: connections opened at most; who needs one more waits, 30 s at most.
        schema: the schema to keep everything in; made if it is missing.
        statement_timeout: seconds after which the server ends a statement.

    Raises:
        DatabaseError: the database cannot be opened, or is not fit; the message says why.
    """
    with database(url) as found:
        wanted = Wanted(
            url=found,
            pooler=pooler,
            min_size=min_size,
            max_size=max_size,
            schema=schema,
            statement_timeout=statement_timeout,
        )
        _setup.prepare(wanted)
        pool = make_pool(wanted)
        try:
            pool.open(wait=True, timeout=wanted.connect_timeout)
        except psycopg_pool.PoolTimeout as error:
            pool.close()
            raise DatabaseError(f"the database gave no {min_size} connections within 10 s") from error
        with pool:
            yield Memory(url=found, checkpointer=PostgresSaver(pool), store=PostgresStore(pool))


@asynccontextmanager
async def aopen_memory(
    url: str | None = None,
    *,
    pooler: bool = False,
    min_size: int = 1,
    max_size: int = 10,
    schema: str | None = None,
    statement_timeout: float | None = None,
) -> AsyncIterator[AsyncMemory]:
    """As `open_memory`, for use in one event loop."""
    with database(url) as found:
        wanted = Wanted(
            url=found,
            pooler=pooler,
            min_size=min_size,
            max_size=max_size,
            schema=schema,
            statement_timeout=statement_timeout,
        )
        await _setup.aprepare(wanted)
        pool = make_async_pool(wanted)
        try:
            await pool.open(wait=True, timeout=wanted.connect_timeout)
        except psycopg_pool.PoolTimeout as error:
            await pool.close()
            raise DatabaseError(f"the database gave no {min_size} connections within 10 s") from error
        async with pool:
            yield AsyncMemory(url=found, checkpointer=AsyncPostgresSaver(pool), store=AsyncPostgresStore(pool))
