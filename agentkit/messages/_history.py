"""The reducer for `messages`.

It is a fold: each written message is applied to the list alone, whatever else is written with it. That makes it
batching-invariant, which a DeltaChannel needs: replays run it again over other batches than the run did. For the same
reason nothing here is random, and nothing that was once applied can fail when it is applied again.
"""

import json
import logging
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    BaseMessageChunk,
    MessageLikeRepresentation,
    RemoveMessage,
    ToolMessage,
    convert_to_messages,
    message_chunk_to_message,
)

from agentkit.messages._calls import RESULT_TYPES, calls_of, has_calls, is_result
from agentkit.messages._faults import fits
from agentkit.messages._ids import stable_id

REMOVE_ALL_MESSAGES = "__remove_all__"

Write = MessageLikeRepresentation | list[MessageLikeRepresentation]

_log = logging.getLogger("agentkit.messages")

_ROLES = frozenset({"human", "user", "ai", "assistant", "system", "developer"})

_ID = attrgetter("id")

_FOREIGN = 1 << 30  # ranks behind every call


def history(state: Sequence[MessageLikeRepresentation], writes: Sequence[Write]) -> list[AnyMessage]:
    """Apply `writes`, in order, to the messages in `state`: the reducer for a DeltaChannel.

    Each write is a message, a dict, a string, a (role, text) tuple, or a list of these. A list of a role's name and a
    text is read as such a tuple.

    - A message whose id is in the list replaces it in place; else it is appended.
    - A result goes directly after the nearest earlier AI message that has its call open, in call order. A second
      result of a call is dropped (write it with the first one's id to replace it). A result whose AI message is
      absent is kept where it is, and goes to its place when the AI message comes.
    - `RemoveMessage(id=…)` removes a message; `RemoveMessage(id=REMOVE_ALL_MESSAGES)` removes all. Removing what is
      not there does nothing: the message is gone, as was asked (two nodes may remove the same one, and a replay that
      raised would make the thread unreadable for ever).
    - Messages without id get one that depends on what they say and on what they follow, so that replays agree.

    Pure: neither `state` nor the messages in it are changed. `history(history(s, xs), ys) == history(s, xs + ys)`.

    Raises:
        ValueError: something written is no message.
    """
    fold = _Fold(state)
    for message in _flattened(writes):
        fold.apply(message)
    return fold.messages


def add_history(
    left: Sequence[MessageLikeRepresentation] | MessageLikeRepresentation, right: Write
) -> list[AnyMessage]:
    """`history` for two arguments, as `Annotated[list[AnyMessage], add_history]` in a plain StateGraph wants it."""
    state = left if isinstance(left, list) else [cast("MessageLikeRepresentation", left)]
    return history(state, [right])


def _flattened(writes: Sequence[Write]) -> list[BaseMessage]:
    items: list[Any] = []
    for write in writes:
        if isinstance(write, list) and not _is_pair(write):
            items.extend(write)
        else:
            items.append(write)
    return _messages(items)


def _is_pair(write: list[Any]) -> bool:
    """Whether a list is a (role, text) tuple: savers keep tuples as lists, and a replay must read what the run read."""
    return (
        len(write) == 2  # noqa: PLR2004  # a role and a text
        and isinstance(write[0], str)
        and write[0] in _ROLES
        and isinstance(write[1], str | list)
    )


def _messages(items: Sequence[Any]) -> list[BaseMessage]:
    """`items` as messages; those that are messages already stay the same objects."""
    found: list[BaseMessage] = []
    for item in items:
        message = item
        if not isinstance(item, BaseMessage):
            try:
                message = convert_to_messages([item])[0]
            except (NotImplementedError, TypeError, KeyError) as error:
                raise ValueError(f"cannot read {type(item).__name__} as a message: {error}") from error
        if isinstance(message, BaseMessageChunk):
            message = message_chunk_to_message(message)
        found.append(message)
    return found


