"""Fault injection: end the process, or act as if it had ended, at an exact point of a tool call's life.

    with crash.at(saver, "after effect"):
        graph.invoke(…)          # the tool's body has run; its result was never recorded
    graph.invoke(None, config)   # what becomes of the call?

`at` works on any checkpointer, in sync and in async runs. With `kill=True` it sends SIGKILL to this very process (use
it in a child process); without, it raises `Crashed`, which nothing in agentkit or langgraph catches, and leaves the
thread as a killed process would leave it.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, get_args

from langgraph.checkpoint.base import BaseCheckpointSaver

from agentkit.errors import DefinitionError
from agentkit.tools._ledger import CHANNEL

__all__ = ["POINTS", "Crashed", "Point", "at", "recorded"]

Point = Literal["before start", "after start", "after effect", "after finish", "during commit"]
POINTS: tuple[Point, ...] = get_args(Point)
"""Where a call can be hit.

- before start: the call is about to be recorded as started; its body has not run.
- after start: it is recorded as started; its body has not run.
- after effect: its body has run; the result is not recorded.
- during commit: the result is on its way: the first half of what travels together is recorded, the rest is not.
- after finish: the result is recorded; nobody has used it yet.
"""


class Crashed(BaseException):
    """Stands for the end of the process. Not an Exception: a dead process does not run `except Exception` either."""


@contextmanager
def at(
    saver: BaseCheckpointSaver[Any], point: Point, *, call_id: str | None = None, kill: bool = False
) -> Iterator[None]:
    """Crash when a call reaches `point`, once.

    Args:
        saver: the checkpointer of the run.
        point: one of `POINTS`.
        call_id: the id of the call to hit; the first one if not given.
        kill: SIGKILL this process instead of raising `Crashed`.

    Raises:
        DefinitionError: there is no such point.
        AssertionError: at the end, if no call came to this point.
    """
    if point not in POINTS:
        raise DefinitionError(f"crash.at: there is no point {point!r}; the points are {', '.join(POINTS)}")
    trap = _Trap(point, call_id, kill=kill)
    put, aput = saver.put_writes, saver.aput_writes

    def put_writes(config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        trap.before(writes, lambda some: put(config, some, task_id, task_path))
        put(config, writes, task_id, task_path)
        trap.after(writes)

    async def aput_writes(config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        if trap.halves(writes):
            await aput(config, writes[: len(writes) // 2], task_id, task_path)
        trap.before(writes, lambda _: None)
        await aput(config, writes, task_id, task_path)
        trap.after(writes)

    saver.put_writes, saver.aput_writes = put_writes, aput_writes  # type: ignore[method-assign]
    try:
        yield
        assert trap.sprung, f"no call came to the point {point!r}"  # noqa: S101 - this is for tests
    finally:
        del saver.put_writes, saver.aput_writes


def recorded(saver: BaseCheckpointSaver[Any], config: Any) -> list[tuple[str, str]]:
    """What the ledger of a thread's newest checkpoint holds, as (event, call id) pairs, in the order of the events."""
    found = saver.get_tuple(config)
    events = [value for _, channel, value in (found.pending_writes or () if found else ()) if channel == CHANNEL]
    return [(each["e"], each["k"][1]) for each in sorted(events, key=lambda each: each["t"])]


class _Trap:
    """Watches the events that are written. After it has sprung, the process counts as dead: nothing more is written."""

    def __init__(self, point: Point, call_id: str | None, *, kill: bool) -> None:
        self._point = point
        self._call_id = call_id
        self._kill = kill
        self._lock = threading.Lock()
        self.sprung = False

    def before(self, writes: Sequence[tuple[str, Any]], write: Callable[[Sequence[tuple[str, Any]]], None]) -> None:
        if self.sprung:
            raise Crashed(self._point)
        if self._point == "before start" and self._hit(writes, "start"):
            self._spring()
        if self._point == "after effect" and self._hit(writes, "finish"):
            self._spring()
        if self.halves(writes):
            write(writes[: len(writes) // 2])
            self._spring()

    def after(self, writes: Sequence[tuple[str, Any]]) -> None:
        if self._point == "after start" and self._hit(writes, "start"):
            self._spring()
        if self._point == "after finish" and self._hit(writes, "finish"):
            self._spring()

    def halves(self, writes: Sequence[tuple[str, Any]]) -> bool:
        return self._point == "during commit" and not self.sprung and self._hit(writes, "finish")

    def _hit(self, writes: Sequence[tuple[str, Any]], kind: str) -> bool:
        return any(
            channel == CHANNEL and value["e"] == kind and self._call_id in (None, value["k"][1])
            for channel, value in writes
        )

    def _spring(self) -> None:
        with self._lock:
            self.sprung = True
        if self._kill:
            os.kill(os.getpid(), signal.SIGKILL)
        raise Crashed(self._point)
