"""Running the body of one call: time limit, retries, and a body that cancels itself."""

import asyncio
import contextvars
import logging
import threading
from collections.abc import Awaitable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp

from agentkit.errors import ArgumentsError, CallCancelledError, CallTimeoutError
from agentkit.tools._body import arun_body, run_body
from agentkit.tools._plan import Plan
from agentkit.tools._policy import ToolPolicy
from agentkit.tools._questions import Questions
from agentkit.tools._runtime import ToolRuntime
from agentkit.tools._steps import Pause, Story

logger = logging.getLogger(__name__)

_GRACE = 1.0  # seconds that a cancelled async body gets to clean up


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """One run of a tool's body: the step where sync and async differ."""

    plan: Plan
    tool: BaseTool
    call: ToolCall
    runtime: ToolRuntime[Any, Any]
    config: RunnableConfig
    timeout: float | None = None

    def run(self) -> Any:
        """Run it in this thread; with a time limit, in a thread of its own that is left behind when it is too slow."""
        with contained(self.call), Questions(self.config) as asked:
            if self.timeout is None:
                value = run_body(self.plan, self.tool, self.call, self.runtime, self.config)
            else:
                value = self._within(self.timeout)
            asked.again()
            return value

    async def arun(self) -> Any:
        """Run it on the event loop; a body that is cancelled while the run is not, has failed."""
        with contained(self.call), Questions(self.config) as asked:
            body = arun_body(self.plan, self.tool, self.call, self.runtime, self.config)
            value = await (body if self.timeout is None else self._awithin(body, self.timeout))
            asked.again()
            return value

    def _within(self, seconds: float) -> Any:
        done: Future[Any] = Future()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                value = context.run(run_body, self.plan, self.tool, self.call, self.runtime, self.config)
            except BaseException as error:  # noqa: BLE001 - handed to the waiting call
                done.set_exception(error)
            else:
                done.set_result(value)

        threading.Thread(target=work, name=f"agentkit-{self.call['name']}", daemon=True).start()
        try:
            return done.result(seconds)
        except TimeoutError:
            if done.done():
                return done.result()  # the body's own error, or an end at the last moment
            done.add_done_callback(lambda _: self._late())
            raise CallTimeoutError(
                f"{self.call['name']} did not finish within {seconds:g} s. It cannot be stopped: its effects may still "
                "happen, and its late result is dropped"
            ) from None

    async def _awithin(self, body: Awaitable[Any], seconds: float) -> Any:
        task = asyncio.ensure_future(body)
        try:
            await asyncio.wait({task}, timeout=seconds)
            if task.done():
                return task.result()
        finally:
            if not task.done():
                task.cancel()
                task.add_done_callback(self._ended_late)
                await asyncio.wait({task}, timeout=_GRACE)
        raise CallTimeoutError(f"{self.call['name']} did not finish within {seconds:g} s and was stopped")

    def _ended_late(self, task: asyncio.Future[Any]) -> None:
        if not task.cancelled() and task.exception() is None:
            self._late()

    def _late(self) -> None:
        logger.warning("tool %r (call %r) ended after its time limit: dropped", self.call["name"], self.call["id"])


def body_story(body: Body, policy: ToolPolicy) -> Story[Any]:
    """Run a body, again after failures that its policy wants tried again; what it returns, or raises last."""
    attempt = 1
    while True:
        try:
            return (yield body)
        except (GraphBubbleUp, ArgumentsError):
            raise
        except Exception as error:
            if not policy.should_retry(error, attempt):
                raise
            logger.info(
                "tool %r (call %r): attempt %d failed", body.call["name"], body.call["id"], attempt, exc_info=error
            )
        yield Pause(policy.delay(attempt))
        attempt += 1


class contained:  # noqa: N801 - used as a statement: with contained(call)
    """Turns what would end more than the call into the call's own error.

    A cancellation is the run's where the run's task is being cancelled; else a tool or wrapper has cancelled itself.

    Raises:
        CallCancelledError: the block raised SystemExit, or CancelledError while the run is not being cancelled.
    """

    __slots__ = ("_call",)

    def __init__(self, call: ToolCall) -> None:
        self._call = call

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, SystemExit) or (isinstance(error, asyncio.CancelledError) and not _run_is_cancelled()):
            what = "tried to end the process" if isinstance(error, SystemExit) else "was cancelled from within"
            raise CallCancelledError(f"{self._call['name']} {what} before it had a result") from error


def _run_is_cancelled() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # a thread without an event loop
        return False
    return task is not None and task.cancelling() > 0
