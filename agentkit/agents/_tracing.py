"""Spans around hooks, and what they record: the same as LangChain's, at no cost where nothing is traced."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

from langgraph.types import TracePolicy
from langsmith import traceable
from langsmith.utils import tracing_is_enabled

__all__ = ["configure_trace_policy", "node_policy", "traced"]

_THEIRS = "langchain.agents.middleware._trace_policy"
_default: TracePolicy | None = None


def configure_trace_policy(policy: TracePolicy | None) -> None:
    """Set what the hooks of all middleware without a `trace_policy` of its own record; None records everything.

    Takes effect at once, also for agents that exist already.
    """
    global _default  # noqa: PLW0603 - a process-wide default is what this is
    _default = policy


def node_policy(middleware: Any) -> TracePolicy:
    """The policy for the node of a middleware's hook."""
    return TracePolicy(
        process_inputs=partial(_processed, middleware, "process_inputs"),
        process_outputs=partial(_processed, middleware, "process_outputs"),
    )


def traced(middleware: Any, hook: str, function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """`function(request, handler)` with a span around it whenever this process traces."""
    span: Any = traceable(
        name=f"{middleware.name}.{hook}",
        process_inputs=lambda inputs: _processed(middleware, "process_inputs", _recordable(inputs)),
        process_outputs=partial(_processed, middleware, "process_outputs"),
    )
    spanned = span(function)
    if iscoroutinefunction(function):

        async def acall(request: Any, handler: Any) -> Any:
            return await (spanned if tracing_is_enabled() else function)(request, handler)

        return acall

    def call(request: Any, handler: Any) -> Any:
        return (spanned if tracing_is_enabled() else function)(request, handler)

    return call


def _processed(middleware: Any, side: str, value: Any) -> Any:
    # Read when the span is made, so that a default set after the agent was built counts.
    policy = (
        getattr(middleware, "trace_policy", None)
        or _default
        or getattr(sys.modules.get(_THEIRS), "_DEFAULT_TRACE_POLICY", None)
    )
    process = getattr(policy, side, None)
    return value if process is None else process(value)


def _recordable(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A hook's arguments without what cannot be recorded: the handler, and the request's runtime."""
    kept = {name: value for name, value in inputs.items() if name != "handler"}
    request = kept.get("request")
    if request is not None and hasattr(request, "__dict__"):
        kept["request"] = {name: value for name, value in vars(request).items() if name != "runtime"}
    return kept
