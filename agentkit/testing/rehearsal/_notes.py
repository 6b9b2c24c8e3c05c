"""Sentences about what to remember, what to do and how long to wait."""

import re
from typing import Any

from agentkit.testing.rehearsal._kind import Kind, Reader, patterns

__all__ = ["KINDS"]

_LIST = r"(?:to-?\s?do(?:\s+list)?|task list|shopping list|list of tasks|tasks|list)"
_LIST_KO = r"할\s*일(?:\s*목록)?"
_LIST_ZH = r"(?:我的)?(?:待办(?:事项|清单|列表)?|任务(?:清单|列表)?|清单)"
_MYSELF = {"", "me", "myself", "my preferences", "i", "나", "저", "내", "제", "我", "我的", "everything", "anything"}


def _clean(text: str) -> str:
    return text.strip(" \t.,;:!?。，：；！？'\"")


def _taking(name: str) -> Reader:
    """Reads the first group that matched as the argument `name`."""

    def read(match: re.Match[str]) -> list[dict[str, Any]]:
        text = _clean(next((group for group in match.groups() if group), ""))
        return [{name: text}] if text else []

    return read


def _whole(match: re.Match[str]) -> list[dict[str, Any]]:
    return [{"text": _clean(match[0])}]


def _query(match: re.Match[str]) -> list[dict[str, Any]]:
    text = _clean(next((group for group in match.groups() if group), ""))
    return [{"query": "" if text.lower() in _MYSELF else text}]


def _nothing(_match: re.Match[str]) -> list[dict[str, Any]]:
    return [{}]


def _seconds(match: re.Match[str]) -> list[dict[str, Any]]:
    number, unit = match[1], (match[2] or "s").lower()
    factor = 60 if unit.startswith(("m", "분", "分")) else 1
    return [{"seconds": float(number) * factor}]


_item = _taking("item")
_text = _taking("text")

