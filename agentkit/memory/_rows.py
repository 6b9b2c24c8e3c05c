"""Checkpoints and writes as rows, one statement each: plain functions that sync and async savers share."""

import math
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import orjson
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from agentkit.errors import InjectionError, NotStorableError, ThreadBusyError
from agentkit.tools import identity

USER_KEY = "agentkit_user"  # in the metadata of checkpoints

Params = tuple[Any, ...]

PUT = (
    "SELECT agentkit_put(%s, %s, %s, %s, %s::jsonb, %s::jsonb, %s,"
    " %s::text[], %s::text[], %s::text[], %b::bytea[]) AS stored"
)

_INSERT_WRITES = """
INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
SELECT %s, %s, %s, %s, %s, w.idx, w.channel, w.type, w.blob
FROM unnest(%s::int[], %s::text[], %s::text[], %b::bytea[]) AS w(idx, channel, type, blob)
ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) """
INSERT_WRITES = _INSERT_WRITES + "DO NOTHING"
UPSERT_WRITES = _INSERT_WRITES + "DO UPDATE SET channel = EXCLUDED.channel, type = EXCLUDED.type, blob = EXCLUDED.blob"


def thread_key(config: RunnableConfig) -> tuple[str, str]:
    """Thread id and namespace. Raises NotStorableError for an id that Postgres cannot hold."""
    configurable = config["configurable"]
    thread = str(configurable["thread_id"])
    if "\x00" in thread or not _is_text(thread):
        raise NotStorableError(f"thread_id {thread!r} contains a NUL character or half a character; remove it")
    return thread, configurable.get("checkpoint_ns") or ""


def put_params(
    serde: SerializerProtocol,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    *,
    newest: str | None,
    inline: bool,
) -> Params:
    """The parameters of `PUT`.

    Small plain values stand in the checkpoint's JSON, as in the official savers; all else, and what JSON or Postgres
    could not hold (NUL, NaN, enums), in blobs. With `inline=False` everything goes to blobs. The serializer replaces
    half a character (a lone surrogate) by "?": a model that writes one must not end the thread.
    """
    thread, ns = thread_key(config)
    values: dict[str, Any] = {}
    blobs: list[tuple[str, str, str, bytes | None]] = []
    for channel, value in checkpoint["channel_values"].items():
        if isinstance(value, _DeltaSnapshot):
            values[channel] = True  # the official mark of a snapshot, whose value is the blob
        elif inline and _fits_json(value):
            values[channel] = value
            continue
        if channel in new_versions:
            blobs.append((channel, str(new_versions[channel]), *serde.dumps_typed(value)))
    columns = zip(*blobs, strict=True) if blobs else ((), (), (), ())
    return (
        thread,
        ns,
        checkpoint["id"],
        config["configurable"].get("checkpoint_id"),
        _json({**checkpoint, "channel_values": values}),
        _json(_signed(config, get_serializable_checkpoint_metadata(config, metadata))),
        newest,
        *(list(column) for column in columns),
    )


def put_config(config: RunnableConfig, checkpoint: Checkpoint) -> RunnableConfig:
    """The config of a checkpoint just stored."""
    configurable = config["configurable"]
    return {
        "configurable": {
            "thread_id": configurable["thread_id"],
            "checkpoint_ns": configurable.get("checkpoint_ns") or "",
            "checkpoint_id": checkpoint["id"],
        }
    }


def writes_statement(
    serde: SerializerProtocol,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
) -> tuple[str, Params]:
    """One statement for all writes of a task. Errors, interrupts and answers replace earlier ones; others stay."""
    thread, ns = thread_key(config)
    replace = all(channel in WRITES_IDX_MAP for channel, _ in writes)
    rows: dict[int, tuple[str, str, bytes]] = {}
    for position, (channel, value) in enumerate(writes):
        index = WRITES_IDX_MAP.get(channel, position)
        if replace or index not in rows:
            rows[index] = (channel, *serde.dumps_typed(value))
    columns = [list(column) for column in zip(*rows.values(), strict=True)]
    head = (thread, ns, config["configurable"]["checkpoint_id"], task_id, task_path)
    return (UPSERT_WRITES if replace else INSERT_WRITES), (*head, list(rows), *columns)


def _signed(config: RunnableConfig, metadata: CheckpointMetadata) -> Mapping[str, Any]:
    """Metadata with the user the run acts for, so that a person's threads can be found."""
    # ls_ keys are for traces, which have them already
    kept: dict[str, Any] = {key: value for key, value in metadata.items() if not key.startswith("ls_")}
    run = config["configurable"].get("__pregel_runtime")
    if run is None:
        return kept
    try:
        who = identity(_Run(run, config))
    except InjectionError:  # what is no user id is no reason not to store a thread
        return kept
    return {**kept, USER_KEY: who.id} if who.kind == "user" else kept


