"""What a model call offers where the agent has toolsets: they are asked with the run as it is now.

The tools node asks them again where a call of theirs is to run (`ToolNode.sources`), also in another process.
"""

from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.runtime import Runtime

from agentkit.tools._sources import Sources
from agentkit.tools._steps import Story

__all__ = ["Offer", "offer_story"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """The tools of one model call before its wrappers see them, and the names that the agent could run."""

    tools: list[Any]
    names: frozenset[str]


def offer_story(
    fixed: Offer, sources: Sources, state: Any, runtime: Runtime[Any], config: RunnableConfig | None
) -> Story[Offer]:
    """The agent's own tools and those its toolsets give.

    Raises:
        DefinitionError: names collide, or the tools do not fit the agent's state.
        Exception: whatever a toolset raises.
    """
    found = yield from sources.ask(state, runtime, ensure_config(config))
    if not found:
        return fixed
    return Offer(tools=[*fixed.tools, *found.values()], names=fixed.names | found.keys())
