"""Interrupts in the terminal: what a graph asks, and how a typed line answers it."""

import json
from collections.abc import Mapping
from typing import Any

from langgraph.types import Interrupt

__all__ = ["Questions"]

_YES = {"y", "yes", "ok", "approve", "네", "예", "是", "好"}


class Questions:
    """The open interrupts of a thread, asked one at a time; when all are answered, `answers` resumes the graph."""

    def __init__(self, interrupts: list[Interrupt]) -> None:
        self._open = [step for interrupt in interrupts for step in _steps(interrupt)]
        self._wanted = {interrupt.id: interrupt.value for interrupt in interrupts}
        self._given: dict[str, list[Any]] = {interrupt.id: [] for interrupt in interrupts}

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def text(self) -> str:
        """The question that is next."""
        return self._open[0][1]

    def answer(self, line: str) -> None:
        """Take a line as the answer to the question that is next."""
        interrupt_id, _ = self._open.pop(0)
        self._given[interrupt_id].append(_read(self._wanted[interrupt_id], line))

    @property
    def answers(self) -> dict[str, Any]:
        """By interrupt id, in the shape that each asks for."""
        return {key: _shaped(self._wanted[key], given) for key, given in self._given.items()}


def _steps(interrupt: Interrupt) -> list[tuple[str, str]]:
    value = interrupt.value
    if _is_approval(value):
        return [
            (
                interrupt.id,
                f"run {each.get('name')}({json.dumps(each.get('args'), ensure_ascii=False, default=str)})? [y/n]",
            )
            for each in value["action_requests"]
        ]
    if _is_headless(value):
        call = _headless(value)
        args = json.dumps(call.get("args"), ensure_ascii=False, default=str)
        return [(interrupt.id, f"{call.get('name')}({args}) runs in your client; type its result (text or JSON)")]
    return [(interrupt.id, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))]


def _read(value: Any, line: str) -> Any:
    if _is_approval(value):
        if line.strip().lower() in _YES:
            return {"type": "approve"}
        reason = "" if line.strip().lower() in {"n", "no", "아니오", "否", "不"} else line.strip()
        return {"type": "reject", "message": reason or "the user declined"}
    try:
        return json.loads(line) if _is_headless(value) else line
    except ValueError:
        return line


def _shaped(value: Any, given: list[Any]) -> Any:
    if _is_approval(value):
        return {"decisions": given}
    if _is_headless(value):
        call_id = _headless(value).get("id")
        return {call_id: given[0]} if call_id else given[0]
    return given[0]


def _is_approval(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("action_requests"), list)


def _is_headless(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("type") == "tool" and isinstance(_headless(value), Mapping)


def _headless(value: Mapping[str, Any]) -> Any:
    return value.get("toolCall") or value.get("tool_call")
