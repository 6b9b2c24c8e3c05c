"""The database dies in the middle of a run: the run fails cleanly or goes on, and the thread finishes afterwards."""

import asyncio
import os
import shutil
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from batches import Run
from langchain_core.messages import AIMessage, HumanMessage

from agentkit.agents import create_agent
from agentkit.errors import AgentkitError, DatabaseError
from agentkit.memory import aopen_memory, open_memory
from agentkit.memory._embedded import EmbeddedServer
from agentkit.testing import ScriptedModel, StrictModel, assert_valid
from agentkit.tools import ToolPolicy, tool


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    """A server of these tests' own, since it is going to be killed."""
    home = Path(tempfile.mkdtemp(prefix="agentkit-dies-"))
    server = EmbeddedServer(home=home)
    try:
        with server.use():
            yield server
    finally:
        shutil.rmtree(home, ignore_errors=True)


def kill_and_restart(server: EmbeddedServer) -> None:
    """`immediate`: no checkpoint, no goodbye; the next start recovers from the log."""
    pid = server.pid()
    assert pid is not None
    os.kill(pid, signal.SIGQUIT)
    deadline = time.monotonic() + 20
    while server.pid() is not None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    while True:  # its last processes may still hold its memory
        try:
            server.release(server.acquire())  # starts it; the fixture uses it on
        except DatabaseError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        else:
            return


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("policy", ["unknown", "rerun"])
def test_a_thread_finishes_after_its_database_died_under_a_running_tool(
    server: EmbeddedServer, kind: str, policy: Any
) -> None:
    effects: list[int] = []
    died = threading.Event()

    def effect(n: int) -> str:
        effects.append(n)
        if not died.is_set():
            died.set()
            kill_and_restart(server)
        return f"paid {n}"

    if kind == "sync":

        @tool("pay", policy=ToolPolicy(on_crash=policy))
        def pay(n: int) -> str:
            """Pay."""
            return effect(n)
    else:

        @tool("pay", policy=ToolPolicy(on_crash=policy))
        async def pay(n: int) -> str:
            """Pay."""
            return effect(n)

    def call(n: int) -> dict[str, Any]:
        return {"name": "pay", "args": {"n": n}, "id": f"c{n}", "type": "tool_call"}

    model = StrictModel(
        ScriptedModel([AIMessage("", tool_calls=[call(1)]), AIMessage("", tool_calls=[call(2)]), "done"])
    )
    run = Run(kind)
    finished = run_until_done(run, server.url(), model, [pay])
    assert_valid(finished)
    assert finished[-1].content == "done"
    if policy == "unknown":
        assert len(effects) == len(set(effects))
    assert set(effects) == {1, 2}


def run_until_done(run: Run, url: str, model: Any, tools: list[Any]) -> list[Any]:
    """Start, and start again after each clean failure."""
    failures = 0
    config = {"configurable": {"thread_id": uuid.uuid4().hex}}
    while True:
        try:
            if not run.is_async:
                with open_memory(url) as memory:
                    agent = create_agent(model, tools, checkpointer=memory.checkpointer)
                    begun = agent.get_state(config).created_at
                    given = None if begun else {"messages": [HumanMessage("go")]}
                    return list(agent.invoke(given, config)["messages"])

            async def main() -> list[Any]:
                async with aopen_memory(url) as memory:
                    agent = create_agent(model, tools, checkpointer=memory.checkpointer)
                    begun = (await agent.aget_state(config)).created_at
                    given = None if begun else {"messages": [HumanMessage("go")]}
                    return list((await agent.ainvoke(given, config))["messages"])

            return asyncio.run(main())
        except (psycopg.Error, AgentkitError):  # a clean failure: it says that the database has gone
            failures += 1
            assert failures < 5
