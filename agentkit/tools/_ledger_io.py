"""Where the ledger is kept: among the pending writes of the checkpoint that holds the calls, in the run's own saver.

langgraph stores what finished tasks wrote without waiting for it, and has no word for "started". So the events are
written here, under task ids of our own (langgraph passes over the writes of tasks it does not know), and waited for.
Events of calls that run at the same time travel together: one write for all that are there when the last one is done.

Reading is one look at the checkpoint. It is also the barrier of durability "async": a tool must not start before the
message that asks for it is stored, else a crash would have the model ask again, perhaps for something else.
"""

import asyncio
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import ExecutionInfo

from agentkit.errors import DatabaseError, NotStorableError
from agentkit.tools._langgraph import durability_of
from agentkit.tools._ledger import CHANNEL, NOTHING, Event, Key, Record, fold, merged
from agentkit.tools._lineage import AROUND, Lineage
from agentkit.tools._steps import Story, adrive, drive

_FIRST_PAUSE = 0.001  # seconds between two looks for a checkpoint that is being stored
_LONGEST_PAUSE = 0.1
_PATIENCE = 30.0


@dataclass(eq=False, slots=True)
class _Ticket:
    """An event on its way into the ledger."""

    event: Event
    future: "asyncio.Future[None] | None" = None
    done: bool = False
    error: BaseException | None = None

    def settle(self, error: BaseException | None = None) -> None:
        self.done, self.error = True, error
        if self.future is None or self.future.done():
            return
        if error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(error)


@dataclass(eq=False)
class Ledger:
    """The ledger of one step of one thread. Safe for threads, and for one event loop.

    Args:
        saver: the checkpointer of the run.
        place: thread id, checkpoint namespace and checkpoint id, as a config.
        barrier: whether the checkpoint may still be on its way to the database.
    """

    saver: BaseCheckpointSaver[Any]
    place: RunnableConfig
    barrier: bool
    known: dict[Key, Record] = field(default_factory=dict)
    replayed: dict[Key, Record] = field(default_factory=dict)  # of a fork: what its other branch recorded
    _is_read: bool = False
    _reading: "asyncio.Task[None] | None" = None
    _read_lock: threading.Lock = field(default_factory=threading.Lock)
    _queue: list[_Ticket] = field(default_factory=list)
    _queue_lock: threading.Lock = field(default_factory=threading.Lock)
    _commit_lock: threading.Lock = field(default_factory=threading.Lock)
    _flusher: "asyncio.Task[None] | None" = None

    def record(self, key: Key, signature: str) -> Record:
        """What is known of a call; nothing where the record is of another call with its key."""
        found = self.known.get(key, NOTHING)
        return found if not found.signature or found.signature == signature else NOTHING

    def must_read(self, *, resuming: bool) -> bool:
        """Whether the ledger has to be read before a call of this run may start."""
        return not self._is_read and (resuming or self.barrier)

    def forget(self) -> None:
        """Read again next time: another process may have run a part of the step meanwhile."""
        self._is_read, self._reading = False, None

    # --- reading -------------------------------------------------------------------------------------------------

    def read(self, *, resuming: bool) -> None:
        """Read once for all threads that ask. Raises DatabaseError if the checkpoint does not appear."""
        with self._read_lock:
            if self._is_read:
                return
            deadline, pause = time.monotonic() + _PATIENCE, _FIRST_PAUSE
            while (found := self.saver.get_tuple(self.place)) is None:
                _give_up_after(deadline, self.place)
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            if resuming:
                lineage = Lineage.of(found)
                self._take(found, lineage, self._around(lineage))
            self._is_read = True

    async def aread(self, *, resuming: bool) -> None:
        """Read once for all calls that ask; goes on when the one that asked first is cancelled."""
        if self._is_read:
            return
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._aread(resuming=resuming))
            self._reading.add_done_callback(_looked_at)
        await asyncio.shield(self._reading)

    async def _aread(self, *, resuming: bool) -> None:
        deadline, pause = time.monotonic() + _PATIENCE, _FIRST_PAUSE
        while (found := await self.saver.aget_tuple(self.place)) is None:
            _give_up_after(deadline, self.place)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        if resuming:
            lineage = Lineage.of(found)
            around = await self._aaround(lineage)
            self._take(found, lineage, around)
        self._is_read = True

    def _around(self, lineage: Lineage) -> list[CheckpointTuple]:
        return list(self.saver.list(lineage.thread, limit=AROUND)) if lineage.is_branch else []

    async def _aaround(self, lineage: Lineage) -> list[CheckpointTuple]:
        if not lineage.is_branch:
            return []
        return [item async for item in self.saver.alist(lineage.thread, limit=AROUND)]

    def _take(self, found: CheckpointTuple, lineage: Lineage, around: Sequence[CheckpointTuple]) -> None:
        own = fold(events_in(found))
        if lineage.is_branch:
            older, superseded = lineage.look(around)
            earlier: dict[Key, Record] = {}
            for item in older:
                earlier = merged(earlier, fold(events_in(item)))
            if superseded:
                self.replayed = earlier
            else:  # the thread's head, only edited: the calls in it go on
                own = merged(earlier, own)
        self.known = merged(own, self.known)

    # --- writing -------------------------------------------------------------------------------------------------

    def append(self, event: Event) -> None:
        """Store an event; returns when it is durable.

        Raises:
            NotStorableError: the serializer cannot hold the event.
            Exception: what the saver raises.
        """
        ticket = _Ticket(event)
        with self._queue_lock:
            self._queue.append(ticket)
        with self._commit_lock:  # whoever waits here may find that the one before has taken its event along
            if not ticket.done:
                drive(self._commit(self._taken()))
        if ticket.error is not None:
            raise ticket.error
        self.learn(event)

    async def aappend(self, event: Event) -> None:
        """As `append`. A cancelled caller's event is stored all the same."""
        ticket = _Ticket(event, asyncio.get_running_loop().create_future())
        assert ticket.future is not None  # noqa: S101 - made in the line above
        ticket.future.add_done_callback(_looked_at)
        self._queue.append(ticket)
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.ensure_future(self._flush())
            self._flusher.add_done_callback(_looked_at)
        await asyncio.shield(ticket.future)
        self.learn(event)

    async def _flush(self) -> None:
        await asyncio.sleep(0)  # siblings that are about to write go along
        while tickets := self._taken():
            await adrive(self._commit(tickets))

    def _commit(self, tickets: Sequence[_Ticket]) -> Story[None]:
        """Write the events and tell those who wait. A second try is made without what cannot be stored."""
        for last in (False, True):
            try:
                if tickets:
                    yield _Put(self, tickets)
            except BaseException as error:
                if last or not isinstance(error, Exception):
                    _settle(tickets, error)
                if not isinstance(error, Exception):
                    raise
                tickets = self._storable(tickets, error)
            else:
                _settle(tickets)
                return

    def _taken(self) -> list[_Ticket]:
        with self._queue_lock:
            tickets, self._queue = self._queue, []
        return tickets

    def _storable(self, tickets: Sequence[_Ticket], error: Exception) -> list[_Ticket]:
        """After a failed write: settles the events that cannot be stored, and returns those worth a second try."""
        rest = []
        for ticket in tickets:
            try:
                self.saver.serde.dumps_typed(ticket.event)
            except Exception as reason:  # noqa: BLE001 - whatever a serializer raises
                refused = NotStorableError(f"cannot be stored: {type(reason).__name__}: {str(reason)[:200]}")
                refused.__cause__ = error
                ticket.settle(refused)
            else:
                rest.append(ticket)
        return rest

    def learn(self, event: Event) -> None:
        """Know of an event that is durable."""
        key = (event["k"][0], event["k"][1])
        self.known[key] = self.known.get(key, NOTHING).after(event)


