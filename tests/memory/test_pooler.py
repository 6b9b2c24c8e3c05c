"""Behind pgbouncer in transaction mode, a real one: every transaction may get another session."""

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import psycopg
import pytest
from conftest import fresh_database
from langchain_core.messages import AIMessage, HumanMessage
from memory.test_threads import answer, at, builder, talk, texts
from psycopg.conninfo import conninfo_to_dict

from agentkit.memory import aopen_memory, open_memory

pytestmark = pytest.mark.e2e


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(url):
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.fixture(scope="module")
def pooled(postgres_server):
    """(URL through pgbouncer, URL past it). Three server connections, so that sessions really change hands."""
    program = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")
    assert program, "pgbouncer is missing: apt-get install pgbouncer"
    folder, port = Path(tempfile.mkdtemp(prefix="ak")), free_port()
    with fresh_database(postgres_server) as url:
        server = conninfo_to_dict(url)
        host = server.get("host") or "127.0.0.1"
        (folder / "users.txt").write_text(f'"{server.get("user", "postgres")}" "{server.get("password", "")}"\n')
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\npooled = host={host} port={server.get('port', 5432)} dbname={server['dbname']}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = trust\n"
            f"auth_file = {folder}/users.txt\nlogfile = {folder}/log\n"
            "pool_mode = transaction\ndefault_pool_size = 3\nmax_client_conn = 100\n"
        )
        become = {}
        if os.geteuid() == 0:  # it refuses to run as root, like Postgres; the socket's owner may reach the socket
            owner = Path(host).stat().st_uid if host.startswith("/") else pwd.getpwnam("nobody").pw_uid
            become = {"user": owner, "group": pwd.getpwuid(owner).pw_gid, "extra_groups": []}
            for path in (folder, *folder.iterdir()):
                os.chown(path, become["user"], become["group"])
        command = [program, str(folder / "pgbouncer.ini")]
        bouncer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **become)
        through = f"postgresql://{server.get('user', 'postgres')}@127.0.0.1:{port}/pooled"
        try:
            deadline = time.monotonic() + 20
            while not answers(through):
                assert (bouncer.poll(), time.monotonic() < deadline) == (None, True), (folder / "log").read_text()
                time.sleep(0.05)
            yield through, url
        finally:
            bouncer.terminate()
            bouncer.wait(20)
            shutil.rmtree(folder, ignore_errors=True)


def test_many_conversations_at_once_work_behind_a_pooler(pooled):
    with open_memory(pooled[0], pooler=True, max_size=8) as memory:
        app = builder(answer).compile(checkpointer=memory.checkpointer)
        threads = [threading.Thread(target=talk, args=(app, f"t{n}", 5)) for n in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        for n in range(12):
            assert texts(app, f"t{n}") == [
                x for turn in range(5) for x in (f"t{n} says {turn}", f"answer {2 * turn + 1}")
            ]


async def test_the_async_side_works_behind_a_pooler(pooled):
    async with aopen_memory(pooled[0], pooler=True, max_size=8) as memory:
        app = builder(answer).compile(checkpointer=memory.checkpointer)
        await asyncio.gather(*(app.ainvoke({"messages": [HumanMessage("hi")]}, at(f"a{n}")) for n in range(20)))
        states = await asyncio.gather(*(app.aget_state(at(f"a{n}")) for n in range(20)))
        assert all(isinstance(state.values["messages"][-1], AIMessage) for state in states)
        await asyncio.gather(*(memory.store.aput(("n",), str(n), {"text": f"tea {n}"}) for n in range(30)))
        assert len(await memory.store.asearch(("n",), query="tea", limit=50)) == 30


def test_a_schema_and_a_time_limit_hold_behind_a_pooler_for_every_transaction(pooled):
    through, past = pooled
    with (
        open_memory(through, pooler=True, schema="Team A", statement_timeout=0.4, max_size=6) as one,
        open_memory(through, pooler=True, max_size=6) as other,
    ):
        for n in range(20):
            one.store.put(("n",), str(n), {"text": "of team a"})
            other.store.put(("n",), f"other{n}", {"text": "of others"})
        assert {item.value["text"] for item in one.store.search(("n",), limit=100, query="team")} == {"of team a"}
        assert other.store.search(("n",), limit=100, query="team") == []
        app = builder(answer).compile(checkpointer=one.checkpointer)
        talk(app, "t", 12)
        assert one.retain(keep_last=1).checkpoints > 0
        assert len(texts(app, "t")) == 24
        assert other.threads(["t"]) == []
        with psycopg.connect(past) as blocker:
            blocker.execute('LOCK TABLE "Team A".store IN ACCESS EXCLUSIVE MODE')
            with pytest.raises(psycopg.errors.QueryCanceled):
                one.store.get(("n",), "0")


def test_updates_of_several_writers_all_count_behind_a_pooler(pooled):
    with open_memory(pooled[0], pooler=True, max_size=8) as memory:
        threads = [
            threading.Thread(
                target=lambda: [
                    memory.store.update(("c",), "count", lambda old: {"n": (old or {"n": 0})["n"] + 1})
                    for _ in range(20)
                ]
            )
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert memory.store.get(("c",), "count").value == {"n": 80}


def test_eight_openings_at_once_behind_a_pooler_all_succeed(postgres_server, pooled):
    def drop():
        with psycopg.connect(pooled[1], autocommit=True) as conn:
            conn.execute("DROP SCHEMA IF EXISTS fresh CASCADE")

    errors = []

    def use():
        try:
            with open_memory(pooled[0], pooler=True, schema="fresh", max_size=2) as memory:
                memory.store.put(("n",), "k", {})
        except Exception as error:
            errors.append(error)

    drop()
    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
