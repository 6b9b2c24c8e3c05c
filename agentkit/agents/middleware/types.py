"""What a middleware is, and what passes through it. The same names, fields and hooks as LangChain's.

LangChain's middleware runs in agentkit unchanged: it is recognised by its hooks, and gets request and response objects
of the classes it knows (see `agentkit.agents._interop`).
"""

import warnings
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.runtime import Runtime
from langgraph.types import Command, TracePolicy, omit_payload
from langgraph.typing import ContextT
from typing_extensions import TypeVar

from agentkit.agents._state import (
    AgentState,
    InputAgentState,
    JumpTo,
    OmitFromInput,
    OmitFromOutput,
    OmitFromSchema,
    OutputAgentState,
    PrivateStateAttr,
    ResponseT,
)
from agentkit.tools import ToolCallRequest

__all__ = [
    "AgentMiddleware",
    "AgentState",
    "ContextT",
    "ExtendedModelResponse",
    "InputAgentState",
    "JumpTo",
    "ModelCallResult",
    "ModelRequest",
    "ModelResponse",
    "OmitFromInput",
    "OmitFromOutput",
    "OmitFromSchema",
    "OutputAgentState",
    "PrivateStateAttr",
    "ResponseT",
    "StateT",
    "ToolCallRequest",
    "ToolCallResult",
    "TracePolicy",
    "omit_payload",
]

StateT = TypeVar("StateT", bound=AgentState[Any], default=AgentState[Any])

ToolCallResult = ToolMessage | Command[Any]
"""What a tool-call wrapper and its handler return."""


@dataclass(init=False)
class ModelRequest(Generic[ContextT]):
    """One call of the model, as `wrap_model_call` sees it: change it with `override`, never in place.

    `messages` is the history without the system message, already repaired: every call in it has its result. `tools`
    are the tools that would be offered; what is in it when the request reaches the model is what was offered, and
    only that runs.
    """

    model: BaseChatModel
    messages: list[AnyMessage]
    system_message: SystemMessage | None
    tool_choice: Any | None
    tools: list[BaseTool | dict[str, Any]]
    response_format: Any | None
    state: AgentState[Any]
    runtime: Runtime[ContextT]
    model_settings: dict[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        *,
        model: BaseChatModel,
        messages: list[AnyMessage],
        system_message: SystemMessage | None = None,
        system_prompt: str | None = None,
        tool_choice: Any | None = None,
        tools: list[BaseTool | dict[str, Any]] | None = None,
        response_format: Any | None = None,
        state: AgentState[Any] | None = None,
        runtime: Runtime[ContextT] | None = None,
        model_settings: dict[str, Any] | None = None,
    ) -> None:
        """Make a request.

        Raises:
            ValueError: Both `system_prompt` and `system_message` are given.
        """
        set_now = self.__dict__.update
        set_now(
            model=model,
            messages=messages,
            system_message=_system_message(system_message, system_prompt),
            tool_choice=tool_choice,
            tools=[] if tools is None else tools,
            response_format=response_format,
            state={"messages": []} if state is None else state,
            runtime=runtime,
            model_settings={} if model_settings is None else model_settings,
        )

    @property
    def system_prompt(self) -> str | None:
        """The text of the system message."""
        return None if self.system_message is None else self.system_message.text

    def __setattr__(self, name: str, value: Any) -> None:
        warnings.warn(
            f"ModelRequest.{name} is assigned in place, which is deprecated: use request.override({name}=…)",
            DeprecationWarning,
            stacklevel=2,
        )
        if name == "system_prompt":
            name, value = "system_message", None if value is None else SystemMessage(content=value)
        self.__dict__[name] = value

    def override(self, **overrides: Any) -> "ModelRequest[ContextT]":
        """A copy with some fields replaced; this request stays as it is.

        Raises:
            ValueError: Both `system_prompt` and `system_message` are given.
            TypeError: A name is no field of a request.
        """
        if "system_prompt" in overrides:
            if "system_message" in overrides:
                _system_message(cast("SystemMessage", overrides["system_message"]), "both given")
            prompt = overrides.pop("system_prompt")
            overrides["system_message"] = None if prompt is None else SystemMessage(content=prompt)
        return replace(self, **overrides)


def _system_message(message: SystemMessage | None, prompt: str | None) -> SystemMessage | None:
    if prompt is None:
        return message
    if message is not None:
        raise ValueError("Cannot specify both system_prompt and system_message: they are two ways to say one thing")
    return SystemMessage(content=prompt)


