"""Real MCP servers, started by the tests."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from batches import Run
from mcp_servers import zygote


@pytest.fixture(scope="session", autouse=True)
def quick_starts():
    with zygote():
        yield


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Run:
    return Run(request.param)


@pytest.fixture
def log(tmp_path: Path) -> Any:
    """The events that a workshop started with `env=log.env` writes down."""
    path = tmp_path / "workshop.log"

    def lines() -> list[str]:
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    return SimpleNamespace(env={"WORKSHOP_LOG": str(path)}, lines=lines)
