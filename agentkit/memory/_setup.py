"""Tables made once, by whoever comes first, however many come at the same time."""

import asyncio
import time
from typing import Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.store.postgres import PostgresStore
from psycopg import sql

from agentkit.errors import DatabaseError
from agentkit.memory._pool import Wanted

OLDEST_SERVER = 140000
WAIT = 120.0  # seconds to wait for another process that makes the tables
_LOCK = 0x6167656E746B6974  # "agentkit"

# what our statements need; a table of the same name with other columns is somebody else's
_COLUMNS = {
    "checkpoints": {"thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint", "metadata"},
    "checkpoint_blobs": {"thread_id", "checkpoint_ns", "channel", "version", "type", "blob"},
    "checkpoint_writes": {"thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "task_path", "idx", "channel"},
    "store": {"prefix", "key", "value", "created_at", "updated_at", "expires_at", "ttl_minutes"},
}


def prepare(wanted: Wanted) -> None:
    """Connects, checks what is there, and makes what is missing. Safe under any number of processes at once.

    Raises:
        DatabaseError: unreachable, read-only, too old, or with tables that are not ours or of a newer version.
    """
    try:
        with psycopg.connect(wanted.url, **wanted.connect_kwargs()) as conn:
            check_server(conn.info.server_version)
            _check_writable(conn)
            _with_settings(conn, wanted)
            _make(conn, wanted)
            _check_columns(conn)
    except psycopg.Error as error:
        raise explain(error) from error


async def aprepare(wanted: Wanted) -> None:
    """As `prepare`; it happens once, so it runs in a thread rather than being written twice."""
    await asyncio.to_thread(prepare, wanted)


def check_server(version: int) -> None:
    """Raises DatabaseError for a server older than Postgres 14. `version` is libpq's number, e.g. 180004."""
    if version < OLDEST_SERVER:
        raise DatabaseError(f"this is Postgres {version // 10000}; agentkit needs {OLDEST_SERVER // 10000} or newer")


def explain(error: psycopg.Error) -> DatabaseError:
    """One clear error for what a database may answer when it is opened. Never quotes the URL."""
    said = str(error).strip().splitlines()
    first = said[0] if said else type(error).__name__
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return DatabaseError("the database is read-only (a standby?); agentkit needs one it may write to")
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return DatabaseError(f"the database user may not do what agentkit needs: {first}")
    if isinstance(error, psycopg.OperationalError):
        return DatabaseError(f"the database cannot be reached: {first}\ncheck AGENTKIT_DATABASE_URL, or the url given")
    return DatabaseError(f"the database cannot be used: {first}")


def _check_writable(conn: psycopg.Connection[Any]) -> None:
    row = conn.execute("SELECT current_setting('transaction_read_only') AS ro").fetchone()
    if row is not None and row["ro"] == "on":
        raise DatabaseError("the database is read-only (a standby?); agentkit needs one it may write to")


def _with_settings(conn: psycopg.Connection[Any], wanted: Wanted) -> None:
    if wanted.schema is not None:
        conn.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(wanted.schema)))


def _make(conn: psycopg.Connection[Any], wanted: Wanted) -> None:
    # A lock that blocks would hang for ever: the official setup makes indexes CONCURRENTLY, which waits for the
    # snapshots of all sessions, also of those that wait for the lock. So it is polled. It belongs to a
    # transaction and not to a session, since a pooler gives sessions to others in between.
    deadline = time.monotonic() + WAIT
    while True:
        with conn.transaction():
            # no parameters and unprepared: the simple protocol, which leaves no portal that holds a snapshot
            row = conn.execute(f"SELECT pg_try_advisory_xact_lock({_LOCK}) AS got", prepare=False).fetchone()
            if row is not None and row["got"]:
                _make_tables(wanted)
                return
        if time.monotonic() > deadline:
            raise DatabaseError(f"another process has been making agentkit's tables for {WAIT:.0f} s; is it stuck?")
        time.sleep(0.05)


def _make_tables(wanted: Wanted) -> None:
    with psycopg.connect(wanted.url, **wanted.connect_kwargs()) as conn:
        PostgresSaver(conn).setup()
        PostgresStore(conn).setup()


def _check_columns(conn: psycopg.Connection[Any]) -> None:
    for table, needed in _COLUMNS.items():
        rows = conn.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            (table,),
        ).fetchall()
        missing = needed - {row["attname"] for row in rows}
        if missing:
            raise DatabaseError(
                f"the table {table} is not agentkit's: it lacks {', '.join(sorted(missing))}; "
                "choose another database, or a schema of its own with open_memory(schema=…)"
            )
