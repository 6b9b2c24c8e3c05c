"""What is wrong with a history: one pass that finds nothing in a valid one, and the plan that names each fault."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from agentkit.messages._blocks import listing_its_calls, lists_its_calls, unlisted_ids
from agentkit.messages._calls import AI_TYPES, RESULT_TYPES, Call, calls_of, has_calls, is_ai, is_result
from agentkit.messages._ids import result_id
from agentkit.messages._names import as_usable, is_usable, unusable_names, with_usable_names

FaultKind = Literal[
    "missing",
    "orphan",
    "duplicate",
    "misplaced",
    "unnamed_call",
    "duplicate_call_id",
    "invalid_call_unanswered",
    "unlisted_call",
    "unusable_name",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One thing a strict provider would refuse.

    kind: `missing` (a call without result), `orphan` (a result without call), `duplicate` (a second result for a
        call), `misplaced` (a result that does not stand directly after its AI message in call order), `unnamed_call`
        (a call whose id is None or ""), `duplicate_call_id` (an id used twice within one AI message),
        `invalid_call_unanswered` (an unparsable call without result), `unlisted_call` (a call in the message's content
        that its `tool_calls` does not list, and that its provider would still be sent), `unusable_name` (a tool's name
        outside [A-Za-z0-9_-]{1,64}).
    message_index, message_id: where it was found: the AI message for faults of calls, the result for the others.
    call_id: the call's id as found.
    detail: one line for people.
    """

    kind: FaultKind
    message_index: int
    message_id: str | None
    call_id: str | None
    detail: str


@dataclass(slots=True)
class Slot:
    """The place of one result."""

    call: Call
    valid: bool
    at: int | None = None  # index of the result in the history


@dataclass(slots=True)
class Group:
    """An AI message with calls, all of them listed and properly named, and where their results are."""

    index: int
    message: AIMessage
    slots: list[Slot]


@dataclass(slots=True)
class Plan:
    """Who owns which result, from `start` on. `dropped` are the indexes of results that answer nothing."""

    start: int
    groups: dict[int, Group] = field(default_factory=dict)
    owner: dict[int, Group] = field(default_factory=dict)
    dropped: dict[int, Literal["orphan", "duplicate"]] = field(default_factory=dict)


def valid_prefix(messages: Sequence[BaseMessage]) -> int:
    """How many messages at the front are a valid history by themselves; all of them if nothing is wrong.

    Valid: every call is named and answered exactly once, directly after its AI message, in call order.
    """
    expected: list[str | None] = []  # ids whose results must come next, last one first
    group = 0  # where the AI message stands that expects them
    for index, message in enumerate(messages):
        kind = message.type
        if kind in RESULT_TYPES:
            if not expected:
                return index
            if expected.pop() != message.tool_call_id:  # type: ignore[attr-defined]  # the type says so
                return group
        elif expected:
            return group
        elif kind in AI_TYPES:
            expected = _expected(cast("AIMessage", message))
            if None in expected:
                return index
            group = index
    return group if expected else len(messages)


def _expected(message: AIMessage) -> list[str | None]:
    """The ids of the results that must follow, last one first; a None among them if a provider refuses the calls."""
    if not lists_its_calls(message):
        return [None]
    if message.invalid_tool_calls:
        calls: Sequence[Call] = list(calls_of(message))
    else:
        calls = message.tool_calls
    ids = [(call.get("id") or None) if is_usable(call.get("name")) else None for call in calls]
    if len(ids) > 1 and len(set(ids)) != len(ids):
        return [None]
    return ids[::-1]


def check_history(messages: Sequence[BaseMessage]) -> list[Fault]:
    """What a strict provider would refuse in `messages`, in order of position; [] if nothing.

    Pure. A result belongs to the nearest earlier AI message that has its call open; failing that, to the next later
    one with such a call.
    """
    start = valid_prefix(messages)
    if start == len(messages):
        return []
    return faults_of(messages, plan(messages, start))


def plan(messages: Sequence[BaseMessage], start: int = 0) -> Plan:
    """Find the owner of each result from `start` on; what stands before must be valid, and has all its results."""
    made = Plan(start=start)
    waiting: dict[str, list[tuple[Group, Slot]]] = {}  # open calls by id, nearest last
    known = {call.get("id") or "" for message in messages[:start] if has_calls(message) for call in calls_of(message)}
    early: list[int] = []
    for index in range(start, len(messages)):
        message = messages[index]
        if is_ai(message):
            proper = message if lists_its_calls(message) else listing_its_calls(message, _answered(messages))
            proper = with_usable_names(proper)
            if proper is message and not has_calls(message):
                continue
            group = made.groups[index] = Group(index, proper, list(_slots(proper)))
            for slot in reversed(group.slots):  # of two calls with one id the first is answered first
                call_id = slot.call.get("id") or ""
                known.add(call_id)
                waiting.setdefault(call_id, []).append((group, slot))
        elif is_result(message):
            if stack := waiting.get(message.tool_call_id):
                made.owner[index], slot = stack.pop()
                slot.at = index
            elif message.tool_call_id in known:
                made.dropped[index] = "duplicate"
            else:
                early.append(index)
    _place_early(messages, made, early)
    return made


