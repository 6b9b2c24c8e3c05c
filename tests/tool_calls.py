"""Running one tool call by itself, as a ToolNode does, with a run made up for it."""

import asyncio
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from agentkit.tools import ToolRuntime
from agentkit.tools._body import arun_body, run_body
from agentkit.tools._plan import plan_of


def runtime_of(**fields: Any) -> ToolRuntime[Any, Any]:
    """A runtime with what a test gives and nothing else."""
    given = {
        "state": {},
        "context": None,
        "config": {},
        "stream_writer": lambda _: None,
        "tool_call_id": "call-1",
        "store": None,
    }
    return ToolRuntime(**(given | fields))


def call_of(tool: BaseTool, args: dict[str, Any]) -> dict[str, Any]:
    """A model's call of the tool."""
    return {"name": tool.name, "args": args, "id": "call-1", "type": "tool_call"}


def run_sync(tool: BaseTool, args: dict[str, Any], runtime: ToolRuntime[Any, Any] | None = None) -> Any:
    """What the body returned, run in this thread."""
    runtime = runtime or runtime_of()
    return run_body(plan_of(tool), tool, call_of(tool, args), runtime, runtime.config)


async def run_async(tool: BaseTool, args: dict[str, Any], runtime: ToolRuntime[Any, Any] | None = None) -> Any:
    """What the body returned, run in this event loop."""
    runtime = runtime or runtime_of()
    return await arun_body(plan_of(tool), tool, call_of(tool, args), runtime, runtime.config)


def run_in_loop(tool: BaseTool, args: dict[str, Any], runtime: ToolRuntime[Any, Any] | None = None) -> Any:
    """As `run_async`, in an event loop of its own."""
    return asyncio.run(run_async(tool, args, runtime))


def shown_parameters(tool: BaseTool) -> set[str]:
    """The names of the parameters that a model is shown."""
    return set(convert_to_openai_tool(tool)["function"]["parameters"]["properties"])
