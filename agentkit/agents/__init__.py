"""Agents: `create_agent`, its state, and limits. Middleware is in `agentkit.agents.middleware`."""

from agentkit.agents._as_tool import AgentTool, as_tool
from agentkit.agents._factory import create_agent
from agentkit.agents._handoff import handoff
from agentkit.agents._limits import Limits
from agentkit.agents._state import AgentState, InputAgentState, OutputAgentState
from agentkit.agents._threads import OpenCall, ThreadReport, check_thread, repair_thread

__all__ = [
    "AgentState",
    "AgentTool",
    "InputAgentState",
    "Limits",
    "OpenCall",
    "OutputAgentState",
    "ThreadReport",
    "as_tool",
    "check_thread",
    "create_agent",
    "handoff",
    "repair_thread",
]
