"""Questions that a tool's own `except Exception` would swallow are asked all the same.

`interrupt()` works by raising, and what it raises is an Exception. A body that catches everything around it would go on
as if it had been answered. So what is asked while a body runs is noted, and asked again, out of its reach, where the
body ended without an answer.
"""

import sys
from collections.abc import Callable
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.types import interrupt

from agentkit.tools._langgraph import scratchpad_of


class Questions:
    """Notes the last question that is asked while a body runs: `with Questions(config) as asked: …; asked.again()`."""

    __slots__ = ("_count", "_counter", "_frame", "_scratchpad")

    def __init__(self, config: RunnableConfig) -> None:
        self._scratchpad = scratchpad_of(config)
        self._counter: Callable[[], int] | None = None
        self._count = 0
        self._frame: dict[str, Any] = {}

    def __enter__(self) -> Self:
        if self._scratchpad is not None:
            self._counter = self._scratchpad.interrupt_counter
            self._set(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._counter is not None:
            self._set(self._counter)

    def again(self) -> None:
        """Ask the question that the body swallowed, if there is one. Raises GraphInterrupt then."""
        if self._count and self._count > len(self._scratchpad.resume) and "value" in self._frame:
            index = len(self._scratchpad.resume)
            self._set(lambda: index)
            interrupt(self._frame["value"], response_schema=self._frame.get("response_schema"))

    def _note(self) -> int:
        index = self._counter() if self._counter is not None else 0
        self._count = index + 1
        names = sys._getframe(1).f_locals  # noqa: SLF001 - interrupt() has no other place to be heard at
        self._frame = {name: names[name] for name in ("value", "response_schema") if name in names}
        return index

    def _set(self, counter: Callable[[], int]) -> None:
        object.__setattr__(self._scratchpad, "interrupt_counter", counter)  # it is frozen
