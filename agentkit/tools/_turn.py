"""What the calls of one batch share while they run: a Turn.

In `create_agent` each call of a batch is a langgraph task of its own, so nothing in their code ties them together. The
Turn does: there is one per (graph, step) in this process, and it knows which calls have started, which have ended and
how. It serves what needs the siblings:

- a failing call waits until its running siblings have settled before it raises (langgraph would cancel them);
- `sequential` tools and the `limit` of a group let calls run in call order;
- identical calls of a tool with `dedupe` run once;
- Commands bound for a parent graph are merged and leave once, with every result of the batch.

A Turn only ever waits for calls that have started, so it cannot deadlock, whatever the number of workers. It holds
nothing that matters after the process: that is the ledger's.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field

from agentkit.tools._ledger_io import Ledger
from agentkit.tools._outcome import Outcome
from agentkit.tools._policy import ToolPolicy


@dataclass(kw_only=True, eq=False, slots=True)
class Seat:
    """One call's place in its batch."""

    index: int
    sequential: bool = False
    group: str | None = None
    limit: int | None = None
    twin: Hashable = None
    began: int = 0  # the how-manyth call of the batch it was to begin; 0 if it has not
    running: bool = False
    settled: bool = False
    suspended: bool = False
    outcome: Outcome | None = None


def seat_for(index: int, name: str, policy: ToolPolicy, twin: Hashable = None) -> Seat:
    """The place of the call at `index` (its position in the AI message); a limit without a group is the tool's own."""
    group = None if policy.limit is None else policy.group or f"tool:{name}"
    return Seat(index=index, sequential=policy.sequential, group=group, limit=policy.limit, twin=twin)


def may_run(seat: Seat, seats: list[Seat]) -> bool:
    """Whether the rules let this call begin now, given the calls of its batch that have started.

    A `sequential` call waits for every earlier call and every later call waits for it. A call of a group waits while
    the group's limit is reached, and behind earlier calls of its group that wait themselves.
    """
    running = 0
    for other in seats:
        if other is seat or other.settled:
            continue
        earlier = other.index < seat.index
        if earlier and (seat.sequential or other.sequential):
            return False
        if seat.group is not None and other.group == seat.group:
            if earlier and not other.running:
                return False
            running += other.running
    return seat.limit is None or running < seat.limit


@dataclass(eq=False)
class Turn:
    """The calls of one batch that run in this process. Safe for threads and for one event loop.

    `finished` holds the outcomes, by index, of calls that ended in an earlier run of the same step.
    """

    seats: list[Seat] = field(default_factory=list)
    finished: dict[int, Outcome] = field(default_factory=dict)
    ledger: Ledger | None = None
    parent_bound: bool = False
    left: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _waiters: list[asyncio.Future[None]] = field(default_factory=list)

    def enter(self, seat: Seat, *, resuming: bool = False) -> None:
        """A call has started. One that had started before tells that the step is run again, so what we know is old.

        So does a resumed run in which none of its siblings is running: parts of the step may have ended elsewhere.
        """
        with self._changed:
            if resuming and self.ledger is not None and all(other.settled for other in self.seats):
                self.ledger.forget()
            if any(other.index == seat.index for other in self.seats):
                self.finished |= {other.index: other.outcome for other in self.seats if other.outcome is not None}
                self.seats, self.parent_bound, self.left = [], False, False
            self.finished.pop(seat.index, None)
            self.seats.append(seat)
            self._wake()

    def recall(self, index: int, outcome: Outcome) -> None:
        """The call at `index` has ended in an earlier run, as the ledger says."""
        with self._changed:
            if all(other.index != index for other in self.seats):
                self.finished[index] = outcome

    def outcomes(self) -> list[Outcome]:
        """All outcomes known, in call order."""
        known = self.finished | {seat.index: seat.outcome for seat in self.seats if seat.outcome is not None}
        return [known[index] for index in sorted(known)]

    def leave(self, seat: Seat, outcome: Outcome | None = None, *, suspended: bool = False) -> None:
        """The call has ended: with an outcome, suspended by an interrupt, or with neither (it raises). Idempotent."""
        with self._changed:
            if not seat.settled:
                seat.settled, seat.running = True, False
                seat.outcome, seat.suspended = outcome, suspended
                self._wake()

    def may_exit(self, seat: Seat, expected: Collection[int] | None, *, leaving: bool) -> bool:
        """Whether the call of `seat`, which has ended, is the one that takes the batch to the parent graph: true once.

        A call that leaves goes when all have ended. Where some have not started yet (workers are few), the last one
        goes for it. `expected` are the open calls of the batch, or None where it is not known which of them will start.
        """
        with self._changed:
            begun = {other.index for other in self.seats} | self.finished.keys()
            complete = (expected is None or begun.issuperset(expected)) and self.settled_but(seat)
            if leaving and not complete:
                self.parent_bound = True
            bound = leaving or self.parent_bound or any(outcome.leaves for outcome in self.finished.values())
            if self.left or not complete or not bound:
                return False
            self.left = True
            return True

    def has_ended(self, expected: Collection[int]) -> bool:
        """Whether each of these calls has an outcome."""
        with self._changed:
            known = {seat.index for seat in self.seats if seat.outcome is not None} | self.finished.keys()
            return known.issuperset(expected)

    def settled_but(self, seat: Seat) -> bool:
        """Whether every started call except this one has ended."""
        return all(other.settled for other in self.seats if other is not seat)

    def twin_of(self, seat: Seat) -> Seat | None:
        """The call of this batch that does the same and began or ended before, if `seat` has a twin key."""
        if seat.twin is None:
            return None
        with self._changed:
            alike = [other for other in self.seats if other.twin == seat.twin and (other.began or other.settled)]
        first = min(alike, key=lambda other: other.began, default=seat)
        return None if first is seat else first

    def begin(self, seat: Seat) -> bool:
        """Begin if the rules allow it now."""
        with self._changed:
            if may_run(seat, self.seats):
                seat.running, seat.began = True, 1 + max(other.began for other in self.seats)
                return True
            return False

    def wait(self, ready: Callable[[], bool], timeout: float | None = None) -> None:
        """Block this thread until `ready()`, at most `timeout` seconds; asked again at each change of the batch."""
        with self._changed:
            self._changed.wait_for(ready, timeout)

    async def await_(self, ready: Callable[[], bool]) -> None:
        """Wait on the event loop until `ready()`."""
        while True:
            with self._changed:
                if ready():
                    return
                waiter = asyncio.get_running_loop().create_future()
                self._waiters.append(waiter)
            await waiter

    def _wake(self) -> None:
        self._changed.notify_all()
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.get_loop().call_soon_threadsafe(_resolve, waiter)


