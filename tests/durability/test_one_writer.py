"""One writer per thread: serialized or refused, by setting (case B74)."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from agentkit.agents import create_agent
from agentkit.errors import DefinitionError, ThreadBusyError
from agentkit.memory import aone_writer, aopen_memory, one_writer
from agentkit.testing import ScriptedModel

CONFIG = {"configurable": {"thread_id": "t"}}


def test_runs_at_once_on_one_thread_come_one_after_the_other_and_lose_nothing(checkpointer: Any) -> None:
    agent = create_agent(ScriptedModel(lambda request: "ok"), [], checkpointer=checkpointer)
    start = threading.Barrier(4)

    def run(number: int) -> None:
        start.wait(10)
        with one_writer(checkpointer, "t"):
            agent.invoke({"messages": [HumanMessage(f"m{number}")]}, CONFIG)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    messages = agent.get_state(CONFIG).values["messages"]
    assert sorted(m.content for m in messages if m.type == "human") == ["m0", "m1", "m2", "m3"]
    assert [m.type for m in messages] == ["human", "ai"] * 4


async def test_the_same_on_an_event_loop(acheckpointer: Any) -> None:
    agent = create_agent(ScriptedModel(lambda request: "ok"), [], checkpointer=acheckpointer)

    async def run(number: int) -> None:
        async with aone_writer(acheckpointer, "t"):
            await agent.ainvoke({"messages": [HumanMessage(f"m{number}")]}, CONFIG)

    await asyncio.gather(*map(run, range(4)))
    messages = (await agent.aget_state(CONFIG)).values["messages"]
    assert [m.type for m in messages] == ["human", "ai"] * 4


def test_a_second_run_is_refused_at_once_where_that_is_wanted(checkpointer: Any) -> None:
    with one_writer(checkpointer, "t"):
        with one_writer(checkpointer, "another"):
            pass
        with pytest.raises(ThreadBusyError, match="another run is writing to thread 't'"):  # noqa: SIM117
            with one_writer(checkpointer, "t", on_busy="refuse"):
                pytest.fail("it was not refused")
        with one_writer(checkpointer, "t", on_busy="off"):
            pass
    with one_writer(checkpointer, "t", on_busy="refuse"):
        pass


def test_whoever_waits_too_long_is_told(checkpointer: Any) -> None:
    with one_writer(checkpointer, "t"), pytest.raises(ThreadBusyError, match="longer timeout"):  # noqa: SIM117
        with one_writer(checkpointer, "t", timeout=0.05):
            pytest.fail("it did not wait")


async def test_sync_and_async_writers_exclude_each_other_on_postgres(memory: Any, postgres_url: str) -> None:
    async with aopen_memory(postgres_url) as opened:
        with one_writer(memory.checkpointer, "t"), pytest.raises(ThreadBusyError):
            async with aone_writer(opened.checkpointer, "t", on_busy="refuse"):
                pytest.fail("it was not refused")


def test_a_writer_that_fails_lets_go(checkpointer: Any) -> None:
    with pytest.raises(ValueError, match="oops"), one_writer(checkpointer, "t"):
        raise ValueError("oops")
    with one_writer(checkpointer, "t", on_busy="refuse"):
        pass


def test_an_unknown_setting_is_refused(checkpointer: Any) -> None:
    with pytest.raises(DefinitionError, match="on_busy='maybe'"), one_writer(checkpointer, "t", on_busy="maybe"):  # type: ignore[arg-type]
        pass
