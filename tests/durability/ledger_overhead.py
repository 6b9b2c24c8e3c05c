"""What the ledger costs on Postgres: the same node with and without it, in one run.

python tests/durability/ledger_overhead.py
"""

import asyncio
import statistics
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parent.parent))

from batches import ask, graph_of
from crash_report import database, postgres

from agentkit.memory import aopen_memory, open_memory
from agentkit.tools import ToolNode, tool

TURNS = 150


@tool
def noop(x: int) -> str:
    """Do nothing."""
    return "ok"


@tool("noop")
async def anoop(x: int) -> str:
    """Do nothing."""
    return "ok"


def given(calls: int) -> tuple[Any, Any]:
    message = ask(*(("noop", {"x": n}, f"c{n}") for n in range(calls)), id=uuid.uuid4().hex)
    return {"messages": [message]}, {"configurable": {"thread_id": uuid.uuid4().hex}}


@contextmanager
def without_ledger() -> Iterator[None]:
    with patch("agentkit.tools._batch.ledger_at", lambda *_: None):
        yield


def measure(saver: Any, calls: int, form: str) -> dict[str, float]:
    """Milliseconds a turn: the lower quartiles of interleaved rounds, since other programs only ever add time."""
    graph = graph_of(ToolNode([noop]), form=form, checkpointer=saver)
    times: dict[str, list[float]] = {"with": [], "without": []}
    for turn in range(TURNS + 10):
        for kind in ("with", "without"):
            state, config = given(calls)
            began = time.perf_counter()
            if kind == "with":
                graph.invoke(state, config)
            else:
                with without_ledger():
                    graph.invoke(state, config)
            if turn >= 10:
                times[kind].append(time.perf_counter() - began)
    return {kind: statistics.quantiles(found, n=4)[0] * 1000 for kind, found in times.items()}


async def ameasure(saver: Any, calls: int, form: str) -> dict[str, float]:
    graph = graph_of(ToolNode([anoop]), form=form, checkpointer=saver)
    times: dict[str, list[float]] = {"with": [], "without": []}
    for turn in range(TURNS + 10):
        for kind in ("with", "without"):
            state, config = given(calls)
            began = time.perf_counter()
            if kind == "with":
                await graph.ainvoke(state, config)
            else:
                with without_ledger():
                    await graph.ainvoke(state, config)
            if turn >= 10:
                times[kind].append(time.perf_counter() - began)
    return {kind: statistics.quantiles(found, n=4)[0] * 1000 for kind, found in times.items()}


BOUNDS = {1: 1.4, 10: 2.5}
ratios: list[tuple[int, float]] = []


def main() -> int:
    print("saver          form   mode   calls | without ms  with ms  ratio")
    with postgres() as server, database(server) as url:
        for form in ("send", "state"):
            for calls in (1, 10):
                with open_memory(url) as memory:
                    show("agentkit", form, "sync", calls, measure(memory.checkpointer, calls, form))

                async def run(form: str = form, calls: int = calls) -> dict[str, float]:
                    async with aopen_memory(url) as memory:
                        return await ameasure(memory.checkpointer, calls, form)

                show("agentkit", form, "async", calls, asyncio.run(run()))
        from langgraph.checkpoint.postgres import PostgresSaver

        for calls in (1, 10):
            with PostgresSaver.from_conn_string(url) as saver:
                show("official", "send", "sync", calls, measure(saver, calls, "send"))
    over = [f"{ratio:.2f} at {calls} calls" for calls, ratio in ratios if ratio > BOUNDS[calls]]
    print("; ".join(over) or "within the bounds: 1.4 at one call, 2.5 at ten")
    return 1 if over else 0


def show(saver: str, form: str, mode: str, calls: int, found: dict[str, float]) -> None:
    ratio = found["with"] / found["without"]
    ratios.append((calls, ratio))
    print(
        f"{saver:14} {form:6} {mode:6} {calls:5} | {found['without']:10.2f} {found['with']:8.2f} {ratio:6.2f}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
