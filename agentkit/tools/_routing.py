"""Edge functions for hand-written graphs: after the model, to the tools or to the end."""

from collections.abc import Callable
from typing import Any, Literal

from langgraph.graph import END
from langgraph.types import Send

from agentkit.messages import open_calls, unreadable_calls
from agentkit.tools._batch import messages_of


def tools_condition(state: Any, messages_key: str = "messages") -> Literal["tools", "__end__"]:
    """Where to go after the model: "tools" where the last AI message has calls without a result, else END.

    Calls that could not be parsed count: the ToolNode answers them with an error, so that the model tries again.

    Args:
        state: a dict, a pydantic or dataclass state, or a list of messages.
        messages_key: the state key of the messages.

    Raises:
        ValueError: the state has no messages.
    """
    messages = messages_of(state, messages_key)
    if not messages:
        raise ValueError(f"No messages found in input state to tools_condition: {str(state)[:200]}")
    return "tools" if open_calls(messages) or unreadable_calls(messages) else "__end__"


def fan_out(
    node: str = "tools", *, otherwise: str = END, messages_key: str = "messages"
) -> Callable[[Any], list[Send] | str]:
    """An edge function that sends each open call to the tools node as a task of its own, or goes to `otherwise`.

    With it, parallel calls interrupt, finish, stream and resume one by one, as they do in `create_agent`:
    `graph.add_conditional_edges("model", fan_out(), ["tools", END])`. A state key that several calls write needs a
    reducer.
    """

    def edge(state: Any) -> list[Send] | str:
        messages = messages_of(state, messages_key)
        calls: list[Any] = [*open_calls(messages), *unreadable_calls(messages)]
        return [Send(node, [call]) for call in calls] if calls else otherwise

    return edge
