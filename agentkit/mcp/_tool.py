"""An MCP tool as a tool of ours: its schema, and the story of one call."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId
from typing_extensions import override

from agentkit.mcp._annotations import metadata_of, policy_for
from agentkit.mcp._approval import Approve, Rejected, approved, needs_approval
from agentkit.mcp._connection import Call, Question
from agentkit.mcp._content import result_of
from agentkit.mcp._elicitation import ask
from agentkit.mcp._errors import MCPToolError
from agentkit.mcp._portal import Remote, Tell
from agentkit.mcp._sessions import Access, Runtime, Sessions, Ticket
from agentkit.tools import ToolRuntime
from agentkit.tools._classes import runs_as_langchain
from agentkit.tools._function_tool import FunctionTool
from agentkit.tools._plan import plan_of
from agentkit.tools._policy import attach_policy
from agentkit.tools._steps import Story, adrive, drive

KEY_META = "agentkit/idempotency-key"
_BROKEN_OUTPUT = ("Invalid structured content", "has an output schema but did not return", "Invalid schema for tool")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What all tools of an adapter share.

    timeout: seconds that a call may take; None for no limit.
    max_output, max_bytes: limits of a result's text in characters, and of one image, audio or file in bytes.
    approve: which calls a person has to approve.
    """

    timeout: float | None
    max_output: int | None
    max_bytes: int | None
    approve: Approve


@dataclass(frozen=True, kw_only=True)
class Route:
    """The way to one tool of one server.

    guard: asked before a call is sent; raises where the tool may not be called any more. None lets all pass.
    keep: whether sessions stay open between calls.
    """

    guard: Callable[[Ticket, str], Awaitable[None]] | None

    sessions: Sessions
    access: Access
    settings: Settings
    keep: Callable[[], bool]
    tool: str
    repeatable: bool

    async def send(self, ticket: Ticket, call: Call, tell: Tell) -> Any:
        """One exchange with the server, on the portal's loop."""
        async with self.sessions.session(ticket, keep=self.keep()) as connection:
            if self.guard is not None:
                await self.guard(ticket, call.tool)
            return await connection.call(call, tell)


@runs_as_langchain
class MCPTool(FunctionTool):
    """A tool of an MCP server. Its arguments may have any names, also those that LangChain's own methods use."""

    @override
    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[tuple[()], dict[str, Any]]:
        _, values = super()._to_args_and_kwargs(tool_input, tool_call_id)
        return (), {"packed": values}

    @override
    def _run(self, *, packed: dict[str, Any]) -> Any:  # type: ignore[override]
        assert self.func is not None  # noqa: S101 - as_tool gives it
        return self.func(**packed)

    @override
    async def _arun(self, *, packed: dict[str, Any]) -> Any:  # type: ignore[override]
        assert self.coroutine is not None  # noqa: S101 - as_tool gives it
        return await self.coroutine(**packed)


def as_tool(definition: Any, name: str, route: Route, server_info: Any) -> BaseTool:
    """The tool for an MCP tool definition.

    Raises:
        DefinitionError: its schema is no valid JSON schema.
    """

    # The names of what is injected are such that no server's argument will meet them.
    def call(
        agentkit_runtime: ToolRuntime[Any, Any] | None = None,
        agentkit_call_id: Annotated[str | None, InjectedToolCallId] = None,
        **arguments: Any,
    ) -> Any:
        return drive(_call_story(made, route, agentkit_runtime, agentkit_call_id, arguments))

    async def acall(
        agentkit_runtime: ToolRuntime[Any, Any] | None = None,
        agentkit_call_id: Annotated[str | None, InjectedToolCallId] = None,
        **arguments: Any,
    ) -> Any:
        return await adrive(_call_story(made, route, agentkit_runtime, agentkit_call_id, arguments))

    made = MCPTool(
        name=name,
        description=definition.description or definition.title or f"The tool {definition.name}.",
        args_schema=_as_object(definition.input_schema),
        func=call,
        coroutine=acall,
        metadata=metadata_of(definition, server_info, route.sessions.server.name),
    )
    attach_policy(made, policy_for(definition.annotations))
    plan_of(made)
    return made


def _as_object(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, with what providers want of one for arguments."""
    return {**schema, "type": "object", "properties": schema.get("properties") or {}}


def _call_story(
    tool: BaseTool, route: Route, runtime: Runtime | None, call_id: str | None, args: dict[str, Any]
) -> Story[Any]:
    """One call: a person's word where it is wanted, then the server, with its questions in between.

    An interrupt ends this run of the story; when it is answered, the story is run again from the start.
    """
    settings = route.settings
    name = (runtime.tool_name if runtime is not None else "") or tool.name
    call_id = call_id or (runtime.tool_call_id if runtime is not None else None)
    problem: str | None = None
    try:
        if needs_approval(settings.approve, tool):
            _someone_to_ask(runtime, name)
            args = approved(name, tool.description, args, _checker(tool))
        result = yield from _exchanges(route, runtime, name, args)
    except Rejected as decision:
        return _finished(ToolMessage(str(decision), tool_call_id=call_id or "", name=name, status="error"), call_id)
    except RuntimeError as error:
        if not any(text in str(error) for text in _BROKEN_OUTPUT):
            raise
        problem = f"{name} gave a result that its own output schema forbids, so it was not used: {str(error)[:300]}"
        return _finished(ToolMessage(problem, tool_call_id=call_id or "", name=name, status="error"), call_id)
    message = result_of(
        result, call_id=call_id or "", name=name, max_output=settings.max_output, max_bytes=settings.max_bytes
    )
    return _finished(message, call_id)


def _exchanges(route: Route, runtime: Runtime | None, name: str, args: dict[str, Any]) -> Story[Any]:
    ticket = route.access.ticket(runtime)
    key = runtime.idempotency_key if runtime is not None else None
    answers: tuple[Any, ...] = ()
    responses: Any = None
    state: str | None = None
    while True:
        call = Call(
            tool=route.tool,
            args=args,
            timeout=route.settings.timeout,
            meta={KEY_META: key} if key else None,
            repeatable=route.repeatable,
            answers=answers,
            responses=responses,
            state=state,
        )
        result = yield Remote(partial(route.send, ticket, call), runtime.progress if runtime is not None else None)
        if not isinstance(result, Question):
            return result
        _someone_to_ask(runtime, name)
        given = ask(name, runtime.tool_call_id if runtime is not None else None, result)
        if result.rounds:
            responses, state = given, result.state
        else:
            answers = (*answers, *given.values())


def _someone_to_ask(runtime: Runtime | None, name: str) -> None:
    if runtime is None or runtime.execution_info is None:
        raise MCPToolError(f"{name} needs a person's answer: run it in a graph with a checkpointer, which interrupts")


def _checker(tool: BaseTool) -> Callable[[dict[str, Any]], object]:
    body = plan_of(tool).sync
    return body.check if body is not None else (lambda args: args)


def _finished(message: ToolMessage, call_id: str | None) -> Any:
    """The result; called by hand with bare arguments, its content, or the error raised."""
    if call_id is not None:
        return message
    if message.status == "error":
        raise MCPToolError(message.text)
    return message.content
