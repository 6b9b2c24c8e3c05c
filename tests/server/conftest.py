"""Servers for the tests of this folder, and their users."""

import importlib.util
import json
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langgraph_dev import Server, serving
from langgraph_sdk.client import LangGraphClient

HERE = Path(__file__).parent


def config_of(*, postgres: bool, auth: bool = True) -> dict[str, Any]:
    """The config of the tests' server."""
    names = ("probe", "stripped", "opens_when_needed")
    config: dict[str, Any] = {"graphs": {name: f"{HERE / 'served.py'}:{name}" for name in names}}
    if auth:
        config["auth"] = {"path": "agentkit.server.auth:auth", "disable_studio_auth": True}
    if postgres:
        config["checkpointer"] = {"backend": "custom", "path": "agentkit.server.checkpointer"}
        config["store"] = {"path": "agentkit.server.store"}
    return config


@pytest.fixture
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Starts further servers, each in a folder of its own; stopped after the test."""
    with ExitStack() as running:

        def serve(config: dict[str, Any], **env: str) -> Server:
            return running.enter_context(serving(tmp_path_factory.mktemp("server"), config, **env))

        yield serve


@pytest.fixture(scope="module", params=["inmem", "postgres"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the tests of a module, over memory and over Postgres, with authentication."""
    postgres = request.param == "postgres"
    env = {"AGENTKIT_DATABASE_URL": request.getfixturevalue("postgres_url")} if postgres else {}
    with serving(tmp_path_factory.mktemp(request.param), config_of(postgres=postgres), **env) as started:
        yield started


@pytest.fixture(scope="session")
def assistant_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The project's own langgraph.json, as it is, in a copy of its graphs; the model is the rehearsal model."""
    folder, root = tmp_path_factory.mktemp("project"), HERE.parents[1]
    shutil.copytree(root / "graphs", folder / "graphs", ignore=shutil.ignore_patterns("__pycache__"))
    config = json.loads((root / "langgraph.json").read_text(encoding="utf-8"))
    with serving(folder, config, AGENTKIT_MODEL="") as started:
        yield started


@pytest.fixture
async def assistant(assistant_server: Server) -> AsyncIterator[LangGraphClient]:
    """A client of the assistant's server, for one test's event loop."""
    async with assistant_server.client(user=None) as client:
        yield client


@pytest.fixture
async def ann(server: Server) -> AsyncIterator[LangGraphClient]:
    """A user of the tests' server."""
    async with server.client("ann") as client:
        yield client


@pytest.fixture
async def ben(server: Server) -> AsyncIterator[LangGraphClient]:
    """Another user of it."""
    async with server.client("ben") as client:
        yield client


@pytest.fixture
def config() -> dict[str, Any]:
    """What the tests' server is started with, over Postgres."""
    return config_of(postgres=True)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module with the served graphs, loaded in this process."""
    spec = importlib.util.spec_from_file_location("served_here", HERE / "served.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "served_here", module)
    spec.loader.exec_module(module)
    return module
