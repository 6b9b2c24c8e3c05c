"""On LangGraph Server: factories for its checkpointer and store on Postgres, and graphs with and without memory.

In langgraph.json:

    "checkpointer": {"backend": "custom", "path": "agentkit.server.checkpointer"},
    "store": {"path": "agentkit.server.store"},
    "auth": {"path": "agentkit.server.auth:auth"}

`agentkit.server.auth` is an example: bearer tokens from the environment, and each user sees only what is their own.
"""

from agentkit.server._memory import checkpointer, store
from agentkit.server._persistence import with_memory, without_memory

__all__ = ["checkpointer", "store", "with_memory", "without_memory"]
