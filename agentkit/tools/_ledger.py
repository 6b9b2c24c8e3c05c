"""The ledger: what is known for good about each tool call of a thread.

Every step of a call's life is an event, `start`, `suspend`, `ask` or `finish`, kept with the checkpoint that holds the
call (see `_ledger_io`). This module is the pure part: the events, and what they say together. They say the same in
whatever order they are read, so clocks that differ between machines do no harm.

A call is known by its key (AI message id, call id); attempts to run it count from 1. An attempt that has a `start` and
neither a `suspend` nor a `finish` was in flight when its process ended.
"""

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypedDict

from langchain_core.messages import ToolCall, ToolMessage
from langgraph.types import Command

from agentkit.tools._outcome import Item, Outcome, results_of

CHANNEL = "__agentkit_call__"
"""The channel name of the events among a checkpoint's pending writes."""

Key = tuple[str, str]


class Event(TypedDict, total=False):
    """One event, plain data: `k` key, `e` what happened, `a` attempt, `t` seconds since 1970 (for people).

    `s` is the signature of the call; `n` how many questions the call had asked before ours; `o` the outcome's items,
    and `r` its result where that is not among them.
    """

    k: list[str]
    e: Literal["start", "suspend", "ask", "finish"]
    a: int
    t: float
    s: str
    n: int
    o: list[Any]
    r: ToolMessage | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What the events of one call say.

    attempt: the number of its last attempt; 0 if none has started.
    ended: attempts that were suspended by a question or raised an error.
    asks: attempts whose crash a person was asked about, with the position of that question among the call's questions.
    items: the outcome's items as stored; None as long as the call has not finished.
    result: its result, where that is not among the items.
    """

    signature: str = ""
    attempt: int = 0
    ended: frozenset[int] = frozenset()
    asks: Mapping[int, int] = field(default_factory=dict)
    items: Sequence[Any] | None = None
    result: ToolMessage | None = None
    since: float = 0.0

    @property
    def finished(self) -> bool:
        """Whether the call has a recorded outcome."""
        return self.items is not None

    @property
    def in_flight(self) -> bool:
        """Whether its last attempt has started and nothing more is known of it."""
        return self.items is None and self.attempt > 0 and self.attempt not in self.ended

    def after(self, event: Event) -> "Record":
        """The record with one more event."""
        kind, attempt = event["e"], event.get("a", 0)
        if kind == "finish":
            sign, since = event.get("s", ""), event.get("t", 0.0)
            if self.items is not None and self.since <= since:  # two processes ran it: the first to finish counts
                return self
            return replace(self, items=event["o"], result=event.get("r"), signature=sign, since=since)
        if kind == "suspend":
            return replace(self, ended=self.ended | {attempt})
        if kind == "ask":
            return replace(self, asks={**self.asks, attempt: event.get("n", 0)})
        if attempt < self.attempt or self.items is not None:
            return replace(self, attempt=max(attempt, self.attempt))
        return replace(self, attempt=attempt, signature=event.get("s", ""), since=event.get("t", 0.0))

    def outcome(self, call: ToolCall, messages_key: str) -> Outcome:
        """The recorded outcome of a finished call."""
        items = tuple(unpacked(item) for item in self.items or ())
        results = results_of(items, call, messages_key)
        return Outcome(result=results[0] if results else self.result, items=items)


NOTHING = Record()


def fold(events: Iterable[Event]) -> dict[Key, Record]:
    """The records that some events make, in any order."""
    records: dict[Key, Record] = {}
    for event in events:
        key = (event["k"][0], event["k"][1])
        records[key] = records.get(key, NOTHING).after(event)
    return records


def merged(older: Mapping[Key, Record], newer: Mapping[Key, Record]) -> dict[Key, Record]:
    """What two sets of records say together; of different calls with one key, the newer counts."""
    return {**older, **{key: _union(older[key], record) if key in older else record for key, record in newer.items()}}


def _union(older: Record, newer: Record) -> Record:
    if older.signature and newer.signature and older.signature != newer.signature:
        return newer
    last = older if older.attempt > newer.attempt else newer
    done = min((each for each in (newer, older) if each.finished), key=lambda each: each.since, default=newer)
    return replace(
        last if done.items is None else done,
        attempt=last.attempt,
        ended=older.ended | newer.ended,
        asks={**older.asks, **newer.asks},
        items=done.items,
        result=done.result,
    )


def event(kind: Literal["start", "suspend", "ask", "finish"], key: Key, attempt: int, **more: Any) -> Event:
    """An event that happens now."""
    made: Event = {"k": list(key), "e": kind, "a": attempt, "t": time.time(), **more}  # type: ignore[typeddict-item]
    return made


def signature_of(call: ToolCall) -> str:
    """A short digest of what is called with which arguments: a record is used only for the very same call."""
    text = json.dumps([call["name"], call["args"]], sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()


def packed(outcome: Outcome) -> list[Any]:
    """The items of an outcome as data that a serializer keeps: Commands apart, so that pairs stay pairs."""
    return [item if isinstance(item, ToolMessage) else _packed(item) for item in outcome.items]


def _packed(command: Command[Any]) -> dict[str, Any]:
    update = command.update
    goto = command.goto
    packed = {"graph": command.graph, "goto": list(goto) if isinstance(goto, list | tuple) else goto}
    if isinstance(update, list | tuple) and update and all(_is_pair(item) for item in update):
        return {**packed, "pairs": [list(pair) for pair in update]}
    return {**packed, "update": update}


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)  # noqa: PLR2004 - a pair


def unpacked(item: Any) -> Item:
    """The item that was packed."""
    if isinstance(item, ToolMessage):
        return item
    update = [(pair[0], pair[1]) for pair in item["pairs"]] if "pairs" in item else item["update"]
    return Command(graph=item["graph"], update=update, goto=item["goto"])