class _Run:
    """A run as `identity` reads it."""

    __slots__ = ("config", "context", "execution_info", "server_info")

    def __init__(self, run: Any, config: RunnableConfig) -> None:
        self.config = config
        self.context = run.context
        self.server_info = run.server_info
        self.execution_info = None


def _fits_json(value: Any) -> bool:
    kind = type(value)
    if kind is str:
        return "\x00" not in value and _is_text(value)
    if kind is float:
        return math.isfinite(value)
    return value is None or kind is bool or (kind is int and -(2**53) < value < 2**53)


def _is_text(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _json(value: Mapping[str, Any]) -> str:
    try:
        text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError):  # half a character, or an object that is no JSON
        return orjson.dumps(_clean(value), option=orjson.OPT_NON_STR_KEYS, default=str).decode()
    if "\\u0000" in text:
        return orjson.dumps(_clean(value), option=orjson.OPT_NON_STR_KEYS).decode()
    return text


def _clean(value: Any) -> Any:
    """Without NUL and half characters: metadata is for finding things, so it is cleaned where state is kept exactly."""
    if isinstance(value, str):
        return value.replace("\x00", "").encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value


class Runs:
    """The newest checkpoint each running run knows of, so that a second run on a thread is noticed.

    A run is known by its langgraph runtime, one object that its first load and all its puts carry. It is held here so
    that its id is not given to another; the oldest entries go when there are too many, and their runs are not watched.
    """

    _LIMIT = 1024
    _RECENT = 60.0  # seconds

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, str, str], tuple[Any, str]] = OrderedDict()
        self._stored: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        self._refused: OrderedDict[tuple[str, str], tuple[str, float]] = OrderedDict()
        self._lock = Lock()

    def key(self, config: RunnableConfig) -> tuple[int, str, str] | None:
        """The run's key if the call comes from one."""
        configurable = config["configurable"]
        run = configurable.get("__pregel_runtime")
        if run is None:
            return None
        return (id(run), str(configurable.get("thread_id")), configurable.get("checkpoint_ns") or "")

    def knows(self, key: tuple[int, str, str]) -> bool:
        """Whether the run has loaded the thread before."""
        return key in self._known

    def newest(self, key: tuple[int, str, str] | None) -> str | None:
        """The newest checkpoint the run knows of; "" for a thread that was empty, None if it is not watched."""
        found = self._known.get(key) if key is not None else None
        return None if found is None else found[1]

    def saw(self, key: tuple[int, str, str], config: RunnableConfig, newest: str) -> None:
        """The run knows this checkpoint now."""
        with self._lock:
            self._known[key] = (config["configurable"]["__pregel_runtime"], newest)
            self._known.move_to_end(key)
            while len(self._known) > self._LIMIT:
                self._known.popitem(last=False)
            self._stored[key[1], key[2], newest] = None
            while len(self._stored) > self._LIMIT:
                self._stored.popitem(last=False)

    def refused(self, config: RunnableConfig, checkpoint_id: str) -> ThreadBusyError:
        """The error for a checkpoint that comes too late: another run has written to the thread since."""
        thread, ns = thread_key(config)
        with self._lock:
            self._refused[thread, ns] = checkpoint_id, time.monotonic()
            while len(self._refused) > self._LIMIT:
                self._refused.popitem(last=False)
        return _busy(thread)

    def hold(self, config: RunnableConfig) -> bool:
        """Whether a run has stored or seen the checkpoint that `config` names; False where that is not known."""
        thread, ns = thread_key(config)
        return (thread, ns, config["configurable"]["checkpoint_id"]) in self._stored

    def check(self, config: RunnableConfig) -> None:
        """Whether it is still worth waiting for a checkpoint: no earlier one of its thread was refused just now.

        Whose that was cannot be told, since langgraph says nothing of the run to who waits. Where it was another run's,
        this one gives up a checkpoint that is slow to come, and loses nothing by it.

        Raises:
            ThreadBusyError: one was; langgraph stores nothing more of a run after that.
        """
        thread, ns = thread_key(config)
        refused, when = self._refused.get((thread, ns), ("", -math.inf))
        if time.monotonic() - when < self._RECENT and refused <= config["configurable"]["checkpoint_id"]:
            raise _busy(thread)


def _busy(thread: str) -> ThreadBusyError:
    return ThreadBusyError(
        f"thread {thread!r} was written by another run meanwhile; nothing of this step was stored: start the run again"
    )