def ledger_at(saver: BaseCheckpointSaver[Any], info: ExecutionInfo, config: RunnableConfig) -> Ledger | None:
    """The ledger of the step a node runs in; None where the run stores nothing before it ends."""
    durability = durability_of(config)
    if not info.thread_id or not info.checkpoint_id or durability == "exit":
        return None
    place = {
        "thread_id": info.thread_id,
        "checkpoint_ns": info.checkpoint_ns.rpartition("|")[0],
        "checkpoint_id": info.checkpoint_id,
    }
    barrier = durability != "sync" and not isinstance(saver, InMemorySaver)  # what dies with us needs no waiting for
    return Ledger(saver=saver, place={"configurable": place}, barrier=barrier)


def events_in(found: CheckpointTuple) -> list[Event]:
    """The ledger's events among the pending writes of a checkpoint."""
    return [value for _, channel, value in found.pending_writes or () if channel == CHANNEL]


def _settle(tickets: Sequence[_Ticket], error: BaseException | None = None) -> None:
    for ticket in tickets:
        ticket.settle(error)


def _give_up_after(deadline: float, place: RunnableConfig) -> None:
    if time.monotonic() > deadline:
        thread = place["configurable"]["thread_id"]
        raise DatabaseError(
            f"thread {thread!r}: the checkpoint that holds these tool calls is not stored after {_PATIENCE:g} s; "
            "none of them was started"
        )


def _looked_at(future: "asyncio.Future[Any]") -> None:
    """Keeps asyncio from complaining about an error whose waiters were cancelled."""
    if not future.cancelled():
        future.exception()


@dataclass(frozen=True, slots=True)
class _Put:
    """The step that writes events, under a new task id: never over those of another process."""

    ledger: Ledger
    tickets: Sequence[_Ticket]

    def run(self) -> None:
        self.ledger.saver.put_writes(self.ledger.place, self._writes(), str(uuid.uuid4()))

    async def arun(self) -> None:
        await self.ledger.saver.aput_writes(self.ledger.place, self._writes(), str(uuid.uuid4()))

    def _writes(self) -> list[tuple[str, Any]]:
        return [(CHANNEL, ticket.event) for ticket in self.tickets]


@dataclass(frozen=True, slots=True)
class Read:
    """The step that reads a ledger."""

    ledger: Ledger
    resuming: bool

    def run(self) -> None:
        """Read in this thread."""
        self.ledger.read(resuming=self.resuming)

    async def arun(self) -> None:
        """Read on the event loop."""
        await self.ledger.aread(resuming=self.resuming)


@dataclass(frozen=True, slots=True)
class Append:
    """The step that stores one event."""

    ledger: Ledger
    event: Event

    def run(self) -> None:
        """Store it from this thread."""
        self.ledger.append(self.event)

    async def arun(self) -> None:
        """Store it on the event loop."""
        await self.ledger.aappend(self.event)
