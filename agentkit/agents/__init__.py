"""Agents: `create_agent`, its state, and limits. Middleware is in `agentkit.agents.middleware`."""

from agentkit.agents._factory import create_agent
from agentkit.agents._limits import Limits
from agentkit.agents._state import AgentState, InputAgentState, OutputAgentState

__all__ = ["AgentState", "InputAgentState", "Limits", "OutputAgentState", "create_agent"]