@dataclass
class ModelResponse(Generic[ResponseT]):
    """What a model call gave: usually one AI message, with results after it where calls are answered already."""

    result: list[BaseMessage]
    structured_response: ResponseT | None = None


@dataclass
class ExtendedModelResponse(Generic[ResponseT]):
    """A response with a state update of the wrapper's own, applied after the response's messages."""

    model_response: ModelResponse[ResponseT]
    command: Command[Any] | None = None


ModelCallResult = ModelResponse[ResponseT] | AIMessage | ExtendedModelResponse[ResponseT]
"""What a `wrap_model_call` hook may return."""


_ONLY_ASYNC = "this middleware has no {hook}, only a{hook}: call the agent with ainvoke or astream, or implement {hook}"


class _DefaultAgentState(AgentState[Any]):
    """What a middleware that declares no state of its own works on."""


class AgentMiddleware(Generic[StateT, ContextT, ResponseT]):
    """Code that takes part in an agent's loop. Override the hooks you need.

    Each hook has an async twin, with an `a` before its name.

    Order: `before_*` hooks run in the order of the list, `after_*` hooks in the opposite order, and of the `wrap_*`
    hooks the first of the list is outermost. A `before_*` / `after_*` hook returns a state update, a Command or None;
    `{"jump_to": "model" | "tools" | "end"}` changes where the run goes next.

    A sync hook in an async run is called in a thread, so that it never holds up the event loop. A hook that exists
    only async cannot be used in a sync run.
    """

    state_schema: type[StateT] = cast("type[StateT]", _DefaultAgentState)
    """State keys this middleware needs; merged into the agent's state."""

    tools: Sequence[BaseTool] = ()
    """Tools that come with this middleware."""

    trace_policy: TracePolicy | None = None
    """What the traces of this middleware's hooks record; None traces everything."""

    transformers: Sequence[Any] = ()
    """Stream transformer factories that come with this middleware."""

    @property
    def name(self) -> str:
        """The name its nodes begin with; unique within an agent."""
        return self.__class__.__name__

    def before_agent(self, state: StateT, runtime: Runtime[ContextT]) -> dict[str, Any] | Command[Any] | None:
        """Called once, before the first model call of a run."""

    async def abefore_agent(self, state: StateT, runtime: Runtime[ContextT]) -> dict[str, Any] | Command[Any] | None:
        """See `before_agent`."""

    def before_model(self, state: StateT, runtime: Runtime[ContextT]) -> dict[str, Any] | Command[Any] | None:
        """Called before every model call."""

    async def abefore_model(self, state: StateT, runtime: Runtime[ContextT]) -> dict[str, Any] | Command[Any] | None:
        """See `before_model`."""

    def after_model(self, state: StateT, runtime: Runtime[ContextT]) -> dict[str, Any] | Command[Any] | None:
        """Called after every model call, before its tool calls run."""

    async def aafter_model(self, state: StateT, runtime: Runtime[ContextT]) -> dict[str, Any] | Command[Any] | None:
        """See `after_model`."""

    def after_agent(self, state: StateT, runtime: Runtime[ContextT]) -> dict[str, Any] | Command[Any] | None:
        """Called once, when the loop has ended."""

    async def aafter_agent(self, state: StateT, runtime: Runtime[ContextT]) -> dict[str, Any] | Command[Any] | None:
        """See `after_agent`."""

    def wrap_model_call(
        self, request: ModelRequest[ContextT], handler: Callable[[ModelRequest[ContextT]], ModelResponse[ResponseT]]
    ) -> ModelCallResult[ResponseT]:
        """Called around every model call. Call `handler` once, several times (to try again) or not at all."""
        raise NotImplementedError(_ONLY_ASYNC.format(hook="wrap_model_call"))

    async def awrap_model_call(
        self,
        request: ModelRequest[ContextT],
        handler: Callable[[ModelRequest[ContextT]], Awaitable[ModelResponse[ResponseT]]],
    ) -> ModelCallResult[ResponseT]:
        """See `wrap_model_call`."""
        raise NotImplementedError

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolCallResult]
    ) -> ToolCallResult:
        """Called around every tool call. What it returns is checked like what a tool returns: one result for it."""
        raise NotImplementedError(_ONLY_ASYNC.format(hook="wrap_tool_call"))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolCallResult]]
    ) -> ToolCallResult:
        """See `wrap_tool_call`."""
        raise NotImplementedError
