"""What binding and running one body costs, beside LangChain's `tool.invoke` of the same function, in one run.

    python tests/bench/tools.py

Prints ratios (ours / theirs), and how the cost of our own grows with the state. No absolute times: machines differ.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.callbacks import CallbackManager
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as langchain_tool
from langgraph.prebuilt import ToolRuntime as TheirToolRuntime

from agentkit.tools import ToolRuntime, tool
from agentkit.tools._body import arun_body, run_body
from agentkit.tools._listening import is_heard
from agentkit.tools._plan import plan_of

CONFIG: Any = {"callbacks": CallbackManager([])}
JSON = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def noop(x: int) -> str:
    """Do nothing."""
    return "ok"


async def anoop(x: int) -> str:
    """Do nothing."""
    return "ok"


def ours_runtime(x: int, runtime: ToolRuntime) -> str:
    """Do nothing with a runtime."""
    return "ok"


def theirs_runtime(x: int, runtime: TheirToolRuntime) -> str:
    """Do nothing with a runtime."""
    return "ok"


def state_of(messages: int) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"message {n}") for n in range(messages)]}


def runtime_of(state: dict[str, Any]) -> ToolRuntime[Any, Any]:
    return ToolRuntime(
        state=state, context=None, config=CONFIG, stream_writer=print, tool_call_id="c1", store=None, tool_name="t"
    )


def call_of(made: BaseTool, **extra: Any) -> Any:
    return {"name": made.name, "args": {"x": 1, **extra}, "id": "c1", "type": "tool_call"}


def best(work: Callable[[], object], rounds: int = 2000) -> float:
    """Seconds of one run: the best of several rounds, which is what the machine's other work disturbs least."""
    times = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(rounds):
            work()
        times.append((time.perf_counter() - start) / rounds)
    return min(times)


def abest(work: Callable[[], Awaitable[object]], rounds: int = 1000) -> float:
    """The same on an event loop."""

    async def main() -> float:
        times = []
        for _ in range(7):
            start = time.perf_counter()
            for _ in range(rounds):
                await work()
            times.append((time.perf_counter() - start) / rounds)
        return min(times)

    return asyncio.run(main())


def ours(made: BaseTool, state: dict[str, Any]) -> float:
    """One call as a ToolNode makes it: find the plan, make the runtime, bind, run."""
    call = call_of(made)
    return best(lambda: run_body(plan_of(made), made, call, runtime_of(state), CONFIG))


def theirs(made: BaseTool, rounds: int = 300, **extra: Any) -> float:
    return best(lambda: made.invoke(call_of(made, **extra), CONFIG), rounds)


def report(what: str, mine: float, other: float) -> None:
    print(f"{what:66} {mine / other:7.3f}  (1/{other / mine:.0f})")


def main() -> None:
    small, big = state_of(1), state_of(1000)
    plain, with_runtime = tool(noop), tool(ours_runtime)
    theirs_plain, theirs_with_runtime = langchain_tool(noop), langchain_tool(theirs_runtime)
    by_json = tool("by_json", args_schema=JSON, description="d")(lambda x: "ok")
    asynchronous, theirs_asynchronous = tool(anoop), langchain_tool(anoop)
    base = ours(plain, small)
    report("one no-op call / tool.invoke", base, theirs(theirs_plain))
    report(
        "one async no-op call / tool.ainvoke",
        abest(lambda: arun_body(plan_of(asynchronous), asynchronous, call_of(asynchronous), runtime_of(small), CONFIG)),
        abest(lambda: theirs_asynchronous.ainvoke(call_of(theirs_asynchronous), CONFIG), 300),
    )
    report(
        "with ToolRuntime and 1,000 messages in state / tool.invoke",
        ours(with_runtime, big),
        theirs(theirs_with_runtime, 20, runtime=runtime_of(big)),
    )
    report("with ToolRuntime: 1,000 messages in state / 1 message", ours(with_runtime, big), ours(with_runtime, small))
    report("with a JSON schema / with a pydantic model", ours(by_json, small), base)
    report("the question who listens / one no-op call", best(lambda: is_heard(plain, CONFIG)), base)


if __name__ == "__main__":
    main()
