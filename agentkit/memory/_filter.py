r"""Filters of a search: read once, then answered in Python and in SQL with the same meaning.

    {"n": 3}                                equal; {"a": {"b": 3}} and {"a.b": 3} look inside, {"list.0": 3} too
    {"n": {"$gt": 9, "$lte": 20}}           $eq $ne $gt $gte $lt $lte $in $nin $exists
    {"$or": [{"n": 3}, {"n": 4}]}           $and $or

Numbers compare as numbers, strings by code point, and neither with the other. A key that is missing equals nothing,
is unequal to everything, is in no list, and is neither greater nor less. A dot in a key's own name is written `\.`.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.errors import DefinitionError, NotStorableError
from agentkit.memory._checks import check_json, to_json

_MISSING = object()
_ORDER: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "$gt": (">", operator.gt),
    "$gte": (">=", operator.ge),
    "$lt": ("<", operator.lt),
    "$lte": ("<=", operator.le),
}
_OPERATORS = ("$eq", "$ne", *_ORDER, "$in", "$nin", "$exists")


@dataclass(frozen=True, slots=True)
class Test:
    """One comparison at one path."""

    path: tuple[str, ...]
    operator: str
    operand: Any


@dataclass(frozen=True, slots=True)
class Group:
    """All of the parts, or any of them."""

    any: bool
    parts: tuple["Test | Group", ...]


Condition = Test | Group
EVERYTHING = Group(any=False, parts=())


def parse(given: Mapping[str, Any] | None) -> Condition:
    """The condition a filter stands for. Raises DefinitionError naming what is wrong with it, and where."""
    return _parse(given, ()) if given else EVERYTHING


def _parse(given: object, path: tuple[str, ...]) -> Condition:
    if not isinstance(given, Mapping):
        raise DefinitionError(f"filter{_at(path)} is a {type(given).__name__}; it must be a dict")
    return Group(any=False, parts=tuple(_parse_entry(key, value, path) for key, value in given.items()))


def _parse_entry(key: object, value: Any, path: tuple[str, ...]) -> Condition:
    if not isinstance(key, str):
        raise DefinitionError(f"filter{_at(path)} has the key {key!r}; keys are str")
    if key in ("$and", "$or"):
        if not isinstance(value, list | tuple) or not value:
            raise DefinitionError(f"filter{_at(path)}: {key} takes a list of filters, not {value!r}")
        return Group(any=key == "$or", parts=tuple(_parse(part, path) for part in value))
    if key.startswith("$"):
        raise DefinitionError(f"filter{_at(path)}: {key} is unknown here; {', '.join(_OPERATORS)} follow a key's name")
    inner = (*path, *_split(key))
    if not isinstance(value, Mapping) or not value:
        return _test(inner, "$eq", value)
    operators = [name for name in value if isinstance(name, str) and name.startswith("$")]
    if not operators:
        return _parse(value, inner)
    if len(operators) != len(value):
        raise DefinitionError(f"filter{_at(inner)} mixes operators and keys: {', '.join(map(str, value))}")
    return Group(any=False, parts=tuple(_test(inner, name, operand) for name, operand in value.items()))


def _split(key: str) -> list[str]:
    return [part.replace("\\.", ".") for part in re.split(r"(?<!\\)\.", key)]


def _at(path: Sequence[str]) -> str:
    return f" at {'.'.join(path)}" if path else ""


def _test(path: tuple[str, ...], name: str, operand: Any) -> Test:
    where = f"filter{_at(path)}"
    if name not in _OPERATORS:
        raise DefinitionError(f"{where}: unknown operator {name!r}; there are {', '.join(_OPERATORS)}, $and and $or")
    if name in _ORDER and (isinstance(operand, bool) or not isinstance(operand, int | float | str)):
        raise DefinitionError(f"{where}: {name} compares numbers and strings, not {operand!r}")
    if name in ("$in", "$nin") and not isinstance(operand, list | tuple | set | frozenset):
        raise DefinitionError(f"{where}: {name} takes a list, not {operand!r}")
    if name == "$exists" and not isinstance(operand, bool):
        raise DefinitionError(f"{where}: $exists takes True or False, not {operand!r}")
    operand = list(operand) if name in ("$in", "$nin") else operand
    try:
        check_json(operand, where)
        check_json(list(path), where)
    except NotStorableError as error:
        raise DefinitionError(str(error)) from error
    return Test(path, name, operand)


def matches(condition: Condition, value: Mapping[str, Any]) -> bool:
    """Whether a stored value fulfils the condition."""
    if isinstance(condition, Group):
        return (any if condition.any else all)(matches(part, value) for part in condition.parts)
    found = _look(value, condition.path)
    name, operand = condition.operator, condition.operand
    if name == "$exists":
        return (found is not _MISSING) is operand
    if name in _ORDER:
        return _same_kind(found, operand) and _ORDER[name][1](found, operand)
    if name in ("$eq", "$ne"):
        return _equal(found, operand) is (name == "$eq")
    return any(_equal(found, one) for one in operand) is (name == "$in")


def _look(value: Any, path: Sequence[str]) -> Any:
    for part in path:
        if isinstance(value, Mapping):
            value = value.get(part, _MISSING)
        elif isinstance(value, list) and part.isascii() and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return value


def _same_kind(found: Any, operand: Any) -> bool:
    if isinstance(operand, str):
        return isinstance(found, str)
    return isinstance(found, int | float) and not isinstance(found, bool)


def _equal(found: Any, wanted: Any) -> bool:
    """As JSON: True is no 1, 1 is 1.0."""
    if isinstance(wanted, bool) or isinstance(found, bool) or wanted is None:
        return found is wanted
    if isinstance(wanted, list | tuple):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(_equal(one, other) for one, other in zip(found, wanted, strict=True))
        )
    if isinstance(wanted, Mapping):
        return (
            isinstance(found, Mapping)
            and found.keys() == wanted.keys()
            and all(_equal(found[key], wanted[key]) for key in wanted)
        )
    return bool(found == wanted)


def to_sql(condition: Condition) -> tuple[str, list[Any]]:
    """The condition on `store.value`, and its parameters. Never NULL."""
    if isinstance(condition, Test):
        return _test_sql(condition)
    if not condition.parts:
        return "TRUE", []
    pieces, params = [], []
    for part in condition.parts:
        sql, more = to_sql(part)
        pieces.append(sql)
        params += more
    return "(" + (" OR " if condition.any else " AND ").join(pieces) + ")", params


def _test_sql(condition: Test) -> tuple[str, list[Any]]:
    path, name, operand = list(condition.path), condition.operator, condition.operand
    there = "store.value #> %s::text[]"
    if name == "$exists":
        return f"(({there}) IS {'NOT ' if operand else ''}NULL)", [path]
    if name == "$eq":
        return f"coalesce(({there}) = %s::jsonb, false)", [path, to_json(operand)]
    if name == "$ne":
        return f"(({there}) IS DISTINCT FROM %s::jsonb)", [path, to_json(operand)]
    if name in ("$in", "$nin"):
        negate = "NOT " if name == "$nin" else ""
        return f"{negate}coalesce(({there}) = ANY(%s::jsonb[]), false)", [path, [to_json(one) for one in operand]]
    text = "(store.value #>> %s::text[])"
    if isinstance(operand, str):
        kind, left, right = "string", f'{text} COLLATE "C"', "%s"
    else:
        kind, left, right = "number", f"{text}::numeric", "%s::numeric"
    compared = f"{left} {_ORDER[name][0]} {right}"
    return f"(CASE WHEN jsonb_typeof({there}) = '{kind}' THEN {compared} ELSE false END)", [path, path, str(operand)]
