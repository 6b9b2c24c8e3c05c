"""Opening a database: races, dead connections, poolers' settings, databases that are not fit."""

import asyncio
import subprocess
import sys
import threading

import psycopg
import pytest
from conftest import fresh_database
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from agentkit.errors import DatabaseError, DefinitionError
from agentkit.memory import aopen_memory, open_memory
from agentkit.memory._setup import check_server

OPEN_AT_ONCE = """
import os, sys
from agentkit.memory import open_memory  # once, before the processes part

workers = []
for n in range(16):
    pid = os.fork()
    if pid == 0:
        with open_memory(sys.argv[1], max_size=2) as memory:
            memory.store.put(("a",), str(n), {})
        os._exit(0)
    workers.append(pid)
sys.exit(sum(os.waitpid(pid, 0)[1] != 0 for pid in workers))
"""


def execute(url, *statements):
    with psycopg.connect(url, autocommit=True) as conn:
        for statement in statements:
            conn.execute(statement)


def kill_others(url):
    """Ends all other connections of the database, and waits until they are gone."""
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    execute(url, f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {others}")


def test_sixteen_processes_open_an_empty_database_at_once(fresh_postgres_url):
    command = [sys.executable, "-c", OPEN_AT_ONCE, fresh_postgres_url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    with open_memory(fresh_postgres_url) as memory:
        assert len(memory.store.search(("a",), limit=50)) == 16


def test_a_killed_connection_is_replaced_before_it_is_used(fresh_postgres_url):
    with open_memory(fresh_postgres_url, min_size=4, max_size=4) as memory:
        memory.store.put(("a",), "k", {"v": 1})
        for _ in range(3):
            kill_others(fresh_postgres_url)
            assert memory.store.get(("a",), "k").value == {"v": 1}
            assert memory.checkpointer.get_tuple({"configurable": {"thread_id": "t"}}) is None


async def test_a_killed_connection_is_replaced_before_it_is_used_in_a_loop_too(fresh_postgres_url):
    async with aopen_memory(fresh_postgres_url, min_size=4, max_size=4) as memory:
        await memory.store.aput(("a",), "k", {"v": 1})
        for _ in range(3):
            await asyncio.to_thread(kill_others, fresh_postgres_url)
            assert (await memory.store.aget(("a",), "k")).value == {"v": 1}


def test_a_backend_killed_in_the_middle_of_a_statement_costs_one_error(fresh_postgres_url):
    with open_memory(fresh_postgres_url, max_size=2) as memory:
        store, started, errors = memory.store, threading.Event(), []

        def change(_old):
            started.set()
            kill_others(fresh_postgres_url)
            return {"v": 2}

        try:
            store.update(("a",), "k", change)
        except psycopg.OperationalError as error:
            errors.append(error)
        assert (len(errors), started.is_set()) == (1, True)
        store.put(("a",), "k", {"v": 3})
        assert store.get(("a",), "k").value == {"v": 3}


def test_eight_reads_at_once_use_eight_connections(fresh_postgres_url):
    with open_memory(fresh_postgres_url, min_size=8, max_size=8) as memory:
        at_once = threading.Barrier(8)

        def meet(old):
            at_once.wait(30)
            return {"v": 1}

        threads = [
            threading.Thread(target=memory.store.update, args=(("a",), str(n), meet), daemon=True) for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(40)
        assert not at_once.broken
        assert len(memory.store.search(("a",))) == 8


async def test_the_savers_hold_no_lock_around_their_pool(fresh_postgres_url):
    """Eight reads are in the server at the same moment: a lock keeps the rows of the table while they pile up."""
    async with aopen_memory(fresh_postgres_url, min_size=8, max_size=8) as memory:
        async with await psycopg.AsyncConnection.connect(fresh_postgres_url) as blocker:
            await blocker.execute("LOCK TABLE checkpoints IN ACCESS EXCLUSIVE MODE")
            config = {"configurable": {"thread_id": "t"}}
            reads = [asyncio.create_task(memory.checkpointer.aget_tuple(config)) for _ in range(8)]
            waiting = (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            async with (
                await psycopg.AsyncConnection.connect(fresh_postgres_url, autocommit=True) as watcher,
                asyncio.timeout(30),
            ):
                while (await (await watcher.execute(waiting)).fetchone())[0] < 8:  # noqa: ASYNC110  the server sets no event
                    await asyncio.sleep(0.01)
            await blocker.rollback()
        assert await asyncio.gather(*reads) == [None] * 8


def test_a_schema_keeps_everything_apart(fresh_postgres_url):
    with open_memory(fresh_postgres_url) as other, open_memory(fresh_postgres_url, schema="Team A") as one:
        one.store.put(("a",), "k", {"v": 1})
        assert other.store.get(("a",), "k") is None
        assert one.store.get(("a",), "k").value == {"v": 1}
    with psycopg.connect(fresh_postgres_url) as conn:
        tables = {row[0] for row in conn.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'Team A'")}
    assert {"checkpoints", "checkpoint_blobs", "checkpoint_writes", "store"} <= tables


@pytest.mark.parametrize("pooler", [False, True])
def test_a_statement_that_takes_too_long_is_ended_by_the_server(fresh_postgres_url, pooler):
    with open_memory(fresh_postgres_url, statement_timeout=0.3, pooler=pooler, schema="s") as memory:
        memory.store.put(("a",), "k", {})
        with psycopg.connect(fresh_postgres_url) as blocker:
            blocker.execute("LOCK TABLE s.store IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(psycopg.errors.QueryCanceled):
                memory.store.get(("a",), "k")
        assert memory.store.get(("a",), "k") is not None


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://nobody@127.0.0.1:1/none?connect_timeout=2",
        "postgresql:///none?host=/nowhere",
        "postgresql://u:secret@localhost:notaport/x",
        "nonsense",
        "mysql://u:secret@h/x",
    ],
)
def test_a_database_that_cannot_be_reached_is_one_clear_error_without_the_password(url):
    with pytest.raises(DatabaseError) as raised, open_memory(url):
        pass
    assert len(str(raised.value).splitlines()) <= 2
    assert "secret" not in str(raised.value)


def test_a_read_only_database_is_refused_at_once(fresh_postgres_url):
    name = conninfo_to_dict(fresh_postgres_url)["dbname"]
    execute(fresh_postgres_url, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    with pytest.raises(DatabaseError, match="read-only"), open_memory(fresh_postgres_url):
        pass


def test_a_user_who_may_make_no_tables_is_told_so(postgres_server, fresh_postgres_url):
    name = "plain" + conninfo_to_dict(fresh_postgres_url)["dbname"]
    execute(postgres_server, f'CREATE ROLE "{name}" LOGIN')
    try:
        url = make_conninfo("", **{**conninfo_to_dict(fresh_postgres_url), "user": name})
        with pytest.raises(DatabaseError, match="may not do what agentkit needs"), open_memory(url):
            pass
    finally:
        execute(postgres_server, f'DROP ROLE "{name}"')


@pytest.mark.parametrize("table", ["store", "checkpoints", "checkpoint_writes"])
def test_tables_of_somebody_else_are_left_as_they_are(fresh_postgres_url, table):
    execute(fresh_postgres_url, f"CREATE TABLE {table} (id int)", f"INSERT INTO {table} VALUES (7)")
    with pytest.raises(DatabaseError), open_memory(fresh_postgres_url):
        pass
    with psycopg.connect(fresh_postgres_url) as conn:
        assert conn.execute(f"SELECT * FROM {table}").fetchall() == [(7,)]
        assert conn.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (1,)


@pytest.mark.parametrize("table", ["checkpoint_migrations", "store_migrations", "agentkit_migrations"])
def test_a_database_of_a_newer_version_is_refused(fresh_postgres_url, table):
    with open_memory(fresh_postgres_url):
        pass
    execute(fresh_postgres_url, f"INSERT INTO {table} VALUES (99)")
    with pytest.raises(DatabaseError, match="newer version"), open_memory(fresh_postgres_url):
        pass


def test_a_database_of_the_official_packages_is_taken_over_with_its_data(fresh_postgres_url):
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.store.postgres import PostgresStore

    with (
        PostgresSaver.from_conn_string(fresh_postgres_url) as saver,
        PostgresStore.from_conn_string(fresh_postgres_url) as store,
    ):
        saver.setup()
        store.setup()
        store.put(("a",), "k", {"v": 1}, ttl=5)
    with open_memory(fresh_postgres_url) as memory:
        assert memory.store.get(("a",), "k").value == {"v": 1}
        memory.store.put(("a",), "k2", {"v": 2})


def test_a_server_that_is_too_old_is_refused():
    with pytest.raises(DatabaseError, match="Postgres 13; agentkit needs 14"):
        check_server(130012)


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_size": 5, "max_size": 2},
        {"max_size": 0, "min_size": 0},
        {"schema": ""},
        {"statement_timeout": 0},
        {"fields": []},
        {"fields": "text"},
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(fresh_postgres_url, wrong):
    with pytest.raises(DefinitionError), open_memory(fresh_postgres_url, **wrong):
        pass


async def test_the_async_side_called_the_wrong_way_says_so(fresh_postgres_url):
    async with aopen_memory(fresh_postgres_url) as memory:
        with pytest.raises(asyncio.InvalidStateError):
            memory.store.put(("a",), "k", {})
        with pytest.raises(asyncio.InvalidStateError):
            memory.checkpointer.get_tuple({"configurable": {"thread_id": "t"}})
        await asyncio.to_thread(memory.store.put, ("a",), "k", {"v": 1})
        assert (await memory.store.aget(("a",), "k")).value == {"v": 1}


def test_two_databases_of_one_server_are_opened_by_two_urls(postgres_server):
    with (
        fresh_database(postgres_server) as one,
        fresh_database(postgres_server) as other,
        open_memory(one) as first,
        open_memory(other) as second,
    ):
        first.store.put(("a",), "k", {"v": 1})
        assert second.store.get(("a",), "k") is None
