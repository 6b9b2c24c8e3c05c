"""Tables made once, by whoever comes first, however many come at the same time."""

import asyncio
from typing import Any

import psycopg
from psycopg import Connection, sql
from psycopg.rows import DictRow

from agentkit.errors import DatabaseError
from agentkit.memory import _schema
from agentkit.memory._pool import Wanted
from agentkit.memory._schema import Steps

OLDEST_SERVER = 140000
WAIT = 120  # seconds to wait for another process that makes the tables
_LOCK = 0x6167656E746B6974  # "agentkit"

Conn = Connection[DictRow]


def prepare(wanted: Wanted, dims: int | None = None) -> None:
    """Connects, checks what is there, and makes what is missing. Safe under any number of processes at once.

    Everything happens in one transaction: a failure leaves the database as it was.

    Raises:
        DatabaseError: unreachable, read-only, too old, or with tables that are not ours or of a newer version.
    """
    steps = (*_schema.ALWAYS, *([_schema.vector_steps(dims)] if dims is not None else []))
    try:
        with psycopg.connect(wanted.url, **wanted.connect_kwargs()) as conn:
            check_server(conn.info.server_version)
            with conn.transaction():
                conn.execute(wanted.prelude or "SELECT 1")
                _check_writable(conn)
                versions = {step.table: _version(conn, wanted, step) for step in steps}
            if any(versions[step.table] < len(step.statements) for step in steps):
                _make(conn, wanted, steps)
            if dims is not None:
                _check_dims(conn, wanted, dims)
    except psycopg.Error as error:
        raise explain(error) from error


async def aprepare(wanted: Wanted, dims: int | None = None) -> None:
    """As `prepare`; it happens once, so it runs in a thread rather than being written twice."""
    await asyncio.to_thread(prepare, wanted, dims)


def check_server(version: int) -> None:
    """Raises DatabaseError for a server older than Postgres 14. `version` is libpq's number, e.g. 180004."""
    if version < OLDEST_SERVER:
        raise DatabaseError(f"this is Postgres {version // 10000}; agentkit needs {OLDEST_SERVER // 10000} or newer")


def explain(error: psycopg.Error) -> DatabaseError:
    """One clear error for what a database may answer when it is opened. Never quotes the URL."""
    said = str(error).strip().splitlines()
    first = said[0] if said else type(error).__name__
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return _read_only()
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return DatabaseError(f"the database user may not do what agentkit needs: {first}")
    if isinstance(error, psycopg.errors.LockNotAvailable):
        return DatabaseError(f"another process has been making agentkit's tables for {WAIT} s; is it stuck?")
    if isinstance(error, psycopg.OperationalError):
        return DatabaseError(f"the database cannot be reached: {first}\ncheck AGENTKIT_DATABASE_URL, or the url given")
    return DatabaseError(f"the database cannot be used: {first}")


def _read_only() -> DatabaseError:
    return DatabaseError("the database is read-only (a standby?); agentkit needs one it may write to")


def _check_writable(conn: Conn) -> None:
    row = conn.execute("SELECT current_setting('transaction_read_only') AS ro").fetchone()
    if row is not None and row["ro"] == "on":
        raise _read_only()


def _version(conn: Conn, wanted: Wanted, step: Steps) -> int:
    """How many of the steps' statements have been run here; in this schema, not in one that the path falls back to."""
    table = sql.Identifier(*([wanted.schema] if wanted.schema is not None else []), step.table)
    there = conn.execute("SELECT to_regclass(%s) AS name", (table.as_string(conn),)).fetchone()
    if there is None or there["name"] is None:
        return 0
    row = conn.execute(sql.SQL("SELECT max(v) AS v FROM {}").format(table)).fetchone()
    done = 0 if row is None or row["v"] is None else int(row["v"]) + 1
    if done > len(step.statements):
        raise DatabaseError(
            f"{step.table} says version {done - 1}, but this agentkit knows {len(step.statements) - 1} at most; "
            "the database was written by a newer version: upgrade agentkit"
        )
    return done


def _make(conn: Conn, wanted: Wanted, steps: tuple[Steps, ...]) -> None:
    with conn.transaction():
        conn.execute(f"SET LOCAL lock_timeout = '{WAIT}s'")
        # a transaction's lock, not a session's: a pooler gives sessions to others in between
        conn.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        # an advisory lock does not make the session hear of what others made meanwhile; opening a table does
        conn.execute("SELECT 1 FROM pg_namespace LIMIT 1")
        if wanted.schema is not None:
            conn.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(wanted.schema)))
        conn.execute(wanted.prelude or "SELECT 1")
        for step in steps:
            table = sql.Identifier(step.table)
            conn.execute(sql.SQL("CREATE TABLE IF NOT EXISTS {} (v integer PRIMARY KEY)").format(table))
            for v in range(_version(conn, wanted, step), len(step.statements)):
                conn.execute(step.statements[v].encode(), prepare=False)
                conn.execute(sql.SQL("INSERT INTO {} (v) VALUES (%s)").format(table), (v,))
            if step.table == "store_migrations":
                _check_columns(conn)


def _check_columns(conn: Conn) -> None:
    for table, needed in _schema.COLUMNS.items():
        missing = needed - _columns(conn, table).keys()
        if missing:
            raise DatabaseError(
                f"the table {table} is not agentkit's: it lacks {', '.join(sorted(missing))}; "
                "choose another database, or a schema of its own with open_memory(schema=…)"
            )


def _columns(conn: Conn, table: str) -> dict[str, Any]:
    rows = conn.execute(
        "SELECT attname, atttypmod FROM pg_attribute "
        "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
        (table,),
    ).fetchall()
    return {row["attname"]: row["atttypmod"] for row in rows}


def _check_dims(conn: Conn, wanted: Wanted, dims: int) -> None:
    with conn.transaction():
        conn.execute(wanted.prelude or "SELECT 1")
        there = _columns(conn, "store_vectors").get("embedding")
    if there != dims:
        raise DatabaseError(
            f"the store's vectors have {there} dimensions, the embeddings {dims}; "
            "use the embeddings the store was made with, or another schema"
        )
