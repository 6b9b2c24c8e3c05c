"""The stores on Postgres."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal

import psycopg
from langgraph.store.base import Op, Result, SearchItem, TTLConfig

from agentkit.errors import NotStorableError
from agentkit.memory import _store_sql
from agentkit.memory._drive import Steps, T, adrive, drive
from agentkit.memory._pool import AsyncPool, Pool, acursor, cursor
from agentkit.memory._store_base import (
    PUT,
    SEARCH,
    By,
    Index,
    Page,
    Store,
    Value,
    Work,
    check_target,
    plan,
    read_cursor,
    search_op,
    settle,
)

logger = logging.getLogger("agentkit.memory")

# errors of one operation, which its neighbours need not share
_OF_ONE = (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError, ValueError)


def _clear(error: Exception) -> Exception:
    if isinstance(error, psycopg.DataError):
        return NotStorableError(f"Postgres cannot hold what was given: {str(error).splitlines()[0]}")
    return error


class PostgresStore(Store):
    """The store of a `Memory`. Its async methods work too, in a thread; `AsyncPostgresStore` does better."""

    def __init__(
        self, pool: Pool, *, prelude: str = "", index: Index | None = None, ttl: TTLConfig | None = None
    ) -> None:
        super().__init__(index or Index(), ttl)
        self._pool = pool
        self._prelude = prelude
        self._sweeper: threading.Thread | None = None
        self._stop = threading.Event()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Does the operations in their order; see `Store` for what a bad one does."""
        return self._batch(ops, None)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _batch(self, ops: Iterable[Op], by: By | None) -> list[Result]:
        works, results = plan(ops)
        for group in works:
            self._do(group, by, results)
        return settle(results)

    def _do(self, group: Work, by: By | None, results: list[Result | Exception]) -> None:
        try:
            chosen = self.search_by(group.ops[0][1], by) if group.kind is SEARCH else None
            steps = _store_sql.work(group, self.index, chosen)
            answers = self._run(steps, transaction=group.kind is PUT and self.index.embeddings is not None)
        except _OF_ONE as error:
            if len(group.ops) == 1:
                results[group.ops[0][0]] = _clear(error)
                return
            for one in group.ops:
                self._do(Work(group.kind, [one]), by, results)
            return
        for (place, _), answer in zip(group.ops, answers, strict=True):
            results[place] = answer

    def _run(self, steps: Steps[T], *, transaction: bool = False, function: Callable[[Any], Any] | None = None) -> T:
        with cursor(self._pool, self._prelude, transaction=transaction) as cur:
            return drive(steps, cur, self.index.embeddings, function)

    def find(
        self,
        namespace_prefix: tuple[str, ...],
        query: str,
        *,
        by: By | None = None,
        filter: Value | None = None,  # noqa: A002  as in BaseStore.search
        limit: int = 10,
        offset: int = 0,
    ) -> list[SearchItem]:
        """See `Store.find`."""
        found: Any = self._batch([search_op(namespace_prefix, query, filter, limit, offset)], by)[0]
        return list(found)

    async def afind(self, namespace_prefix: tuple[str, ...], query: str, **how: Any) -> list[SearchItem]:
        """See `Store.find`."""
        return await asyncio.to_thread(lambda: self.find(namespace_prefix, query, **how))

    def update(
        self,
        namespace: tuple[str, ...],
        key: str,
        change: Callable[[Value | None], Value | None],
        *,
        index: Literal[False] | list[str] | None = None,
        ttl: float | None = None,
    ) -> Value | None:
        """See `Store.update`."""
        check_target(namespace, key)
        steps = _store_sql.update(namespace, key, self.index, index, ttl)
        return self._run(steps, transaction=True, function=change)

    async def aupdate(
        self, namespace: tuple[str, ...], key: str, change: Callable[[Value | None], Any], **how: Any
    ) -> Value | None:
        """See `Store.update`. An async `change` runs in the event loop."""
        loop = asyncio.get_running_loop()

        def call(value: Value | None) -> Any:
            async def inside() -> Any:
                answer = change(value)
                return await answer if isinstance(answer, Awaitable) else answer

            return asyncio.run_coroutine_threadsafe(inside(), loop).result()

        return await asyncio.to_thread(lambda: self.update(namespace, key, call, **how))

    def page(
        self,
        namespace_prefix: tuple[str, ...],
        *,
        filter: Value | None = None,  # noqa: A002  as in BaseStore.search
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """See `Store.page`."""
        search_op(namespace_prefix, None, filter, limit)
        return self._run(_store_sql.page(namespace_prefix, filter, limit, read_cursor(cursor, limit)))

    async def apage(self, namespace_prefix: tuple[str, ...], **how: Any) -> Page:
        """See `Store.page`."""
        return await asyncio.to_thread(lambda: self.page(namespace_prefix, **how))

    def count(self) -> int:
        """How many items there are."""
        with cursor(self._pool, self._prelude) as cur:
            row = cur.execute(_store_sql.COUNT).fetchone()
        return int(row["n"]) if row else 0

    def sweep(self) -> int:
        """Deletes items past their lifetime. Returns how many."""
        with cursor(self._pool, self._prelude) as cur:
            return len(cur.execute(_store_sql.SWEEP).fetchall())

    def start_sweeper(self, seconds: float) -> None:
        """Sweeps every so often, in a thread, until `stop_sweeper`."""

        def run() -> None:
            while not self._stop.wait(seconds):
                try:
                    while self.sweep():
                        pass
                except Exception:
                    logger.exception("sweeping expired items failed; it will be tried again")

        self._sweeper = threading.Thread(target=run, name="agentkit-sweeper", daemon=True)
        self._sweeper.start()

    def stop_sweeper(self) -> None:
        """Ends the thread."""
        self._stop.set()
        if self._sweeper is not None:
            self._sweeper.join()


class AsyncPostgresStore(Store):
    """The store of an `AsyncMemory`. Its sync methods work from other threads than the event loop's."""

    def __init__(
        self, pool: AsyncPool, *, prelude: str = "", index: Index | None = None, ttl: TTLConfig | None = None
    ) -> None:
        super().__init__(index or Index(), ttl)
        self._pool = pool
        self._prelude = prelude
        self._loop = asyncio.get_running_loop()
        self._sweeper: asyncio.Task[None] | None = None

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Does the operations in their order; see `Store` for what a bad one does."""
        return await self._batch(ops, None)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """As `abatch`, from another thread than the event loop's."""
        results: list[Result] = self._wait(self.abatch(list(ops)))
        return results

    async def _batch(self, ops: Iterable[Op], by: By | None) -> list[Result]:
        works, results = plan(ops)
        for group in works:
            await self._do(group, by, results)
        return settle(results)

    async def _do(self, group: Work, by: By | None, results: list[Result | Exception]) -> None:
        try:
            chosen = self.search_by(group.ops[0][1], by) if group.kind is SEARCH else None
            steps = _store_sql.work(group, self.index, chosen)
            answers = await self._run(steps, transaction=group.kind is PUT and self.index.embeddings is not None)
        except _OF_ONE as error:
            if len(group.ops) == 1:
                results[group.ops[0][0]] = _clear(error)
                return
            for one in group.ops:
                await self._do(Work(group.kind, [one]), by, results)
            return
        for (place, _), answer in zip(group.ops, answers, strict=True):
            results[place] = answer

    async def _run(
        self, steps: Steps[T], *, transaction: bool = False, function: Callable[[Any], Any] | None = None
    ) -> T:
        async with acursor(self._pool, self._prelude, transaction=transaction) as cur:
            return await adrive(steps, cur, self.index.embeddings, function)

    def _wait(self, work: Any) -> Any:
        try:
            inside = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            inside = False
        if inside:
            work.close()
            raise asyncio.InvalidStateError("this would block the event loop: use the method with `a` before its name")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def afind(
        self,
        namespace_prefix: tuple[str, ...],
        query: str,
        *,
        by: By | None = None,
        filter: Value | None = None,  # noqa: A002  as in BaseStore.search
        limit: int = 10,
        offset: int = 0,
    ) -> list[SearchItem]:
        """See `Store.find`."""
        found: Any = (await self._batch([search_op(namespace_prefix, query, filter, limit, offset)], by))[0]
        return list(found)

    def find(self, namespace_prefix: tuple[str, ...], query: str, **how: Any) -> list[SearchItem]:
        """See `Store.find`; from another thread than the event loop's."""
        found: list[SearchItem] = self._wait(self.afind(namespace_prefix, query, **how))
        return found

    async def aupdate(
        self,
        namespace: tuple[str, ...],
        key: str,
        change: Callable[[Value | None], Value | Awaitable[Value | None] | None],
        *,
        index: Literal[False] | list[str] | None = None,
        ttl: float | None = None,
    ) -> Value | None:
        """See `Store.update`."""
        check_target(namespace, key)
        steps = _store_sql.update(namespace, key, self.index, index, ttl)
        return await self._run(steps, transaction=True, function=change)

    def update(
        self, namespace: tuple[str, ...], key: str, change: Callable[[Value | None], Value | None], **how: Any
    ) -> Value | None:
        """See `Store.update`; from another thread than the event loop's."""
        value: Value | None = self._wait(self.aupdate(namespace, key, change, **how))
        return value

    async def apage(
        self,
        namespace_prefix: tuple[str, ...],
        *,
        filter: Value | None = None,  # noqa: A002  as in BaseStore.search
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """See `Store.page`."""
        search_op(namespace_prefix, None, filter, limit)
        return await self._run(_store_sql.page(namespace_prefix, filter, limit, read_cursor(cursor, limit)))

    def page(self, namespace_prefix: tuple[str, ...], **how: Any) -> Page:
        """See `Store.page`; from another thread than the event loop's."""
        found: Page = self._wait(self.apage(namespace_prefix, **how))
        return found

    async def sweep(self) -> int:
        """Deletes items past their lifetime. Returns how many."""
        async with acursor(self._pool, self._prelude) as cur:
            return len(await (await cur.execute(_store_sql.SWEEP)).fetchall())

    def start_sweeper(self, seconds: float) -> None:
        """Sweeps every so often, in a task, until `stop_sweeper`."""

        async def run() -> None:
            while True:
                await asyncio.sleep(seconds)
                try:
                    while await self.sweep():
                        pass
                except Exception:
                    logger.exception("sweeping expired items failed; it will be tried again")

        self._sweeper = asyncio.create_task(run(), name="agentkit-sweeper")

    async def stop_sweeper(self) -> None:
        """Ends the task."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
