"""Agents on LangGraph whose tool calls cannot break the conversation.

    from agentkit import create_agent, open_memory, tool

The names below are loaded when they are first used; what belongs to one subject is in its package: `agentkit.agents`,
`agentkit.tools`, `agentkit.messages`, `agentkit.memory`, `agentkit.testing`.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from agentkit import _ipython

if TYPE_CHECKING:
    from agentkit.agents import AgentState, Limits, create_agent
    from agentkit.errors import AgentkitError
    from agentkit.memory import AsyncMemory, Memory, aopen_memory, memory_tools, open_memory
    from agentkit.messages import check_history, history, repair_history
    from agentkit.tools import HeadlessTool, ToolNode, ToolPolicy, ToolRuntime, identity, tool

__all__ = [
    "AgentState",
    "AgentkitError",
    "AsyncMemory",
    "HeadlessTool",
    "Limits",
    "Memory",
    "ToolNode",
    "ToolPolicy",
    "ToolRuntime",
    "aopen_memory",
    "check_history",
    "create_agent",
    "history",
    "identity",
    "memory_tools",
    "open_memory",
    "repair_history",
    "tool",
]

_HOMES = {
    "agentkit.agents": ("AgentState", "Limits", "create_agent"),
    "agentkit.errors": ("AgentkitError",),
    "agentkit.memory": ("AsyncMemory", "Memory", "aopen_memory", "memory_tools", "open_memory"),
    "agentkit.messages": ("check_history", "history", "repair_history"),
    "agentkit.tools": ("HeadlessTool", "ToolNode", "ToolPolicy", "ToolRuntime", "identity", "tool"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name, or a package of agentkit, when it is first asked for."""
    if name in _HOME:
        found = globals()[name] = getattr(import_module(_HOME[name]), name)
        return found
    raise AttributeError(f"module 'agentkit' has no attribute {name!r}; public are {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if "IPython" in sys.modules:
    _ipython.register()
