"""Reducers for state that parallel calls write: what becomes of a key's value when it is written again.

    class State(TypedDict):
        notes: Annotated[list, append]
        best: Annotated[float | None, maximum]

A reducer gets the value so far and one write, and returns the new value; it changes neither. langgraph applies the
writes of one step in call order, whichever call finished first.

Except where a docstring says otherwise they are associative, `f(f(a, b), c) == f(a, f(b, c))`, so writes may be
combined before they are applied. A write of None changes nothing (with `last`, it is a value like any other).

langgraph starts a key with its type's empty value: `Annotated[int, maximum]` starts at 0, and
`Annotated[int | None, maximum]` with nothing, so that the first write is taken as it is.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar, cast, overload

from agentkit.errors import StateConflictError

__all__ = [
    "append",
    "append_unique",
    "counter",
    "first",
    "last",
    "maximum",
    "merge_dict",
    "minimum",
    "reject",
]

T = TypeVar("T")
Reducer = Callable[[Any, Any], Any]


def append(left: list[T] | None, right: list[T] | T | None) -> list[T]:
    """The list with the written items at its end, in call order.

    A list is added item by item, anything else as one item; to add a list as one item, write it inside a list.
    Associative.
    """
    return [*_items(left), *_items(right)]


def append_unique(left: list[T] | None, right: list[T] | T | None) -> list[T]:
    """Like `append`, without items that are there already; of equal items the first is kept, in its place.

    Items are compared by equality and need not be hashable (then it takes time quadratic in their number). Associative.
    """
    found: list[T] = []
    hashed: set[Hashable] = set()
    unhashable: list[T] = []
    for item in append(left, right):
        try:
            if item in hashed:
                continue
            if not unhashable or item not in unhashable:
                hashed.add(item)
                found.append(item)
        except TypeError:
            if item not in found:
                unhashable.append(item)
                found.append(item)
    return found


@overload
def merge_dict(*, deep: bool = False) -> Reducer: ...
@overload
def merge_dict(
    left: Mapping[str, Any] | None, right: Mapping[str, Any] | None, /, *, deep: bool = False
) -> dict[str, Any]: ...
def merge_dict(left: Any = ..., right: Any = ..., /, *, deep: bool = False) -> Any:
    """The dict with the written keys added; a key written twice gets the later value.

    Use it as `Annotated[dict, merge_dict]`, or as `Annotated[dict, merge_dict(deep=True)]`: then dicts within are
    merged in the same way instead of being replaced.

    Associative; with `deep`, as long as a key always holds dicts or never does (a dict that replaces another value, or
    is replaced by one, makes the grouping matter).
    """
    if left is ... and right is ...:
        return _merge_deep if deep else _merge_flat
    return _merge_deep(left, right) if deep else _merge_flat(left, right)


# The two are functions of this module, since langgraph tells reducers apart by identity and by name.
def _merge_flat(left: Mapping[str, Any] | None, right: Mapping[str, Any] | None) -> dict[str, Any]:
    return {**(left or {}), **(right or {})}


def _merge_deep(left: Mapping[str, Any] | None, right: Mapping[str, Any] | None) -> dict[str, Any]:
    merged = dict(left or {})
    for key, value in (right or {}).items():
        old = merged.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = _merge_deep(old, value) if both else value
    return merged


def counter(left: float | None, right: float | None) -> float:
    """The sum of all writes: each call writes what it adds. Ints stay ints.

    Associative for ints; floats are associative up to rounding.
    """
    return (left or 0) + (right or 0)


def maximum(left: T | None, right: T | None) -> T | None:
    """The largest value written; of equal ones the first. NaN counts as no value. Associative."""
    return _extreme(left, right, larger=True)


def minimum(left: T | None, right: T | None) -> T | None:
    """The smallest value written; of equal ones the first. NaN counts as no value. Associative."""
    return _extreme(left, right, larger=False)


def last(_left: T | None, right: T) -> T:
    """The value written last, in call order. Associative."""
    return right


def first(left: T | None, right: T | None) -> T | None:
    """The value written first; later writes are dropped.

    An empty value (None, "", 0, [], {}) counts as not written, since langgraph starts keys with one. Associative.
    """
    return left if _is_written(left) or right is None else right


def reject(left: T | None, right: T | None) -> T | None:
    """A value that is written once: writing an equal value again is nothing, writing another is an error.

    An empty value (None, "", 0, [], {}) counts as not written, since langgraph starts keys with one. Associative: if it
    is an error, it is one however the writes are grouped.

    Raises:
        StateConflictError: the key has another value already. The run fails.
    """
    if not _is_written(right) or left == right:
        return left
    if not _is_written(left):
        return right
    # the values stay out of the message: it may be logged where the state may not
    raise StateConflictError(
        f"a key that takes one value was written twice, with different values ({_kind(left)}, then {_kind(right)}); "
        "let one call write it, or give it another reducer, such as `last`"
    )


def _kind(value: object) -> str:
    return type(value).__name__


def _items(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _is_written(value: object) -> bool:
    """Not None and not empty; False is a value."""
    return value is False or bool(value)


def _extreme(left: T | None, right: T | None, *, larger: bool) -> T | None:
    if left is None or left != left:  # noqa: PLR0124 - NaN is what does not equal itself
        return left if right is None else right
    if right is None or right != right:  # noqa: PLR0124
        return left
    old, new = cast("Any", left), cast("Any", right)
    wins = new > old if larger else new < old
    return right if wins else left
