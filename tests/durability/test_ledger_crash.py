"""Real processes, really killed. The long form is `make crash`; its table is printed with -s."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def report(*arguments: str, timeout: float, script: str = "crash_report.py") -> str:
    done = subprocess.run(
        [sys.executable, str(HERE / script), *arguments], check=False, capture_output=True, text=True, timeout=timeout
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return done.stdout


def test_killed_processes_lose_and_repeat_nothing() -> None:
    table = report("--kills", "9", "--quick", "--only-ours", timeout=100)
    assert "0 scenarios with something lost or repeated" in table


@pytest.mark.crash
def test_hundreds_of_killed_processes_lose_and_repeat_nothing() -> None:
    table = report("--kills", "240", timeout=1700)
    assert "agentkit: 240 kills, 0 scenarios with something lost or repeated" in table


@pytest.mark.crash
def test_the_ledger_costs_no_more_than_it_may() -> None:
    assert "within the bounds" in report(timeout=900, script="ledger_overhead.py")
