"""What a server asks in the middle of a call, asked of a person by an interrupt."""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from jsonschema.validators import validator_for
from langgraph.types import interrupt
from referencing import Registry

from agentkit.errors import AnswerError
from agentkit.mcp._connection import Question
from agentkit.mcp._errors import MCPToolError
from agentkit.mcp._extra import sdk

_ACTIONS = ("accept", "decline", "cancel")


class MCPElicitation(TypedDict):
    """What a run is interrupted with. LangChain's form, so that its clients can answer.

    Each of `requests` has `key`, `message` and `mode`: "form" with `requested_schema`, or "url" with `url`. The answer
    is `{"responses": {key: {"action": "accept" | "decline" | "cancel", "content": {…}}}}`, with content for an accepted
    form. `tool_call_id` says which call it is that asks. `error` says what was wrong with the answer before; absent the
    first time.
    """

    type: Literal["mcp_elicitation"]
    tool_name: str
    tool_call_id: str | None
    requests: list[dict[str, Any]]
    error: NotRequired[str]


def ask(tool: str, call_id: str | None, question: Question) -> dict[str, Any]:
    """Interrupt the run until every request has an answer that fits: the server's ElicitResults by key.

    Raises:
        GraphInterrupt: there is no answer yet.
        MCPToolError: the server asks for what a person cannot give, or nobody can be asked here.
    """
    lib = sdk()
    for key, request in question.requests.items():
        if not isinstance(request, lib.ElicitRequest):
            raise MCPToolError(f"{tool} asks for {request.method} ({key}), which is not supported; only elicitation is")
    if not question.requests:
        raise MCPToolError(f"{tool} wants to be called again later, without asking anything: that is not supported")
    payload = MCPElicitation(
        type="mcp_elicitation",
        tool_name=tool,
        tool_call_id=call_id,
        requests=[_described(key, request.params) for key, request in question.requests.items()],
    )
    while True:
        answer = interrupt(payload)
        try:
            return {key: _read(answer, key, request.params) for key, request in question.requests.items()}
        except AnswerError as error:
            payload = MCPElicitation(**{**payload, "error": str(error)})


def _described(key: str, params: Any) -> dict[str, Any]:
    schema = getattr(params, "requested_schema", None)
    if schema is not None:
        return {"key": key, "message": params.message, "mode": "form", "requested_schema": schema}
    return {"key": key, "message": params.message, "mode": "url", "url": str(params.url)}


def _read(answer: Any, key: str, params: Any) -> Any:
    """One answer as an ElicitResult. Raises AnswerError where it does not fit."""
    responses = answer.get("responses") if isinstance(answer, Mapping) else None
    given = responses.get(key) if isinstance(responses, Mapping) else None
    if not isinstance(given, Mapping) or given.get("action") not in _ACTIONS:
        raise AnswerError(
            f'answer with {{"responses": {{{key!r}: {{"action": "accept" | "decline" | "cancel", "content": {{…}}}}}}}}'
        )
    lib = sdk()
    if given["action"] != "accept":
        return lib.ElicitResult(action=given["action"])
    schema = getattr(params, "requested_schema", None)
    if schema is None:
        return lib.ElicitResult(action="accept")
    content = given.get("content") or {}
    problems = sorted(str(e.message) for e in validator_for(schema)(schema, registry=Registry()).iter_errors(content))
    if problems:
        raise AnswerError(f"the content for {key!r} does not fit what was asked: {'; '.join(problems)[:300]}")
    return lib.ElicitResult(action="accept", content=content)
