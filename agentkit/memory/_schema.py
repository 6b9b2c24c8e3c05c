"""The tables: the official ones, as the official packages make them, and what agentkit adds."""

from collections.abc import Sequence
from dataclasses import dataclass

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.store.postgres import PostgresStore

_PUT = """
CREATE OR REPLACE FUNCTION agentkit_put(
    p_thread text, p_ns text, p_id text, p_parent text, p_body jsonb, p_meta jsonb, p_newest text,
    p_channels text[], p_versions text[], p_types text[], p_blobs bytea[]
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    -- p_newest: the newest checkpoint the run knows of; a newer one was written by somebody else meanwhile
    IF p_newest IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(p_thread || chr(31) || p_ns, 7));
        IF EXISTS (
            SELECT 1 FROM checkpoints c
            WHERE c.thread_id = p_thread AND c.checkpoint_ns = p_ns
            AND c.checkpoint_id > p_newest AND c.checkpoint_id <> p_id
        ) THEN
            RETURN false;
        END IF;
    END IF;
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
        SELECT p_thread, p_ns, b.channel, b.version, b.type, b.blob
        FROM unnest(p_channels, p_versions, p_types, p_blobs) AS b(channel, version, type, blob)
        ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO NOTHING;
    INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
        VALUES (p_thread, p_ns, p_id, p_parent, p_body, p_meta)
        ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id)
        DO UPDATE SET checkpoint = EXCLUDED.checkpoint, metadata = EXCLUDED.metadata;
    PERFORM agentkit_thin(p_thread, p_ns, p_id, s.channel, (p_meta ->> 'step')::float8)
        FROM unnest(p_channels) AS s(channel) WHERE p_body -> 'channel_values' -> s.channel = 'true'::jsonb;
    RETURN true;
END $$
"""

# A delta channel is stored whole every so often, and all writes are kept, so an older whole copy only saves time when
# somebody travels back to it. Each new copy removes the one before it, unless that would leave a gap of more than eight
# distances to the next older one. What is left grows an eighth as fast, and no replay is longer than that.
_THIN = """
CREATE OR REPLACE FUNCTION agentkit_thin(
    p_thread text, p_ns text, p_id text, p_channel text, p_step float8
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    older record;
    victim record;
    place int := 0;
    oldest float8 := -1;
BEGIN
    FOR older IN
        SELECT c.checkpoint_id, (c.metadata ->> 'step')::float8 AS step,
            c.checkpoint -> 'channel_versions' ->> p_channel AS version
        FROM checkpoints c
        WHERE c.thread_id = p_thread AND c.checkpoint_ns = p_ns AND c.checkpoint_id < p_id
        AND c.checkpoint -> 'channel_values' -> p_channel = 'true'::jsonb
        AND EXISTS (
            SELECT 1 FROM checkpoint_blobs b WHERE b.thread_id = p_thread AND b.checkpoint_ns = p_ns
            AND b.channel = p_channel AND b.version = c.checkpoint -> 'channel_versions' ->> p_channel
        )
        ORDER BY c.checkpoint_id DESC LIMIT 2
    LOOP
        place := place + 1;
        IF place = 1 THEN victim := older; ELSE oldest := older.step; END IF;
    END LOOP;
    IF place = 0 THEN RETURN; END IF;
    IF p_step - oldest > 8.5 * (p_step - victim.step) THEN RETURN; END IF;
    UPDATE checkpoints SET checkpoint = checkpoint #- ARRAY['channel_values', p_channel]
        WHERE thread_id = p_thread AND checkpoint_ns = p_ns AND checkpoint_id = victim.checkpoint_id;
    DELETE FROM checkpoint_blobs
        WHERE thread_id = p_thread AND checkpoint_ns = p_ns AND channel = p_channel AND version = victim.version;
END $$
"""

_OWN = (
    _THIN,
    _PUT,
    # only servers mark checkpoints with a run; the index is for their rollbacks
    "CREATE INDEX IF NOT EXISTS checkpoints_run_idx ON checkpoints ((metadata ->> 'run_id')) WHERE metadata ? 'run_id'",
    # whole minutes lose every shorter lifetime
    "ALTER TABLE store ALTER COLUMN ttl_minutes TYPE double precision",
    # the words of an item, for full-text search; see `_text`
    "ALTER TABLE store ADD COLUMN IF NOT EXISTS terms text[]",
    "CREATE INDEX IF NOT EXISTS store_terms_idx ON store USING gin (terms)",
)

# store_vectors is the official table; digest tells whether the text of a vector has changed
_VECTORS = (
    "CREATE EXTENSION IF NOT EXISTS vector",
    """CREATE TABLE IF NOT EXISTS store_vectors (
        prefix text NOT NULL,
        key text NOT NULL,
        field_name text NOT NULL,
        embedding vector({dims}),
        created_at timestamptz DEFAULT CURRENT_TIMESTAMP,
        updated_at timestamptz DEFAULT CURRENT_TIMESTAMP,
        PRIMARY KEY (prefix, key, field_name),
        FOREIGN KEY (prefix, key) REFERENCES store (prefix, key) ON DELETE CASCADE
    )""",
    "ALTER TABLE store_vectors ADD COLUMN IF NOT EXISTS digest bytea",
)


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Statements to be run once each, in order; `table` remembers the last one."""

    table: str
    statements: Sequence[str]


# CONCURRENTLY cannot run in a transaction, and need not: the tables are new, or the lock is short
ALWAYS = (
    Steps(
        table="checkpoint_migrations",
        statements=[statement.replace(" CONCURRENTLY", "") for statement in PostgresSaver.MIGRATIONS],
    ),
    Steps(
        table="store_migrations",
        statements=[statement.replace(" CONCURRENTLY", "") for statement in PostgresStore.MIGRATIONS],
    ),
    Steps(table="agentkit_migrations", statements=_OWN),
)


def vector_steps(dims: int) -> Steps:
    """What `embeddings` need on top."""
    return Steps(table="agentkit_vector_migrations", statements=[statement.format(dims=dims) for statement in _VECTORS])


# what our statements need; a table of the same name with other columns is somebody else's
COLUMNS = {
    "checkpoints": {"thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint", "metadata"},
    "checkpoint_blobs": {"thread_id", "checkpoint_ns", "channel", "version", "type", "blob"},
    "checkpoint_writes": {"thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "task_path", "idx", "channel"},
    "store": {"prefix", "key", "value", "created_at", "updated_at", "expires_at", "ttl_minutes"},
}
