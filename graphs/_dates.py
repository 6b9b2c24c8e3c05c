"""Dates and times of day, read from text and shown as text."""

import re
from datetime import date, datetime, timedelta

__all__ = ["day_of", "shown", "time_of_day"]

_RELATIVE = {"yesterday": -1, "today": 0, "tomorrow": 1}
_LAST_HOUR, _LAST_MINUTE, _NOON = 23, 59, 12


def shown(moment: datetime) -> str:
    """A moment with its weekday and zone."""
    return f"{moment:%H:%M on %A %Y-%m-%d} ({moment.tzinfo}, UTC{moment:%z})"


def time_of_day(text: str) -> tuple[int, int]:
    """Hour and minute.

    Raises:
        ValueError: the text is no time of day.
    """
    match = re.fullmatch(r"\s*(\d{1,2})(?::(\d{2}))?\s*(am|pm)?\s*", text, re.IGNORECASE)
    if match:
        hour, minute, half = int(match[1]), int(match[2] or 0), (match[3] or "").lower()
        if half and 1 <= hour <= _NOON:
            hour = hour % _NOON + (_NOON if half == "pm" else 0)
        if hour <= _LAST_HOUR and minute <= _LAST_MINUTE:
            return hour, minute
    raise ValueError(f"{text!r} is no time of day; write it like 9:30, 21:00 or 9 am")


def day_of(text: str, today: date | None = None) -> date:
    """The day that is meant: an ISO date, month and day of the next such day, or a word such as "today".

    Raises:
        ValueError: the text is no date.
    """
    today = today or datetime.now().astimezone().date()
    word = text.strip().lower()
    if word in _RELATIVE:
        return today + timedelta(days=_RELATIVE[word])
    try:
        if re.fullmatch(r"\d{1,2}-\d{1,2}", word):
            return _next(today, *map(int, word.split("-")))
        year, month, day = map(int, word.split("-"))
        return date(year, month, day)
    except ValueError:
        raise ValueError(f"{text!r} is no date; write it like 2026-12-25, 12-25 or today") from None


def _next(today: date, month: int, day: int) -> date:
    for year in range(today.year, today.year + 9):  # as far as the next leap day can be
        try:
            found = date(year, month, day)
        except ValueError:
            continue
        if found >= today:
            return found
    raise ValueError("there is no such day")
