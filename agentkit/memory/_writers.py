"""One writer per thread: whoever holds a thread is the only one to run on it, in this process or any other.

agentkit's savers always refuse a step of a run whose thread another run has changed meanwhile, so nothing is lost. But
by then the second run has called models and tools. A lock taken before the run prevents that.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal, NoReturn
from weakref import WeakKeyDictionary

from langgraph.checkpoint.base import BaseCheckpointSaver

from agentkit.errors import DefinitionError, InjectionError, ThreadBusyError
from agentkit.tools._transaction import Source, source_of

OnBusy = Literal["serialize", "refuse", "off"]

# A lock of the transaction also works behind a pooler that gives each transaction another session. The server frees it
# however the process ends.
_TRY = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 7310869920112))"
_SHORTEST, _LONGEST = 0.005, 0.2  # seconds between two tries


@contextmanager
def one_writer(
    checkpointer: BaseCheckpointSaver[Any],
    thread_id: str,
    *,
    on_busy: OnBusy = "serialize",
    timeout: float | None = 60.0,
) -> Iterator[None]:
    """Hold a thread while the block runs.

        with one_writer(memory.checkpointer, "t"):
            agent.invoke(…)

    Runs of the same thread, in this or any other process, wait for each other if they are in such a block too. Forks
    are runs like any other. With a Postgres checkpointer the lock is the database's, on a connection of its own, and is
    free again as soon as the process ends, however it does; with any other it holds within this process.

    Args:
        checkpointer: the one that the runs use.
        thread_id: the thread.
        on_busy: "serialize" waits until it is free, "refuse" raises at once, "off" takes no lock.
        timeout: seconds to wait at most; None for ever.

    Raises:
        ThreadBusyError: another run holds the thread, and it is refused or did not end in time.
        DefinitionError: `on_busy` is something else.
    """
    deadline = _deadline(on_busy, timeout)
    if on_busy == "off":
        yield
        return
    source = _source(checkpointer)
    if source is None:
        lock = _local(checkpointer, thread_id)
        patience = -1 if deadline is None else max(0.0, deadline - time.monotonic())
        if not (lock.acquire(timeout=patience) if patience else lock.acquire(blocking=False)):
            _refuse(thread_id, on_busy)
        try:
            yield
        finally:
            lock.release()
        return
    from psycopg import Connection

    with Connection.connect(source.conninfo, **source.kwargs) as conn:
        pause = _SHORTEST
        while True:
            conn.execute("BEGIN")
            row: Any = conn.execute(_TRY, (thread_id,)).fetchone()
            if _first(row):
                break
            conn.execute("ROLLBACK")  # not held open while waiting: it would hold up whoever makes an index
            pause = _next_pause(pause, deadline, thread_id, on_busy)
            time.sleep(pause)
        yield


@asynccontextmanager
async def aone_writer(
    checkpointer: BaseCheckpointSaver[Any],
    thread_id: str,
    *,
    on_busy: OnBusy = "serialize",
    timeout: float | None = 60.0,  # noqa: ASYNC109 - of the lock, not of the block
) -> AsyncIterator[None]:
    """As `one_writer`, without blocking the event loop."""
    deadline = _deadline(on_busy, timeout)
    if on_busy == "off":
        yield
        return
    source = _source(checkpointer)
    pause = _SHORTEST
    if source is None:
        lock = _local(checkpointer, thread_id)
        while not lock.acquire(blocking=False):
            pause = _next_pause(pause, deadline, thread_id, on_busy)
            await asyncio.sleep(pause)
        try:
            yield
        finally:
            lock.release()
        return
    from psycopg import AsyncConnection

    async with await AsyncConnection.connect(source.conninfo, **source.kwargs) as conn:
        while True:
            await conn.execute("BEGIN")
            row: Any = await (await conn.execute(_TRY, (thread_id,))).fetchone()
            if _first(row):
                break
            await conn.execute("ROLLBACK")
            pause = _next_pause(pause, deadline, thread_id, on_busy)
            await asyncio.sleep(pause)
        yield


_LOCKS: WeakKeyDictionary[BaseCheckpointSaver[Any], dict[str, threading.Lock]] = WeakKeyDictionary()
_GUARD = threading.Lock()


def _local(checkpointer: BaseCheckpointSaver[Any], thread_id: str) -> threading.Lock:
    with _GUARD:
        return _LOCKS.setdefault(checkpointer, {}).setdefault(thread_id, threading.Lock())


def _source(checkpointer: BaseCheckpointSaver[Any]) -> Source | None:
    try:
        return source_of(checkpointer)
    except InjectionError:
        return None


def _deadline(on_busy: str, timeout: float | None) -> float | None:
    if on_busy not in ("serialize", "refuse", "off"):
        raise DefinitionError(f"one_writer: on_busy={on_busy!r} is not known; use 'serialize', 'refuse' or 'off'")
    if on_busy == "refuse":
        return time.monotonic()
    return None if timeout is None else time.monotonic() + timeout


def _first(row: Any) -> bool:
    return bool(next(iter(row.values())) if isinstance(row, dict) else row[0])


def _next_pause(pause: float, deadline: float | None, thread_id: str, on_busy: str) -> float:
    if deadline is not None and time.monotonic() >= deadline:
        _refuse(thread_id, on_busy)
    return min(pause * 1.5, _LONGEST)


def _refuse(thread_id: str, on_busy: str) -> NoReturn:
    hint = "try again later, or wait with on_busy='serialize'" if on_busy == "refuse" else "give it a longer timeout"
    raise ThreadBusyError(f"another run is writing to thread {thread_id!r}; {hint}")