class _Fold:
    """The list under construction. `_tail` remembers the places of the last AI message, so that appending is cheap."""

    __slots__ = ("_answered", "_early", "_ids", "_tail", "messages")

    def __init__(self, state: Sequence[Any]) -> None:
        self._tail: _Places | None = None
        # At least the call ids of all results, and of those whose AI message did not come yet; once they are needed.
        self._answered: set[str] | None = None
        self._early: set[str] | None = None
        self.messages: list[AnyMessage] = []
        self._ids: set[str] = set()
        try:
            ids = set(map(_ID, state))
        except AttributeError:
            ids = {None}
        if None not in ids and "" not in ids:
            self.messages = list(state)
            self._ids = ids
            return
        for message in _messages(state):  # a state that no reducer made: given by hand, or by an Overwrite
            self._insert(len(self.messages), self._named(message))

    def apply(self, message: BaseMessage) -> None:
        if isinstance(message, RemoveMessage):
            self._remove(cast("str", message.id))
            return
        named = self._named(message)
        if named.id in self._ids:
            self._replace(named)
        elif is_result(named):
            self._place(named, len(self.messages))
        else:
            self._insert(len(self.messages), named)
            if has_calls(named):
                self._tail = None
                if self._may_be_early(named):
                    self._adopt(len(self.messages) - 1)

    def _named(self, message: BaseMessage) -> AnyMessage:
        if message.id:
            return cast("AnyMessage", message)
        before = self.messages[-1].id if self.messages else None
        said = _said(message)
        salt = 0
        while (new := stable_id("message", before, said, str(salt))) in self._ids:
            salt += 1
        return cast("AnyMessage", message.model_copy(update={"id": new}))

    def _insert(self, at: int, message: AnyMessage) -> None:
        self.messages.insert(at, message)
        self._ids.add(cast("str", message.id))
        if self._answered is not None and is_result(message):
            self._answered.add(message.tool_call_id)

    def _remove(self, message_id: str) -> None:
        self._tail = None
        self._early = None
        if message_id == REMOVE_ALL_MESSAGES:
            self.messages = []
            self._ids = set()
        elif message_id in self._ids:
            self._ids.discard(message_id)
            self.messages = [message for message in self.messages if message.id != message_id]
        else:
            _log.info("nothing to remove: no message has the id %s", message_id)

    def _replace(self, message: AnyMessage) -> None:
        at = len(self.messages) - 1
        while self.messages[at].id != message.id:
            at -= 1
        old = self.messages[at]
        if not is_result(message):
            self._tail = None
            self._early = None
            self.messages[at] = message
            if has_calls(message):
                self._sort(at)
                self._adopt(at)
        elif is_result(old) and old.tool_call_id == message.tool_call_id:
            self.messages[at] = message
        else:
            self._tail = None
            del self.messages[at]
            self._ids.discard(cast("str", message.id))
            self._place(message, at)

    def _place(self, result: ToolMessage, otherwise: int) -> None:
        """Put a new result where it belongs: at `otherwise` if its AI message is absent, nowhere if it has a result."""
        call_id = result.tool_call_id
        places = self._tail
        if places is None or not places.expects(call_id):
            places, known = self._owner(call_id)
            if places is None:
                if known:
                    _log.info("dropped a second result of the call %s; to replace one, write it with its id", call_id)
                    return
                self._insert(otherwise, result)
                if self._early is not None:
                    self._early.add(call_id)
                return
        if places is not self._tail:
            self._tail = None  # what is inserted before it moves it
        self._insert(places.take(call_id), result)

    def _owner(self, call_id: str) -> tuple["_Places | None", bool]:
        """The last AI message that has this call open, and whether any has the call at all."""
        known = False
        newest = True
        for at in range(len(self.messages) - 1, -1, -1):
            message = self.messages[at]
            if not has_calls(message):
                continue
            if any((call.get("id") or "") == call_id for call in calls_of(message)):
                known = True
                places = _Places(self.messages, at)
                if places.expects(call_id):
                    if newest:  # an older one must not be remembered: a newer one may have a call of the same id
                        self._tail = places
                    return places, True
            newest = False
        return None, known

    def _sort(self, at: int) -> None:
        """Bring the results behind a replaced AI message into its call order; those it does not expect go last."""
        end = at + 1
        while end < len(self.messages) and is_result(self.messages[end]):
            end += 1
        run = cast("list[ToolMessage]", self.messages[at + 1 : end])
        del self.messages[at + 1 : end]
        places = _Places(self.messages, at)
        foreign: list[ToolMessage] = []
        for result in run:
            if places.expects(result.tool_call_id):
                self.messages.insert(places.take(result.tool_call_id), result)
            else:
                foreign.append(result)
        after = at + 1 + len(run) - len(foreign)
        self.messages[after:after] = foreign

    def _may_be_early(self, owner: AIMessage) -> bool:
        """Whether a result of `owner`, the newest AI message, can have been written before it."""
        calls = {call.get("id") or "" for call in calls_of(owner)}
        if self._answered is None:
            self._answered = {
                message.tool_call_id  # type: ignore[union-attr]  # the type says so
                for message in self.messages
                if message.type in RESULT_TYPES
            }
        if self._answered.isdisjoint(calls):
            return False
        if self._early is None:
            self._early = _early_ids(self.messages[:-1])
        return not self._early.isdisjoint(calls)

    def _adopt(self, at: int) -> None:
        """Bring the results that were written before their AI message to it."""
        calls = {call.get("id") or "" for call in calls_of(cast("AIMessage", self.messages[at]))}
        loose = self._loose(at, calls)
        if not loose:
            return
        results = [cast("ToolMessage", self.messages[index]) for index in loose]
        for index in reversed(loose):
            del self.messages[index]
        places = _Places(self.messages, at - sum(index < at for index in loose))
        for result in results:
            if places.expects(result.tool_call_id):
                self.messages.insert(places.take(result.tool_call_id), result)
            else:
                self._ids.discard(cast("str", result.id))  # a second result of the call

    def _loose(self, at: int, calls: set[str]) -> list[int]:
        """Where the results stand that belong to the AI message at `at` and are not in one of its places."""
        owner = cast("AIMessage", self.messages[at])
        places = _Places(self.messages, at)
        holder: dict[str, int] = {}  # call id → the nearest AI message so far that has it
        loose: list[int] = []
        for index, message in enumerate(self.messages):
            if is_result(message):
                call_id = message.tool_call_id
                if call_id not in calls or places.holds(index):
                    continue
                held_by = holder.get(call_id)
                early = held_by is None and index < at
                if held_by == at or (early and any(fits(owner, call, message) for call in calls_of(owner))):
                    loose.append(index)
            elif has_calls(message):
                holder.update((call.get("id") or "", index) for call in calls_of(message))
        return loose


