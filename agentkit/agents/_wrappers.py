"""Where wrap_model_call and wrap_tool_call hooks are called: the chains, first middleware outermost.

Built once per agent, in a sync and an async form that share everything but the await. In the async form a hook that is
only sync runs in a thread while the handler it calls runs on the event loop.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.types import Command

from agentkit.agents._hooks import overrides
from agentkit.agents._tracing import traced
from agentkit.errors import DefinitionError
from agentkit.tools._call import off_loop

__all__ = ["Answered", "ModelChain", "tool_chains"]

Handler = Callable[[Any], Any]
AsyncHandler = Callable[[Any], Awaitable[Any]]


class Answered:
    """A model response on its way out of the chain, with the state updates that wrappers added, inner ones first."""

    __slots__ = ("commands", "response")

    def __init__(self, response: Any, commands: tuple[Command[Any], ...] = ()) -> None:
        self.response = response
        self.commands = commands


class ModelChain:
    """All wrap_model_call hooks of an agent as one handler around the model."""

    def __init__(self, middleware: Sequence[Any], response_class: type[Any]) -> None:
        self._response_class = response_class
        hooks = [(m, overrides(m, "wrap_model_call"), overrides(m, "awrap_model_call")) for m in middleware]
        hooks = [hook for hook in hooks if hook[1] is not None or hook[2] is not None]
        self._sync = [traced(m, "wrap_model_call", run or m.wrap_model_call) for m, run, _ in hooks]
        self._async = [
            traced(m, "awrap_model_call", arun) if arun else _in_thread(traced(m, "wrap_model_call", m.wrap_model_call))
            for m, _, arun in hooks
        ]

    def __bool__(self) -> bool:
        return bool(self._sync)

    def call(self, request: Any, model: Handler) -> Answered:
        """Run the chain; `model(request)` makes the call itself and returns a response."""
        return self._call(0, request, model)

    async def acall(self, request: Any, model: AsyncHandler) -> Answered:
        """`call`, awaiting hooks and model."""
        return await self._acall(0, request, model)

    def _call(self, depth: int, request: Any, model: Handler) -> Answered:
        if depth == len(self._sync):
            return Answered(model(request))
        inner: list[Answered] = []

        def handler(request: Any) -> Any:
            inner[:] = [self._call(depth + 1, request, model)]  # of several attempts the last one counts
            return inner[0].response

        return self._answered(self._sync[depth](request, handler), inner)

    async def _acall(self, depth: int, request: Any, model: AsyncHandler) -> Answered:
        if depth == len(self._async):
            return Answered(await model(request))
        inner: list[Answered] = []

        async def handler(request: Any) -> Any:
            inner[:] = [await self._acall(depth + 1, request, model)]
            return inner[0].response

        return self._answered(await self._async[depth](request, handler), inner)

    def _answered(self, result: Any, inner: list[Answered]) -> Answered:
        commands = inner[0].commands if inner else ()
        if isinstance(result, AIMessage):
            return Answered(self._response_class(result=[result]), commands)
        if hasattr(result, "model_response"):
            if result.command is not None:
                commands = (*commands, _checked(result.command))
            return Answered(result.model_response, commands)
        if hasattr(result, "result"):
            return Answered(result, commands)
        raise DefinitionError(
            f"a wrap_model_call hook returned {type(result).__name__}: "
            "return what handler(request) gave, a ModelResponse, an ExtendedModelResponse or an AIMessage"
        )


def _checked(command: Command[Any]) -> Command[Any]:
    for name in ("goto", "resume", "graph"):
        if getattr(command, name):
            raise NotImplementedError(
                f"Command {name} is not yet supported in wrap_model_call middleware: "
                "a wrapper may only update state; use jump_to in before_model or after_model"
            )
    return command


def tool_chains(middleware: Sequence[Any]) -> tuple[Handler | None, AsyncHandler | None]:
    """All wrap_tool_call hooks as one sync and one async wrapper `(request, handler) -> result`; None without hooks."""
    hooks = [(m, overrides(m, "wrap_tool_call"), overrides(m, "awrap_tool_call")) for m in middleware]
    hooks = [hook for hook in hooks if hook[1] is not None or hook[2] is not None]
    if not hooks:
        return None, None
    sync = _nest([traced(m, "wrap_tool_call", run or m.wrap_tool_call) for m, run, _ in hooks])
    wrappers = [
        traced(m, "awrap_tool_call", arun) if arun else _in_thread(traced(m, "wrap_tool_call", m.wrap_tool_call))
        for m, _, arun in hooks
    ]
    return sync, _nest(wrappers)


def _nest(wrappers: Sequence[Callable[..., Any]]) -> Any:
    """One wrapper out of many. It serves both forms: an async handler is handed on, not called."""
    if len(wrappers) == 1:
        return wrappers[0]
    outer, rest = wrappers[0], _nest(wrappers[1:])
    return lambda request, handler: outer(request, lambda inner: rest(inner, handler))


def _in_thread(wrap: Callable[..., Any]) -> Callable[[Any, AsyncHandler], Awaitable[Any]]:
    async def awrap(request: Any, handler: AsyncHandler) -> Any:
        return await off_loop(wrap, request, handler)

    return awrap
