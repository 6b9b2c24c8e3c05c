"""Work on the database written once, for sync and async: a generator asks, a driver answers.

def work() -> Steps[int]:
rows = yield Ask("SELECT …", (…,))
return len(rows)
"""

import inspect
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.embeddings import Embeddings
from psycopg import AsyncCursor, Cursor
from psycopg.rows import DictRow

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """A statement and its parameters; the answer is its rows. `prepare=False`: planned with the arrays it gets."""

    sql: str
    params: Sequence[Any] | dict[str, Any] = ()
    prepare: bool | None = None


@dataclass(frozen=True, slots=True)
class Embed:
    """Texts whose vectors are the answer."""

    texts: list[str]
    query: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """What the caller's function is called with; its result is the answer."""

    value: Any


Steps = Generator[Ask | Embed | Call, Any, T]
Function = Callable[[Any], Any]


def drive(
    steps: Steps[T], cur: Cursor[DictRow], embeddings: Embeddings | None = None, function: Function | None = None
) -> T:
    """Answers what `steps` asks, on a cursor, until it is done."""
    try:
        step = next(steps)
        while True:
            answer: Any
            if isinstance(step, Ask):
                cur.execute(step.sql, step.params, prepare=step.prepare)
                answer = cur.fetchall() if cur.description else []
            elif isinstance(step, Embed):
                assert embeddings is not None  # noqa: S101  only asked for where there are some
                answer = embed(embeddings, step)
            else:
                assert function is not None  # noqa: S101  as above
                answer = function(step.value)
            step = steps.send(answer)
    except StopIteration as done:
        result: T = done.value
        return result


async def adrive(
    steps: Steps[T],
    cur: AsyncCursor[DictRow],
    embeddings: Embeddings | None = None,
    function: Callable[[Any], Any | Awaitable[Any]] | None = None,
) -> T:
    """As `drive`; the function may be async."""
    try:
        step = next(steps)
        while True:
            answer: Any
            if isinstance(step, Ask):
                await cur.execute(step.sql, step.params, prepare=step.prepare)
                answer = await cur.fetchall() if cur.description else []
            elif isinstance(step, Embed):
                assert embeddings is not None  # noqa: S101  only asked for where there are some
                answer = await aembed(embeddings, step)
            else:
                assert function is not None  # noqa: S101  as above
                answer = function(step.value)
                if inspect.isawaitable(answer):
                    answer = await answer
            step = steps.send(answer)
    except StopIteration as done:
        result: T = done.value
        return result


def embed(embeddings: Embeddings, step: Embed) -> list[list[float]]:
    """The vectors of texts, in their order."""
    if step.query:
        return [embeddings.embed_query(text) for text in step.texts]
    return embeddings.embed_documents(step.texts)


async def aembed(embeddings: Embeddings, step: Embed) -> list[list[float]]:
    """As `embed`."""
    if step.query:
        return [await embeddings.aembed_query(text) for text in step.texts]
    return await embeddings.aembed_documents(step.texts)
