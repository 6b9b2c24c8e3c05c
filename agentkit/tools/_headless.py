"""Tools without a body: the model calls them, and whoever talks to the graph runs them."""

import time
from collections.abc import Callable, Collection
from functools import cached_property
from typing import Annotated, Any, Literal, NoReturn, NotRequired, TypedDict
from uuid import UUID

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.types import interrupt
from pydantic import SkipValidation
from typing_extensions import override

from agentkit.errors import AnswerError, DefinitionError
from agentkit.messages import error_result
from agentkit.tools._answers import Answer, Check, check_of, read_answer
from agentkit.tools._arguments import Schema
from agentkit.tools._content import content_of
from agentkit.tools._langgraph import runtime_of, state_of
from agentkit.tools._plan import plan_of
from agentkit.tools._policy import policy_of


class HeadlessCall(TypedDict):
    """The call as the client sees it."""

    id: str | None
    name: str
    args: dict[str, Any]


class HeadlessRequest(TypedDict):
    """What the run is interrupted with. `error` says what was wrong with the answer before; absent the first time."""

    type: Literal["tool"]
    tool_call: HeadlessCall
    error: NotRequired[str]


class HeadlessTool(BaseTool):
    """A tool that a client runs: a browser, a desktop app, the user's own machine.

    It has a name, a description and a schema for its arguments; `result_schema` (a pydantic model, a JSON schema or any
    type), if given, is what the client's answer must fit. Inside a ToolNode a call of it interrupts the run with a
    `HeadlessRequest` and is answered when the run is resumed:

    - `{call id: value}`, or the value alone: the result;
    - `{"error": text}` as value: the client failed; `{"declined": true or a reason}`: the user did not want it;
      both are error results;
    - what does not fit, or is for another call: the interrupt stays open, asked again with the reason as `error`.

    Arguments are checked before anybody is asked. The policy's `timeout` (seconds from when the model asked) is how
    long an answer is accepted; one that comes later is dropped, with an error result. By hand it cannot be run.
    """

    result_schema: Annotated[Schema | None, SkipValidation()] = None

    @cached_property
    def check_answer(self) -> Check:
        """The check of a client's value against `result_schema`; raises AnswerError where it does not fit."""
        return check_of(self.name, self.result_schema)

    @override
    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[tuple[()], dict[str, Any]]:
        # the client gets what the model gave; the check only says whether it fits
        args = dict(tool_input)
        body = plan_of(self).sync
        if body is not None:
            body.check(args)
        return (), {"args": args, "call_id": tool_call_id}

    @override
    def _run(self, *, args: dict[str, Any], call_id: str | None) -> ToolMessage:
        config = _config_of_node()
        if config is None:
            raise NotImplementedError(
                f"tool {self.name!r} is headless: it has no body here; put it in a ToolNode and answer its interrupt"
            )
        answer = self._ask({"id": call_id, "name": self.name, "args": args}, config)
        if answer.failure is not None:
            return ToolMessage(answer.failure, name=self.name, tool_call_id=call_id or "", status="error")
        content, whole = content_of(answer.value)
        return ToolMessage(content, name=self.name, tool_call_id=call_id or "", artifact=whole)

    @override
    async def _arun(self, *, args: dict[str, Any], call_id: str | None) -> ToolMessage:
        return self._run(args=args, call_id=call_id)  # nothing here waits: an interrupt ends the task

    def _ask(self, call: HeadlessCall, config: RunnableConfig) -> Answer:
        """Interrupt until there is an answer that can be kept.

        langgraph keeps every answer and replays them in order, so the loop comes to the same point whenever it is run.
        """
        request = HeadlessRequest(type="tool", tool_call=call)
        while True:
            answer = interrupt(request)
            if (limit := policy_of(self).timeout) is not None and _age(config) > limit:
                return Answer(failure=f"{self.name} was not answered within {limit:g} s; a late answer was dropped")
            try:
                return read_answer(
                    answer,
                    name=self.name,
                    call_id=call["id"],
                    others=_other_calls(config, call["id"]),
                    check=self.check_answer,
                )
            except AnswerError as error:
                request = HeadlessRequest(type="tool", tool_call=call, error=str(error))

    def __call__(self, function: Callable[..., Any]) -> NoReturn:  # noqa: ARG002 - what a decorator is called with
        """Using a headless tool as a decorator is a mistake; raises DefinitionError with the way to write it."""
        raise DefinitionError(
            f"tool(name={self.name!r}, ...) made a headless tool, which has no body; "
            f"to decorate a function, give the name first: @tool({self.name!r}, ...)"
        )


def unanswered_result(message: AIMessage, call: ToolCall) -> ToolMessage:
    """The result of a headless call that the conversation went on without."""
    text = (
        f"Not completed: the client had not answered this call of {call['name']} when the conversation went on without "
        "it. Call it again if it is still needed."
    )
    return error_result(call, text, message_id=message.id or "")


def headless_tool(name: str, **fields: Any) -> HeadlessTool:
    """A headless tool whose schemas are known to work. Raises DefinitionError."""
    made = HeadlessTool(name=name, **fields)
    plan_of(made)
    _ = made.check_answer
    return made


def _config_of_node() -> RunnableConfig | None:
    """The config of the node that this runs in; None outside a graph."""
    try:
        config = get_config()
    except RuntimeError:
        return None
    return None if runtime_of(config).execution_info is None else config


_GREGORIAN = 0x01B21DD213814000  # 100 ns steps from the calendar of UUIDs to that of Unix
_TIMED = 6


def _age(config: RunnableConfig) -> float:
    """Seconds since the model asked: since the checkpoint with its message was made, by the time in its id.

    That is the same whichever process asks. Negative where the ids are not langgraph's.
    """
    info = runtime_of(config).execution_info
    try:
        made = UUID(info.checkpoint_id if info is not None else "")
    except ValueError:
        return -1.0
    if made.version != _TIMED:
        return -1.0
    steps = made.int >> 80 << 12 | made.int >> 64 & 0x0FFF
    return time.time() - (steps - _GREGORIAN) / 1e7


def _other_calls(config: RunnableConfig, own: str | None) -> Collection[str]:
    state = state_of(config)
    messages = state.get("messages", ()) if isinstance(state, dict) else getattr(state, "messages", ())
    calls = (call for message in messages or () if isinstance(message, AIMessage) for call in message.tool_calls)
    return {call["id"] for call in calls if call["id"] is not None} - {own}
