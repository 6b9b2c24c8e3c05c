"""Something that is done once for all who ask for it at the same time."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from agentkit.tools._steps import Story, adrive, drive


class Once:
    """Runs a story for the first who asks; the others wait for it. Safe for threads, and for one event loop."""

    def __init__(self) -> None:
        self.done = False
        self._lock = threading.Lock()
        self._task: asyncio.Task[None] | None = None

    def reset(self) -> None:
        """It is to be done again."""
        self.done, self._task = False, None

    def run(self, story: Callable[[], Story[None]]) -> None:
        """Do it in this thread. Raises what the story raises; the next who asks tries again."""
        with self._lock:
            if not self.done:
                drive(story())
                self.done = True

    async def arun(self, story: Callable[[], Story[None]]) -> None:
        """Do it on the event loop. It goes on when the one who asked first is cancelled."""
        if self.done:
            return
        if self._task is None:
            self._task = asyncio.ensure_future(self._do(story))
            self._task.add_done_callback(looked_at)
        await asyncio.shield(self._task)

    async def _do(self, story: Callable[[], Story[None]]) -> None:
        try:
            await adrive(story())
            self.done = True
        finally:
            if not self.done:
                self._task = None


def looked_at(future: "asyncio.Future[Any]") -> None:
    """A done callback that keeps asyncio from complaining about an error whose waiters were cancelled."""
    if not future.cancelled():
        future.exception()
