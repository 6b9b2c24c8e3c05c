"""Rebuilding a channel that is stored as writes: the nearest ancestor that has it whole, and all writes since.

One statement for each channel, where the official savers take two and read a thousand checkpoints. That is faster, and
it sees one moment: a whole copy that is thinned out meanwhile (see `_schema`) is either there or not looked for.
"""

from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.base import DeltaChannelHistory, writes_sort_key
from langgraph.checkpoint.serde.base import SerializerProtocol

from agentkit.memory._drive import Ask, Steps

_HISTORY = """
WITH RECURSIVE chain AS (
    SELECT c.checkpoint_id AS id, c.parent_checkpoint_id AS parent, 0 AS depth,
        false AS has_blob, NULL::jsonb AS inline, NULL::text AS version
    FROM checkpoints c WHERE c.thread_id = %(thread)s AND c.checkpoint_ns = %(ns)s AND c.checkpoint_id = %(id)s
    UNION ALL
    SELECT p.checkpoint_id, p.parent_checkpoint_id, chain.depth + 1,
        EXISTS (
            SELECT 1 FROM checkpoint_blobs b WHERE b.thread_id = %(thread)s AND b.checkpoint_ns = %(ns)s
            AND b.channel = %(channel)s AND b.version = p.checkpoint -> 'channel_versions' ->> %(channel)s
        ),
        nullif(p.checkpoint -> 'channel_values' -> %(channel)s, 'null'),
        p.checkpoint -> 'channel_versions' ->> %(channel)s
    FROM chain JOIN checkpoints p
        ON p.thread_id = %(thread)s AND p.checkpoint_ns = %(ns)s AND p.checkpoint_id = chain.parent
    WHERE NOT chain.has_blob AND chain.inline IS NULL
)
SELECT chain.depth, w.type, w.blob, w.task_id, w.task_path, w.idx, NULL::jsonb AS inline
FROM chain JOIN checkpoint_writes w
    ON w.thread_id = %(thread)s AND w.checkpoint_ns = %(ns)s AND w.checkpoint_id = chain.id AND w.channel = %(channel)s
WHERE chain.depth > 0
UNION ALL
SELECT chain.depth, b.type, b.blob, NULL, NULL, NULL, CASE WHEN b.type IS NULL THEN chain.inline END
FROM chain LEFT JOIN checkpoint_blobs b
    ON chain.has_blob AND b.thread_id = %(thread)s AND b.checkpoint_ns = %(ns)s AND b.channel = %(channel)s
    AND b.version = chain.version
WHERE chain.has_blob OR chain.inline IS NOT NULL
"""


def histories(
    serde: SerializerProtocol, thread: str, ns: str, checkpoint: str, channels: Sequence[str]
) -> Steps[dict[str, DeltaChannelHistory]]:
    """What each channel is rebuilt from, for the checkpoint with this id."""
    found: dict[str, DeltaChannelHistory] = {}
    for channel in channels:
        params = {"thread": thread, "ns": ns, "id": checkpoint, "channel": channel}
        rows = yield Ask(_HISTORY, params)
        entry = DeltaChannelHistory(writes=[])
        writes: list[tuple[Any, ...]] = []
        for row in rows:
            if row["task_id"] is not None:
                order = writes_sort_key(row["task_path"], row["task_id"], row["idx"])
                writes.append((-row["depth"], order, row))
            elif row["type"] is None:
                entry["seed"] = row["inline"]
            elif row["type"] != "empty":
                entry["seed"] = serde.loads_typed((row["type"], row["blob"]))
        writes.sort(key=lambda write: write[:2])
        entry["writes"] = [
            (row["task_id"], channel, serde.loads_typed((row["type"], row["blob"]))) for _, _, row in writes
        ]
        found[channel] = entry
    return found
