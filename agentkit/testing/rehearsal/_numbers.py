"""Sentences about numbers, units, dates and times."""

import re
from typing import Any

from agentkit.testing.rehearsal._kind import Kind, patterns

__all__ = ["KINDS"]

_NUM = r"(-?\d+(?:[.,]\d+)?)"
_UNIT = r"(°?[a-z][a-z/°²³]*\d?(?:[ _](?:miles?|foot|feet|met(?:er|re)s?|ounces?|per hour))?)"
_UNIT_KO = r"(°?[a-z가-힣][a-z가-힣/]*?)"
_UNIT_ZH = r"(°?[a-z\u4e00-\u9fff][a-z\u4e00-\u9fff/]*?)"
_DATE = (
    r"((?:\d{4}-)?\d{1,2}-\d{1,2}|\d{1,2}\s*월\s*\d{1,2}\s*일|\d{1,2}月\d{1,2}[日号]"
    r"|christmas|new year|크리스마스|圣诞节?)"
)
_CLOCK = r"(\d{1,2}(?::\d{2})?\s*(?:am|pm)?)"
_ONE = r"(an?\s|one\s|\d+(?:\.\d+)?)?"
_ARE = r"(?:are|is|in|make)(?: there)?(?: in)?"
_NOW_KO = r"(?:지금|현재)?"
_WHEN_KO = r"(?:은|는|의|에서|에)?\s*(?:지금|현재)?\s*(?:몇\s*시|시간|시각)"
_AROUND_ZH = re.compile(r"^(?:请问|告诉我|现在|目前|那边)+|(?:现在|目前|那边|当地|的|是)+$")
_HOUR_KO = r"(오전|오후)?\s*(\d{1,2})\s*시\s*(?:(\d{1,2})\s*분)?\s*(?:이?면|일\s*때|이고)"
_HOUR_ZH = r"(上午|下午|晚上)?(\d{1,2})[点:：](\d{2})?分?(?:的时候|时)?"
_NOON = 12
_END_KO = r"(?=이야|야|이에요|예요|인가요|인지|입니까|일까|이지|\s|[?.!]|$)"
_CJK = r"[\u4e00-\u9fff]"

_WORDS = {
    r"\bto the power of\b": "**",
    r"\bsquare root of\s+(\d+(?:\.\d+)?)": r"sqrt(\1)",
    r"\bsquared\b": "**2",
    r"\b(?:plus)\b|더하기|加上?": "+",
    r"\b(?:minus)\b|빼기|减去?": "-",
    r"\b(?:times|multiplied by)\b|곱하기|乘以?|(?<=\d)\s*x\s*(?=\d)": "*",
    r"\b(?:divided by|over)\b|나누기|除以": "/",
}
_FUNCTIONS = r"sqrt|sin|cos|tan|ln|log2|log|exp|abs|factorial|round|floor|ceil|pi"
_SUM = re.compile(
    rf"[-+(]*(?:\d|(?:{_FUNCTIONS})\b)(?:[\d\s.,+\-*/×÷^%()（）]|\b(?:{_FUNCTIONS}|of)\b)*", re.IGNORECASE
)
_AND = re.compile(r",\s*|\s+and\s+(?:in\s+)?|\s*&\s*|(?<=[가-힣])(?:와|과|이랑|랑|하고)\s+|[、和与]", re.IGNORECASE)
_LATER = re.compile(r"(?:\s+(?:right now|now|time|today))+$", re.IGNORECASE)
_OPERATION = re.compile(rf"[\d)%]\s*[-+*/×÷^%]|(?:{_FUNCTIONS})\s*\(|%\s*of", re.IGNORECASE)


def _sums(match: re.Match[str]) -> list[dict[str, Any]]:
    text = match[0]
    for words, sign in _WORDS.items():
        text = re.sub(words, sign, text, flags=re.IGNORECASE)
    found = (part[0].strip(" ,.") for part in _SUM.finditer(text))
    return [{"expression": part} for part in found if _OPERATION.search(part) and part.count("(") == part.count(")")]


def _conversion(match: re.Match[str]) -> list[dict[str, Any]]:
    value, source, target = match.groups()
    return [{"value": float(value.replace(",", "")), "from_unit": source, "to_unit": target}]


def _asked_conversion(match: re.Match[str]) -> list[dict[str, Any]]:
    target, value, source = match.groups()
    number = 1.0 if not value or value.strip() in {"a", "an", "one"} else float(value)
    return [{"value": number, "from_unit": source, "to_unit": target}]


def _places(text: str | None) -> list[str]:
    parts = (_AROUND_ZH.sub("", _LATER.sub("", part.strip(" ?!.，,'\""))) for part in _AND.split(text or ""))
    return [re.sub(r"^the\s+", "", part) for part in parts if part]


def _times(match: re.Match[str]) -> list[dict[str, Any]]:
    return [{"place": place} for place in _places(match["places"])]


def _here(_match: re.Match[str]) -> list[dict[str, Any]]:
    return [{"place": "here"}]


def _clock(match: re.Match[str]) -> list[dict[str, Any]]:
    clock, source, target = (group.strip(" ,?") for group in match.groups())
    return [{"time": clock, "from_place": source, "to_place": target}] if source and target else []


