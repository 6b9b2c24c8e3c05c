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
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import ExecutionInfo

from agentkit.errors import DatabaseError, NotStorableError
from agentkit.tools._langgraph import durability_of
from agentkit.tools._ledger import CHANNEL, NOTHING, Event, Key, Record, fold, merged
from agentkit.tools._lineage import AROUND, Lineage
from agentkit.tools._once import Once, looked_at
from agentkit.tools._steps import Pause, Story, adrive, drive

_FIRST_PAUSE = 0.0003  # seconds between two looks for a checkpoint that is being stored
_SOON = 0.01
_LONGEST_PAUSE = 0.1
_DOUBT = 1.0  # after this, the saver is asked whether it is worth waiting
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
    _reading: Once = field(default_factory=Once)
    _waiting: Once = field(default_factory=Once)
    _queue: list[_Ticket] = field(default_factory=list)
    _queue_lock: threading.Lock = field(default_factory=threading.Lock)
    _commit_lock: threading.Lock = field(default_factory=threading.Lock)
    _flusher: "asyncio.Task[None] | None" = None

    def record(self, key: Key, signature: str) -> Record:
        """What is known of a call; nothing where the record is of another call with its key."""
        found = self.known.get(key, NOTHING)
        return found if not found.signature or found.signature == signature else NOTHING

    def must_read(self, *, resuming: bool) -> bool:
        """Whether the ledger has to be read before a call of this run is looked at."""
        return resuming and not self._reading.done

    def must_wait(self) -> bool:
        """Whether the checkpoint may still be on its way to the database, so that no body may start."""
        return self.barrier and not self._reading.done and not self._waiting.done and not self._is_stored()

    def forget(self) -> None:
        """Read again next time: another process may have run a part of the step meanwhile."""
        self._reading.reset()

    # --- reading -------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read once for all threads that ask. Raises DatabaseError if the checkpoint does not appear."""
        self._reading.run(self._read)

    async def aread(self) -> None:
        """Read once for all calls that ask; goes on when the one that asked first is cancelled."""
        await self._reading.arun(self._read)

    def wait(self) -> None:
        """Wait, in this thread, until the checkpoint is stored. Raises DatabaseError if it does not appear."""
        self._waiting.run(self._wait)

    async def await_(self) -> None:
        """As `wait`, on the event loop."""
        await self._waiting.arun(self._wait)

    def _wait(self) -> Story[None]:
        pause = _FIRST_PAUSE
        while self._is_stored() is False and pause < _SOON:  # the saver knows, and will know soon
            yield Pause(pause)
            pause *= 1.5
        if not self._is_stored():
            yield from self._found()

    def _is_stored(self) -> bool | None:
        """What the saver knows without a look at the database; None where it cannot say."""
        if isinstance(self.saver, InMemorySaver):
            place = self.place["configurable"]
            stored = self.saver.storage.get(place["thread_id"], {}).get(place["checkpoint_ns"], {})
            return place["checkpoint_id"] in stored
        holds = getattr(self.saver, "holds", None)
        return None if holds is None else bool(holds(self.place))

    def _read(self) -> Story[None]:
        found = yield from self._found()
        lineage = Lineage.of(found)
        around = (yield Recent(self.saver, lineage.thread, AROUND)) if lineage.is_branch else ()
        self._take(found, lineage, around)

    def _found(self) -> Story[CheckpointTuple]:
        """The checkpoint, as soon as it is there."""
        begun, pause = time.monotonic(), _FIRST_PAUSE
        while (found := (yield _Get(self.saver, self.place))) is None:
            waited = time.monotonic() - begun
            if waited > _DOUBT and (check := getattr(self.saver, "check_awaited", None)) is not None:
                check(self.place)
            if waited > _PATIENCE:
                thread = self.place["configurable"]["thread_id"]
                raise DatabaseError(
                    f"thread {thread!r}: the checkpoint that holds these tool calls is not stored after "
                    f"{_PATIENCE:g} s; no tool was started"
                )
            yield Pause(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return cast("CheckpointTuple", found)

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
        ticket.future.add_done_callback(looked_at)
        self._queue.append(ticket)
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.ensure_future(self._flush())
            self._flusher.add_done_callback(looked_at)
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
    if info.thread_id is None or not info.checkpoint_id or durability == "exit":
        return None
    place = {
        "thread_id": thread_of(info),
        "checkpoint_ns": info.checkpoint_ns.rpartition("|")[0],
        "checkpoint_id": info.checkpoint_id,
    }
    return Ledger(saver=saver, place={"configurable": place}, barrier=durability != "sync")


def thread_of(info: ExecutionInfo) -> Any:
    """The thread id as langgraph gives it to savers: as text, except that 0 stays 0."""
    return str(info.thread_id) if info.thread_id else info.thread_id


def events_in(found: CheckpointTuple) -> list[Event]:
    """The ledger's events among the pending writes of a checkpoint."""
    return [value for _, channel, value in found.pending_writes or () if channel == CHANNEL]


def _settle(tickets: Sequence[_Ticket], error: BaseException | None = None) -> None:
    for ticket in tickets:
        ticket.settle(error)


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
class _Get:
    """The step that gets one checkpoint."""

    saver: BaseCheckpointSaver[Any]
    place: RunnableConfig

    def run(self) -> CheckpointTuple | None:
        return self.saver.get_tuple(self.place)

    async def arun(self) -> CheckpointTuple | None:
        return await self.saver.aget_tuple(self.place)


@dataclass(frozen=True, slots=True)
class Recent:
    """The step that gets a thread's newest checkpoints, newest first."""

    saver: BaseCheckpointSaver[Any]
    thread: RunnableConfig
    limit: int

    def run(self) -> list[CheckpointTuple]:
        """Get them in this thread."""
        return list(self.saver.list(self.thread, limit=self.limit))

    async def arun(self) -> list[CheckpointTuple]:
        """Get them on the event loop."""
        return [found async for found in self.saver.alist(self.thread, limit=self.limit)]


@dataclass(frozen=True, slots=True)
class Read:
    """The step that reads a ledger."""

    ledger: Ledger

    def run(self) -> None:
        """Read in this thread."""
        self.ledger.read()

    async def arun(self) -> None:
        """Read on the event loop."""
        await self.ledger.aread()


@dataclass(frozen=True, slots=True)
class Stored:
    """The step that waits until the calls' checkpoint is stored."""

    ledger: Ledger

    def run(self) -> None:
        """Wait in this thread."""
        self.ledger.wait()

    async def arun(self) -> None:
        """Wait on the event loop."""
        await self.ledger.await_()


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
