"""What a store accepts, checked in one place before anything is written, for every store and every path."""

import json
import math
from collections.abc import Sequence
from typing import Any

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    Op,
    PutOp,
    SearchOp,
    validate_op_namespace,
)

from agentkit.errors import DefinitionError, NotStorableError

LONGEST_KEY = 2000  # bytes of namespace and key together: what fits an index entry of Postgres
SEPARATOR = "."


def check_op(op: Op) -> None:
    """Raises an error of what is wrong with the operation: namespace, key, value, lifetime, limits."""
    if isinstance(op, PutOp):
        check_namespace(op.namespace, write=True)
        check_key(op.namespace, op.key)
        if op.value is not None:
            check_value(op.value)
        _check_ttl(op.ttl)
        _check_index(op.index)
    elif isinstance(op, GetOp):
        check_namespace(op.namespace)
        check_key(op.namespace, op.key)
    elif isinstance(op, SearchOp):
        check_namespace(op.namespace_prefix)
        check_window(op.limit, op.offset)
        if op.query is not None and not isinstance(op.query, str):
            raise DefinitionError(f"a query is a str, not a {type(op.query).__name__}")
    elif isinstance(op, ListNamespacesOp):
        check_window(op.limit, op.offset)
        if op.max_depth is not None and op.max_depth < 1:
            raise DefinitionError(f"max_depth is {op.max_depth}; it must be 1 or more")
        for condition in op.match_conditions or ():
            check_namespace(tuple(condition.path))
    else:
        raise DefinitionError(f"{type(op).__name__} is no operation of a store")


def check_namespace(namespace: object, *, write: bool = False) -> None:
    """A namespace is a tuple of non-empty strings without dots; not empty, nor langgraph's own, where one writes."""
    if not isinstance(namespace, tuple):
        raise InvalidNamespaceError(f"a namespace is a tuple of str, e.g. ('notes', 'ann'), not {namespace!r}")
    validate_op_namespace(GetOp(namespace, ""))
    if not all(_is_text(label) for label in namespace):
        raise InvalidNamespaceError(f"the namespace {namespace!r} contains half a character; remove it")
    if write and not namespace:
        raise InvalidNamespaceError("the namespace is empty; an item needs one")
    if write and namespace[0] == "langgraph":
        raise InvalidNamespaceError(f"{namespace}: namespaces that begin with 'langgraph' are langgraph's own")


def check_key(namespace: tuple[str, ...], key: object) -> None:
    """A key is a str that Postgres can hold and index."""
    if not isinstance(key, str):
        raise NotStorableError(f"the key {key!r} in {namespace} is a {type(key).__name__}; a key is a str")
    if "\x00" in key or not _is_text(key):
        raise NotStorableError(f"the key {key!r} in {namespace} contains a NUL character or half a character")
    size = len(SEPARATOR.join(namespace).encode()) + len(key.encode())
    if size > LONGEST_KEY:
        raise NotStorableError(
            f"namespace and key {key[:40]!r}… have {size} bytes together; {LONGEST_KEY} is the most an index can hold"
        )


def check_window(limit: object, offset: object) -> None:
    """A limit and an offset are whole numbers from 0."""
    for name, value in (("limit", limit), ("offset", offset)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise DefinitionError(f"{name} is {value!r}; it must be a whole number from 0")


def check_value(value: object) -> None:
    """A value is a dict of JSON. The error names the path of what is none."""
    if not isinstance(value, dict):
        raise NotStorableError(f"the value is a {type(value).__name__}; a store keeps dicts")
    check_json(value, "value")


def check_json(value: Any, path: str) -> None:
    """Raises NotStorableError, naming the path, for what is no JSON that Postgres can hold and give back equal."""
    kind = type(value)
    if kind is str:
        _check_text(value, path)
    elif kind is float:
        if not math.isfinite(value):
            raise NotStorableError(f"{path} is {value!r}, which JSON cannot hold; use None or a text")
    elif value is None or kind in (bool, int):
        return
    elif kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise NotStorableError(f"{path} has the key {key!r}, a {type(key).__name__}; keys in JSON are str")
            _check_text(key, f"a key of {path}")
            check_json(item, f"{path}[{key!r}]")
    elif kind in (list, tuple):
        for index, item in enumerate(value):
            check_json(item, f"{path}[{index}]")
    else:
        raise NotStorableError(f"{path} is a {kind.__qualname__}; a store keeps JSON: make it a str, number or dict")


def to_json(value: Any) -> str:
    """The JSON text of a checked value."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _check_text(text: str, path: str) -> None:
    if "\x00" in text:
        raise NotStorableError(f"{path} contains a NUL character, which Postgres cannot hold; remove it")
    if not _is_text(text):
        raise NotStorableError(f"{path} contains half a character (a lone surrogate), which is no text; remove it")


def _is_text(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _check_ttl(ttl: object) -> None:
    if ttl is None:
        return
    if not isinstance(ttl, int | float) or isinstance(ttl, bool) or not math.isfinite(ttl) or ttl <= 0:
        raise DefinitionError(f"ttl is {ttl!r}; it is a number of minutes above 0, or None for ever")


def _check_index(index: object) -> None:
    if index is None or index is False:
        return
    if isinstance(index, str) or not isinstance(index, Sequence) or not all(isinstance(path, str) for path in index):
        raise DefinitionError(f"index is {index!r}; it is a list of paths, False for none, or None for the default")