KINDS = (
    Kind(
        tool="recall",
        purpose="forget",
        example="forget that I like tea",
        rules=patterns(
            (r"(?<!don't )(?<!do not )(?<!never )\bforget\s+(?:that\s+|about\s+|what i said about\s+)?(.+)", _query),
            (r"(.+?)(?:라는|다는|는|은)?\s*(?:것|거|걸|사실)?(?:을|를|은|는)?\s*잊어", _query),
            (r"(?:忘记|忘掉|忘了)(.+)", _query),
        ),
        greedy=True,
    ),
    Kind(
        tool="add_todo",
        example="add milk to my to-do list",
        rules=patterns(
            (rf"\b(?:add|put)\s+(.+?)\s+(?:to|on|onto|in)\s+(?:my|the|our)?\s*{_LIST}\b", _item),
            (r"\bto-?do:\s*(.+)", _item),
            (r"\bremind me to\s+(.+)", _item),
            (rf"{_LIST_KO}에\s*(.+?)(?:을|를)?\s*(?:추가|넣|적어)", _item),
            (rf"(.+?)(?:을|를)?\s*{_LIST_KO}에\s*(?:추가|넣|적어)", _item),
            (rf"[把将](.+?)(?:添加|加|放|记)(?:到|入|进|在)?{_LIST_ZH}", _item),
            (rf"(?:添加|新增|加一个|加个)(?:新的)?{_LIST_ZH}[:：]?\s*(.+)", _item),
            (r"提醒我(.+)", _item),
        ),
        greedy=True,
    ),
    Kind(
        tool="finish_todo",
        example="mark milk as done",
        rules=patterns(
            (r"\bmark\s+(.+?)\s+(?:as\s+)?(?:done|finished|completed)\b", _item),
            (rf"\b(?:check|tick|cross)\s+off\s+(.+?)(?:\s+(?:from|on)\s+(?:my|the)\s+{_LIST})?\s*[.!]?$", _item),
            (r"\b(?:check|tick|cross)\s+(.+?)\s+off\b", _item),
            (r"\bi(?:'ve| have)?\s+(?:finished|completed)\s+(.+)", _item),
            (r"(.+?)(?:을|를|은|는)?\s*(?:끝냈|다\s*했|완료)", _item),
            (r"[把将](.+?)(?:标记|标)[为成](?:已)?完成", _item),
            (r"(?:做完|完成)了(.+)", _item),
            (r"(.+?)(?:做完|完成)了", _item),
        ),
        greedy=True,
    ),
    Kind(
        tool="show_todos",
        example="what is on my to-do list?",
        rules=patterns(
            (rf"\b(?:show|what|list|read|see)\b.*\b{_LIST}\b", _nothing),
            (rf"{_LIST_KO}.*(?:보여|뭐|무엇|알려|있)", _nothing),
            (rf"(?:显示|看看|查看|看一下|列出|有什么|有哪些).*{_LIST_ZH}|{_LIST_ZH}.*(?:什么|哪些)", _nothing),
        ),
    ),
    Kind(
        tool="timer",
        example="set a timer for 5 seconds",
        rules=patterns(
            (
                r"\b(?:timer|wait|count(?:\s*down)?)\b\D*(\d+(?:\.\d+)?)[\s-]*(s|secs?|seconds?|m|mins?|minutes?)?\b",
                _seconds,
            ),
            (r"\b(\d+(?:\.\d+)?)[\s-]*(s|secs?|seconds?|m|mins?|minutes?)[\s-]+timer", _seconds),
            (r"(\d+(?:\.\d+)?)\s*(초|분)\s*(?:동안\s*)?(?:타이머|기다|세어)", _seconds),
            (r"타이머\D*(\d+(?:\.\d+)?)\s*(초|분)", _seconds),
            (r"(?:等|倒计时|计时|定时)\D*(\d+(?:\.\d+)?)\s*(秒|分钟?)", _seconds),
            (r"(\d+(?:\.\d+)?)\s*(秒|分钟?)的?(?:倒计时|计时|定时)", _seconds),
        ),
    ),
    Kind(
        tool="recall",
        example="what do you know about me?",
        rules=patterns(
            (
                r"\bwhat (?:do|did|can) (?:you|i) (?:know|remember|tell you|recall)(?:\s+about\s+(.+?))?\s*(?:[?.!]|$)",
                _query,
            ),
            (r"\bdo you (?:know|remember)\s+(?:anything about\s+|about\s+)?(.+)", _query),
            (r"\b(?:what do i (?:like|prefer|love)|what(?:'s| is) my name|who am i)\b", _query),
            (r"(\S+?)에\s*(?:대해|관해)\S*\s*.*(?:알|기억)", _query),
            (r"(?:뭘|뭐를?|무엇을)\s*.*(?:알고|기억)", _query),
            (r"关于(.+?)你?(?:都)?(?:知道|记得|了解)", _query),
            (r"(?:知道|了解|记得)(.+?)(?:的)?(?:什么|哪些|吗)", _query),
        ),
    ),
    Kind(
        tool="remember",
        example="remember that I like tea",
        rules=patterns(
            (r"\b(?:remember|note|keep in mind|don't forget|do not forget)(?:\s+that\b|\s*:)?\s+(.+)", _text),
            (r"^\W*(?:my name is|call me)\b.+", _whole),
            (r"^\W*i (?:really )?(?:like|love|prefer|hate|live in|work as|am allergic to)\b.+", _whole),
            (r"기억해\s*(?:줘|주세요|둬|두세요)?\s*[:,]\s*(.+)", _text),
            (
                r"(.+?)(?:라는|다는|는)?\s*(?:것|거|걸)?(?:을|를|이라고|라고|고)?\s*(?:기억|메모)\s*(?:해|하세요|하라)",
                _text,
            ),
            (r"^\W*(?:내|제)\s*이름은\s*.+|^\W*(?:나는|저는|난|전)\s*.+(?:좋아|싫어|살아|삽니다)\S*", _whole),
            (r"(?:记住|记下|记得|记一下|记着)[:：，,]?\s*(.+)", _text),
            (r"^\W*我(?:叫|喜欢|爱|讨厌|住在|更喜欢).+", _whole),
        ),
        greedy=True,
    ),
)
