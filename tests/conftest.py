"""Databases and memories for all tests: one embedded Postgres for the session, one database for each worker."""

import os
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from agentkit.memory import AsyncMemory, InMemoryStore, Memory, aopen_memory, open_memory
from agentkit.memory._embedded import EmbeddedServer


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server: AGENTKIT_DATABASE_URL, else an embedded one that the workers of a run share."""
    given = os.environ.get("AGENTKIT_DATABASE_URL")
    if given:
        yield given
        return
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex
    home = Path(tempfile.gettempdir()) / f"agentkit-tests-{os.geteuid()}-{run[:16]}"
    # whoever comes first starts it and the last one stops it; a test run needs no durable disk
    server = EmbeddedServer(home=home, settings={"fsync": "off", "synchronous_commit": "off"})
    with server.use() as url:
        yield url
    if server.pid() is None:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_url(postgres_server: str) -> Iterator[str]:
    """A database of this worker's own."""
    with fresh_database(postgres_server) as url:
        yield url


@pytest.fixture
def fresh_postgres_url(postgres_server: str) -> Iterator[str]:
    """A new, empty database of this test's own."""
    with fresh_database(postgres_server) as url:
        yield url


@contextmanager
def fresh_database(server: str) -> Iterator[str]:
    """The URL of a new database, which is dropped in the end."""
    name = f"test_{uuid.uuid4().hex[:16]}"
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(f'CREATE DATABASE "{name}"')
    try:
        yield make_conninfo("", **{**conninfo_to_dict(server), "dbname": name})
    finally:
        with psycopg.connect(server, autocommit=True) as conn:
            conn.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def empty(url: str) -> None:
    """Forgets what earlier tests left in the worker's database."""
    with psycopg.connect(url, autocommit=True) as conn:
        for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "store"):
            conn.execute(f"DELETE FROM {table}")


@pytest.fixture
def memory(postgres_url: str) -> Iterator[Memory]:
    """An open, empty memory on Postgres."""
    with open_memory(postgres_url) as opened:
        empty(postgres_url)
        yield opened


@pytest.fixture
async def amemory(postgres_url: str) -> AsyncIterator[AsyncMemory]:
    """As `memory`, for the test's event loop."""
    async with aopen_memory(postgres_url) as opened:
        empty(postgres_url)
        yield opened


@pytest.fixture(params=["in-memory", "postgres"])
def checkpointer(request: pytest.FixtureRequest) -> BaseCheckpointSaver:
    """A checkpointer for sync tests, in memory and on Postgres."""
    return InMemorySaver() if request.param == "in-memory" else request.getfixturevalue("memory").checkpointer


@pytest.fixture(params=["in-memory", "postgres"])
def store(request: pytest.FixtureRequest) -> BaseStore:
    """A store for sync tests, in memory and on Postgres."""
    return InMemoryStore() if request.param == "in-memory" else request.getfixturevalue("memory").store


@pytest.fixture(params=["in-memory", "postgres"])
async def acheckpointer(request: pytest.FixtureRequest, postgres_url: str) -> AsyncIterator[BaseCheckpointSaver]:
    """As `checkpointer`, for async tests."""
    if request.param == "in-memory":
        yield InMemorySaver()
        return
    async with aopen_memory(postgres_url) as opened:
        empty(postgres_url)
        yield opened.checkpointer


@pytest.fixture(params=["in-memory", "postgres"])
async def astore(request: pytest.FixtureRequest, postgres_url: str) -> AsyncIterator[BaseStore]:
    """As `store`, for async tests."""
    if request.param == "in-memory":
        yield InMemoryStore()
        return
    async with aopen_memory(postgres_url) as opened:
        empty(postgres_url)
        yield opened.store
