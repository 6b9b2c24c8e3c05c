"""OpenAI's chat completions: what it refuses, and how it answers.

The wording of the refusals is OpenAI's where it was seen in public; where results are only out of order, which OpenAI
itself lets pass, the wording is ours.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from langchain_core.messages import AIMessage

from agentkit.testing.provider._refused import HttpError, Refused, items

PATH = "/v1/chat/completions"
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_LONGEST_ID = 40
_LONGEST_NAME = 64


def check(body: dict[str, Any]) -> None:
    """Refuse what OpenAI refuses.

    Raises:
        Refused: with OpenAI's message, param and code.
    """
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise Refused("Missing required parameter: 'messages'.", param="messages", code="missing_required_parameter")
    if not messages:
        raise _too_short("messages")
    _check_tools(body)
    for at, message in enumerate(messages):
        _check_message(at, message)
    _check_pairs(messages)


def _check_tools(body: dict[str, Any]) -> None:
    if "tools" not in body:
        if "tool_choice" in body:
            raise Refused("Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
        return
    if not body["tools"]:
        raise _too_short("tools")
    for at, tool in enumerate(body["tools"]):
        if tool.get("type") == "function":
            _check_name(f"tools[{at}].function.name", (tool.get("function") or {}).get("name"))


def _check_message(at: int, message: dict[str, Any]) -> None:
    where = f"messages[{at}]"
    if message.get("role") == "tool":
        if not message.get("tool_call_id"):
            raise _missing(f"{where}.tool_call_id")
        if message.get("content") is None:
            raise Refused("Invalid value for 'content': expected a string, got null.", param=f"messages.[{at}].content")
    if message.get("content") == []:
        raise _too_short(f"{where}.content")
    if message.get("tool_calls") == []:
        raise _too_short(f"{where}.tool_calls")
    for index, call in enumerate(items(message.get("tool_calls"))):
        path = f"{where}.tool_calls[{index}]"
        if call.get("id") is None:
            raise _missing(f"{path}.id")
        _check_length(f"{path}.id", call["id"], _LONGEST_ID)
        function = call.get("function") or {}
        _check_name(f"{path}.function.name", function.get("name"))
        if not isinstance(function.get("arguments"), str):
            raise _missing(f"{path}.function.arguments")


def _check_pairs(messages: list[dict[str, Any]]) -> None:
    at = 0
    while at < len(messages):
        message = messages[at]
        if message.get("role") == "tool":
            raise Refused(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
                "with 'tool_calls'.",
                param=f"messages.[{at}].role",
            )
        if message.get("role") == "assistant" and message.get("tool_calls"):
            at = _check_results(messages, at)
        else:
            at += 1


def _check_results(messages: list[dict[str, Any]], at: int) -> int:
    """Check the results of the calls in the message at `at`; where the next message stands."""
    ids = [call["id"] for call in messages[at]["tool_calls"]]
    for call_id in ids:
        if ids.count(call_id) > 1:
            raise Refused(
                f"Invalid parameter: Duplicate value for 'id' of '{call_id}' in 'tool_calls' of messages[{at}].",
                param=f"messages.[{at}].tool_calls",
            )
    found: list[str] = []
    end = at + 1
    while end < len(messages) and messages[end].get("role") == "tool":
        call_id = messages[end]["tool_call_id"]
        if call_id not in ids:
            raise Refused(
                f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of previous message.",
                param=f"messages.[{end}].tool_call_id",
            )
        if call_id in found:
            first = at + 1 + found.index(call_id)
            raise Refused(
                f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call_id}', "
                f"in messages[{first}] and messages[{end}].",
                param=f"messages.[{end}].tool_call_id",
            )
        found.append(call_id)
        end += 1
    if missing := [call_id for call_id in ids if call_id not in found]:
        raise Refused(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(missing)}",
            param=f"messages.[{end}].role",
        )
    if found != ids:
        raise Refused(
            f"Invalid parameter: tool messages are not in the order of 'tool_calls' of messages[{at}].",
            param=f"messages.[{at + 1}].tool_call_id",
        )
    return end


def _check_name(path: str, name: str | None) -> None:
    if name is None:
        raise _missing(path)
    if not _NAME.fullmatch(name):
        raise Refused(
            f"Invalid '{path}': string does not match pattern. "
            "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
            param=path,
            code="invalid_value",
        )
    _check_length(path, name, _LONGEST_NAME)


def _check_length(path: str, value: str, longest: int) -> None:
    if len(value) > longest:
        raise Refused(
            f"Invalid '{path}': string too long. Expected a string with maximum length {longest}, "
            f"but got a string with length {len(value)} instead.",
            param=path,
            code="string_above_max_length",
        )


def _missing(path: str) -> Refused:
    return Refused(f"Missing required parameter: '{path}'.", param=path, code="missing_required_parameter")


def _too_short(path: str) -> Refused:
    return Refused(
        f"Invalid '{path}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        param=path,
        code="empty_array",
    )


def refusal(refused: Refused) -> dict[str, Any]:
    """The body of a 400."""
    error = {"message": refused.message, "type": "invalid_request_error", "param": refused.param, "code": refused.code}
    return {"error": error}


def failure(error: HttpError) -> dict[str, Any]:
    """The body of another error."""
    return {"error": {"message": error.message, "type": error.kind, "param": None, "code": None}}


def whole(answer: AIMessage, number: int, body: dict[str, Any]) -> dict[str, Any]:
    """The answer as one body."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
    if made := _calls(answer):
        message["tool_calls"] = made
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if made else "stop"}
    return {**_head(number, body, "chat.completion"), "choices": [choice], "usage": _usage(answer)}


def events(answer: AIMessage, number: int, body: dict[str, Any]) -> Iterator[str]:
    """The answer as server-sent events."""
    head = _head(number, body, "chat.completion.chunk")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in re.split(r"(?<=\s)", answer.text) if word]
    made = _calls(answer)
    for index, call in enumerate(made):
        function = call["function"]
        args = function["arguments"]
        deltas.append({"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]})
        for part in (args[: len(args) // 2], args[len(args) // 2 :]):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    for delta in deltas:
        yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    finish = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if made else "stop"}
    yield _event({**head, "choices": [finish]})
    if (body.get("stream_options") or {}).get("include_usage"):
        yield _event({**head, "choices": [], "usage": _usage(answer)})
    yield "data: [DONE]\n\n"


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"


def _head(number: int, body: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": number, "model": body.get("model", "")}


def _calls(answer: AIMessage) -> list[dict[str, Any]]:
    made = [(call, json.dumps(call["args"])) for call in answer.tool_calls]
    broken = [(call, call.get("args") or "") for call in answer.invalid_tool_calls]
    return [
        {"id": call.get("id"), "type": "function", "function": {"name": call.get("name"), "arguments": args}}
        for call, args in [*made, *broken]
    ]


def _usage(answer: AIMessage) -> dict[str, int]:
    usage = answer.usage_metadata or {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["total_tokens"],
    }
