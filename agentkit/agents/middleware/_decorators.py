"""A middleware from one function: `@before_model`, `@wrap_tool_call`, `@dynamic_prompt` and their kin."""

from collections.abc import Callable, Sequence
from inspect import iscoroutinefunction
from typing import Any, TypeVar, overload

from langchain_core.messages import SystemMessage
from langchain_core.tools import BaseTool

from agentkit.agents._state import AgentState, JumpTo
from agentkit.agents.middleware.types import AgentMiddleware, ModelRequest

__all__ = [
    "after_agent",
    "after_model",
    "before_agent",
    "before_model",
    "dynamic_prompt",
    "hook_config",
    "wrap_model_call",
    "wrap_tool_call",
]

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
Made = AgentMiddleware[Any, Any, Any]


def hook_config(*, can_jump_to: Sequence[JumpTo] | None = None) -> Callable[[F], F]:
    """Say where a hook may jump to, so that the graph's drawing shows it."""

    def mark(function: F) -> F:
        if can_jump_to is not None:
            function.__can_jump_to__ = list(can_jump_to)  # type: ignore[attr-defined]
        return function

    return mark


class _NodeHook:
    """The decorator behind `before_*` and `after_*`."""

    def __init__(self, hook: str) -> None:
        self.__name__ = self.__qualname__ = hook
        self.__doc__ = (
            f"Make a middleware whose `{hook}` is this function `(state, runtime) -> update | Command | None`.\n\n"
            "The function may be async. `name` is the middleware's name (default: the function's)."
        )

    @overload
    def __call__(self, func: Function) -> Made: ...
    @overload
    def __call__(
        self,
        func: None = None,
        *,
        state_schema: type | None = None,
        tools: Sequence[BaseTool] | None = None,
        can_jump_to: Sequence[JumpTo] | None = None,
        name: str | None = None,
    ) -> Callable[[Function], Made]: ...
    def __call__(
        self,
        func: Function | None = None,
        *,
        state_schema: type | None = None,
        tools: Sequence[BaseTool] | None = None,
        can_jump_to: Sequence[JumpTo] | None = None,
        name: str | None = None,
    ) -> Made | Callable[[Function], Made]:
        def make(function: Function) -> Made:
            jumps = can_jump_to if can_jump_to is not None else getattr(function, "__can_jump_to__", None)
            method = hook_config(can_jump_to=jumps)(_as_node_hook(function))
            return _middleware({_twin(self.__name__, function): method}, function, state_schema, tools, name)

        return make if func is None else make(func)


before_agent = _NodeHook("before_agent")
before_model = _NodeHook("before_model")
after_model = _NodeHook("after_model")
after_agent = _NodeHook("after_agent")


class _Wrapper:
    """The decorator behind `wrap_*`."""

    def __init__(self, hook: str) -> None:
        self.__name__ = self.__qualname__ = hook
        self.__doc__ = (
            f"Make a middleware whose `{hook}` is this function `(request, handler) -> result`.\n\n"
            "The function may be async, and then awaits `handler(request)`."
        )

    @overload
    def __call__(self, func: Function) -> Made: ...
    @overload
    def __call__(
        self,
        func: None = None,
        *,
        state_schema: type | None = None,
        tools: Sequence[BaseTool] | None = None,
        name: str | None = None,
    ) -> Callable[[Function], Made]: ...
    def __call__(
        self,
        func: Function | None = None,
        *,
        state_schema: type | None = None,
        tools: Sequence[BaseTool] | None = None,
        name: str | None = None,
    ) -> Made | Callable[[Function], Made]:
        def make(function: Function) -> Made:
            hooks = {_twin(self.__name__, function): _as_wrapper(function)}
            return _middleware(hooks, function, state_schema, tools, name)

        return make if func is None else make(func)


wrap_model_call = _Wrapper("wrap_model_call")
wrap_tool_call = _Wrapper("wrap_tool_call")


@overload
def dynamic_prompt(func: Function) -> Made: ...
@overload
def dynamic_prompt(func: None = None) -> Callable[[Function], Made]: ...
def dynamic_prompt(func: Function | None = None) -> Made | Callable[[Function], Made]:
    """Make a middleware that sets the system prompt of each model call to what `func(request)` returns.

    `func` returns a str or a SystemMessage, and may be async.
    """

    def make(function: Function) -> Made:
        if iscoroutinefunction(function):

            async def aprompted(_self: Made, request: ModelRequest[Any], handler: Function) -> Any:
                return await handler(_with_prompt(request, await function(request)))

            return _middleware({"awrap_model_call": aprompted}, function, None, None, None)

        def prompted(_self: Made, request: ModelRequest[Any], handler: Function) -> Any:
            return handler(_with_prompt(request, function(request)))

        return _middleware({"wrap_model_call": prompted}, function, None, None, None)

    return make if func is None else make(func)


def _with_prompt(request: ModelRequest[Any], prompt: str | SystemMessage) -> ModelRequest[Any]:
    message = prompt if isinstance(prompt, SystemMessage) else SystemMessage(content=prompt)
    return request.override(system_message=message)


def _twin(hook: str, function: Function) -> str:
    return f"a{hook}" if iscoroutinefunction(function) else hook


def _as_node_hook(function: Function) -> Function:
    if iscoroutinefunction(function):

        async def ahook(_self: Made, state: Any, runtime: Any) -> Any:
            return await function(state, runtime)

        return ahook

    def hook(_self: Made, state: Any, runtime: Any) -> Any:
        return function(state, runtime)

    return hook


def _as_wrapper(function: Function) -> Function:
    if iscoroutinefunction(function):

        async def awrapper(_self: Made, request: Any, handler: Function) -> Any:
            return await function(request, handler)

        return awrapper

    def wrapper(_self: Made, request: Any, handler: Function) -> Any:
        return function(request, handler)

    return wrapper


def _middleware(
    hooks: dict[str, Function],
    function: Function,
    state_schema: type | None,
    tools: Sequence[BaseTool] | None,
    name: str | None,
) -> Made:
    body: dict[str, Any] = {
        "state_schema": state_schema or AgentState,
        "tools": list(tools or ()),
        "__doc__": function.__doc__,
        "__module__": function.__module__,
        **hooks,
    }
    class_name = name or str(getattr(function, "__name__", type(function).__name__))
    made: Made = type(class_name, (AgentMiddleware,), body)()
    return made
