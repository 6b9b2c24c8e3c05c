"""What a call through ToolNode costs, beside langgraph's own ToolNode, in one run. Prints ratios (ours / theirs).

python tests/bench/node.py
"""

import asyncio
import gc
import math
import time
import warnings
from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool as langchain_tool
from langgraph.prebuilt import ToolNode as TheirToolNode
from langgraph.prebuilt import ToolRuntime as TheirToolRuntime
from langgraph.runtime import Runtime
from langgraph.types import Command

from agentkit.tools import ToolNode, ToolRuntime, tool

CONFIG: Any = {"configurable": {"__pregel_runtime": Runtime()}}
BIG = [{"id": n, "name": f"row {n}", "note": "x" * 60, "tags": ["a", "b"]} for n in range(8000)]  # about 1 MB as JSON


def noop(x: int) -> str:
    """Do nothing."""
    return "ok"


def ours_runtime(x: int, runtime: ToolRuntime) -> str:
    """Do nothing with a runtime."""
    return "ok"


def theirs_runtime(x: int, runtime: TheirToolRuntime) -> str:
    """Do nothing with a runtime."""
    return "ok"


def ours_command(x: int, runtime: ToolRuntime) -> Command:
    """Update 1 MB."""
    return Command(update={"big": BIG, "messages": [ToolMessage("ok", tool_call_id=runtime.tool_call_id)]})


def theirs_command(x: int, runtime: TheirToolRuntime) -> Command:
    """Update 1 MB."""
    return Command(update={"big": BIG, "messages": [ToolMessage("ok", tool_call_id=runtime.tool_call_id)]})


def state(messages: int, calls: int = 1) -> dict[str, Any]:
    """A state whose last AI message has `calls` open calls."""
    history = [HumanMessage(f"message {n}", id=str(n)) for n in range(messages - 1)]
    tool_calls = [{"name": "t", "args": {"x": n}, "id": f"c{n}", "type": "tool_call"} for n in range(calls)]
    return {"messages": [*history, AIMessage("", tool_calls=tool_calls, id="ai")]}


def measure(work: Callable[[], Any], rounds: int) -> float:
    """Microseconds of one run: the best of several rounds, since all that other programs do only adds to it."""
    times = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(rounds):
            work()
        times.append((time.perf_counter() - start) / rounds * 1e6)
    return min(times)


def ameasure(work: Callable[[], Any], rounds: int) -> float:
    """The same on an event loop."""

    async def main() -> float:
        times = []
        for _ in range(9):
            start = time.perf_counter()
            for _ in range(rounds):
                await work()
            times.append((time.perf_counter() - start) / rounds * 1e6)
        return min(times)

    return asyncio.run(main())


def compare(title: str, wanted: float, ours: Any, theirs: Any, given: Any, rounds: int = 200) -> None:
    """One line for sync: both costs and their ratio beside the wanted one."""
    mine, other = ToolNode([tool("t")(ours)]), TheirToolNode([langchain_tool("t")(theirs)])
    gc.collect()
    gc.freeze()  # so that what lies around from before is not collected in the middle of a round
    a, b = math.inf, math.inf
    for _ in range(3):
        a = min(a, measure(lambda: mine.invoke(given, CONFIG), rounds))
        b = min(b, measure(lambda: other.invoke(given, CONFIG), rounds // 5))
    verdict = "ok" if a / b <= wanted else "MISSED"
    print(f"{title:<52} {a:9.1f} {b:9.1f} µs  ratio 1/{b / a:6.1f}  wanted 1/{1 / wanted:.0f}  {verdict}", flush=True)


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print(f"{'':<52} {'agentkit':>9} {'prebuilt':>9}")
    compare("one no-op call", 1 / 10, noop, noop, state(1), 1000)
    compare("ToolRuntime, 1,000 messages in state", 1 / 50, ours_runtime, theirs_runtime, state(1000), 100)
    compare("a Command of 1 MB", 1 / 100, ours_command, theirs_command, state(1), 100)
    compare("ten no-op calls", 1.0, noop, noop, state(1, 10), 100)
    mine, other = ToolNode([tool("t")(noop)]), TheirToolNode([langchain_tool("t")(noop)])
    for calls in (1, 10):
        given = state(1, calls)
        a = ameasure(lambda given=given: mine.ainvoke(given, CONFIG), 200)
        b = ameasure(lambda given=given: other.ainvoke(given, CONFIG), 200)
        print(f"{f'async, sync body, {calls} calls':<52} {a:9.1f} {b:9.1f} µs  ratio 1/{b / a:6.1f}", flush=True)


if __name__ == "__main__":
    main()
