"""Approval: a person decides about tool calls before anything runs."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, NotRequired, cast

from langchain_core.messages import AIMessage, ToolCall
from langgraph.types import interrupt

from agentkit.agents._state import AgentState, PrivateStateAttr
from agentkit.agents.middleware._decisions import (
    ApprovalConfig,
    Decision,
    answer_to,
    question,
    read_answer,
    resolved,
)
from agentkit.agents.middleware.types import AgentMiddleware, ToolCallRequest
from agentkit.errors import AnswerError
from agentkit.messages import error_result, open_calls
from agentkit.tools import ToolRuntime

__all__ = ["ApprovalMiddleware"]

_KEY = "approval_decisions"


class _ApprovalState(AgentState[Any]):
    approval_decisions: NotRequired[Annotated[dict[str, dict[str, Any]], PrivateStateAttr]]


class ApprovalMiddleware(AgentMiddleware[Any, Any, Any]):
    """Asks a person about the calls of some tools, all of a batch at once, before any call of the batch runs.

    The interrupt and its answer are those of LangChain's HumanInTheLoopMiddleware (`action_requests`, `review_configs`;
    decisions approve, edit, reject, respond), and stricter:

    - Decisions are kept by AI message and call id. An answer may give them in order or by call id.
    - An answer that does not fit leaves the interrupt open: it is asked again, with `"error"` saying what was wrong.
    - A rejected call has its result at once, so no route runs it. A call that reaches the tools undecided, because
      another hook jumped there, is asked about where it would run.

    Needs a checkpointer, as every interrupt does.

    Args:
        interrupt_on: By tool name: True for all decisions, False for none, or an `ApprovalConfig`.
        description_prefix: The first line of descriptions that are not given.

    Raises:
        DefinitionError: A configuration makes no sense.
    """

    state_schema = _ApprovalState

    def __init__(
        self,
        interrupt_on: Mapping[str, bool | ApprovalConfig],
        *,
        description_prefix: str = "Tool execution requires approval",
    ) -> None:
        self.interrupt_on = resolved(interrupt_on)
        self.description_prefix = description_prefix

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Ask about the open calls that need it; results for those that will not run, the decisions for the others."""
        message = _last_ai(state)
        calls = [call for call in open_calls(state["messages"]) if self._asks(call, state, runtime)]
        if message is None or not calls:
            return None
        decisions = self._decide(calls, state, runtime)
        results = [answer_to(call, decisions[call["id"] or ""], message) for call in calls]
        update: dict[str, Any] = {_KEY: {message.id or "": decisions}}
        if closed := [result for result in results if result is not None]:
            update["messages"] = closed
        return update

    async def aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """See `after_model`."""
        return self.after_model(state, runtime)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Run the call as it was decided; ask now if nobody was asked."""
        decided = self._as_decided(request)
        return handler(decided) if isinstance(decided, ToolCallRequest) else decided

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """See `wrap_tool_call`."""
        decided = self._as_decided(request)
        return await handler(decided) if isinstance(decided, ToolCallRequest) else decided

    def _decide(self, calls: list[ToolCall], state: Any, runtime: Any) -> dict[str, Decision]:
        error = ""
        while True:
            # langgraph keeps every answer and replays them in order, so a run comes to the same question again.
            answer = interrupt(question(calls, self.interrupt_on, lambda c: self._describe(c, state, runtime), error))
            try:
                return read_answer(answer, calls, self.interrupt_on)
            except AnswerError as wrong:
                error = str(wrong)

    def _as_decided(self, request: ToolCallRequest) -> Any:
        """The request as it is to run, or the result that stands for it."""
        call, state = request.tool_call, request.state
        if call["name"] not in self.interrupt_on:
            return request
        message = _last_ai(state)
        decisions = (state.get(_KEY) or {}).get(message.id if message else "", {})
        decision = decisions.get(call["id"])
        if decision is None:
            if not self._asks(call, state, request.runtime, request):
                return request
            decision = self._decide([call], state, request.runtime)[call["id"] or ""]
        if (result := answer_to(call, decision, message)) is not None:
            return result
        return request if decision["type"] == "approve" else _edited(request, decision["edited_action"])

    def _asks(self, call: ToolCall, state: Any, runtime: Any, request: ToolCallRequest | None = None) -> bool:
        config = self.interrupt_on.get(call["name"])
        if config is None:
            return False
        when = config.get("when")
        return when is None or bool(when(request or _preview(call, state, runtime)))

    def _describe(self, call: ToolCall, state: Any, runtime: Any) -> str:
        described = self.interrupt_on[call["name"]].get("description")
        if described is None:
            return f"{self.description_prefix}\n\nTool: {call['name']}\nArgs: {call['args']}"
        return described if isinstance(described, str) else described(call, state, runtime)


def _last_ai(state: Any) -> AIMessage | None:
    return next((m for m in reversed(state["messages"]) if isinstance(m, AIMessage)), None)


def _preview(call: ToolCall, state: Any, runtime: Any) -> ToolCallRequest:
    """The request that a `when` function sees before the tools node has one: without the tool itself."""
    tool_runtime: ToolRuntime[Any, Any] = ToolRuntime(
        state=state,
        context=runtime.context,
        config={},
        stream_writer=runtime.stream_writer,
        tool_call_id=call["id"],
        store=runtime.store,
        execution_info=runtime.execution_info,
        server_info=runtime.server_info,
        tool_name=call["name"],
    )
    return ToolCallRequest(tool_call=call, tool=None, state=state, runtime=tool_runtime)


def _edited(request: ToolCallRequest, action: Mapping[str, Any]) -> Any:
    """The request with the reviewer's call in place of the model's, or the error if there is no such tool."""
    call = cast("ToolCall", {**request.tool_call, "name": action["name"], "args": dict(action["args"])})
    if action["name"] == request.tool_call["name"]:
        return request.override(tool_call=call)
    tool = next((t for t in request.runtime.tools if t.name == action["name"]), None)
    if tool is None:
        names = ", ".join(sorted(t.name for t in request.runtime.tools))
        return error_result(
            request.tool_call,
            f"Error: the reviewer changed this call to {action['name']}, which is not one of: {names}.",
        )
    return request.override(tool_call=call, tool=tool)
