"""What the rehearsal model says: results put into a sentence, in the language of the question."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import ToolMessage

from agentkit.testing.rehearsal._clauses import KINDS

__all__ = ["Language", "answer", "language_of", "not_offered", "nothing_fits", "small_talk", "unread_note"]

Language = Literal["en", "ko", "zh"]
LABEL = "rehearsal model, no LLM: matches patterns"

_SENTENCES: dict[str, dict[Language, str]] = {
    "calculate": {"en": "{expression} = {result}", "ko": "{expression} = {result}", "zh": "{expression} = {result}"},
    "current_time": {
        "en": "In {place} it is {result}.",
        "ko": "{place}: 지금 {result}.",
        "zh": "{place}现在是 {result}。",
    },
    "convert_time": {"en": "That is {result}.", "ko": "{result}입니다.", "zh": "就是 {result}。"},
    "convert_units": {"en": "{result}.", "ko": "{result}입니다.", "zh": "{result}。"},
    "days_between": {"en": "{result}.", "ko": "{result}.", "zh": "{result}。"},
    "remember": {
        "en": "I will remember: {text} ({result}).",
        "ko": "기억할게요: {text} ({result}).",
        "zh": "我记住了：{text}（{result}）。",
    },
    "recall": {"en": "From memory:\n{result}", "ko": "기억하고 있는 것:\n{result}", "zh": "我记得：\n{result}"},
    "forget": {"en": "Done: {result}.", "ko": "지웠어요: {result}.", "zh": "已忘记：{result}。"},
    "add_todo": {"en": "On the list: {item}.", "ko": "할 일에 적었어요: {item}.", "zh": "已加入待办：{item}。"},
    "finish_todo": {"en": "{result}.", "ko": "끝냈어요: {item}.", "zh": "已完成：{item}。"},
    "show_todos": {"en": "To do:\n{result}", "ko": "할 일:\n{result}", "zh": "待办：\n{result}"},
    "timer": {"en": "{result}.", "ko": "{result}.", "zh": "{result}。"},
}
_ERRORS: dict[Language, str] = {
    "en": "{tool} did not work: {result}",
    "ko": "{tool} 호출이 실패했어요: {result}",
    "zh": "{tool} 没有成功：{result}",
}
_GREETINGS: dict[Language, tuple[str, str]] = {
    "en": (
        r"\b(?:hi|hello|hey|good (?:morning|evening|afternoon))\b",
        "Hello! What shall I look up, work out or remember?",
    ),
    "ko": (r"안녕|반가", "안녕하세요! 무엇을 계산하거나 기억해 드릴까요?"),
    "zh": (r"你好|您好|嗨", "你好！要我计算、查询还是记住什么？"),
}
_THANKS: dict[Language, tuple[str, str]] = {
    "en": (r"\bthank(?:s| you)\b", "You are welcome."),
    "ko": (r"고마|감사", "천만에요."),
    "zh": (r"谢谢|多谢", "不客气。"),
}
_LOST: dict[Language, str] = {
    "en": f"I am a {LABEL}. I understand sentences like these:",
    "ko": f"저는 연습용 모델이에요 ({LABEL}). 이런 문장을 알아들어요:",
    "zh": f"我是演练模型（{LABEL}）。我能看懂这样的句子：",
}
_UNREAD: dict[Language, str] = {
    "en": "I did not understand: {parts}",
    "ko": "이 부분은 알아듣지 못했어요: {parts}",
    "zh": "这部分我没看懂：{parts}",
}
_MISSING: dict[Language, str] = {
    "en": "That needs a tool I was not offered: {tools}",
    "ko": "그 일에 필요한 도구가 제공되지 않았어요: {tools}",
    "zh": "这需要未提供给我的工具：{tools}",
}


def language_of(text: str) -> Language:
    """Korean or Chinese where their letters occur, else English."""
    if re.search(r"[가-힣]", text):
        return "ko"
    return "zh" if re.search(r"[\u4e00-\u9fff]", text) else "en"


def answer(call: Mapping[str, Any], result: ToolMessage, language: Language) -> str:
    """One finished call as a sentence."""
    text = result.text.strip()
    if result.status == "error":
        return _ERRORS[language].format(tool=call["name"], result=text)
    sentence = _SENTENCES.get(call["name"], {}).get(language)
    if sentence is None:
        return f"{call['name']}: {text}"
    try:
        return sentence.format(**{**call["args"], "result": text})
    except (KeyError, IndexError):  # another tool of that name, with other arguments
        return f"{call['name']}: {text}"


def small_talk(text: str, language: Language) -> str | None:
    """An answer that needs no tool, if the text is a greeting or thanks."""
    for table in (_THANKS, _GREETINGS):
        pattern, reply = table[language]
        if re.search(pattern, text, re.IGNORECASE):
            return reply
    return None


def nothing_fits(offered: Mapping[str, Mapping[str, Any]], language: Language) -> str:
    """What the model can do, shown by examples for the tools it was offered."""
    examples = [kind.example for kind in KINDS if kind.tool in offered and kind.purpose in {"", *offered}]
    other = [name for name in offered if name not in {kind.tool for kind in KINDS}]
    examples += [_spelled(name, offered[name]) for name in other[:5]]
    return "\n".join([_LOST[language], *(f"- {example}" for example in examples or ["hello"])])


def _spelled(name: str, tool: Mapping[str, Any]) -> str:
    schema = tool.get("parameters") or {}
    wanted = schema.get("required") or list(schema.get("properties") or {})[:1]
    return f"call {name} {json.dumps(dict.fromkeys(wanted, '...'), ensure_ascii=False)}"


def not_offered(tools: Sequence[str], language: Language) -> str:
    """That a tool is missing."""
    return _MISSING[language].format(tools=", ".join(dict.fromkeys(tools)))


def unread_note(parts: Sequence[str], language: Language) -> str:
    """Which parts of the message fit no kind of sentence."""
    return _UNREAD[language].format(parts="; ".join(parts))
