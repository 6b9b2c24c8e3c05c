"""Limits of one run: calls, tokens, time, attempts. A run that reaches one ends with a valid history and says so."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, TypedDict

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.types import Command

from agentkit.agents._retries import attempts, wants_more
from agentkit.agents._state import AgentState, PrivateStateAttr
from agentkit.agents.middleware.types import AgentMiddleware, ExtendedModelResponse, ModelResponse, ToolCallRequest
from agentkit.errors import DefinitionError
from agentkit.messages import error_result, open_calls

__all__ = ["LimitKeeper", "Limits", "out_of_steps", "unusable_too_often"]

USAGE_KEY = "agentkit_usage"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much one run of an agent may use. None is no limit.

    A run begins with an input and includes what happens after its interrupts are answered: counts go on across resume.

    model_calls: rounds of the model; what a wrapper tries again within a round counts once.
    tool_calls: tool calls; those beyond it are answered with an error result instead of being run.
    tokens: input and output tokens together, as the model reports them.
    seconds: wall-clock time from the input, checked before each model and tool call; what runs is not cut off.
    retries: how often the model is asked to try again in one turn, after an answer that cannot be used (calls that
        cannot be read, no structured answer).

    Raises:
        DefinitionError: A limit is negative.
    """

    model_calls: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    retries: int = 3

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and value < 0:
                raise DefinitionError(f"Limits({name}={value}): a limit is 0 or more; leave it out for no limit")

    @property
    def counted(self) -> bool:
        """Whether anything has to be counted during a run."""
        return any(v is not None for v in (self.model_calls, self.tool_calls, self.tokens, self.seconds))

    def reached(self, usage: "Usage") -> str | None:
        """Which limit forbids another model call, in words; None if none does."""
        if self.model_calls is not None and usage["model_calls"] >= self.model_calls:
            return f"{self.model_calls} model calls"
        if self.tool_calls is not None and usage["tool_calls"] > self.tool_calls:
            return f"{self.tool_calls} tool calls"
        if self.tokens is not None and usage["tokens"] >= self.tokens:
            return f"{self.tokens} tokens"
        return self.late(usage)

    def late(self, usage: "Usage") -> str | None:
        """The time limit, in words, if it has passed."""
        if self.seconds is not None and time.time() - usage["started"] >= self.seconds:
            return f"{self.seconds:g} seconds"
        return None


class Usage(TypedDict):
    """What a run has used. `started` is in seconds since the epoch, so that it means the same in another process."""

    started: float
    model_calls: int
    tool_calls: int
    tokens: int


class _LimitedState(AgentState[Any]):
    agentkit_usage: NotRequired[Annotated[Usage, PrivateStateAttr]]


class LimitKeeper(AgentMiddleware[Any, Any, Any]):
    """Counts what a run uses and ends it at its limits. `create_agent` puts it first, where limits are given."""

    name = "Limits"  # a constant where the base has a property
    state_schema = _LimitedState

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:  # noqa: ARG002 - the hook's signature
        """A new input: start counting."""
        return {USAGE_KEY: Usage(started=time.time(), model_calls=0, tool_calls=0, tokens=0)}

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """See `before_agent`."""
        return self.before_agent(state, runtime)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Count the call, or end the run without it."""
        return self._stopped(request) or self._counted(request, handler(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """See `wrap_model_call`."""
        return self._stopped(request) or self._counted(request, await handler(request))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Answer calls beyond the limit instead of running them."""
        return self._refused(request) or handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """See `wrap_tool_call`."""
        return self._refused(request) or await handler(request)

    def _stopped(self, request: Any) -> Any:
        reached = self._limits.reached(request.state[USAGE_KEY])
        return None if reached is None else _final(f"the limit of {reached} for one run is reached")

    def _counted(self, request: Any, response: ModelResponse[Any]) -> Any:
        said = [m for m in response.result if isinstance(m, AIMessage)]
        used: Usage = request.state[USAGE_KEY]
        now = Usage(
            started=used["started"],
            model_calls=used["model_calls"] + 1,
            tool_calls=used["tool_calls"] + sum(len(m.tool_calls) for m in said),
            tokens=used["tokens"] + sum(m.usage_metadata["total_tokens"] for m in said if m.usage_metadata),
        )
        return ExtendedModelResponse(model_response=response, command=Command(update={USAGE_KEY: now}))

    def _refused(self, request: ToolCallRequest) -> Any:
        usage: Usage = request.state[USAGE_KEY]
        call = request.tool_call
        if self._limits.tool_calls is not None:
            batch = next(m for m in reversed(request.state["messages"]) if isinstance(m, AIMessage)).tool_calls
            place = next((i for i, other in enumerate(batch) if other["id"] == call["id"]), 0)
            if usage["tool_calls"] - len(batch) + place >= self._limits.tool_calls:
                return error_result(
                    call, f"Error: not run, the limit of {self._limits.tool_calls} tool calls is reached."
                )
        if late := self._limits.late(usage):
            return error_result(call, f"Error: not run, the limit of {late} for one run has passed.")
        return None


def out_of_steps(history: Sequence[BaseMessage], new: list[BaseMessage]) -> list[BaseMessage]:
    """`new`, ended where it would go on: langgraph's recursion limit leaves no room for another round."""
    if not wants_more(new):
        return new
    last = next(m for m in reversed([*history, *new]) if isinstance(m, AIMessage))
    closed = [
        error_result(call, "Error: not run, the recursion limit of this run is reached.", message_id=last.id)
        for call in open_calls(new)
    ]
    return [*new, *closed, _final("the recursion limit of this run is reached")]


def unusable_too_often(history: Sequence[BaseMessage], new: list[BaseMessage], retries: int) -> list[BaseMessage]:
    """`new`, ended if the model was asked `retries` times already to try again."""
    if attempts(history) < retries:
        return new
    return [*new, _final(f"the model's answers could not be used {retries + 1} times")]


def _final(why: str) -> AIMessage:
    return AIMessage(content=f"Stopped: {why}.", response_metadata={"agentkit_stopped": why})
