"""The commands around the database: threads, people, and the embedded server."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest
from conftest import fresh_database
from langchain_core.messages import AIMessage, HumanMessage

from agentkit.agents import create_agent
from agentkit.cli import main
from agentkit.memory import memory_tools, open_memory
from agentkit.memory._embedded import EmbeddedServer
from agentkit.memory._pgfiles import binaries
from agentkit.testing import ScriptedModel, StrictModel


@pytest.fixture
def filled(fresh_postgres_url, monkeypatch):
    monkeypatch.setenv("AGENTKIT_DATABASE_URL", fresh_postgres_url)
    monkeypatch.setenv("COLUMNS", "200")
    remember = {"name": "remember", "args": {"text": "likes tea 가 \x1b[31m"}, "id": "c1", "type": "tool_call"}
    with open_memory() as memory:
        for thread, user, text in (("small", "bob", "hi"), ("big", "ann", "hello " * 2000)):
            model = StrictModel(ScriptedModel([AIMessage("", tool_calls=[remember]), AIMessage("noted")]))
            app = create_agent(model, memory_tools(), store=memory.store, checkpointer=memory.checkpointer)
            app.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread, "user_id": user}})
    return fresh_postgres_url


@pytest.fixture
def say(capsys):
    def run(*arguments):
        capsys.readouterr()
        code = main(list(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_threads_are_listed_with_their_sizes_the_biggest_first(filled, say):
    code, out, _ = say("threads", "list", "--sizes")
    heads, big, small = out.splitlines()
    assert (code, heads.split()[0], big.split()[0], small.split()[0]) == (0, "thread", "big", "small")
    assert [line.split()[0] for line in say("threads", "list")[1].splitlines()[1:]] == ["big", "small"]


def test_threads_are_pruned_by_age_and_count(filled, say):
    assert say("threads", "prune", "--older-than", "1w")[:2] == (0, "removed 0 threads, and 0 checkpoints in all\n")
    code, out, _ = say("threads", "prune", "--older-than", "0m", "--thread", "small")
    assert (code, out.startswith("removed 1 threads")) == (0, True)
    assert say("threads", "prune", "--keep-last", "1")[0] == 0
    assert say("threads", "list")[1].splitlines()[1].startswith("big")


@pytest.mark.parametrize("wrong", [[], ["--older-than", "soon"], ["--keep-last", "0"]])
def test_a_pruning_that_says_nothing_ends_with_the_fix(filled, say, wrong):
    code, _, err = say("threads", "prune", *wrong)
    assert (code, len(err.splitlines())) == (2, 1)


def test_a_person_is_exported_and_erased(filled, say, tmp_path):
    code, out, _ = say("memory", "export", "ann")
    found = json.loads(out)
    assert (code, found["threads"][0]["thread_id"], len(found["items"])) == (0, "big", 1)
    file = tmp_path / "ann.json"
    assert say("memory", "export", "ann", "--out", str(file))[0] == 0
    assert (json.loads(file.read_text())["user"], file.stat().st_mode & 0o777) == ("ann", 0o600)
    assert say("memory", "export", "ann", "--out", str(file))[0] == 2
    code, _, err = say("memory", "erase", "ann")
    assert (code, "nothing was deleted" in err) == (2, True)
    code, out, _ = say("memory", "erase", "ann", "--yes")
    assert (code, out.startswith("deleted 1 threads")) == (0, True)
    assert json.loads(say("memory", "export", "ann")[1])["threads"] == []
    assert len(json.loads(say("memory", "export", "bob")[1])["threads"]) == 1


def test_the_status_hides_the_password_and_counts(filled, say, monkeypatch):
    monkeypatch.setenv("AGENTKIT_DATABASE_URL", f"{filled} password=secret")
    code, out, _ = say("db", "status")
    assert (code, "secret" in out, "2 threads" in out, "2 items in the store" in out) == (0, False, True, True)


def test_a_dump_can_be_read_back(filled, say, postgres_server, tmp_path):
    file = tmp_path / "all.sql"
    assert say("db", "dump", str(file))[0] == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert say("db", "dump", str(file))[0] == 2
    with fresh_database(postgres_server) as url:
        command = [binaries() / "psql", "-v", "ON_ERROR_STOP=1", "-q", "-f", file, url]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        with open_memory(url) as memory:
            assert {thread.thread_id for thread in memory.threads()} == {"big", "small"}


def test_the_embedded_server_is_started_found_and_stopped(say, monkeypatch):
    home = Path(tempfile.mkdtemp(prefix="ak"))
    monkeypatch.setenv("AGENTKIT_DATA_DIR", str(home / "data"))
    monkeypatch.delenv("AGENTKIT_DATABASE_URL", raising=False)
    try:
        assert say("db", "url")[0] == 2
        assert say("db", "status")[0] == 1
        code, url, _ = say("db", "start")
        with psycopg.connect(url.strip()) as conn:
            assert conn.execute("SELECT 1").fetchone() == (1,)
        assert (code, say("db", "url")[1]) == (0, url)
        assert "until agentkit db stop" in say("db", "status")[1]
        assert say("db", "stop")[:2] == (0, "stopped\n")
        assert say("db", "stop")[:2] == (0, "it was not running\n")
    finally:
        EmbeddedServer(home=home / "data").stop()
        shutil.rmtree(home, ignore_errors=True)


@pytest.mark.parametrize("group", ["db", "threads", "memory"])
def test_each_group_has_its_help(say, group):
    code, out, _ = say(group, "--help")
    assert (code, "Usage: agentkit" in out) == (0, True)
