"""The server's checkpointer and store, on the database that `AGENTKIT_DATABASE_URL` names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentkit.memory import AsyncPostgresSaver, AsyncPostgresStore, aopen_memory


@asynccontextmanager
async def checkpointer() -> AsyncIterator[AsyncPostgresSaver]:
    """A checkpointer with a pool of its own, for langgraph.json; the tables are made if they are missing.

    The server enters it once for each event loop, and closes it with the loop.

    Raises:
        DatabaseError: the database cannot be opened, or is not fit; the server does not start.
    """
    async with aopen_memory() as memory:
        yield memory.checkpointer


@asynccontextmanager
async def store() -> AsyncIterator[AsyncPostgresStore]:
    """As `checkpointer`, the store. What is past its time to live is swept; `ttl` in langgraph.json has no effect."""
    async with aopen_memory() as memory:
        yield memory.store
