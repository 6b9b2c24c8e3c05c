# ruff: noqa: S608  what is put together here are our own pieces; everything given travels as a parameter
"""A person's data: all of it, to hand out or to delete. Generators, see `_drive`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from pydantic import BaseModel

from agentkit.errors import DefinitionError
from agentkit.memory import _threads
from agentkit.memory._checks import SEPARATOR, check_namespace
from agentkit.memory._drive import Ask, Steps
from agentkit.memory._keeping import Calls, StoreCall
from agentkit.memory._rows import USER_KEY
from agentkit.messages import history
from agentkit.tools._identity import user_identity

LEDGER = "__agentkit_call__"

Namespaces = Sequence[tuple[str, ...]]

# what a server or a program says of a thread that another saver wrote; where a server says who it was, only that counts
_THREADS = (
    "SELECT DISTINCT thread_id FROM checkpoints WHERE coalesce("
    f"metadata ->> '{USER_KEY}', metadata ->> 'langgraph_auth_user_id', metadata ->> 'user_id') = %s ORDER BY 1"
)
_SPACES = (
    "SELECT checkpoint_ns AS ns, checkpoint_id AS id, checkpoint ->> 'ts' AS ts, metadata ->> 'source' AS source"
    " FROM checkpoints WHERE thread_id = %s ORDER BY checkpoint_ns, checkpoint_id DESC"
)
_LEDGER = "SELECT type, blob FROM checkpoint_writes WHERE thread_id = %s AND channel = %s ORDER BY checkpoint_id, idx"
_ITEMS = "SELECT prefix, key, value, created_at, updated_at, expires_at FROM store WHERE {where} ORDER BY prefix, key"
_VECTORS = (
    "SELECT store.prefix, store.key, v.field_name, v.embedding::text AS numbers FROM store"
    " JOIN store_vectors v ON v.prefix = store.prefix AND v.key = store.key WHERE {where}"
)


@dataclass(frozen=True, kw_only=True)
class Erased:
    """What was deleted of a person. Vectors and ledger records go with their items and threads."""

    threads: int
    checkpoints: int
    items: int


def check_user(user: object, namespaces: Namespaces) -> None:
    """Raises DefinitionError for what names no person, before anything is read or deleted."""
    if not isinstance(user, str) or not user:
        raise DefinitionError(f"the user is {user!r}; it is the id by which `identity` knows a person")
    for namespace in namespaces:
        check_namespace(namespace, write=True)


def _whose(user: str, namespaces: Namespaces) -> tuple[str, list[str]]:
    """Items whose namespace has the identity's two labels anywhere, or lies at or below one of `namespaces`."""
    pairs = [user_identity(user).namespace, *namespaces]
    patterns = [_escape(SEPARATOR.join(pair)) for pair in pairs]
    first = "'.' || store.prefix || '.' LIKE %s"
    others = " OR store.prefix || '.' LIKE %s" * len(namespaces)
    return f"({first}{others})", [f"%.{patterns[0]}.%", *(f"{pattern}.%" for pattern in patterns[1:])]


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def erase(user: str, namespaces: Namespaces) -> Steps[Erased]:
    """Deletes everything of a person."""
    found = yield Ask(_THREADS, (user,))
    ids = [row["thread_id"] for row in found]
    (counted,) = yield Ask("SELECT count(*) AS n FROM checkpoints WHERE thread_id = ANY(%s)", (ids,))
    yield from _threads.delete(ids)
    where, params = _whose(user, namespaces)
    gone = yield Ask(f"DELETE FROM store WHERE {where} RETURNING 1 AS one", params)
    return Erased(threads=len(ids), checkpoints=counted["n"], items=len(gone))


def threads_of(user: str) -> Steps[list[str]]:
    """The threads a person has written to."""
    rows = yield Ask(_THREADS, (user,))
    return [row["thread_id"] for row in rows]


def items_of(user: str, namespaces: Namespaces, *, vectors: bool) -> Steps[list[dict[str, Any]]]:
    """A person's items in the store, with their vectors."""
    where, params = _whose(user, namespaces)
    numbers: dict[tuple[str, str], dict[str, str]] = {}
    for row in (yield Ask(_VECTORS.format(where=where), params)) if vectors else ():
        numbers.setdefault((row["prefix"], row["key"]), {})[row["field_name"]] = row["numbers"]
    rows = yield Ask(_ITEMS.format(where=where), params)
    return [
        {
            "namespace": row["prefix"].split(SEPARATOR),
            "key": row["key"],
            "value": row["value"],
            "created_at": row["created_at"].isoformat(),
            "updated_at": row["updated_at"].isoformat(),
            "expires_at": row["expires_at"] and row["expires_at"].isoformat(),
            "vectors": numbers.get((row["prefix"], row["key"]), {}),
        }
        for row in rows
    ]


def outline(thread: str, serde: SerializerProtocol) -> Steps[dict[str, Any]]:
    """A thread's checkpoints and ledger records, without its states."""
    spaces = yield Ask(_SPACES, (thread,))
    ledger = yield Ask(_LEDGER, (thread, LEDGER))
    return {
        "thread_id": thread,
        "checkpoints": [{"namespace": row["ns"], **{k: row[k] for k in ("id", "ts", "source")}} for row in spaces],
        "ledger": [plain(serde.loads_typed((row["type"], row["blob"]))) for row in ledger],
    }


def states(found: dict[str, Any]) -> Calls[dict[str, Any]]:
    """Adds the newest state of each of the thread's namespaces. Calls of the saver."""
    newest = {}
    for namespace in sorted({one["namespace"] for one in found["checkpoints"]}):
        config = {"configurable": {"thread_id": found["thread_id"], "checkpoint_ns": namespace}}
        saved: CheckpointTuple | None = yield StoreCall("get_tuple", (config,), {})
        if saved is None:
            continue
        values = dict(saved.checkpoint["channel_values"])
        deltas = [name for name in saved.metadata.get("counters_since_delta_snapshot", {}) if name not in values]
        if deltas:
            past = yield StoreCall("get_delta_channel_history", (), {"config": saved.config, "channels": deltas})
            values |= {name: _rebuilt(name, past[name]) for name in deltas if past[name]["writes"]}
        newest[namespace] = {name: plain(value) for name, value in values.items() if not name.startswith("branch:")}
    return {**found, "states": newest}


def _rebuilt(name: str, past: Mapping[str, Any]) -> Any:
    """The value of a delta channel. Only the reducer of messages is known here; of others, what was written."""
    seed = past.get("seed")
    seed = seed.value if isinstance(seed, _DeltaSnapshot) else seed
    writes = [value for _, _, value in past["writes"]]
    return history(seed or [], writes) if name == "messages" else {"before": seed, "writes": writes}


def plain(value: Any) -> Any:  # noqa: PLR0911  one case a kind of value
    """Any value as JSON."""
    if isinstance(value, _DeltaSnapshot):
        return plain(value.value)
    if isinstance(value, BaseMessage | BaseModel):
        return plain(value.model_dump())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return repr(value)
