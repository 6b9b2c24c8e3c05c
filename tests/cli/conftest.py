"""Talking to the command line: in this process where that shows the same, else in one of its own on a terminal."""

import io
import os
import select
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from agentkit.cli import main


@dataclass(frozen=True, kw_only=True)
class Said:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str


@pytest.fixture
def account(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A user nobody has met, on the tests' database, without settings of the developer's own."""
    user = f"user-{uuid.uuid4().hex[:8]}"
    monkeypatch.setenv("AGENTKIT_DATABASE_URL", postgres_url)
    monkeypatch.setenv("AGENTKIT_USER", user)
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("AGENTKIT_MODEL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return user


@pytest.fixture
def agentkit(account: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Runs `agentkit ARGUMENTS` with these lines on its stdin."""

    def run(*arguments: str, lines: str = "") -> Said:
        monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
        capsys.readouterr()
        code = main(list(arguments))
        captured = capsys.readouterr()
        return Said(code=code, out=captured.out, err=captured.err)

    return run


class Terminal:
    """A process on a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        controller, terminal = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _ON_TERMINAL, *arguments],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "PYTHONUNBUFFERED": "1"},
        )
        os.close(terminal)
        self._controller = controller
        self._seen = ""

    def type(self, text: str) -> None:
        os.write(self._controller, text.encode())

    def see(self, text: str, within: float = 45) -> str:
        """Wait until `text` shows, and give what came up to it."""
        end = time.monotonic() + within
        while text not in self._seen:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._controller], [], [], left)[0]:
                raise TimeoutError(f"{text!r} did not show; what did: {self._seen[-2000:]}")
            try:
                self._seen += os.read(self._controller, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(f"ended before {text!r} showed; what did: {self._seen[-2000:]}") from None
        before, _, self._seen = self._seen.partition(text)
        return before + text

    def interrupt(self, text: str) -> None:
        """Press ctrl-C at a prompt, and wait for `text`.

        A letter is typed first, and its echo says that the prompt is being read: before, Python may take no notice.
        """
        self.type("?")
        self.see("?")
        for _ in range(8):
            self.type("\x03")
            try:
                self.see(text, within=5)
            except TimeoutError:
                continue
            return
        raise AssertionError(f"{text!r} did not show; what did: {self._seen[-2000:]}")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        os.close(self._controller)


_ON_TERMINAL = """
import fcntl, signal, sys, termios
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background has it ignored
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that ctrl-C on it reaches this process
from agentkit.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def terminal(account: str) -> Iterator[Callable[..., Terminal]]:
    """Starts `agentkit ARGUMENTS` on a terminal."""
    opened: list[Terminal] = []

    def start(*arguments: str) -> Terminal:
        opened.append(Terminal(*arguments))
        return opened[-1]

    yield start
    for each in opened:
        each.close()
