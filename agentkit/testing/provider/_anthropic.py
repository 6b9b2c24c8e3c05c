"""Anthropic's messages: what it refuses, and how it answers.

The wording of the refusals is Anthropic's where it was seen in public; where results are only out of order, which
Anthropic itself lets pass, the wording is ours.
"""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from langchain_core.messages import AIMessage

from agentkit.testing.provider._refused import HttpError, Refused, items

PATH = "/v1/messages"
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def check(body: dict[str, Any]) -> None:
    """Refuse what Anthropic refuses.

    Raises:
        Refused: with Anthropic's message.
    """
    for key in ("model", "max_tokens", "messages"):
        if key not in body:
            raise Refused(f"{key}: Field required")
    if not body["messages"]:
        raise Refused("messages: at least one message is required")
    _check_tools(body.get("tools") or [])
    for at, message in enumerate(body["messages"]):
        _check_message(at, message, last=at == len(body["messages"]) - 1)
    _check_pairs(_turns(body["messages"]))


def _check_tools(tools: list[dict[str, Any]]) -> None:
    names: set[str] = set()
    for at, tool in enumerate(tools):
        name = tool.get("name") or ""
        if tool.get("type", "custom") == "custom" and not _TOOL_NAME.fullmatch(name):
            raise Refused(f"tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if name in names:
            raise Refused("tools: Tool names must be unique.")
        names.add(name)


def _check_message(at: int, message: dict[str, Any], *, last: bool) -> None:
    role = message.get("role")
    if role not in {"user", "assistant"}:
        raise Refused(
            f'messages: Unexpected role "{role}". The Messages API accepts a top-level `system` parameter, '
            f'not "{role}" as an input message role.'
        )
    content = message.get("content")
    if not content and not (last and role == "assistant"):
        raise Refused(
            f"messages.{at}: all messages must have non-empty content except for the optional final assistant message"
        )
    for index, block in enumerate(items(content)):
        _check_block(f"messages.{at}.content.{index}", block)


def _check_block(where: str, block: dict[str, Any]) -> None:
    kind = block.get("type")
    if kind == "text" and not block.get("text"):
        raise Refused("messages: text content blocks must be non-empty")
    if kind == "tool_use":
        if not _ID.fullmatch(block.get("id") or ""):
            raise Refused(f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        if not _TOOL_NAME.fullmatch(block.get("name") or ""):
            raise Refused(f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if not isinstance(block.get("input"), dict):
            raise Refused(f"{where}.tool_use.input: Input should be a valid dictionary")
    if kind == "tool_result" and not _ID.fullmatch(block.get("tool_use_id") or ""):
        raise Refused(f"{where}.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'")


def _turns(messages: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Anthropic takes consecutive messages of one role for one."""
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for message in messages:
        content = message.get("content") or []
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], list(blocks)))
    return turns


def _check_pairs(turns: list[tuple[str, list[dict[str, Any]]]]) -> None:
    seen: set[str] = set()
    for at, (_, blocks) in enumerate(turns):
        for index, block in enumerate(blocks):
            if block.get("type") == "tool_use":
                if block["id"] in seen:
                    raise Refused(f"messages.{at}.content.{index}: `tool_use` ids must be unique")
                seen.add(block["id"])
    nothing: list[dict[str, Any]] = []
    before = [("", nothing), *turns]
    after = [*turns, ("", nothing)]
    for at, ((_, asked), (_, answered)) in enumerate(zip(before, after, strict=True)):
        _check_answers(at, [block["id"] for block in asked if block.get("type") == "tool_use"], answered)


def _check_answers(at: int, calls: list[str], blocks: list[dict[str, Any]]) -> None:
    """`blocks`, of message `at`, must begin with the results of `calls`, and have no others."""
    found: list[str] = []
    for index, block in enumerate(blocks):
        if block.get("type") != "tool_result":
            continue
        call_id = block["tool_use_id"]
        where = f"messages.{at}.content.{index}"
        if call_id not in calls:
            raise Refused(
                f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {call_id}. Each `tool_result` block "
                "must have a corresponding `tool_use` block in the previous message."
            )
        if call_id in found:
            raise Refused(
                f"{where}: each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {call_id}"
            )
        found.append(call_id)
    kinds = [block.get("type") == "tool_result" for block in blocks]
    text_first = any(later and not earlier for earlier, later in pairwise(kinds))
    if missing := calls if text_first else [call_id for call_id in calls if call_id not in found]:
        raise Refused(
            f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
            "message."
        )
    if found != calls:
        raise Refused(f"messages.{at}: `tool_result` blocks are not in the order of the `tool_use` blocks")


def refusal(refused: Refused) -> dict[str, Any]:
    """The body of a 400."""
    return failure(HttpError(status=400, message=refused.message, kind="invalid_request_error"))


def failure(error: HttpError) -> dict[str, Any]:
    """The body of another error."""
    return {"type": "error", "error": {"type": error.kind, "message": error.message}, "request_id": "req_local"}


def whole(answer: AIMessage, number: int, body: dict[str, Any]) -> dict[str, Any]:
    """The answer as one body."""
    blocks = [block for block, _ in _blocks(answer)]
    return {**_head(answer, number, body), "content": blocks, "stop_reason": _stop_reason(answer)}


def events(answer: AIMessage, number: int, body: dict[str, Any]) -> Iterator[str]:
    """The answer as server-sent events."""
    head = _head(answer, number, body)
    yield _event("message_start", message={**head, "content": [], "stop_reason": None})
    for index, (block, raw) in enumerate(_blocks(answer)):
        if block["type"] == "text":
            start: dict[str, Any] = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": word} for word in re.split(r"(?<=\s)", block["text"]) if word]
        else:
            start = {**block, "input": {}}
            half = len(raw) // 2
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in ("", raw[:half], raw[half:])]
        yield _event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    stop = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage=head["usage"])
    yield _event("message_stop")


def _event(kind: str, **data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"


def _head(answer: AIMessage, number: int, body: dict[str, Any]) -> dict[str, Any]:
    usage = answer.usage_metadata or {"input_tokens": 0, "output_tokens": 0}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "stop_sequence": None,
        "usage": {"input_tokens": usage["input_tokens"], "output_tokens": usage["output_tokens"]},
    }


def _stop_reason(answer: AIMessage) -> str:
    return "tool_use" if answer.tool_calls or answer.invalid_tool_calls else "end_turn"


def _blocks(answer: AIMessage) -> Iterator[tuple[dict[str, Any], str]]:
    """The blocks of the answer, each with the text its input is streamed as."""
    if answer.text:
        yield {"type": "text", "text": answer.text}, ""
    for call in answer.tool_calls:
        block = {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]}
        yield block, json.dumps(call["args"])
    for broken in answer.invalid_tool_calls:
        block = {"type": "tool_use", "id": broken.get("id"), "name": broken.get("name"), "input": {}}
        yield block, broken.get("args") or ""
