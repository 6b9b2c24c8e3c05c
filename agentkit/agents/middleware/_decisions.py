"""Decisions about tool calls: what a person is asked, and what an answer says. Pure, and the same wire as LangChain's.

The question:  {"action_requests": [{"name", "args", "description", "id"}], "review_configs": [{"action_name",
               "allowed_decisions"}]}, in call order; "error" is added when the answer before could not be used.
The answer:    {"decisions": [decision, …]} in that order, or {"decisions": {call id: decision}}.
A decision:    {"type": "approve"} | {"type": "edit", "edited_action": {"name", "args"}}
               | {"type": "reject", "message"?} | {"type": "respond", "message"}
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

from langchain_core.messages import AIMessage, ToolCall, ToolMessage

from agentkit.errors import AnswerError, DefinitionError
from agentkit.messages import result_id

__all__ = ["ApprovalConfig", "Decision", "DecisionType", "answer_to", "question", "read_answer", "resolved"]

DecisionType = Literal["approve", "edit", "reject", "respond"]
ALL: tuple[DecisionType, ...] = ("approve", "edit", "reject", "respond")
Decision = dict[str, Any]


class ApprovalConfig(TypedDict):
    """How calls of one tool are reviewed.

    allowed_decisions: which decisions a reviewer may take.
    description: what the reviewer reads, or a function `(tool_call, state, runtime) -> str`.
    when: `(request) -> bool`; calls for which it is false need no review. It must say the same for the same call again.
    """

    allowed_decisions: list[DecisionType]
    description: NotRequired[str | Callable[[ToolCall, Any, Any], str]]
    when: NotRequired[Callable[[Any], bool]]


def resolved(interrupt_on: Mapping[str, bool | ApprovalConfig]) -> dict[str, ApprovalConfig]:
    """The configuration of each tool that is reviewed.

    Raises:
        DefinitionError: A configuration allows no decision, or one that does not exist.
    """
    found: dict[str, ApprovalConfig] = {}
    for name, config in interrupt_on.items():
        if config is False:
            continue
        if config is True:
            found[name] = {"allowed_decisions": list(ALL)}
            continue
        allowed = config.get("allowed_decisions")
        if not allowed or not set(allowed) <= set(ALL):
            raise DefinitionError(
                f"approval of {name!r}: allowed_decisions={allowed!r}; give one or more of {', '.join(ALL)}, "
                "or True for all of them"
            )
        found[name] = config
    return found


def question(
    calls: Sequence[ToolCall], configs: Mapping[str, ApprovalConfig], describe: Callable[[ToolCall], str], error: str
) -> dict[str, Any]:
    """What a reviewer is asked about `calls`."""
    asked: dict[str, Any] = {
        "action_requests": [
            {"name": call["name"], "args": call["args"], "description": describe(call), "id": call["id"]}
            for call in calls
        ],
        "review_configs": [
            {"action_name": call["name"], "allowed_decisions": list(configs[call["name"]]["allowed_decisions"])}
            for call in calls
        ],
    }
    if error:
        asked["error"] = error
    return asked


def read_answer(answer: Any, calls: Sequence[ToolCall], configs: Mapping[str, ApprovalConfig]) -> dict[str, Decision]:
    """The decision for each call, by call id.

    Raises:
        AnswerError: The answer does not decide every call exactly once, in an allowed way.
    """
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    ids = [call["id"] or "" for call in calls]
    if isinstance(decisions, Mapping):
        if set(decisions) != set(ids):
            raise AnswerError(f"decisions are for the calls {sorted(decisions)}, and {sorted(ids)} were asked about")
        by_id = dict(decisions)
    elif isinstance(decisions, Sequence) and not isinstance(decisions, str):
        if len(decisions) != len(ids):
            raise AnswerError(
                f"{len(decisions)} decisions for {len(ids)} calls: give one for each, in order or by call id"
            )
        by_id = dict(zip(ids, decisions, strict=True))
    else:
        raise AnswerError('an answer is {"decisions": [one for each call]} or {"decisions": {call id: decision}}')
    for call in calls:
        _check(by_id[call["id"] or ""], call, configs[call["name"]])
    return by_id


def _check(decision: Any, call: ToolCall, config: ApprovalConfig) -> None:
    kind = decision.get("type") if isinstance(decision, Mapping) else None
    if kind not in config["allowed_decisions"]:
        allowed = ", ".join(config["allowed_decisions"])
        raise AnswerError(f"the decision {kind!r} is not allowed for {call['name']} ({call['id']}): one of {allowed}")
    if kind == "edit":
        action = decision.get("edited_action")
        if not isinstance(action, Mapping) or not isinstance(action.get("name"), str):
            raise AnswerError(f'the edit of {call["id"]} needs "edited_action": {{"name": …, "args": {{…}}}}')
        if not isinstance(action.get("args"), Mapping):
            raise AnswerError(f"the edited args of {call['id']} are no object")
    message = decision.get("message")
    if (kind == "respond" or message is not None) and not isinstance(message, str):
        raise AnswerError(f'the decision {kind!r} for {call["id"]} needs "message": a text')


def answer_to(call: ToolCall, decision: Decision, message: AIMessage | None) -> ToolMessage | None:
    """The result that a decision is by itself: of a rejection or a response. None where the call is to run."""
    if decision["type"] in ("approve", "edit"):
        return None
    if decision["type"] == "respond":
        text = decision["message"]
    elif reason := decision.get("message"):
        text = f"User rejected the tool call for `{call['name']}` with reason: {reason}"
    else:
        text = (
            f"User rejected the tool call for `{call['name']}` with id {call['id']}. It was not run. "
            "Do not call it again unless the user asks for it."
        )
    return ToolMessage(
        content=text,
        name=call["name"],
        tool_call_id=call["id"] or "",
        id=None if message is None else result_id(message.id, call["id"]),
        status="success" if decision["type"] == "respond" else "error",
        response_metadata={"agentkit_decision": decision["type"]},
    )
