"""One definition of a graph for scripts and for the server: made without memory, and given one where it runs."""

from typing import TypeVar

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.pregel import Pregel

from agentkit.errors import DefinitionError
from agentkit.memory import AsyncMemory, Memory

GraphT = TypeVar("GraphT", bound=Pregel)  # type: ignore[type-arg]  # any graph


def with_memory(graph: GraphT, memory: Memory | AsyncMemory) -> GraphT:
    """The graph with the checkpointer and store of an open memory: for scripts and notebooks.

    The graph itself is not changed, so it can be served at the same time.

    Example:
        with open_memory() as memory:
            with_memory(graph, memory).invoke(…, {"configurable": {"thread_id": "1"}})

    Raises:
        DefinitionError: `graph` is not compiled.
    """
    _check(graph)
    return graph.copy({"checkpointer": memory.checkpointer, "store": memory.store})


def without_memory(graph: GraphT) -> GraphT:
    """The graph without a checkpointer and store of its own: for langgraph.json, since the server brings its own.

    A graph that keeps its own is refused by `langgraph dev`, with all others of the file. Where it says that it keeps
    nothing (`checkpointer=False`), it stays so.

    Raises:
        DefinitionError: `graph` is not compiled.
    """
    _check(graph)
    own = isinstance(graph.checkpointer, BaseCheckpointSaver)
    return graph.copy({"checkpointer": None if own else graph.checkpointer, "store": None})


def _check(graph: object) -> None:
    if not isinstance(graph, Pregel):
        raise DefinitionError(f"not a compiled graph but a {type(graph).__name__}; call .compile() first")
