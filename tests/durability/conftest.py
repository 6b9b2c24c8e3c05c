"""Every behaviour is run in sync and in async code."""

import pytest
from batches import Run


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Run:
    """Invoke in sync and in async code."""
    return Run(request.param)


@pytest.fixture(params=["state", "send"])
def form(request: pytest.FixtureRequest) -> str:
    """How a batch enters the node: as a whole state, or as one Send per call."""
    return str(request.param)
