"""Results that no tool gave."""

from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall, ToolMessage

from agentkit.messages._ids import result_id


def error_result(
    call: ToolCall | InvalidToolCall, text: str, *, message_id: str | None = None, artifact: object = None
) -> ToolMessage:
    """A result with status "error" that answers `call` with `text`.

    Args:
        call: The call; its id should be set (see `ensure_call_ids`).
        text: What the model reads.
        message_id: The id of the AI message that holds the call. Given, the result gets the id
            `result_id(message_id, call id)`; else it has none and whoever stores it gives one.
        artifact: Kept on the result, not shown to the model.
    """
    call_id = call.get("id") or ""
    return ToolMessage(
        content=text,
        name=call.get("name"),
        tool_call_id=call_id,
        status="error",
        artifact=artifact,
        id=None if message_id is None else result_id(message_id, call_id),
    )


def unreadable_result(call: InvalidToolCall, *, message_id: str | None = None) -> ToolMessage:
    """The error result for a call that could not be parsed; it tells the model what to do."""
    reason = f" ({call['error']})" if call.get("error") else ""
    text = (
        f"Error: this call of {call.get('name') or 'a tool'} was not run: its arguments are malformed or truncated"
        f"{reason}. Call it again with a valid JSON object."
    )
    return error_result(call, text, message_id=message_id)


def missing_result(message: AIMessage, call: ToolCall) -> ToolMessage:
    """The result for a call of which nothing is known."""
    text = (
        f"no result was recorded for this call of {call.get('name') or 'a tool'}: it is unknown whether it ran. "
        "Check its effects before calling it again."
    )
    return error_result(call, text, message_id=message.id or "")