def _answered(messages: Sequence[BaseMessage]) -> set[str]:
    return {message.tool_call_id for message in messages if is_result(message)}


def _slots(message: AIMessage) -> Iterator[Slot]:
    for call in message.tool_calls:
        yield Slot(call, valid=True)
    for invalid in message.invalid_tool_calls:
        yield Slot(invalid, valid=False)


def _place_early(messages: Sequence[BaseMessage], made: Plan, early: list[int]) -> None:
    """Results that stand before their AI message go to the next one that has their call open."""
    for index in early:
        result = messages[index]
        assert isinstance(result, ToolMessage)  # noqa: S101  # only results are collected
        made.dropped[index] = "orphan"
        for group in made.groups.values():
            if group.index < index:
                continue
            slot = next(
                (slot for slot in group.slots if slot.at is None and fits(group.message, slot.call, result)), None
            )
            if slot is not None:
                slot.at = index
                made.owner[index] = group
                del made.dropped[index]
                break


def fits(message: AIMessage, call: Call, result: ToolMessage) -> bool:
    """Whether a result that stands before `message` may be the result of its `call`.

    Providers reuse call ids, and a cut can leave a result behind whose AI message is gone: the result of an earlier
    call must not be taken for that of a later one. Evidence against: another tool's name, or an id that was
    derived (uuid5, see `result_id`) from another AI message.
    """
    if (call.get("id") or "") != result.tool_call_id:
        return False
    if result.name and call.get("name") and as_usable(result.name) != as_usable(call.get("name")):
        return False
    own = result.id
    derived = own is not None and len(own) == 36 and own[14] == "5"  # noqa: PLR2004  # the version digit of a uuid
    return not derived or own == result_id(message.id or "", call.get("id"))


def faults_of(messages: Sequence[BaseMessage], made: Plan) -> list[Fault]:
    """Name the faults of a planned history, by position."""
    faults: list[Fault] = []
    misplaced = {index for group in made.groups.values() for index in _misplaced(group, made)}
    for index in range(made.start, len(messages)):
        message = messages[index]
        if index in made.groups:
            faults.extend(_call_faults(made.groups[index], cast("AIMessage", message)))
        elif is_result(message):
            kind: FaultKind
            if index in made.dropped:
                kind = made.dropped[index]
            elif index in misplaced:
                kind = "misplaced"
            else:
                continue
            faults.append(
                Fault(
                    kind=kind,
                    message_index=index,
                    message_id=message.id,
                    call_id=message.tool_call_id,
                    detail=f"result at {index} for call {message.tool_call_id!r}: {_DETAIL[kind]}",
                )
            )
    return faults


_DETAIL: dict[FaultKind, str] = {
    "missing": "it has no result",
    "orphan": "no AI message has this call",
    "duplicate": "the call has a result already",
    "misplaced": "it does not stand directly after its AI message in call order",
    "unnamed_call": "it has no id",
    "duplicate_call_id": "another call of the message has the same id",
    "invalid_call_unanswered": "its arguments could not be parsed and it has no result",
    "unusable_name": "providers take names of 1 to 64 of A-Z a-z 0-9 _ - only",
    "unlisted_call": "tool_calls does not list it, but a provider would be sent it",
}


def _misplaced(group: Group, made: Plan) -> Iterator[int]:
    cursor = group.index + 1
    for slot in group.slots:
        while cursor in made.dropped:
            cursor += 1
        if slot.at == cursor:
            cursor += 1
        elif slot.at is not None:
            yield slot.at


def _call_faults(group: Group, found: AIMessage) -> Iterator[Fault]:
    for call_id in unlisted_ids(found):
        yield _call_fault("unlisted_call", group, call_id, "a content block")
    for call_id, name in unusable_names(found):
        yield _call_fault("unusable_name", group, call_id, repr(name))
    seen: set[str] = set()
    for slot in group.slots:
        call_id = slot.call.get("id")
        kinds: list[FaultKind] = []
        if not call_id:
            kinds.append("unnamed_call")
        elif call_id in seen:
            kinds.append("duplicate_call_id")
        seen.add(call_id or "")
        if slot.at is None:
            kinds.append("missing" if slot.valid else "invalid_call_unanswered")
        for kind in kinds:
            yield _call_fault(kind, group, call_id, slot.call.get("name") or "a tool")


def _call_fault(kind: FaultKind, group: Group, call_id: str | None, name: str) -> Fault:
    return Fault(
        kind=kind,
        message_index=group.index,
        message_id=group.message.id,
        call_id=call_id,
        detail=f"call {call_id!r} of {name} at {group.index}: {_DETAIL[kind]}",
    )
