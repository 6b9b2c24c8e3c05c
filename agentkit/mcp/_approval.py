"""A person's word before a call goes to a server, in the form that LangChain's approval clients know."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from langchain_core.tools import BaseTool
from langgraph.types import interrupt

from agentkit.errors import AnswerError, ArgumentsError, DefinitionError
from agentkit.mcp._annotations import is_destructive

Approve: TypeAlias = Literal["destructive", "all"] | Callable[[BaseTool], bool] | None

_DECISIONS = ("approve", "edit", "reject")


def needs_approval(approve: Approve, tool: BaseTool) -> bool:
    """Whether calls of this tool are put before a person."""
    if approve is None:
        return False
    if callable(approve):
        return bool(approve(tool))
    return approve == "all" or is_destructive(tool)


def check_approve(approve: Any) -> None:
    """Raises DefinitionError where `approve` is not known."""
    if approve is not None and not callable(approve) and approve not in ("destructive", "all"):
        raise DefinitionError(
            f"approve={approve!r} is not known: give 'destructive', 'all', a function (tool) -> bool, or None"
        )


class Rejected(Exception):  # noqa: N818 - a decision, not a failure
    """A person said no; the text is for the model."""


def approved(
    name: str, description: str, args: dict[str, Any], check: Callable[[dict[str, Any]], object]
) -> dict[str, Any]:
    """Interrupt the run until a person has decided: the arguments to call with.

    Raises:
        GraphInterrupt: nobody has decided yet.
        Rejected: the answer was no.
    """
    request: dict[str, Any] = {
        "action_requests": [{"name": name, "args": args, "description": description}],
        "review_configs": [{"action_name": name, "allowed_decisions": list(_DECISIONS)}],
    }
    while True:
        answer = interrupt(request)
        try:
            return _decided(answer, name, args, check)
        except AnswerError as error:
            request = {**request, "error": str(error)}


def _decided(answer: Any, name: str, args: dict[str, Any], check: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    if not isinstance(decisions, list) or len(decisions) != 1 or not isinstance(decisions[0], Mapping):
        raise AnswerError('answer with {"decisions": [{"type": "approve"}]}: one decision for one call')
    (decision,) = decisions
    kind = decision.get("type")
    if kind == "approve":
        return args
    if kind == "reject":
        reason = decision.get("message")
        raise Rejected(f"The user rejected the call of {name}" + (f": {reason}" if reason else "."))
    if kind != "edit":
        raise AnswerError(f"the decision {kind!r} is not known: {', '.join(_DECISIONS)}")
    edited = (decision.get("edited_action") or {}).get("args")
    if not isinstance(edited, dict):
        raise AnswerError(f'an edit needs {{"edited_action": {{"name": {name!r}, "args": {{…}}}}}}')
    try:
        check(edited)
    except ArgumentsError as error:
        raise AnswerError(str(error)) from error
    return edited
