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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
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


_Writes = Sequence[tuple[str, Any]]


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
    _watch(saver)
    trap = _Trap(point, call_id, kill=kill)
    token = _TRAP.set(trap)
    try:
        yield
        assert trap.sprung, f"no call came to the point {point!r}"  # noqa: S101 - this is for tests
    finally:
        _TRAP.reset(token)


# A context variable, because threads and tasks of a run inherit it: what a run left behind stays dead when the next
# run, on the same checkpointer, is alive.
_TRAP: ContextVar["_Trap | None"] = ContextVar("agentkit_crash", default=None)


def _watch(saver: BaseCheckpointSaver[Any]) -> None:
    """Let the traps see what this checkpointer writes. Done once for each; without a trap it changes nothing."""
    if "put_writes" in vars(saver):
        return
    put_writes, aput_writes, put, aput = saver.put_writes, saver.aput_writes, saver.put, saver.aput

    def watched_writes(config: Any, writes: _Writes, *task: Any, **named: Any) -> None:
        for some, after in _parts(writes):
            put_writes(config, some, *task, **named)
            after()

    async def awatched_writes(config: Any, writes: _Writes, *task: Any, **named: Any) -> None:
        for some, after in _parts(writes):
            await aput_writes(config, some, *task, **named)
            after()

    def watched(*args: Any) -> Any:
        _die_again()
        return put(*args)

    async def awatched(*args: Any) -> Any:
        _die_again()
        return await aput(*args)

    vars(saver).update(put_writes=watched_writes, aput_writes=awatched_writes, put=watched, aput=awatched)


def _parts(writes: _Writes) -> Iterator[tuple[_Writes, Callable[[], None]]]:
    """What really gets written, and what to do after it; raises Crashed, or kills, where the process ends."""
    trap = _TRAP.get()
    if trap is None:
        yield writes, lambda: None
        return
    if half := trap.half(writes):
        yield half, lambda: None
    trap.before(writes)
    yield writes, lambda: trap.after(writes)


def _die_again() -> None:
    trap = _TRAP.get()
    if trap is not None and trap.sprung:
        raise Crashed(trap.point)


def recorded(saver: BaseCheckpointSaver[Any], config: Any) -> list[tuple[str, str]]:
    """What the ledger of a thread's newest checkpoint holds, as (event, call id) pairs, in the order of the events."""
    found = saver.get_tuple(config)
    events = [value for _, channel, value in (found.pending_writes or () if found else ()) if channel == CHANNEL]
    return [(each["e"], each["k"][1]) for each in sorted(events, key=lambda each: each["t"])]


class _Trap:
    """Watches the events that are written. After it has sprung, the process counts as dead: nothing more is written."""

    def __init__(self, point: Point, call_id: str | None, *, kill: bool) -> None:
        self.point = point
        self.sprung = False
        self._call_id = call_id
        self._kill = kill

    def half(self, writes: _Writes) -> _Writes:
        """What still gets through when the process ends in the middle of a write; empty at all other points."""
        hit = self.point == "during commit" and not self.sprung and self._hit(writes, "finish")
        return writes[: len(writes) // 2] if hit else ()

    def before(self, writes: _Writes) -> None:
        """The events are about to be written."""
        _die_again()
        kind = {"before start": "start", "after effect": "finish", "during commit": "finish"}.get(self.point)
        if kind is not None and self._hit(writes, kind):
            self._spring()

    def after(self, writes: _Writes) -> None:
        """The events are written."""
        kind = {"after start": "start", "after finish": "finish"}.get(self.point)
        if kind is not None and self._hit(writes, kind):
            self._spring()

    def _hit(self, writes: _Writes, kind: str) -> bool:
        return any(
            channel == CHANNEL and value["e"] == kind and self._call_id in (None, value["k"][1])
            for channel, value in writes
        )

    def _spring(self) -> None:
        self.sprung = True
        if self._kill:
            os.kill(os.getpid(), signal.SIGKILL)
        raise Crashed(self.point)
