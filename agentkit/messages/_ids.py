"""Ids: of results, and of calls that a provider left unnamed or named twice."""

import json
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, cast
from uuid import UUID, uuid5

from langchain_core.messages import AIMessage, AnyMessage, InvalidToolCall, ToolCall, ToolMessage

from agentkit.messages._blocks import ID_KEYS, loaded
from agentkit.messages._calls import calls_of, has_calls

NAMESPACE = UUID("6f0f7c5e-2b0b-5d5c-9a53-0f4c1c6d7a11")

# Where providers repeat the calls of a message in its content.
_BLOCK_ID_KEYS = {**ID_KEYS, "tool_call_chunk": "id", "invalid_tool_call": "id"}


def stable_id(*parts: str | None) -> str:
    """A uuid5 that depends on `parts` alone: the same parts give the same id in every process."""
    # JSON keeps the borders between the parts, so that ("a", "bc") and ("ab", "c") differ.
    return str(uuid5(NAMESPACE, json.dumps(parts)))


def result_id(message_id: str | None, call_id: str | None) -> str:
    """The message id of the result of a call, from the call's key (AI message id, call id).

    Deterministic, so that a result that is written again replaces itself instead of standing there twice.
    """
    return stable_id("result", message_id, call_id)


def ensure_call_ids(message: AIMessage) -> AIMessage:
    """Give every call of `message` an id, unique within the message.

    Calls without an id (None or "") and repeated ids get a new one, derived from the message's id and the call's
    position; the first call with an id keeps it. What repeats the calls (content blocks of type tool_use, tool_call,
    function_call, `additional_kwargs["tool_calls"]`, `tool_call_chunks`) is changed alike, so that every provider
    sees the same calls.

    Returns:
        The same object when nothing is to do, else a copy; `message` itself is never changed.
    """
    calls = message.tool_calls
    invalid = message.invalid_tool_calls
    if not invalid:
        if not calls or (len(calls) == 1 and calls[0]["id"]):
            return message
        ids = [call["id"] for call in calls]
    else:
        ids = [call["id"] for call in calls] + [call.get("id") for call in invalid]
    if all(ids) and len(set(ids)) == len(ids):
        return message
    return _with_new_ids(message, ids)


def unique_call_ids(messages: list[AnyMessage]) -> list[AnyMessage]:
    """Make the ids of calls unique in the whole history, as Anthropic wants them.

    Some providers count anew in each turn (`call_0` again and again), which is no fault as long as the thread stays
    with them. The first call with an id keeps it; later ones get one derived from their message's id and their
    position, and their results with them. Pure and deterministic, so that prompt caches hold.

    Args:
        messages: A history without faults (see `repair_history`).

    Returns:
        The same list object when nothing is to do.
    """
    taken: set[str] = set()
    changed: list[AnyMessage] | None = None
    for index, message in enumerate(messages):
        if not has_calls(message):
            continue
        ids = [cast("str", call.get("id")) for call in calls_of(message)]
        if not taken.isdisjoint(ids):
            changed = list(messages) if changed is None else changed
            renamed = _with_new_ids(message, ids, taken)
            changed[index] = renamed
            for at, call in enumerate(calls_of(renamed), index + 1):
                result = cast("ToolMessage", messages[at])
                if result.tool_call_id != call.get("id"):
                    changed[at] = result.model_copy(update={"tool_call_id": call.get("id")})
            ids = [cast("str", call.get("id")) for call in calls_of(renamed)]
        taken.update(ids)
    return messages if changed is None else changed


class _Entry:
    """A call on its way to a new id: what it was called, and what it is called now."""

    __slots__ = ("args", "name", "new", "old", "used")

    def __init__(self, call: ToolCall | InvalidToolCall, old: str | None, new: str) -> None:
        self.name = call.get("name")
        self.args = call.get("args")
        self.old = old or ""
        self.new = new
        self.used = False


def _with_new_ids(message: AIMessage, ids: Sequence[str | None], taken: AbstractSet[str] = frozenset()) -> AIMessage:
    calls: list[ToolCall | InvalidToolCall] = [*message.tool_calls, *message.invalid_tool_calls]
    entries = [_Entry(call, old, new) for call, old, new in zip(calls, ids, _new_ids(message, ids, taken), strict=True)]
    renamed = [{**call, "id": entry.new} for call, entry in zip(calls, entries, strict=True)]
    split = len(message.tool_calls)
    update: dict[str, Any] = {"tool_calls": renamed[:split], "invalid_tool_calls": renamed[split:]}
    if isinstance(message.content, list):
        update["content"] = _renamed_blocks(message.content, entries)
    raw = message.additional_kwargs.get("tool_calls")
    if isinstance(raw, list):
        update["additional_kwargs"] = {**message.additional_kwargs, "tool_calls": _renamed_raw(raw, entries)}
    chunks = getattr(message, "tool_call_chunks", None)
    if chunks:
        update["tool_call_chunks"] = _renamed_chunks(chunks, entries)
    return message.model_copy(update=update)


def _new_ids(message: AIMessage, ids: Sequence[str | None], elsewhere: AbstractSet[str]) -> Iterator[str]:
    taken = elsewhere | {call_id for call_id in ids if call_id}
    seen = set(elsewhere)
    for position, call_id in enumerate(ids):
        if call_id and call_id not in seen:
            seen.add(call_id)
            yield call_id
            continue
        salt = 0
        while True:  # a provider could have used the very id we derive: then derive the next one
            new = "call_" + stable_id("call", message.id, str(position), str(salt)).replace("-", "")
            if new not in taken:
                break
            salt += 1
        taken |= {new}
        yield new


def _take(entries: list[_Entry], old: str | None, name: str | None, args: object) -> str | None:
    """The new id for a repetition of a call: the unused one with its old id that looks most like it."""
    found = [entry for entry in entries if not entry.used and entry.old == (old or "")]
    if not found:
        return None
    best = max(found, key=lambda entry: (entry.name == name, entry.args == args))
    best.used = True
    return best.new


def _reset(entries: list[_Entry]) -> None:
    for entry in entries:
        entry.used = False


def _renamed_blocks(blocks: list[str | dict[Any, Any]], entries: list[_Entry]) -> list[str | dict[Any, Any]]:
    _reset(entries)
    out: list[str | dict[Any, Any]] = []
    for block in blocks:
        key = _BLOCK_ID_KEYS.get(str(block.get("type"))) if isinstance(block, dict) else None
        if key is None:
            out.append(block)
            continue
        block = cast("dict[Any, Any]", block)
        args = block.get("input", block.get("args", loaded(block.get("arguments"))))
        new = _take(entries, block.get(key), block.get("name"), args)
        out.append(block if new is None else {**block, key: new})
    return out


def _renamed_raw(raw: list[Any], entries: list[_Entry]) -> list[Any]:
    _reset(entries)
    out: list[Any] = []
    for call in raw:
        new = None
        if isinstance(call, dict):
            function = call.get("function") or {}
            new = _take(entries, call.get("id"), function.get("name"), loaded(function.get("arguments")))
        out.append(call if new is None else {**call, "id": new})
    return out


def _renamed_chunks(chunks: list[Any], entries: list[_Entry]) -> list[Any]:
    _reset(entries)
    out: list[Any] = []
    for chunk in chunks:
        # A chunk without id and name continues the one before it: it needs no id.
        new = _take(entries, chunk.get("id"), chunk.get("name"), loaded(chunk.get("args")))
        out.append(chunk if new is None else {**chunk, "id": new})
    return out
