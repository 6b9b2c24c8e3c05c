"""Code written once that runs in sync and in async code.

A *story* is a generator that yields steps and receives their results; the only thing that exists twice is the small
part of a step that really waits. `drive` runs a story in sync code, `adrive` on the event loop.
"""

import asyncio
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Step(Protocol):
    """Something a story waits for."""

    def run(self) -> Any:
        """Do it, blocking the thread."""
        ...

    async def arun(self) -> Any:
        """Do it, leaving the event loop free."""
        ...


Story = Generator[Step, Any, T]


def drive(story: Story[T]) -> T:
    """Run a story to its end in this thread and return what it returns."""
    try:
        step = next(story)
        while True:
            try:
                value = step.run()
            except BaseException as error:  # noqa: BLE001 - the story decides
                step = story.throw(error)
            else:
                step = story.send(value)
    except StopIteration as end:
        value = end.value
    return value  # type: ignore[no-any-return]


async def adrive(story: Story[T]) -> T:
    """Run a story to its end on the event loop and return what it returns."""
    try:
        step = next(story)
        while True:
            try:
                value = await step.arun()
            except BaseException as error:  # noqa: BLE001 - the story decides
                step = story.throw(error)
            else:
                step = story.send(value)
    except StopIteration as end:
        value = end.value
    return value  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for some seconds."""

    seconds: float

    def run(self) -> None:
        """Sleep in this thread."""
        time.sleep(self.seconds)

    async def arun(self) -> None:
        """Sleep on the event loop."""
        await asyncio.sleep(self.seconds)
