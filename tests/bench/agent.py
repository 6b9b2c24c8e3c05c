"""What a turn of an agent costs, beside LangChain's create_agent, in one run. Prints ratios (ours / theirs).

python tests/bench/agent.py
"""

import asyncio
import gc
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent as theirs
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from agentkit.agents import create_agent as ours

GIVEN: dict[str, Any] = {"messages": [("user", "hi")]}
ROUNDS = 15


@tool
def noop(x: int) -> str:
    """Do nothing."""
    return "ok"


@tool
async def anoop(x: int) -> str:
    """Do nothing, async."""
    return "ok"


class Model(BaseChatModel):
    """Calls one tool `count` times, then answers; costs as little as a model can."""

    count: int = 1
    calls: str = "noop"

    @property
    def _llm_type(self) -> str:
        return "bench"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Offer nothing."""
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        if messages[-1].type == "tool":
            message = AIMessage("done")
        else:
            made = [
                {"name": self.calls, "args": {"x": n}, "id": f"c{n}", "type": "tool_call"} for n in range(self.count)
            ]
            message = AIMessage("", tool_calls=made)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(*args, **kwargs)


def sync_time(agent: Any, turns: int) -> float:
    """Seconds of `turns` turns."""
    start = time.perf_counter()
    for _ in range(turns):
        agent.invoke(GIVEN)
    return time.perf_counter() - start


async def async_time(agent: Any, turns: int) -> float:
    """Seconds of `turns` turns on this event loop."""
    start = time.perf_counter()
    for _ in range(turns):
        await agent.ainvoke(GIVEN)
    return time.perf_counter() - start


async def compare(build: Callable[[Any], Any], turns: int, *, is_async: bool) -> tuple[float, float]:
    """Microseconds of one turn, ours and theirs, measured in turn: the median over the rounds."""
    agents = [build(ours), build(theirs)]
    found: list[list[float]] = [[], []]
    for warm in (True, False):
        for _ in range(2 if warm else ROUNDS):
            for agent, times in zip(agents, found, strict=True):
                gc.collect()
                seconds = await async_time(agent, turns) if is_async else sync_time(agent, turns)
                if not warm:
                    times.append(seconds / turns * 1e6)
    return statistics.median(found[0]), statistics.median(found[1])


def main() -> int:
    """Measure, print, and say whether the bounds hold."""
    missed = 0
    for count, turns, is_async, bound in (
        (1, 40, False, 0.5),
        (1, 40, True, 0.75),
        (100, 1, False, 0.65),
        (100, 1, True, 0.8),
    ):

        def build(make: Any, count: int = count, is_async: bool = is_async) -> Any:
            return make(Model(count=count, calls="anoop" if is_async else "noop"), [anoop if is_async else noop])

        mine, their = asyncio.run(compare(build, turns, is_async=is_async))
        ratio = mine / their
        missed += ratio > bound
        kind = "async" if is_async else "sync"
        verdict = "" if ratio <= bound else "  MISSED"
        print(f"{kind:5} turn with {count:3} calls: {mine:8.0f} / {their:8.0f} us = {ratio:.2f} <= {bound}{verdict}")
    return 0 if "--strict" not in sys.argv else int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
