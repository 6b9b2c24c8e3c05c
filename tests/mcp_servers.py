"""Real MCP servers for tests, and agents that call them."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from agentkit.agents import create_agent
from agentkit.testing import ScriptedModel, StrictModel

HERE = Path(__file__).parent / "mcp"
WORKSHOP = str(HERE / "workshop.py")
START = [sys.executable, "-I", "-S", str(HERE / "start.py"), "workshop.py"]
COMMAND = [*START, "stdio"]
TIME = [str(Path(sys.executable).with_name("mcp-server-time")), "--local-timezone", "UTC"]


@contextmanager
def zygote() -> Iterator[None]:
    """While it is there, the workshop starts in a moment; see `mcp/start.py`."""
    path = Path(f"/tmp/agentkit-zygote-{os.getpid()}")
    path.unlink(missing_ok=True)
    words = [sys.executable, str(HERE / "zygote.py"), str(path)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(10)
        path.unlink(missing_ok=True)


@contextmanager
def over_http(port: int = 0, **env: str) -> Iterator[Any]:
    """The workshop over streamable HTTP: `url`, `port`, `process`."""
    process = subprocess.Popen(
        [*START, "http"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "WORKSHOP_PORT": str(port), **env},
    )
    assert process.stdout is not None
    try:
        bound = int(process.stdout.readline())
        yield SimpleNamespace(url=f"http://127.0.0.1:{bound}/mcp", port=bound, process=process)
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):  # it has just ended, or this system has no /proc
        return not Path("/proc/self").exists()
    return stat.rpartition(")")[2].split()[0] != "Z"


def servers_running(pattern: str) -> set[int]:
    """The processes that this one has started and whose command fits."""
    words = ["pgrep", "-P", str(os.getpid()), "-f", pattern]
    return {int(pid) for pid in subprocess.run(words, capture_output=True, text=True, check=False).stdout.split()}


def eventually(holds: Callable[[], Any]) -> None:
    """Wait, at most ten seconds, until something holds in another process."""
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.02)


def ask(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    """An AI message with calls (name, args), whose ids are c1, c2, …"""
    made = [{"name": n, "args": a, "id": f"c{i}", "type": "tool_call"} for i, (n, a) in enumerate(calls, 1)]
    return AIMessage("", tool_calls=made)


def agent_with(tools: list[Any], *turns: Any, **settings: Any) -> tuple[Any, ScriptedModel]:
    """An agent with a strict scripted model and a checkpointer, and the model."""
    model = ScriptedModel([*turns, "done"])
    settings.setdefault("checkpointer", InMemorySaver())
    return create_agent(StrictModel(model), tools, **settings), model


GO = {"messages": [("user", "go")]}
THREAD = {"configurable": {"thread_id": "t"}}


def answers(state: Any) -> list[ToolMessage]:
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]


def said(state: Any) -> list[str]:
    return [message.text for message in answers(state)]
