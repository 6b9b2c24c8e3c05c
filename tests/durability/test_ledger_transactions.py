"""Transactional tools: effect and record together, or neither."""

from contextlib import suppress
from typing import Any

import psycopg
import pytest
from batches import Run, ask, graph_of, texts
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.types import Command, interrupt

from agentkit.errors import InjectionError
from agentkit.memory import aopen_memory
from agentkit.testing import crash
from agentkit.tools import ToolNode, ToolPolicy, ToolRuntime, tool

CONFIG = {"configurable": {"thread_id": "t"}}
TRANSACTIONAL = ToolPolicy(transactional=True)
ONE = ask(("pay", {"n": 1}, "c1"))


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Run:
    return Run(request.param)


@pytest.fixture
def bank(postgres_url: str, memory: Any) -> Any:
    with psycopg.connect(postgres_url, autocommit=True) as conn:
        conn.execute("DROP TABLE IF EXISTS payments")
        conn.execute("CREATE TABLE payments (n int)")
        yield lambda: [row[0] for row in conn.execute("SELECT n FROM payments ORDER BY n")]


def paying(run: Run, fail: Any = None, policy: ToolPolicy = TRANSACTIONAL) -> Any:
    if run.is_async:

        @tool("pay", policy=policy)
        async def apay(n: int, runtime: ToolRuntime) -> str:
            """Pay."""
            async with runtime.transaction() as conn:
                await conn.execute("INSERT INTO payments VALUES (%s)", (n,))
            if fail is not None:
                fail()
            return f"paid {n}"

        return apay

    @tool("pay", policy=policy)
    def pay(n: int, runtime: ToolRuntime) -> str:
        """Pay."""
        with runtime.transaction() as conn:
            conn.execute("INSERT INTO payments VALUES (%s)", (n,))
        if fail is not None:
            fail()
        return f"paid {n}"

    return pay


@pytest.mark.parametrize("where", ["ours", "official"])
def test_an_effect_and_its_record_are_committed_together(
    run: Run, form: str, where: str, memory: Any, postgres_url: str, bank: Any
) -> None:
    def check(saver: Any) -> None:
        graph = graph_of(ToolNode([paying(run)]), form=form, checkpointer=saver)
        output = run(graph, {"messages": [ask(("pay", {"n": 1}, "c1"), ("pay", {"n": 2}, "c2"))]}, CONFIG)
        assert texts(output) == ["paid 1", "paid 2"]
        assert bank() == [1, 2]

    if where == "ours":
        check(memory.checkpointer)
    elif not run.is_async:
        with PostgresSaver.from_conn_string(postgres_url) as saver:
            check(saver)
    else:
        import asyncio

        async def main() -> None:
            async with AsyncPostgresSaver.from_conn_string(postgres_url) as saver:
                graph = graph_of(ToolNode([paying(run)]), form=form, checkpointer=saver)
                assert texts(await graph.ainvoke({"messages": [ONE]}, CONFIG)) == ["paid 1"]

        asyncio.run(main())
        assert bank() == [1]


async def test_an_async_pool_serves_async_and_sync_bodies(postgres_url: str, bank: Any) -> None:
    for kind in ("sync", "async"):
        async with aopen_memory(postgres_url) as opened:
            graph = graph_of(ToolNode([paying(Run(kind))]), form="send", checkpointer=opened.checkpointer)
            config = {"configurable": {"thread_id": kind}}
            assert texts(await graph.ainvoke({"messages": [ONE]}, config)) == ["paid 1"]
    assert bank() == [1, 1]


def test_a_crash_before_the_record_leaves_no_effect_and_the_call_runs_again(
    run: Run, form: str, memory: Any, bank: Any
) -> None:
    crashes = [True]

    def fail() -> None:
        if crashes:
            crashes.clear()
            raise crash.Crashed

    graph = graph_of(ToolNode([paying(run, fail)]), form=form, checkpointer=memory.checkpointer)
    with suppress(crash.Crashed):
        run(graph, {"messages": [ONE]}, CONFIG)
    assert bank() == []
    assert texts(run(graph, None, CONFIG)) == ["paid 1"]
    assert bank() == [1]


def test_an_error_takes_the_effect_back(run: Run, form: str, memory: Any, bank: Any) -> None:
    def fail() -> None:
        raise ValueError("limit reached")

    graph = graph_of(ToolNode([paying(run, fail)]), form=form, checkpointer=memory.checkpointer)
    assert texts(run(graph, {"messages": [ONE]}, CONFIG)) == ["Error: ValueError: limit reached"]
    assert bank() == []


