"""What can be done to whole threads: copy, delete, prune, measure. Generators, see `_drive`."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg.rows import DictRow

from agentkit.memory._drive import Ask, Steps

_COPY = """
WITH blobs AS (
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
    SELECT %(to)s, checkpoint_ns, channel, version, type, blob FROM checkpoint_blobs WHERE thread_id = %(from)s
    ON CONFLICT DO NOTHING
), writes AS (
    INSERT INTO checkpoint_writes
        (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
    SELECT %(to)s, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob
    FROM checkpoint_writes WHERE thread_id = %(from)s
    ON CONFLICT DO NOTHING
)
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
SELECT %(to)s, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
FROM checkpoints WHERE thread_id = %(from)s
ON CONFLICT DO NOTHING
"""

_DELETE = """
WITH blobs AS (DELETE FROM checkpoint_blobs WHERE thread_id = ANY(%(ids)s)),
     writes AS (DELETE FROM checkpoint_writes WHERE thread_id = ANY(%(ids)s))
DELETE FROM checkpoints WHERE thread_id = ANY(%(ids)s)
"""

# v < 4: such a checkpoint takes its pending sends from its parent's writes
_CHECKPOINTS = """
SELECT checkpoint_ns AS ns, checkpoint_id AS id, parent_checkpoint_id AS parent,
    checkpoint -> 'channel_versions' AS versions,
    ARRAY(SELECT jsonb_object_keys(coalesce(nullif(checkpoint -> 'channel_values', 'null'), '{}'))) AS inline,
    metadata -> 'counters_since_delta_snapshot' AS deltas,
    metadata ? 'delta_writes_versioned' AS foreign_deltas,
    metadata -> 'parents' ->> '' AS root,
    metadata ->> 'run_id' AS run,
    (checkpoint ->> 'v')::int < 4 AND EXISTS (
        SELECT 1 FROM checkpoint_writes w WHERE w.thread_id = c.thread_id AND w.checkpoint_ns = c.checkpoint_ns
        AND w.checkpoint_id = c.parent_checkpoint_id AND w.channel = '__pregel_tasks'
    ) AS needs_parent
FROM checkpoints c WHERE thread_id = %s ORDER BY checkpoint_ns, checkpoint_id DESC
"""
_BLOBS = "SELECT checkpoint_ns AS ns, channel, version FROM checkpoint_blobs WHERE thread_id = %s"

_DROP_WRITES = (
    "DELETE FROM checkpoint_writes WHERE thread_id = %s AND checkpoint_ns = %s"
    " AND (checkpoint_id = ANY(%s) OR (checkpoint_id < %s AND checkpoint_id <> ALL(%s)))"
)
_DROP_CHECKPOINTS = "DELETE FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = ANY(%s)"
_CUT_PARENTS = (
    "UPDATE checkpoints SET parent_checkpoint_id = NULL"
    " WHERE thread_id = %s AND checkpoint_ns = %s AND parent_checkpoint_id = ANY(%s)"
)
_DROP_BLOBS = (
    "DELETE FROM checkpoint_blobs b USING unnest(%s::text[], %s::text[]) AS g(channel, version)"
    " WHERE b.thread_id = %s AND b.checkpoint_ns = %s AND b.channel = g.channel AND b.version = g.version"
)

_SIZES = """
SELECT c.thread_id, c.checkpoints, c.bytes + coalesce(b.bytes, 0) + coalesce(w.bytes, 0) AS bytes,
    (h.checkpoint ->> 'ts')::timestamptz AS last_used,
    EXISTS (
        SELECT 1 FROM checkpoint_writes i WHERE i.thread_id = h.thread_id AND i.checkpoint_ns = ''
        AND i.checkpoint_id = h.checkpoint_id AND i.channel = '__interrupt__'
    ) AS interrupted
FROM (SELECT thread_id, count(*) AS checkpoints, sum(pg_column_size(checkpoints.*))::bigint AS bytes
      FROM checkpoints WHERE %(all)s OR thread_id = ANY(%(ids)s) GROUP BY thread_id) c
LEFT JOIN (SELECT thread_id, sum(pg_column_size(checkpoint_blobs.*))::bigint AS bytes
      FROM checkpoint_blobs WHERE %(all)s OR thread_id = ANY(%(ids)s) GROUP BY thread_id) b USING (thread_id)
LEFT JOIN (SELECT thread_id, sum(pg_column_size(checkpoint_writes.*))::bigint AS bytes
      FROM checkpoint_writes WHERE %(all)s OR thread_id = ANY(%(ids)s) GROUP BY thread_id) w USING (thread_id)
CROSS JOIN LATERAL (SELECT thread_id, checkpoint_id, checkpoint FROM checkpoints x
      WHERE x.thread_id = c.thread_id ORDER BY checkpoint_ns, checkpoint_id DESC LIMIT 1) h
ORDER BY bytes DESC, c.thread_id
"""


@dataclass(frozen=True, kw_only=True)
class ThreadSize:
    """What a thread holds. `bytes` as stored, compressed; `interrupted`: it waits for an answer."""

    thread_id: str
    checkpoints: int
    bytes: int
    last_used: datetime
    interrupted: bool


@dataclass(frozen=True, kw_only=True)
class Retained:
    """What a retention removed."""

    threads: int
    checkpoints: int


def copy(source: str, target: str) -> Steps[None]:
    """Copies a thread: all of it, since a state may be rebuilt from any ancestor."""
    yield Ask(_COPY, {"from": source, "to": target})


def delete(thread_ids: Sequence[str]) -> Steps[None]:
    """Deletes threads."""
    yield Ask(_DELETE, {"ids": list(thread_ids)})


def prune(thread_ids: Sequence[str], strategy: str) -> Iterator[Steps[int | None]]:
    """The work of `prune`: one generator for each transaction."""
    if isinstance(thread_ids, str):
        raise TypeError("thread_ids is a list of thread ids, not a single one")
    if strategy not in ("keep_latest", "delete"):
        raise ValueError(f"unknown strategy {strategy!r}: it is 'keep_latest' or 'delete'")
    ids = [str(thread) for thread in thread_ids]
    if strategy == "delete":
        if ids:
            yield delete(ids)
        return
    for thread in ids:
        yield keep_last(thread, 1)


def sizes(thread_ids: Sequence[str] | None = None) -> Steps[list[ThreadSize]]:
    """What threads hold, the biggest first."""
    rows = yield Ask(_SIZES, {"all": thread_ids is None, "ids": list(thread_ids or ())})
    return [ThreadSize(**row) for row in rows]


def outdated(
    found: Sequence[ThreadSize], older_than: timedelta | None, now: datetime, *, keep_interrupted: bool
) -> list[ThreadSize]:
    """The threads not used for so long; None means never mind."""
    if older_than is None:
        return []
    return [t for t in found if now - t.last_used > older_than and not (keep_interrupted and t.interrupted)]


def others(found: Sequence[ThreadSize], gone: Sequence[ThreadSize]) -> list[ThreadSize]:
    """The threads that are left."""
    left_out = {thread.thread_id for thread in gone}
    return [thread for thread in found if thread.thread_id not in left_out]


def keep_last(thread: str, count: int) -> Steps[int]:
    """Keeps each namespace's newest checkpoints and what they are rebuilt from. Returns how many it deleted.

    The calls of subgraphs go with the checkpoint they were started from.
    """

    def choose(ns: str, rows: Sequence[DictRow], roots: Collection[str]) -> Sequence[DictRow]:
        called_from = rows[0]["root"]
        if ":" in ns and called_from in roots and called_from not in list(roots)[:count]:
            return ()
        return rows[:count]

    return (yield from _thin(thread, choose, orphans=True))


def delete_runs(run_ids: Sequence[str]) -> Steps[None]:
    """Deletes the checkpoints of these runs, except what other runs' checkpoints are rebuilt from."""
    hit = yield Ask(
        "SELECT DISTINCT thread_id FROM checkpoints WHERE metadata ? 'run_id' AND metadata ->> 'run_id' = ANY(%s)",
        (list(run_ids),),
    )
    gone = set(run_ids)
    for row in hit:
        yield from _thin(
            row["thread_id"], lambda _ns, rows, _roots: [row for row in rows if row["run"] not in gone], orphans=False
        )


_Choose = Callable[[str, Sequence[DictRow], Collection[str]], Sequence[DictRow]]


def _thin(thread: str, choose: _Choose, *, orphans: bool) -> Steps[int]:
    """Deletes all checkpoints but the chosen ones and those they need. Reads and deletes in one snapshot."""
    spaces: dict[str, list[DictRow]] = {}
    for row in (yield Ask(_CHECKPOINTS, (thread,))):
        spaces.setdefault(row["ns"], []).append(row)
    blobs: dict[str, set[tuple[str, str]]] = {}
    for row in (yield Ask(_BLOBS, (thread,))):
        blobs.setdefault(row["ns"], set()).add((row["channel"], row["version"]))
    roots = [row["id"] for row in spaces.get("", ())]  # newest first
    deleted = 0
    for ns, rows in spaces.items():
        if any(row["foreign_deltas"] for row in rows):  # LangGraph.js keeps deltas in a way of its own
            continue
        there = blobs.get(ns, set())
        keep = needed(rows, choose(ns, rows, roots), there)
        gone = [row["id"] for row in rows if row["id"] not in keep]
        if not gone:
            continue
        deleted += len(gone)
        before = rows[0]["id"] if orphans else ""
        yield Ask(_DROP_WRITES, (thread, ns, gone, before, list(keep)), prepare=False)
        yield Ask(_DROP_CHECKPOINTS, (thread, ns, gone), prepare=False)
        yield Ask(_CUT_PARENTS, (thread, ns, gone), prepare=False)
        used = {pair for row in rows if row["id"] in keep for pair in (row["versions"] or {}).items()}
        garbage = sorted(there - {(channel, str(version)) for channel, version in used})
        if garbage:
            channels, versions = zip(*garbage, strict=True)
            yield Ask(_DROP_BLOBS, (list(channels), list(versions), thread, ns), prepare=False)
    return deleted


def needed(rows: Sequence[DictRow], chosen: Sequence[DictRow], blobs: Collection[tuple[str, str]]) -> set[str]:
    """The ids of the chosen checkpoints and of those their state is rebuilt from.

    A delta channel is stored whole only now and then; in between its value is the nearest ancestor that has it whole,
    and all writes since. So that chain stays.
    """
    by_id: Mapping[str, DictRow] = {row["id"]: row for row in rows}
    # of all rows: one that had a channel whole says nothing about it, and may have lost it since (see agentkit_thin)
    deltas = {channel for row in rows for channel in row["deltas"] or ()}
    keep: set[str] = set()
    for row in chosen:
        keep.add(row["id"])
        if row["needs_parent"] and row["parent"]:
            keep.add(row["parent"])
        versions = row["versions"] or {}
        missing = {channel for channel in deltas if channel in versions and not _whole(row, channel, blobs)}
        parent = row["parent"]
        while missing and parent in by_id:
            keep.add(parent)
            ancestor = by_id[parent]
            missing = {channel for channel in missing if not _whole(ancestor, channel, blobs)}
            parent = ancestor["parent"]
    return keep


def _whole(row: Mapping[str, Any], channel: str, blobs: Collection[tuple[str, str]]) -> bool:
    version = (row["versions"] or {}).get(channel)
    return (version is not None and (channel, str(version)) in blobs) or channel in row["inline"]
