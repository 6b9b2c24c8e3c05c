"""Calls in a message's content that `tool_calls` does not list.

Providers' clients send content blocks as they are, so such a call is sent too, and refused without a result. It comes
about when something takes a call out of `tool_calls` and leaves the block. `tool_calls` is what counts here: a block
nobody answered goes, one that was answered becomes a listed call.
"""

import json
from collections.abc import Iterator
from typing import Any

from langchain_core.messages import AIMessage, ToolCall

# The key that holds the call's id, by the type of block.
ID_KEYS = {"tool_use": "id", "tool_call": "id", "function_call": "call_id", "custom_tool_call": "call_id"}


def lists_its_calls(message: AIMessage) -> bool:
    """Whether every call that a client would send is in `tool_calls` or `invalid_tool_calls`."""
    if isinstance(message.content, str) and "tool_calls" not in message.additional_kwargs:
        return True
    return next(_unlisted(message), None) is None


def unlisted_ids(message: AIMessage) -> list[str | None]:
    """The ids of the calls in content (or in OpenAI's raw form) that the message does not list."""
    return [call_id for _, call_id in _unlisted(message)]


def listing_its_calls(message: AIMessage, answered: set[str]) -> AIMessage:
    """The message with unlisted calls listed if their id is in `answered`, and else taken out of its content."""
    found = list(_unlisted(message))
    if not found:
        return message
    listed = [_as_call(block, call_id) for block, call_id in found if call_id in answered]
    gone = [block for block, call_id in found if call_id not in answered]
    update: dict[str, Any] = {"tool_calls": [*message.tool_calls, *listed]}
    if isinstance(message.content, list):
        left = [part for part in message.content if not any(part is block for block in gone)]
        update["content"] = left or ""  # providers refuse an empty list
    if "tool_calls" in message.additional_kwargs and not (message.tool_calls or message.invalid_tool_calls):
        update["additional_kwargs"] = {k: v for k, v in message.additional_kwargs.items() if k != "tool_calls"}
    return message.model_copy(update=update)


def _unlisted(message: AIMessage) -> Iterator[tuple[dict[str, Any], str | None]]:
    content = message.content
    if isinstance(content, list):
        blocks = [part for part in content if isinstance(part, dict) and part.get("type") in ID_KEYS]
        if blocks:
            listed = {call["id"] or "" for call in message.tool_calls}
            listed.update(call.get("id") or "" for call in message.invalid_tool_calls)
            for block in blocks:
                call_id = block.get(ID_KEYS[block["type"]])
                if (call_id or "") not in listed:
                    yield block, call_id
    raw = message.additional_kwargs.get("tool_calls")
    if raw and not message.tool_calls and not message.invalid_tool_calls:
        # Clients send this raw form only where nothing is listed.
        yield from ((call, call.get("id")) for call in raw if isinstance(call, dict))


def _as_call(block: dict[str, Any], call_id: str | None) -> ToolCall:
    function = block.get("function") or block
    args = loaded(function.get("input", function.get("args", function.get("arguments"))))
    return ToolCall(
        name=function.get("name") or "", args=args if isinstance(args, dict) else {}, id=call_id, type="tool_call"
    )


def loaded(text: object) -> object:
    """JSON text as what it says; anything else as it is."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
