"""What a wrapper around tool calls gets."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import ToolCallRequest as LangGraphToolCallRequest
from langgraph.types import Command

from agentkit.tools._runtime import ToolRuntime

Answer: TypeAlias = "ToolMessage | Command[Any] | list[ToolMessage | Command[Any]]"


@dataclass(init=False)
class ToolCallRequest(LangGraphToolCallRequest):
    """One tool call on its way to its tool, as wrappers see it.

    Attributes:
        tool_call: the call: {"name", "args", "id", "type"}.
        tool: the tool that will run, or None where no registered tool has that name.
        state: the state that the calls of this batch see. Read it; return a Command to change it.
        runtime: what the tool gets as its ToolRuntime.

    Change nothing in place: `request.override(tool_call=…, tool=…, state=…)` returns a changed request.
    """

    tool_call: ToolCall
    tool: BaseTool | None
    state: Any
    runtime: ToolRuntime[Any, Any]

    def __init__(self, tool_call: ToolCall, tool: BaseTool | None, state: Any, runtime: ToolRuntime[Any, Any]) -> None:
        # past the base's __setattr__, which warns of changes in place: it would cost more than the rest of the call
        self.__dict__.update(tool_call=tool_call, tool=tool, state=state, runtime=runtime)

    def override(self, **overrides: Any) -> "ToolCallRequest":
        """A request with these attributes replaced; a new state is what the tool sees too."""
        if "state" in overrides and isinstance(runtime := overrides.get("runtime", self.runtime), ToolRuntime):
            overrides["runtime"] = replace(runtime, state=overrides["state"])
        return replace(self, **overrides)


ToolCallHandler: TypeAlias = Callable[[ToolCallRequest], Answer]
AsyncToolCallHandler: TypeAlias = Callable[[ToolCallRequest], Awaitable[Answer]]
ToolCallWrapper: TypeAlias = Callable[[ToolCallRequest, ToolCallHandler], Answer]
AsyncToolCallWrapper: TypeAlias = Callable[[ToolCallRequest, AsyncToolCallHandler], Awaitable[Answer]]