def test_a_retry_starts_with_an_empty_transaction(run: Run, form: str, memory: Any, bank: Any) -> None:
    left = [1, 1]

    def fail() -> None:
        if left:
            left.pop()
            raise ValueError("try again")

    policy = ToolPolicy(transactional=True, retries=3, initial_delay=0)
    graph = graph_of(ToolNode([paying(run, fail, policy)]), form=form, checkpointer=memory.checkpointer)
    assert texts(run(graph, {"messages": [ONE]}, CONFIG)) == ["paid 1"]
    assert bank() == [1]


def test_a_question_takes_the_effect_back_until_it_is_answered(run: Run, form: str, memory: Any, bank: Any) -> None:
    graph = graph_of(ToolNode([paying(run, lambda: interrupt("sure?"))]), form=form, checkpointer=memory.checkpointer)
    run(graph, {"messages": [ONE]}, CONFIG)
    assert bank() == []
    assert texts(run(graph, Command(resume="yes"), CONFIG)) == ["paid 1"]
    assert bank() == [1]


def test_blocks_of_one_call_share_the_transaction_and_a_failed_block_takes_back_only_itself(
    memory: Any, bank: Any
) -> None:
    @tool(policy=TRANSACTIONAL)
    def pay(n: int, runtime: ToolRuntime) -> str:
        """Pay twice, once in vain."""
        with runtime.transaction() as conn:
            conn.execute("INSERT INTO payments VALUES (1)")
        with suppress(ValueError), runtime.transaction() as conn:
            conn.execute("INSERT INTO payments VALUES (2)")
            raise ValueError
        with runtime.transaction() as conn:
            conn.execute("INSERT INTO payments VALUES (3)")
        return "paid"

    graph = graph_of(ToolNode([pay]), form="send", checkpointer=memory.checkpointer)
    assert texts(graph.invoke({"messages": [ONE]}, CONFIG)) == ["paid"]
    assert bank() == [1, 3]


def test_a_result_that_cannot_be_stored_takes_the_effect_back(memory: Any, bank: Any) -> None:
    class Local:
        pass

    @tool(policy=TRANSACTIONAL, response_format="content_and_artifact")
    def pay(n: int, runtime: ToolRuntime) -> tuple[str, Any]:
        """Pay."""
        with runtime.transaction() as conn:
            conn.execute("INSERT INTO payments VALUES (1)")
        return "paid", Local()

    graph = graph_of(ToolNode([pay]), form="send", checkpointer=memory.checkpointer)
    assert "cannot be stored" in texts(graph.invoke({"messages": [ONE]}, CONFIG))[0]
    assert bank() == []


def test_two_processes_that_run_one_call_have_its_effect_once(memory: Any, bank: Any) -> None:
    """The second one is played by a run that starts inside the first one's call."""
    ran = []

    @tool(policy=TRANSACTIONAL)
    def pay(n: int, runtime: ToolRuntime) -> str:
        """Pay."""
        ran.append(1)
        if len(ran) == 1:
            graph_of(ToolNode([pay]), form="state", checkpointer=memory.checkpointer)
            from agentkit.tools import _turn

            _turn._TURNS.clear()  # as another process, which knows nothing of this one's calls
            inner = graph_of(ToolNode([pay]), form="send", checkpointer=memory.checkpointer)
            with suppress(Exception):
                inner.invoke(None, CONFIG)
        with runtime.transaction() as conn:
            conn.execute("INSERT INTO payments VALUES (%s)", (len(ran),))
        return f"paid {len(ran)}"

    graph = graph_of(ToolNode([pay]), form="send", checkpointer=memory.checkpointer)
    with suppress(Exception):
        graph.invoke({"messages": [ONE]}, CONFIG, durability="sync")
    assert len(ran) == 2
    assert len(bank()) == 1


def test_a_tool_that_is_not_transactional_gets_no_transaction(run: Run, memory: Any, bank: Any) -> None:
    graph = graph_of(ToolNode([paying(run, policy=ToolPolicy())]), form="send", checkpointer=memory.checkpointer)
    with pytest.raises(InjectionError, match=r"ToolPolicy\(transactional=True\)"):
        run(graph, {"messages": [ONE]}, CONFIG)


def test_without_postgres_a_transaction_is_refused_with_the_way_out(run: Run) -> None:
    graph = graph_of(ToolNode([paying(run)]), form="send", checkpointer=InMemorySaver())
    with pytest.raises(InjectionError, match="needs a Postgres checkpointer, and this run has a InMemorySaver"):
        run(graph, {"messages": [ONE]}, CONFIG)
