"""Whether a value can be kept by the checkpointer and comes back as what it was.

The rule, for state updates and artifacts of tools:

- text must be free of NUL and of lone surrogates, wherever it stands (Postgres text and UTF-8 have neither);
- a number that is a state key's own value must be finite (JSON has no NaN and no infinity);
- any other object must come back from the serializer with its type and, where it defines equality, equal. Tuples in
  plain data come back as lists, as JSON has it.

The text of a result is not refused but cleaned: see `_content.clean`.
"""

import math
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from enum import Enum
from functools import lru_cache
from typing import Any
from uuid import UUID

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agentkit.errors import NotStorableError

_PLAIN = (int, bool, type(None), bytes, datetime, date, timedelta, UUID)


def serializer_of(saver: BaseCheckpointSaver[Any] | None) -> SerializerProtocol:
    """The serializer that will store what this run writes."""
    return saver.serde if saver is not None else _default_serializer()


@lru_cache(maxsize=1)
def _default_serializer() -> SerializerProtocol:
    return JsonPlusSerializer()


def check_storable(value: Any, path: str, serde: SerializerProtocol) -> None:
    """Raise NotStorableError, naming the path within the value, unless the value can be kept.

    Plain data is walked without a copy; other objects are serialized and read back once.
    """
    if type(value) is float and not math.isfinite(value):
        raise NotStorableError(f"{path} is {value!r}, which a database cannot hold; use None or a text")
    _walk(value, path, serde)


def _walk(value: Any, path: str, serde: SerializerProtocol) -> None:
    kind = type(value)
    if kind is str:
        _check_text(value, path)
    elif kind is float or kind in _PLAIN:
        return
    elif kind is dict:
        for key, item in value.items():
            if type(key) is str:
                _check_text(key, f"a key of {path}")
            _walk(item, f"{path}[{key!r}]", serde)
    elif kind in (list, tuple, set, frozenset):
        for index, item in enumerate(value):
            _walk(item, f"{path}[{index}]", serde)
    elif isinstance(value, BaseMessage):
        _walk(value.content, f"{path}.content", serde)
        if (artifact := getattr(value, "artifact", None)) is not None:
            _walk(artifact, f"{path}.artifact", serde)
    else:
        _round_trip(value, path, serde)


def _check_text(text: str, path: str) -> None:
    if "\x00" in text:
        raise NotStorableError(f"{path} contains a NUL character, which Postgres cannot hold; remove it")
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise NotStorableError(
                f"{path} contains a lone surrogate at position {error.start}, which is not valid text; remove it"
            ) from None


def _round_trip(value: Any, path: str, serde: SerializerProtocol) -> None:
    kind = type(value)
    try:
        back = serde.loads_typed(serde.dumps_typed(value))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise NotStorableError(f"{path} ({kind.__qualname__}) cannot be stored: {reason[:200]}") from error
    if type(back) is not kind:
        raise NotStorableError(
            f"{path} ({kind.__qualname__}) would come back as {type(back).__qualname__}; store plain data, or a class "
            "at the top level of an importable module that the serializer allows"
        )
    compares = "__eq__" in {name for base in kind.__mro__[:-1] for name in vars(base)}
    if compares and not isinstance(value, Mapping | Enum) and not _same(value, back):
        raise NotStorableError(f"{path} ({kind.__qualname__}) does not come back equal; store plain data")


def _same(value: Any, back: Any) -> bool:
    try:
        return bool(value == back) or value != value  # noqa: PLR0124 - NaN inside makes a value unequal to itself
    except Exception:  # noqa: BLE001 - arrays and the like have no truth value: their type came back, that is all we ask
        return True
