"""The graphs that the tests' server serves."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt
from langgraph_sdk.runtime import ServerRuntime

from agentkit.agents import as_tool, create_agent
from agentkit.memory import memory_tools
from agentkit.server import without_memory
from agentkit.testing import ScriptedModel, StrictModel, calls
from agentkit.tools import ToolPolicy, ToolRuntime, identity, tool

FOLDER = Path(os.environ.get("PROBE_FOLDER", "."))
"""Where tools leave what they did, and look for what they wait for."""


@dataclass
class Context:
    tone: str = "plain"
    user_id: str = ""


Runtime = ToolRuntime[Context, Any]


def did(what: str) -> None:
    with (FOLDER / "did").open("a", encoding="utf-8") as file:
        file.write(f"{what}\n")


def obeys(messages: list[AnyMessage]) -> Any:
    """Makes the calls that the user wrote as JSON, [[name, args, id], …]; then says what came of them."""
    last = max(index for index, message in enumerate(messages) if isinstance(message, HumanMessage))
    if messages[-1] is messages[last]:
        text = str(messages[last].content)
        return calls(*(tuple(each) for each in json.loads(text))) if text.startswith("[") else f"heard: {text}"
    return " | ".join(str(message.text) for message in messages[last + 1 :] if message.type == "tool")


@tool
def whoami(runtime: Runtime) -> dict[str, Any]:
    """What the run is told about itself."""
    server, info = runtime.server_info, runtime.execution_info
    return {
        "server": server and {"assistant": server.assistant_id, "graph": server.graph_id},
        "user": server and server.user and server.user.identity,
        "thread": info.thread_id,
        "run": info.run_id,
        "context": asdict(runtime.context) if runtime.context else None,
        "identity": identity(runtime).namespace,
        "key": runtime.idempotency_key,
    }


@tool
def ask(question: str) -> str:
    """Ask the user."""
    return f"{question} {interrupt(question)}"


@tool
def work(name: str) -> str:
    """Do something once."""
    did(name)
    return f"did {name}"


@tool
async def steps(count: int, runtime: Runtime) -> str:
    """Work in steps, telling the progress."""
    for done in range(1, count + 1):
        await asyncio.sleep(0)
        runtime.progress(done, count)
    return "done"


@tool(policy=ToolPolicy(on_crash="rerun"))
async def wait_for(name: str) -> str:
    """Wait until somebody opens the gate."""
    await asyncio.to_thread(did, f"waiting for {name}")
    while not await asyncio.to_thread((FOLDER / name).exists):  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.02)
    await asyncio.to_thread(did, f"passed {name}")
    return f"passed {name}"


@tool
def fail(runtime: Runtime) -> str:
    """Fail."""
    raise RuntimeError("cannot reach postgresql://admin:hunter2@db/secret")


locate = tool(
    name="locate",
    description="Where the user is.",
    args_schema={"type": "object", "properties": {}},
    result_schema={"type": "object", "required": ["lat"], "properties": {"lat": {"type": "number"}}},
)
TOOLS = [whoami, ask, work, steps, wait_for, fail, locate, *memory_tools()]


def agent(**settings: Any) -> Any:
    model = StrictModel(ScriptedModel(obeys))
    return create_agent(model, [*TOOLS, *settings.pop("tools", ())], context_schema=Context, **settings)


helper = as_tool(agent(name="helper"), description="Helps.")
probe = agent(name="probe", tools=[helper])
persisted = agent(name="persisted", checkpointer=InMemorySaver())
stripped = without_memory(persisted)


@asynccontextmanager
async def opens_when_needed(runtime: ServerRuntime[Any]) -> AsyncIterator[Any]:
    """A factory that opens its resource only where a run needs it, not where somebody reads the graph."""
    needed = runtime.execution_runtime is not None
    await asyncio.to_thread(did, "opened" if needed else "only read")
    try:
        yield probe
    finally:
        if needed:
            await asyncio.to_thread(did, "closed")