class Alone(Turn):
    """The Turn of a batch of one call: there is nobody to wait for, so nothing is locked."""

    def enter(self, seat: Seat, *, resuming: bool = False) -> None:
        """The call has started."""
        if resuming and self.ledger is not None:
            self.ledger.forget()
        self.seats = [seat]

    def leave(self, seat: Seat, outcome: Outcome | None = None, *, suspended: bool = False) -> None:
        """The call has ended. Idempotent."""
        if not seat.settled:
            seat.settled, seat.running = True, False
            seat.outcome, seat.suspended = outcome, suspended

    def begin(self, seat: Seat) -> bool:
        """Nothing is in its way."""
        seat.running, seat.began = True, 1
        return True

    def settled_but(self, seat: Seat) -> bool:  # noqa: ARG002 - there is no other
        """There is no other call."""
        return True


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


@dataclass(frozen=True, slots=True)
class Until:
    """A step that waits for a change of the batch."""

    turn: Turn
    ready: Callable[[], bool]

    def run(self) -> None:
        """Wait in this thread."""
        self.turn.wait(self.ready)

    async def arun(self) -> None:
        """Wait on the event loop."""
        await self.turn.await_(self.ready)


@dataclass(frozen=True, slots=True)
class Muster:
    """A step that lets the earlier calls of a batch start first.

    Tasks start in call order, but worker threads may overtake each other by a hair; on the event loop they cannot. A
    call that will not start here (it is recorded, or waits for a worker) is not waited for longer than the grace.
    """

    turn: Turn
    indexes: frozenset[int]
    grace: float = 0.05

    def run(self) -> None:
        """Wait in this thread, at most the grace (seconds)."""
        self.turn.wait(lambda: self.indexes <= {seat.index for seat in self.turn.seats}, self.grace)

    async def arun(self) -> None:
        """On the event loop, tasks start in order."""


_TURNS: OrderedDict[Hashable, Turn] = OrderedDict()
_KEPT = 256  # steps; one is given up when its batch has ended, so only batches that wait for answers stay
_LOCK = threading.Lock()


def turn_at(key: Hashable) -> Turn:
    """The Turn of this graph and step; made for the first of its calls."""
    with _LOCK:
        turn = _TURNS.get(key)
        if turn is None:
            turn = _TURNS[key] = Turn()
            if len(_TURNS) > _KEPT:
                _TURNS.popitem(last=False)
        return turn


def give_up(key: Hashable) -> None:
    """Forget a Turn: every call of its batch has ended."""
    with _LOCK:
        _TURNS.pop(key, None)
