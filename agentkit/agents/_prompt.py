"""What the model is sent: what the wrappers left of the history, with every call in it paired and uniquely named."""

from collections.abc import Sequence
from itertools import takewhile
from operator import is_
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage, convert_to_messages

from agentkit.messages import error_result, repair_history, unique_call_ids
from agentkit.messages._calls import is_result
from agentkit.messages._results import missing_result

__all__ = ["prompt"]


def prompt(request: Any, repaired: list[AnyMessage]) -> list[Any]:
    """The messages for the model: those of `request`, after its system message.

    Args:
        request: As the innermost wrapper passed it on; its messages may be any.
        repaired: The history as the outermost wrapper got it: what is unchanged is not looked at again.
    """
    messages = request.messages
    if messages is not repaired and not _same(messages, repaired):
        given = cast("list[AnyMessage]", convert_to_messages(messages))
        messages, _ = repair_history(given, lambda message, call: _left_out(message, call, repaired))
    messages = unique_call_ids(messages)
    return [request.system_message, *messages] if request.system_message else messages


def _same(messages: Sequence[Any], others: list[AnyMessage]) -> bool:
    return len(messages) == len(others) and all(map(is_, messages, others))


def _left_out(message: AIMessage, call: ToolCall, repaired: list[AnyMessage]) -> ToolMessage:
    """The result for a call whose own one a wrapper took out: it stays out, but the model must not think it lost."""
    own = next((at for at, m in enumerate(repaired) if m.id == message.id), None) if message.id else None
    if own is None:
        return missing_result(message, call)
    for found in takewhile(is_result, repaired[own + 1 :]):
        result = cast("ToolMessage", found)
        if result.tool_call_id == call["id"]:
            text = f"the result of this call of {call['name']} is left out here: the call was answered earlier."
            left_out = error_result(call, text, message_id=message.id)
            left_out.status = result.status
            return left_out
    return missing_result(message, call)
