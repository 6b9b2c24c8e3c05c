"""Tools: what a tool is, and how a batch of tool calls runs."""

from agentkit.tools._headless import HeadlessRequest, HeadlessTool
from agentkit.tools._identity import identity
from agentkit.tools._implement import Implementation, arun_headless, implement, run_headless
from agentkit.tools._offered import OFFERED_KEY
from agentkit.tools._policy import ToolPolicy, policy_of, with_policy
from agentkit.tools._recovery import RERUN
from agentkit.tools._routing import fan_out, tools_condition
from agentkit.tools._runtime import (
    BaseTool,
    InjectedState,
    InjectedStore,
    InjectedToolArg,
    InjectedToolCallId,
    ToolException,
    ToolProgress,
    ToolRuntime,
    get_runtime,
)
from agentkit.tools._tool import tool
from agentkit.tools.tool_node import ToolCallRequest, ToolNode

__all__ = [
    "OFFERED_KEY",
    "RERUN",
    "BaseTool",
    "HeadlessRequest",
    "HeadlessTool",
    "Implementation",
    "InjectedState",
    "InjectedStore",
    "InjectedToolArg",
    "InjectedToolCallId",
    "ToolCallRequest",
    "ToolException",
    "ToolNode",
    "ToolPolicy",
    "ToolProgress",
    "ToolRuntime",
    "arun_headless",
    "fan_out",
    "get_runtime",
    "identity",
    "implement",
    "policy_of",
    "run_headless",
    "tool",
    "tools_condition",
    "with_policy",
]