def _clock_after_place(match: re.Match[str]) -> list[dict[str, Any]]:
    source, half, hour, minute, target = match.groups()
    later = _NOON if half in {"오후", "下午", "晚上"} and int(hour) < _NOON else 0
    return [{"time": f"{int(hour) + later}:{int(minute or 0):02}", "from_place": source, "to_place": target}]


def _date(text: str) -> str:
    if re.fullmatch(r"christmas|크리스마스|圣诞节?", text, re.IGNORECASE):
        return "12-25"
    if text.lower() == "new year":
        return "01-01"
    if re.fullmatch(r"[\d-]+", text):
        return text
    return "-".join(number.zfill(2) for number in re.findall(r"\d+", text))  # month and day


def _until(match: re.Match[str]) -> list[dict[str, Any]]:
    return [{"start": "today", "end": _date(match[1])}]


def _since(match: re.Match[str]) -> list[dict[str, Any]]:
    return [{"start": _date(match[1]), "end": "today"}]


def _between(match: re.Match[str]) -> list[dict[str, Any]]:
    return [{"start": _date(match[1]), "end": _date(match[2])}]


KINDS = (
    Kind(
        tool="days_between",
        example="how many days until 2027-01-01?",
        rules=patterns(
            (rf"(?:from|between)\s+{_DATE}\s+(?:to|and|until|till)\s+{_DATE}", _between),
            (rf"days?\b.*?\b(?:until|till|to|before)\s+{_DATE}", _until),
            (rf"days?\b.*?\bsince\s+{_DATE}", _since),
            (rf"{_DATE}부터\s*{_DATE}까지", _between),
            (rf"{_DATE}까지", _until),
            (rf"从\s*{_DATE}\s*到\s*{_DATE}", _between),
            (rf"{_DATE}(?:还有|有|还剩)?(?:多少|几)天", _until),
        ),
        greedy=True,
    ),
    Kind(
        tool="convert_time",
        example="what is 9:00 in Seoul in London time?",
        rules=patterns(
            (rf"{_CLOCK}\s+in\s+([a-z .]+?),?\s+what time is it in\s+([a-z .]+)", _clock),
            (rf"{_CLOCK}\s+in\s+([a-z .]+?)\s+(?:in|to|as)\s+([a-z .]+?)(?:\s+time)?\s*(?:\?|$)", _clock),
            (rf"(\S+?)(?:이|가|은|는|에서)?\s*{_HOUR_KO}\s*(\S+?)(?:은|는|에서)?\s*몇\s*시", _clock_after_place),
            (rf"({_CJK}+?){_HOUR_ZH}[，,]?\s*({_CJK}+?)(?:是|现在)?几点", _clock_after_place),
        ),
        greedy=True,
    ),
    Kind(
        tool="convert_units",
        example="convert 5 km to miles",
        rules=patterns(
            (rf"{_NUM}\s*(?!(?:am|pm)\b){_UNIT}\s+(?:to|in|into|as)\s+{_UNIT}\s*(?:[?.!,]|$)", _conversion),
            (rf"how (?:many|much)\s+{_UNIT}\s+{_ARE}\s+{_ONE}\s*{_UNIT}", _asked_conversion),
            (rf"{_NUM}\s*{_UNIT_KO}(?:은|는|이|가|이면|면)?\s*몇\s*{_UNIT_KO}{_END_KO}", _conversion),
            (rf"{_NUM}\s*{_UNIT_KO}(?:을|를)?\s*{_UNIT_KO}(?:으로|로)", _conversion),
            (rf"{_NUM}\s*{_UNIT_ZH}(?:等于|是|合|有)?(?:多少|几){_UNIT_ZH}(?=[?？吧呢]|$)", _conversion),
            (rf"{_NUM}\s*{_UNIT_ZH}(?:换算|转换|换|转)[成为到]{_UNIT_ZH}(?=[?？吧呢]|$)", _conversion),
        ),
    ),
    Kind(
        tool="current_time",
        example="what time is it in Seoul and Tokyo?",
        rules=patterns(
            (r"\b(?:time|date|day|clock)\b.*?\b(?:in|at)\s+(?P<places>[^\W\d][^?!.]*)", _times),
            (
                r"\bwhat(?:'s| is)? (?:the )?(?:time|date|day)(?: is it)?(?: (?:right )?now| today)?\s*(?:[?.!]|$)",
                _here,
            ),
            (r"\btoday'?s date\b|\bthe time now\b|\bthe time\s*(?:[?.!]|$)", _here),
            (rf"^\W*{_NOW_KO}\s*몇\s*시|오늘(?:은|이)?\s*(?:며칠|무슨\s*요일|날짜)", _here),
            (rf"{_NOW_KO}\s*(?P<places>[가-힣a-z][가-힣a-z, ]*?){_WHEN_KO}", _times),
            (r"^\W*(?:请问)?(?:现在|目前)?(?:是)?几点|今天(?:是)?(?:几号|星期几|周几)", _here),
            (rf"(?P<places>{_CJK}[\u4e00-\u9fff、，]*?)(?:几点|什么时间|时间)", _times),
        ),
        greedy=True,
    ),
    Kind(tool="calculate", example="what is 12*7?", rules=patterns((r".*\d.*", _sums))),
)
