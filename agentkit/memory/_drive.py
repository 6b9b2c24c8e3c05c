"""Work on the database written once, for sync and async: a generator asks, a driver runs the statement.

def work() -> Steps[int]:
rows = yield Ask("SELECT …", (…,))
return len(rows)
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from psycopg import AsyncCursor, Cursor
from psycopg.rows import DictRow

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """A statement and its parameters. `prepare=False` lets Postgres plan with the arrays it gets."""

    sql: str
    params: tuple[Any, ...] | dict[str, Any] = ()
    prepare: bool | None = None


Steps = Generator[Ask, list[DictRow], T]


def drive(steps: Steps[T], cur: Cursor[DictRow]) -> T:
    """Runs the statements of `steps` on a cursor and gives the rows back to them."""
    try:
        ask = next(steps)
        while True:
            cur.execute(ask.sql, ask.params, prepare=ask.prepare)
            ask = steps.send(cur.fetchall() if cur.description else [])
    except StopIteration as done:
        result: T = done.value
        return result


async def adrive(steps: Steps[T], cur: AsyncCursor[DictRow]) -> T:
    """As `drive`."""
    try:
        ask = next(steps)
        while True:
            await cur.execute(ask.sql, ask.params, prepare=ask.prepare)
            ask = steps.send(await cur.fetchall() if cur.description else [])
    except StopIteration as done:
        result: T = done.value
        return result
