"""The rehearsal model's turn, as a function of the history and the tools it was offered."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.messages.tool import tool_call

from agentkit.testing.rehearsal import _answers
from agentkit.testing.rehearsal._clauses import understand
from agentkit.testing.rehearsal._kind import Want

__all__ = ["reply"]

_SPELLED_OUT = re.compile(r"^\s*(?:call|use|run)\s+([A-Za-z0-9_-]+)\s*(\{.*\})?\s*$", re.DOTALL)
_MEMORY = re.compile(r"^\[(\w+)[^\]]*\]\s*(.*)$", re.MULTILINE)  # a line of what `recall` answers


@dataclass(frozen=True, kw_only=True)
class _Question:
    """The last human message, and what has come of it so far."""

    text: str
    offered: Mapping[str, Mapping[str, Any]]
    wants: tuple[Want, ...]
    unread: tuple[str, ...]
    done: tuple[tuple[ToolCall, ToolMessage], ...]

    def possible(self, want: Want) -> bool:
        return want.tool in self.offered and (not want.purpose or want.purpose in self.offered)

    def missing(self) -> list[str]:
        return [want.purpose or want.tool for want in self.wants if not self.possible(want)]


def reply(messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]]) -> AIMessage:
    """The next AI message: the calls that the last question asks for, or what came of them."""
    question = _question(messages, {tool["function"]["name"]: tool["function"] for tool in tools if "function" in tool})
    if not question.done:
        return _first(question)
    forgotten = _forgetting(question)
    return forgotten or AIMessage("\n".join(_lines(question)))


def _question(messages: Sequence[BaseMessage], offered: Mapping[str, Mapping[str, Any]]) -> _Question:
    last = max((index for index, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    text = messages[last].text if last >= 0 else ""
    results = {m.tool_call_id: m for m in messages[last + 1 :] if isinstance(m, ToolMessage)}
    calls = [call for m in messages[last + 1 :] if isinstance(m, AIMessage) for call in m.tool_calls]
    spelled = _spelled_out(text, offered)
    understood = understand(text)
    return _Question(
        text=text,
        offered=offered,
        wants=spelled or understood.wants,
        unread=() if spelled else tuple(part for part in understood.unread if not _talk(part)),
        done=tuple((call, results[call["id"]]) for call in calls if call["id"] in results),
    )


def _spelled_out(text: str, offered: Mapping[str, Mapping[str, Any]]) -> tuple[Want, ...]:
    """`call NAME {"argument": "value"}` is a call of any tool that is offered."""
    match = _SPELLED_OUT.match(text)
    if not match or match[1] not in offered:
        return ()
    try:
        args = json.loads(match[2] or "{}")
    except ValueError:
        return ()
    return (Want(tool=match[1], args=args),)


def _talk(text: str) -> str | None:
    return _answers.small_talk(text, _answers.language_of(text))


def _call(name: str, args: Mapping[str, Any]) -> ToolCall:
    return tool_call(name=name, args=dict(args), id=f"call_{uuid4().hex[:16]}")


def _first(question: _Question) -> AIMessage:
    language = _answers.language_of(question.text)
    if calls := [_call(want.tool, want.args) for want in question.wants if question.possible(want)]:
        return AIMessage("", tool_calls=calls)
    lines = [_answers.not_offered(question.missing(), language)] if question.wants else []
    talk = None if question.wants else _talk(question.text)
    if talk or not lines or question.offered:
        lines.append(talk or _answers.nothing_fits(question.offered, language))
    return AIMessage("\n".join(lines))


def _forgetting(question: _Question) -> AIMessage | None:
    """The second step of forgetting: calls of `forget` for the memories that the first step found."""
    sought = [
        str(want.args["query"]) for want in question.wants if want.purpose == "forget" and question.possible(want)
    ]
    if not sought or any(call["name"] == "forget" for call, _ in question.done):
        return None
    memories = {
        key: text
        for call, result in question.done
        if call["name"] == "recall"
        for key, text in _MEMORY.findall(result.text)
    }
    keys = [key for key, text in memories.items() if any(_about(text, query) for query in sought)]
    argument = next(iter(question.offered["forget"].get("parameters", {}).get("properties", {})), "memory_id")
    return AIMessage("", tool_calls=[_call("forget", {argument: key}) for key in keys]) if keys else None


def _about(text: str, query: str) -> bool:
    """Whether a memory is what the query means: all words of the shorter one are in the other; "" means everything."""
    words, known = set(re.findall(r"\w+", query.lower())), set(re.findall(r"\w+", text.lower()))
    return not words or words <= known or query.lower() in text.lower() or text.lower() in query.lower()


def _lines(question: _Question) -> list[str]:
    language = _answers.language_of(question.text)
    forgot = any(call["name"] == "forget" for call, _ in question.done)
    shown = [(call, result) for call, result in question.done if not (forgot and call["name"] == "recall")]
    lines = [_answers.answer(call, result, language) for call, result in shown]
    if missing := question.missing():
        lines.append(_answers.not_offered(missing, language))
    if question.unread:
        lines.append(_answers.unread_note(question.unread, language))
    return lines
