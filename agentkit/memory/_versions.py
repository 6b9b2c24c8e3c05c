"""Versions of channels: short ones, since a checkpoint names a dozen of them.

The official savers write `00000000000000000000000000000042.0.8531…`, 51 characters. Ours are 14: a space, seven digits,
a dot, and five random letters that keep forks apart. The space sorts before every digit. So where an official saver
goes on with a thread, its versions are greater than ours, as they must be; and with theirs, we keep their form.
"""

import random

_MOST = 10**7  # from here on seven digits are too few, and the official form takes over, which sorts after ours
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


def next_version(current: str | int | None) -> str:
    """A version greater than `current`."""
    if current is None:
        return _short(1)
    if isinstance(current, int):
        return _official(current + 1)
    number = int(current.split(".", 1)[0]) + 1
    return _short(number) if current.startswith(" ") and number < _MOST else _official(number)


def _short(number: int) -> str:
    return f" {number:07}.{''.join(random.choices(_LETTERS, k=5))}"


def _official(number: int) -> str:
    return f"{number:032}.{random.random():016}"
