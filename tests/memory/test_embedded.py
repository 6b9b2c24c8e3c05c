"""The embedded Postgres: shared, found again, never left running, whoever dies."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

from agentkit.errors import DatabaseError
from agentkit.memory import open_memory
from agentkit.memory._embedded import EmbeddedServer

# the part that runs servers alone: the rest of the package takes longer to import than a server to start
USE = """
import sys, types
from pathlib import Path
import agentkit
memory = sys.modules["agentkit.memory"] = types.ModuleType("agentkit.memory")
memory.__path__ = [str(Path(agentkit.__file__).parent / "memory")]
from agentkit.memory._embedded import EmbeddedServer
server = EmbeddedServer(home=Path(sys.argv[1]), settings={"fsync": "off"})
with server.use() as url:
    print(server.pid(), flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def home():
    # pytest's tmp_path is private to root, and its names are long; both have tests of their own below
    folder = Path(tempfile.mkdtemp(prefix="ak"))
    yield folder / "data"
    EmbeddedServer(home=folder / "data").stop()
    shutil.rmtree(folder, ignore_errors=True)


def server_of(home):
    return EmbeddedServer(home=home, settings={"fsync": "off"})


def user_of(home, *, env=None):
    return subprocess.Popen(
        [sys.executable, "-c", USE, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    )


def wait_for(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def test_two_processes_share_a_server_and_the_last_one_stops_it(home):
    first, second = user_of(home), user_of(home)
    pids = {first.stdout.readline(), second.stdout.readline()}
    assert len(pids) == 1
    first.communicate("\n", timeout=30)
    assert server_of(home).pid() == int(pids.pop())
    second.communicate("\n", timeout=30)
    assert server_of(home).pid() is None


def test_a_server_whose_only_user_was_killed_is_stopped_by_its_watcher(home):
    user = user_of(home)
    assert int(user.stdout.readline()) == server_of(home).pid()
    user.send_signal(signal.SIGKILL)
    user.communicate(timeout=30)
    wait_for(lambda: server_of(home).pid() is None)


def test_a_killed_user_does_not_take_the_server_from_the_others(home):
    killed = user_of(home)
    killed.stdout.readline()
    with server_of(home).use() as url:
        killed.kill()
        killed.communicate(timeout=30)
        with psycopg.connect(url) as conn:
            assert conn.execute("SELECT 1").fetchone() == (1,)
    assert server_of(home).pid() is None


def test_a_killed_server_is_started_again_with_its_data(home):
    with server_of(home).use() as url, open_memory(url) as memory:
        memory.store.put(("a",), "k", {"v": 1})
        os.kill(server_of(home).pid(), signal.SIGKILL)
        wait_for(lambda: server_of(home).pid() is None)
        with server_of(home).use():
            assert memory.store.get(("a",), "k").value == {"v": 1}


def test_a_kept_server_outlives_its_users_until_it_is_stopped(home):
    server = server_of(home)
    url = server.keep()
    with server.use():
        pass
    with psycopg.connect(url) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)
    assert (server.stop(), server.pid(), server.stop()) == (True, None, False)


def test_a_pid_file_whose_number_belongs_to_another_program_is_no_server(home):
    with server_of(home).use():
        lines = (home / "postgres" / "postmaster.pid").read_text()
    (home / "postgres" / "postmaster.pid").write_text(lines.replace(lines.split()[0], str(os.getpid()), 1))
    assert server_of(home).pid() is None
    with server_of(home).use() as url, psycopg.connect(url) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("name", ["with a space & 'quote'", "가나다", "x" * 150])
def test_any_folder_will_do(home, name):
    inner = home / name
    with server_of(inner).use() as url, open_memory(url) as memory:
        memory.store.put(("a",), "k", {"v": 1})
        assert memory.store.get(("a",), "k").value == {"v": 1}
    assert server_of(inner).pid() is None


def test_an_interrupted_start_leaves_nothing_in_the_way(home):
    (home / "postgres.new" / "base").mkdir(parents=True)
    (home / "postgres").mkdir()
    with server_of(home).use() as url, psycopg.connect(url) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)


def test_a_cluster_of_another_version_or_other_files_are_left_alone(home):
    (home / "postgres").mkdir(parents=True)
    (home / "postgres" / "PG_VERSION").write_text("12\n")
    with pytest.raises(DatabaseError, match="made by Postgres 12, not 18"), server_of(home).use():
        pass
    (home / "postgres" / "PG_VERSION").unlink()
    (home / "postgres" / "thesis.txt").write_text("do not lose me")
    with pytest.raises(DatabaseError, match="holds files but no database"), server_of(home).use():
        pass
    assert (home / "postgres" / "thesis.txt").read_text() == "do not lose me"


def test_a_folder_that_cannot_be_written_is_one_clear_error(home, monkeypatch):
    home.parent.joinpath("data").write_text("a file, no folder")
    monkeypatch.setenv("AGENTKIT_DATA_DIR", str(home))
    monkeypatch.delenv("AGENTKIT_DATABASE_URL", raising=False)
    with pytest.raises(DatabaseError, match=r"cannot write to the data folder.*AGENTKIT_DATA_DIR"), open_memory():
        pass
    home.unlink()


def test_without_a_url_the_embedded_server_of_the_data_folder_is_used(home, monkeypatch):
    monkeypatch.setenv("AGENTKIT_DATA_DIR", str(home))
    monkeypatch.delenv("AGENTKIT_DATABASE_URL", raising=False)
    with open_memory() as memory:
        memory.store.put(("a",), "k", {"v": 1})
        assert str(home) in memory.url
    with open_memory() as memory:
        assert memory.store.get(("a",), "k").value == {"v": 1}
    assert server_of(home).pid() is None


def test_an_unprivileged_user_gets_a_server_though_root_was_here_before(home):
    with server_of(home).use():
        pass
    plain = Path(tempfile.mkdtemp(prefix="ak"))
    plain.chmod(0o777)
    try:
        root = os.geteuid() == 0
        become_nobody = "import os; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        program = become_nobody + USE if root else USE
        user = subprocess.Popen(
            [sys.executable, "-c", program, str(plain / "data")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        out, err = user.communicate("\n", timeout=60)
        assert (user.returncode, out.strip().isdigit()) == (0, True), err
        assert (plain / "data" / "postgres").stat().st_uid == (65534 if root else os.geteuid())
    finally:
        shutil.rmtree(plain, ignore_errors=True)


def test_root_makes_its_folder_passable_but_not_readable(home):
    if os.geteuid() != 0:
        assert (home.parent.stat().st_mode & 0o777) == 0o700
        return
    with server_of(home).use():
        pass
    assert (home.parent.stat().st_mode & 0o777) == 0o701
    assert ((home / "postgres").stat().st_mode & 0o777) == 0o700
