"""A real `langgraph dev`, started and stopped by the tests; `--port 0` would not tell which port it got."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

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
