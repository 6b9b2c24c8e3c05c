"""Repair: the view of a history that every provider accepts."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast, overload

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, InvalidToolCall, ToolCall, ToolMessage

from agentkit.errors import PairingError
from agentkit.messages._calls import calls_of, is_result
from agentkit.messages._faults import Fault, Group, faults_of, plan, valid_prefix
from agentkit.messages._ids import ensure_call_ids, result_id
from agentkit.messages._results import missing_result, unreadable_result

Answer = Callable[[AIMessage, ToolCall], ToolMessage]


@overload
def repair_history(
    messages: list[AnyMessage], answer: Answer | None = None
) -> tuple[list[AnyMessage], list[Fault]]: ...
@overload
def repair_history(
    messages: list[BaseMessage], answer: Answer | None = None
) -> tuple[list[BaseMessage], list[Fault]]: ...
def repair_history(messages: list[Any], answer: Answer | None = None) -> tuple[list[Any], list[Fault]]:
    """Make every call in `messages` have exactly one result, directly after its AI message, in call order.

    A call is known by (AI message, call id); a result belongs to the nearest earlier AI message that has its call open,
    failing that to the next later one. Results are moved to their place; results that answer nothing and second
    results are dropped; unnamed and repeated call ids get new ones (`ensure_call_ids`), and their results with them.

    Pure, deterministic and idempotent. A prefix that was valid keeps its very objects.

    Args:
        messages: The history; never changed.
        answer: Makes the result of a call that has none. The default says that no result was recorded. It is asked
            for valid calls only; invalid ones are answered with what was wrong with them.

    Returns:
        The repaired history and the faults that were found. The same list object, and no faults, if there are none.

    Raises:
        PairingError: `answer` made a result for another call.
    """
    start = valid_prefix(messages)
    if start == len(messages):
        return messages, []
    made = plan(messages, start)
    repaired = list(messages[:start])
    for index in range(start, len(messages)):
        message = messages[index]
        if index in made.groups:
            repaired.extend(_closed(made.groups[index], messages, answer or missing_result))
        elif not is_result(message):
            repaired.append(message)
    return repaired, faults_of(messages, made)


def _closed(group: Group, messages: Sequence[BaseMessage], answer: Answer) -> Iterator[BaseMessage]:
    owner = ensure_call_ids(group.message)
    yield owner
    for slot, call in zip(group.slots, calls_of(owner), strict=True):
        call_id = cast("str", call.get("id"))
        if slot.at is not None:
            result = cast("ToolMessage", messages[slot.at])
            yield result if result.tool_call_id == call_id else result.model_copy(update={"tool_call_id": call_id})
        elif slot.valid:
            yield _checked(answer(owner, cast("ToolCall", call)), owner, call_id)
        else:
            yield unreadable_result(cast("InvalidToolCall", call), message_id=owner.id or "")


def _checked(result: ToolMessage, owner: AIMessage, call_id: str) -> ToolMessage:
    if result.tool_call_id != call_id:
        raise PairingError(
            f"repair asked for the result of call {call_id!r} and got one for {result.tool_call_id!r}: "
            "answer() must return a ToolMessage with the call's own id"
        )
    return result if result.id else result.model_copy(update={"id": result_id(owner.id or "", call_id)})
