"""The official Postgres savers, with the pool really used: no lock around it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from langgraph.checkpoint.postgres import PostgresSaver as OfficialSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver as OfficialAsyncSaver
from psycopg import AsyncCursor, Cursor
from psycopg.rows import DictRow

from agentkit.memory._pool import AsyncPool, Pool


class PostgresSaver(OfficialSaver):
    """The sync checkpointer of a `Memory`."""

    conn: Pool

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Cursor[DictRow]]:
        with self.conn.connection() as conn, conn.cursor(binary=True) as cur:
            if pipeline:
                with conn.pipeline():
                    yield cur
            else:
                yield cur


class AsyncPostgresSaver(OfficialAsyncSaver):
    """The async checkpointer of an `AsyncMemory`."""

    conn: AsyncPool

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        async with self.conn.connection() as conn, conn.cursor(binary=True) as cur:
            if pipeline:
                async with conn.pipeline():
                    yield cur
            else:
                yield cur
