"""Running a node without what only listeners need.

langgraph wraps a node and its writers into a sequence that reports to callbacks and tracers: managers, run ids, a
context and an asyncio task for each step. That is a good part of what a small node costs, and wasted where nobody
listens. `quiet` puts a shortcut in front: where the run has no callback handler the node and its writers are called
directly; else, and in every other respect, it is langgraph's own sequence.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.pregel._read import PregelNode
from langgraph.pregel._write import ChannelWrite

__all__ = ["quiet"]


def quiet(node: PregelNode) -> None:
    """Give `node` the shortcut, if it is what is known here: something to run, and one writer."""
    writers = node.flat_writers
    if len(writers) == 1 and isinstance(writers[0], ChannelWrite) and node.node is not None and "node" in vars(node):
        vars(node)["node"] = _Quiet(node.node, node.bound, writers[0])


class _Quiet(Runnable[Any, Any]):
    def __init__(self, whole: Runnable[Any, Any], bound: Runnable[Any, Any], writer: ChannelWrite) -> None:
        self._whole = whole
        self._bound = bound
        self._write = writer._write  # noqa: SLF001 - the writer without the layers that runnables put around it

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - langchain-core's name
        """Run node and writers."""
        if config is None or _is_heard(config):
            return self._whole.invoke(input, config, **kwargs)
        token = var_child_runnable_config.set(config)
        try:
            output = self._bound.invoke(input, config, **kwargs)
        finally:
            var_child_runnable_config.reset(token)
        self._write(output, config)
        return output

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - langchain-core's name
        """Run node and writers."""
        if config is None or _is_heard(config):
            return await self._whole.ainvoke(input, config, **kwargs)
        token = var_child_runnable_config.set(config)
        try:
            output = await self._bound.ainvoke(input, config, **kwargs)
        finally:
            var_child_runnable_config.reset(token)
        self._write(output, config)
        return output

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:  # noqa: A002 - langchain-core's name
        """Langgraph's own."""
        return self._whole.stream(input, config, **kwargs)

    def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:  # noqa: A002 - langchain-core's name
        """Langgraph's own."""
        return self._whole.astream(input, config, **kwargs)


def _is_heard(config: RunnableConfig) -> bool:
    manager = config.get("callbacks")
    return not isinstance(manager, BaseCallbackManager) or bool(manager.handlers or manager.inheritable_handlers)
