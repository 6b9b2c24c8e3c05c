"""Opening a memory: one pool, one checkpointer, one store, set up and ready."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg_pool
from langchain_core.embeddings import Embeddings
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.store.base import TTLConfig, ensure_embeddings

from agentkit.errors import DatabaseError, DefinitionError
from agentkit.memory import _setup
from agentkit.memory._memory import AsyncMemory, Memory
from agentkit.memory._pool import Wanted, make_async_pool, make_pool
from agentkit.memory._saver import AsyncPostgresSaver, PostgresSaver
from agentkit.memory._serde import serializer
from agentkit.memory._store import AsyncPostgresStore, PostgresStore
from agentkit.memory._store_base import Index

Vectors = Embeddings | Callable[[Sequence[str]], list[list[float]]]


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
    embeddings: Vectors | None = None,
    fields: Sequence[str] = ("$",),
    ttl: TTLConfig | None = None,
    encryption_key: str | bytes | None = None,
) -> Iterator[Memory]:
    """Opens the memory in a Postgres database, making its tables if they are missing.

    Args:
        url: a libpq URL; else `AGENTKIT_DATABASE_URL`; else an embedded Postgres in the user's data folder.
        pooler: the URL leads to a transaction-mode pooler such as pgbouncer.
        min_size: connections kept open.
        max_size: connections opened at most; who needs one more waits, 30 s at most.
        schema: the schema to keep everything in; made if it is missing.
        statement_timeout: seconds after which the server ends a statement.
        embeddings: makes vectors of the store's texts; they must always be the same for one database.
        fields: the paths of the texts that the store's searches see; "$" is all text of an item.
        ttl: langgraph's TTLConfig for the store: default lifetime, whether reading renews it, and the minutes between
            deletions of expired items (1 if not given); they are never returned in between either.
        encryption_key: encrypts what threads hold; else `AGENTKIT_ENCRYPTION_KEY`. The store is not encrypted.

    Raises:
        DatabaseError: the database cannot be opened, or is not fit; the message says why.
        DefinitionError: an argument is wrong.
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
        serde = serializer(encryption_key)
        index = _index(embeddings, fields)
        _setup.prepare(wanted, index.dims)
        with _pool_errors(min_size), make_pool(wanted) as pool:
            pool.wait(timeout=wanted.connect_timeout)
            store = PostgresStore(pool, prelude=wanted.prelude, index=index, ttl=ttl)
            saver = PostgresSaver(pool, prelude=wanted.prelude, serde=serde)
            store.start_sweeper(_sweep_every(ttl))
            try:
                yield Memory(url=found, checkpointer=saver, store=store)
            finally:
                store.stop_sweeper()


@asynccontextmanager
async def aopen_memory(
    url: str | None = None,
    *,
    pooler: bool = False,
    min_size: int = 1,
    max_size: int = 10,
    schema: str | None = None,
    statement_timeout: float | None = None,
    embeddings: Vectors | None = None,
    fields: Sequence[str] = ("$",),
    ttl: TTLConfig | None = None,
    encryption_key: str | bytes | None = None,
) -> AsyncIterator[AsyncMemory]:
    """As `open_memory`, for use in one event loop."""
    server = database(url)
    found = await asyncio.to_thread(server.__enter__)  # may start a server
    try:
        wanted = Wanted(
            url=found,
            pooler=pooler,
            min_size=min_size,
            max_size=max_size,
            schema=schema,
            statement_timeout=statement_timeout,
        )
        serde: SerializerProtocol = serializer(encryption_key)
        index = await asyncio.to_thread(_index, embeddings, fields)
        await _setup.aprepare(wanted, index.dims)
        with _pool_errors(min_size):
            async with make_async_pool(wanted) as pool:
                await pool.wait(timeout=wanted.connect_timeout)
                store = AsyncPostgresStore(pool, prelude=wanted.prelude, index=index, ttl=ttl)
                saver = AsyncPostgresSaver(pool, prelude=wanted.prelude, serde=serde)
                store.start_sweeper(_sweep_every(ttl))
                try:
                    yield AsyncMemory(url=found, checkpointer=saver, store=store)
                finally:
                    await store.stop_sweeper()
    finally:
        await asyncio.shield(asyncio.to_thread(server.__exit__, None, None, None))


def _index(embeddings: Vectors | None, fields: Sequence[str]) -> Index:
    if isinstance(fields, str) or not fields:
        raise DefinitionError(f"open_memory: fields is {fields!r}; it is a list of paths such as ['text'], or ['$']")
    if embeddings is None:
        return Index(fields=tuple(fields))
    vectors: Any = ensure_embeddings(embeddings)
    return Index(fields=tuple(fields), embeddings=vectors, dims=len(vectors.embed_query("size")))


def _sweep_every(ttl: TTLConfig | None) -> float:
    return 60.0 * ((ttl or {}).get("sweep_interval_minutes") or 1)


@contextmanager
def _pool_errors(min_size: int) -> Iterator[None]:
    try:
        yield
    except psycopg_pool.PoolTimeout as error:
        raise DatabaseError(
            f"the database gave no connection in time ({min_size} wanted at first); "
            "is it down, or are all connections of the pool in use?"
        ) from error