class _Places:
    """The places behind one AI message: which results stand there, and where the missing ones go."""

    __slots__ = ("_at", "_open", "_run")

    def __init__(self, messages: Sequence[AnyMessage], at: int) -> None:
        self._at = at
        self._open: dict[str, list[int]] = {}  # call id → the ranks that wait for a result, last one first
        self._run: list[int] = []  # ranks of the results that follow, _FOREIGN for those of other calls
        calls = list(calls_of(cast("AIMessage", messages[at])))
        for rank in range(len(calls) - 1, -1, -1):
            self._open.setdefault(calls[rank].get("id") or "", []).append(rank)
        for index in range(at + 1, len(messages)):
            result = messages[index]
            if not is_result(result):
                break
            ranks = self._open.get(result.tool_call_id)
            self._run.append(ranks.pop() if ranks else _FOREIGN)

    def expects(self, call_id: str) -> bool:
        """Whether a call of this id waits for its result."""
        return bool(self._open.get(call_id))

    def take(self, call_id: str) -> int:
        """Reserve the place of the call's result, and say where in the list it is."""
        rank = self._open[call_id].pop()
        place = len(self._run)
        while place and self._run[place - 1] > rank:
            place -= 1
        self._run.insert(place, rank)
        return self._at + 1 + place

    def holds(self, index: int) -> bool:
        """Whether the message at `index` is a result in its place."""
        place = index - self._at - 1
        return 0 <= place < len(self._run) and self._run[place] != _FOREIGN


def _early_ids(messages: Sequence[AnyMessage]) -> set[str]:
    """The call ids of the results that no AI message before them has."""
    called: set[str] = set()
    early: set[str] = set()
    for message in messages:
        if is_result(message):
            if message.tool_call_id not in called:
                early.add(message.tool_call_id)
        elif has_calls(message):
            called.update(call.get("id") or "" for call in calls_of(message))
    return early


def _said(message: BaseMessage) -> str:
    """What a message says, as text that is the same in every process."""
    parts = [message.type, message.name, message.content]
    parts += [getattr(message, key, None) for key in ("tool_calls", "invalid_tool_calls", "tool_call_id")]
    return json.dumps(parts, skipkeys=True, default=lambda value: type(value).__qualname__)
