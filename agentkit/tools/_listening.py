"""Whether anybody listens to a tool's run: only then are LangChain's callbacks worth their time."""

from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.globals import get_debug
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langchain_core.tracers import context as tracing
from langchain_core.utils.env import env_var_is_set
from langsmith.run_helpers import get_tracing_context
from langsmith.utils import tracing_is_enabled

# handlers that others add for a whole context or process; a list that grows as they are registered
_hooks: list[tuple[Any, bool, type[BaseCallbackHandler] | None, str | None]] = getattr(tracing, "_configure_hooks", [])

_deaf: dict[type, bool] = {}


def is_heard(tool: BaseTool, config: RunnableConfig, *, any_handler: bool = False) -> bool:
    """Whether a handler, tracer, stream or log wants to know of a run of this tool with this config.

    `any_handler` counts handlers too that take no notice of tools, for bodies that hand callbacks on themselves.
    """
    callbacks = config.get("callbacks")
    if callbacks:
        handlers = callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else callbacks
        if handlers and (any_handler or not all(map(_is_deaf, handlers))):
            return True
    if tool.callbacks or tool.verbose or get_debug():
        return True
    if _is_traced(configured=isinstance(callbacks, BaseCallbackManager)):
        return True
    return any(hook[0].get() is not None or (hook[3] is not None and env_var_is_set(hook[3])) for hook in _hooks)


def _is_deaf(handler: BaseCallbackHandler) -> bool:
    cls = type(handler)
    known = _deaf.get(cls)
    if known is None:
        # langgraph's handler of `stream_mode="messages"` follows models and nodes, and knows nothing of tool runs
        known = _deaf[cls] = cls.__module__ == "langgraph.pregel._messages"
    return known


def _is_traced(*, configured: bool) -> bool:
    """Whether LangSmith traces here.

    A callback manager was configured by LangChain when the node began, and would hold the tracer if tracing was on
    then; what remains is tracing that was switched on since, by the surrounding code. Asking everything costs 2 µs.
    """
    if tracing.tracing_v2_callback_var.get() is not None:
        return True
    if not configured:
        return bool(tracing_is_enabled())
    context = get_tracing_context()
    enabled = context["enabled"]
    return bool(enabled) if enabled is not None else context["parent"] is not None
