"""A real `langgraph dev`, started and stopped by the tests; `--port 0` would not tell which port it got."""

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

HERE = Path(__file__).parent
TOKENS = {"token-of-ann": "ann", "token-of-ben": "ben"}
STARTS_WITHIN = 90.0  # seconds; a few on an idle machine


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server that runs."""

    url: str
    folder: Path
    process: "subprocess.Popen[bytes]"

    def client(self, user: str | None = "ann") -> LangGraphClient:
        headers = {} if user is None else {"Authorization": f"Bearer token-of-{user}"}
        return get_client(url=self.url, api_key=None, headers=headers, timeout=60)

    @property
    def log(self) -> str:
        return (self.folder / "server.log").read_text(encoding="utf-8", errors="replace")

    def did(self) -> list[str]:
        """What tools left behind, in order."""
        file = self.folder / "did"
        return file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []

    def open_gate(self, name: str) -> None:
        (self.folder / name).touch()

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)


@contextmanager
def serving(folder: Path, config: dict[str, Any] | Path, **env: str) -> Iterator[Server]:
    """Runs `langgraph dev` in `folder` with this config (a dict, or the file) until the block ends."""
    if isinstance(config, dict):
        file = folder / "langgraph.json"
        file.write_text(json.dumps({"dependencies": ["."], **config}), encoding="utf-8")
    else:
        file = config
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LANGSMITH", "LANGCHAIN"))}
    quiet = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"}
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--config", str(file), "--port", str(port)]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--no-browser", "--no-reload", "--n-jobs-per-worker", "4"],
            cwd=folder,
            env={**kept, **quiet, "PROBE_FOLDER": str(folder), "AGENTKIT_TOKENS": json.dumps(TOKENS), **env},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(url=f"http://127.0.0.1:{port}", folder=folder, process=process)
    try:
        _wait_until_up(server)
        yield server
    finally:
        _stop(process)


def _wait_until_up(server: Server) -> None:
    end = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < end and server.process.poll() is None:
        try:
            with urllib.request.urlopen(f"{server.url}/ok", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(f"the server did not start:\n{server.log[-4000:]}")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


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
