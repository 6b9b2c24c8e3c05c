"""Which calls are open, and whose they are. All scans start at the end: what is asked for stands there."""

from collections.abc import Iterator, Sequence
from typing import TypeGuard

from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall, ToolCall, ToolMessage

Call = ToolCall | InvalidToolCall

# Message classes are abstract, and `isinstance` with a class that does not fit costs ten times as much as this.
AI_TYPES = frozenset({"ai", "AIMessageChunk"})
RESULT_TYPES = frozenset({"tool", "ToolMessageChunk"})


def is_ai(message: BaseMessage) -> TypeGuard[AIMessage]:
    """Whether `message` is an AI message."""
    return message.type in AI_TYPES


def is_result(message: BaseMessage) -> TypeGuard[ToolMessage]:
    """Whether `message` is a result."""
    return message.type in RESULT_TYPES


def open_calls(messages: Sequence[BaseMessage]) -> list[ToolCall]:
    """The calls of the last AI message that have no result yet, in call order; [] without AI message or open call.

    Only valid calls: invalid ones are never run. Results are looked for after the AI message only. The cost grows
    with the distance to the last AI message, not with the history.
    """
    answered: list[str] = []
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if is_result(message):
            answered.append(message.tool_call_id)
        elif is_ai(message):
            calls = message.tool_calls
            if not answered:
                return list(calls)
            return _without(calls, answered)
    return []


def unreadable_calls(messages: Sequence[BaseMessage]) -> list[InvalidToolCall]:
    """The invalid calls of the last AI message that have no result yet: what the model wrote could not be parsed.

    They can never run, but a provider wants each of them answered: see `unreadable_result`.
    """
    answered: set[str] = set()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if is_result(message):
            answered.add(message.tool_call_id)
        elif is_ai(message):
            return [call for call in message.invalid_tool_calls if (call.get("id") or "") not in answered]
    return []


def _without(calls: list[ToolCall], answered: list[str]) -> list[ToolCall]:
    if len(calls) == 1:
        return [] if (calls[0]["id"] or "") in answered else list(calls)
    left: dict[str, int] = {}
    for call_id in answered:
        left[call_id] = left.get(call_id, 0) + 1
    found: list[ToolCall] = []
    for call in calls:
        call_id = call["id"] or ""
        if left.get(call_id):
            left[call_id] -= 1  # one result answers one call, also where a message names two calls alike
        else:
            found.append(call)
    return found


def owner_of(messages: Sequence[BaseMessage], call_id: str) -> AIMessage | None:
    """The AI message that the call `call_id` belongs to.

    The last one that has this call open; if none has, the last one that has it at all; None if there is none.
    Invalid calls count too.
    """
    results = 0
    nearest: AIMessage | None = None
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if is_result(message):
            results += message.tool_call_id == call_id
        elif is_ai(message):
            mine = sum(call.get("id") == call_id for call in calls_of(message))
            if mine > results:
                return message
            results -= mine
            if mine and nearest is None:
                nearest = message
    return nearest


def calls_of(message: AIMessage) -> Iterator[Call]:
    """The calls of a message in the order their results stand in: tool_calls, then invalid_tool_calls."""
    yield from message.tool_calls
    yield from message.invalid_tool_calls


def has_calls(message: BaseMessage) -> TypeGuard[AIMessage]:
    """Whether `message` is an AI message that expects results."""
    return message.type in AI_TYPES and bool(message.tool_calls or message.invalid_tool_calls)  # type: ignore[attr-defined]  # the type says so
