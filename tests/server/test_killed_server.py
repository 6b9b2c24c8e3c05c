"""A server that is killed in the middle of a batch: other processes finish its threads, on Postgres."""

import asyncio
import json
import signal
from typing import Any

import pytest
from langgraph.types import Command

from agentkit.memory import aopen_memory
from agentkit.server import with_memory

INNER = [["work", {"name": "inner"}, "i1"], ["wait_for", {"name": "door"}, "i2"]]
BATCH = [
    ["work", {"name": "once"}, "c1"],
    ["wait_for", {"name": "gate"}, "c2"],
    ["locate", {}, "c3"],
    ["helper", {"request": json.dumps(INNER)}, "c4"],
]
BEFORE = {"once", "waiting for gate", "inner", "waiting for door"}


async def run_until_killed(server: Any) -> tuple[str, str]:
    """Two threads whose calls are in flight when the server is killed."""
    threads = []
    async with server.client() as client:
        for _ in range(2):
            thread = (await client.threads.create())["thread_id"]
            await client.runs.create(
                thread, "probe", input={"messages": [("user", json.dumps(BATCH))]}, durability="async"
            )
            threads.append(thread)
        async with asyncio.timeout(60):
            while any(server.did().count(each) < 2 for each in BEFORE):  # noqa: ASYNC110 - another process does it
                await asyncio.sleep(0.02)
            await settled_on_postgres(server, threads)
    server.kill()
    return threads[0], threads[1]


async def settled_on_postgres(server: Any, threads: list[str]) -> None:
    """The question of the headless call is stored with its thread: so are the results of what had finished."""
    async with server.client() as client:
        for thread in threads:
            while not (await client.threads.get_state(thread))["tasks"]:  # noqa: ASYNC110 - another process does it
                await asyncio.sleep(0.02)


@pytest.mark.timeout(300)
async def test_a_killed_servers_threads_are_finished_by_another_server_and_by_a_script(
    start: Any, postgres_url: str, config: Any, served: Any
) -> None:
    killed = start(config, AGENTKIT_DATABASE_URL=postgres_url)
    first, second = await run_until_killed(killed)
    assert killed.process.returncode == -signal.SIGKILL
    killed.open_gate("gate")
    killed.open_gate("door")

    successor = start(config, AGENTKIT_DATABASE_URL=postgres_url, PROBE_FOLDER=str(killed.folder))
    async with successor.client() as client:
        await client.threads.create(thread_id=first, graph_id="probe")
        state = await client.runs.wait(first, "probe", input=None)
        (question,) = state["__interrupt__"]
        state = await client.runs.wait(first, "probe", command={"resume": {question["id"]: {"c3": {"lat": 1}}}})
    results = [message["content"] for message in state["messages"] if message["type"] == "tool"]
    assert results == ["did once", "passed gate", '{"lat": 1}', "did inner | passed door"]

    async with aopen_memory(postgres_url) as memory:
        served.FOLDER = killed.folder
        graph, thread = with_memory(served.probe, memory), {"configurable": {"thread_id": second}}
        output = await graph.ainvoke(None, thread)
        output = await graph.ainvoke(Command(resume={output["__interrupt__"][0].id: {"c3": {"lat": 1}}}), thread)
    assert [message.content for message in output["messages"] if message.type == "tool"] == results
    assert [killed.did().count(each) for each in ("once", "inner")] == [2, 2], "once for each thread"
