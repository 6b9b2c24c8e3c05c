"""Handing a conversation over to another agent of the same graph."""

import re
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command
from pydantic import Field

from agentkit.tools import ToolPolicy, ToolRuntime, tool

__all__ = ["handoff"]

Task = Annotated[str, Field(description="What the other agent is to do now.")]


def handoff(
    to: str, *, name: str | None = None, description: str | None = None, messages_key: str = "messages"
) -> BaseTool:
    """Make a tool with which an agent hands the conversation over to the node `to` of the graph that it is a node of.

    The call is answered, and the agent is left with its whole batch: its AI message and every result go to the parent
    graph, in order, so that the histories on both sides stay valid. Several handoffs of one batch start their nodes at
    the same time.

    Args:
        to: the node, in the parent graph; add the edge with `destinations=` where it is to be drawn.
        name: the tool's name; "transfer_to_" and the node's name if not given.
        description: when to hand over, for the model.
        messages_key: the parent's state key of the messages.

    Raises:
        DefinitionError: the name cannot be a tool's name.
    """
    tool_name = name or f"transfer_to_{re.sub(r'[^A-Za-z0-9_-]+', '_', to)}"

    def hand_over(task: Task, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        done = ToolMessage(f"Handed over to {to}: {task}", tool_call_id=runtime.tool_call_id, name=tool_name)
        return Command(graph=Command.PARENT, goto=to, update={messages_key: [done]})

    make = tool(
        tool_name,
        description=description or f"Hand the conversation over to {to}.",
        policy=ToolPolicy(on_crash="rerun"),
    )
    return make(hand_over)
