"""Memory on Postgres: threads that stay small, a store that finds things, people kept apart."""

from agentkit.memory._memory import AsyncMemory, Memory
from agentkit.memory._middleware import MemoryMiddleware
from agentkit.memory._offline import OfflineEmbeddings
from agentkit.memory._open import aopen_memory, database, open_memory
from agentkit.memory._people import Erased
from agentkit.memory._saver import AsyncPostgresSaver, PostgresSaver
from agentkit.memory._store import AsyncPostgresStore, PostgresStore
from agentkit.memory._store_base import Page, Store
from agentkit.memory._store_memory import InMemoryStore
from agentkit.memory._threads import Retained, ThreadSize
from agentkit.memory._tools import forget, memory_tools, recall, remember
from agentkit.memory._writers import aone_writer, one_writer

__all__ = [
    "AsyncMemory",
    "AsyncPostgresSaver",
    "AsyncPostgresStore",
    "Erased",
    "InMemoryStore",
    "Memory",
    "MemoryMiddleware",
    "OfflineEmbeddings",
    "Page",
    "PostgresSaver",
    "PostgresStore",
    "Retained",
    "Store",
    "ThreadSize",
    "aone_writer",
    "aopen_memory",
    "database",
    "forget",
    "memory_tools",
    "one_writer",
    "open_memory",
    "recall",
    "remember",
]
