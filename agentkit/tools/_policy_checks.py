"""Checks of a policy's values: each raises DefinitionError naming the field, the value and what to give instead."""

import math
from collections.abc import Callable, Iterable
from typing import cast

from agentkit.errors import DefinitionError

_SHOWN = 80  # characters of a wrong value


def _wrong(field: str, value: object, wanted: str) -> DefinitionError:
    shown = repr(value)[:_SHOWN]
    return DefinitionError(f"policy: {field}={shown} makes no sense; give {wanted}")


def number(
    field: str, value: object, *, above: float | None = None, least: float | None = None, none: str = ""
) -> None:
    """A finite number within bounds; None only where `none` says what it means."""
    if value is None and none:
        return
    wanted = f"a number of {f'more than {above}' if above is not None else f'at least {least}'}"
    wanted += f", or None {none}" if none else ""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong(field, value, wanted)
    if (above is not None and value <= above) or (least is not None and value < least):
        raise _wrong(field, value, wanted)


def whole(field: str, value: object, *, least: int, none: str = "") -> None:
    """A whole number of at least `least`; None only where `none` says what it means."""
    if value is None and none:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise _wrong(field, value, f"a whole number of at least {least}" + (f", or None {none}" if none else ""))


def choice(field: str, value: object, choices: tuple[str, ...], *, function: bool = False, none: bool = False) -> None:
    """One of some words, or a function or None where the field takes them."""
    if value is None and none:
        return
    if isinstance(value, str) and value in choices:
        return
    if function and callable(value) and not isinstance(value, type):
        return
    raise _wrong(field, value, ", ".join(map(repr, choices)) + (" or a function" if function else ""))


def flag(field: str, value: object) -> None:
    """True or False, nothing that is merely true or false."""
    if not isinstance(value, bool):
        raise _wrong(field, value, "True or False")


def name_of_group(field: str, value: object, *, limit: int | None) -> None:
    """None, or a name that comes with a limit."""
    if value is None:
        return
    if not isinstance(value, str) or not value:
        raise _wrong(field, value, "a name, or None")
    if limit is None:
        raise DefinitionError(f"policy: {field}={value!r} does nothing alone; add limit=, how many may run at once")


def exceptions(field: str, value: object) -> tuple[type[Exception], ...] | Callable[[Exception], bool]:
    """Exception classes as a tuple, or a function. A single class and any collection of classes are accepted."""
    wanted = "exception classes, or a function from the exception to bool"
    if isinstance(value, type):  # before functions, since a class is callable
        value = (value,)
    if callable(value):
        return cast("Callable[[Exception], bool]", value)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise _wrong(field, value, wanted)
    classes = tuple(value)
    if not all(isinstance(item, type) and issubclass(item, Exception) for item in classes):
        raise _wrong(field, value, wanted)
    return classes


def state_keys(field: str, value: object) -> tuple[str, ...]:
    """Names as a tuple."""
    if isinstance(value, str):
        raise _wrong(field, value, f"a tuple of state keys: writes=({value!r},)")
    keys = tuple(value) if isinstance(value, Iterable) else (None,)
    if not all(isinstance(key, str) and key for key in keys):
        raise _wrong(field, value, "a tuple of state keys")
    return cast("tuple[str, ...]", keys)
