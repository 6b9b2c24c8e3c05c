"""The event loop on which all MCP connections live: one thread per process, started when first needed.

A connection's cancel scopes must be left by the task that entered them, on the loop they belong to. People open an
adapter in one task, call from another and close in a third, on loops that come and go, and from code without a loop. So
connections live here, each held by a task of its own, and everybody else sends work over and waits for it.
"""

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Tell: TypeAlias = Callable[..., None]
"""Called on the portal's loop, for what the caller is to hear before the work ends."""

logger = logging.getLogger(__name__)

_CLOSING = 8.0  # seconds that all connections together get at the end of the process


class Portal:
    """A thread with an event loop."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.closers: set[Callable[[], Coroutine[Any, Any, None]]] = set()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="agentkit-mcp", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin a coroutine on the loop. Cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def owns_this_thread(self) -> bool:
        """Whether the caller runs on the portal's own thread."""
        return threading.current_thread() is self._thread

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def shut(self) -> None:
        """Close what is open and end the thread."""
        if self.pid != os.getpid() or not self._thread.is_alive():
            return
        with suppress(Exception):
            self.start(self._close_all()).result(_CLOSING)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(1.0)

    async def _close_all(self) -> None:
        await asyncio.gather(*(close() for close in list(self.closers)), return_exceptions=True)
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self.loop.shutdown_asyncgens()


_portal: Portal | None = None
_lock = threading.RLock()  # a finalizer may ask for the portal while it is being made


def portal() -> Portal:
    """The portal of this process; a new one after a fork."""
    global _portal  # noqa: PLW0603 - one per process
    with _lock:
        if _portal is None or _portal.pid != os.getpid():
            _portal = Portal()
            atexit.register(_portal.shut)
        return _portal


@dataclass(frozen=True, slots=True)
class Remote:
    """A step: work on the portal's loop, awaited from wherever the caller is.

    work: gets a `tell`; what it tells is handed to `heard` in the caller's thread and context, before the step ends.
    """

    work: Callable[[Tell], Coroutine[Any, Any, Any]]
    heard: Callable[..., None] | None = None

    def run(self) -> Any:
        """Do it, blocking this thread. Interrupted, it cancels the work."""
        owner = portal()
        if owner.owns_this_thread():
            raise RuntimeError(
                "a sync call of an MCP tool from code that runs inside an MCP connection would never end"
            )
        inbox: SimpleQueue[tuple[Any, ...] | None] = SimpleQueue()
        future = owner.start(self.work(lambda *event: inbox.put(event)))
        future.add_done_callback(lambda _: inbox.put(None))
        try:
            while (event := inbox.get()) is not None:
                self._hear(*event)
        except BaseException:
            future.cancel()
            raise
        return future.result()

    async def arun(self) -> Any:
        """Do it, leaving the event loop free. Cancelled, it cancels the work."""
        loop, context = asyncio.get_running_loop(), copy_context()

        def tell(*event: Any) -> None:
            with suppress(RuntimeError):  # the caller's loop is gone
                loop.call_soon_threadsafe(self._hear, *event, context=context)

        return await asyncio.wrap_future(portal().start(self.work(tell)))

    def _hear(self, *event: Any) -> None:
        if self.heard is not None:
            try:
                self.heard(*event)
            except Exception:
                logger.exception("what listens to the progress of an MCP call failed")
