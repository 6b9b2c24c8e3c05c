"""Names of tools as every provider takes them.

A model can call a tool that does not exist by a name that its provider refuses when the call is sent back, for ever
after. So the view of the history for the model shows such names in letters that pass.
"""

import re
from functools import lru_cache
from typing import Any, cast

from langchain_core.messages import AIMessage

from agentkit.messages._blocks import ID_KEYS
from agentkit.messages._calls import calls_of

_USABLE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAMED_BLOCKS = {*ID_KEYS, "invalid_tool_call"}


@lru_cache(maxsize=1024)
def is_usable(name: str | None) -> bool:
    """Whether every provider takes a call of a tool of this name."""
    return name is not None and _USABLE.fullmatch(name) is not None


def as_usable(name: str | None) -> str:
    """The name itself if it is usable, else the nearest one that is."""
    if is_usable(name):
        return cast("str", name)
    return re.sub(r"[^A-Za-z0-9_-]", "_", name or "")[:64] or "unknown_tool"


def unusable_names(message: AIMessage) -> list[tuple[str | None, str | None]]:
    """The (call id, name) of the calls whose names a provider refuses."""
    return [(call.get("id"), call.get("name")) for call in calls_of(message) if not is_usable(call.get("name"))]


def with_usable_names(message: AIMessage) -> AIMessage:
    """The message with usable names of tools, wherever it repeats them; the same object if they are."""
    if not unusable_names(message):
        return message
    update: dict[str, Any] = {
        "tool_calls": [_renamed(call) for call in message.tool_calls],
        "invalid_tool_calls": [_renamed(call) for call in message.invalid_tool_calls],
    }
    if isinstance(message.content, list):
        update["content"] = [
            _renamed(part) if isinstance(part, dict) and part.get("type") in _NAMED_BLOCKS else part
            for part in message.content
        ]
    raw = message.additional_kwargs.get("tool_calls")
    if isinstance(raw, list):
        calls = [{**call, "function": _renamed(call["function"])} if "function" in call else call for call in raw]
        update["additional_kwargs"] = {**message.additional_kwargs, "tool_calls": calls}
    return message.model_copy(update=update)


def _renamed(part: Any) -> Any:
    return {**part, "name": as_usable(part.get("name"))}
