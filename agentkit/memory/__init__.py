"""Memory on Postgres: threads that stay small, a store that finds things, people kept apart."""

from agentkit.memory._open import AsyncMemory, Memory, aopen_memory, database, open_memory
from agentkit.memory._saver import AsyncPostgresSaver, PostgresSaver
from agentkit.memory._tools import forget, memory_tools, recall, remember

__all__ = [
    "AsyncMemory",
    "AsyncPostgresSaver",
    "Memory",
    "PostgresSaver",
    "aopen_memory",
    "database",
    "forget",
    "memory_tools",
    "open_memory",
    "recall",
    "remember",
]
