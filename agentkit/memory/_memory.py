"""An open memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from agentkit.errors import DefinitionError
from agentkit.memory import _people, _threads
from agentkit.memory._drive import adrive, drive
from agentkit.memory._keeping import arun, run
from agentkit.memory._people import Erased
from agentkit.memory._pool import acursor, cursor
from agentkit.memory._saver import AsyncPostgresSaver, PostgresSaver
from agentkit.memory._store import AsyncPostgresStore, PostgresStore
from agentkit.memory._threads import Retained, ThreadSize


@dataclass(frozen=True, kw_only=True)
class Memory:
    """An open database: `checkpointer` for threads, `store` for what outlives them. Closed by its context."""

    url: str = field(repr=False)
    checkpointer: PostgresSaver
    store: PostgresStore

    def threads(self, thread_ids: Sequence[str] | None = None, *, user: str | None = None) -> list[ThreadSize]:
        """What threads hold, the biggest first; all of them, or these, or those that this person has written to."""
        saver = self.checkpointer
        with cursor(saver.conn, saver.prelude) as cur:
            if user is not None:
                thread_ids = drive(_people.threads_of(user), cur)
            return drive(_threads.sizes(thread_ids), cur)

    def retain(
        self,
        *,
        keep_last: int | None = None,
        older_than: timedelta | None = None,
        keep_interrupted: bool = True,
        thread_ids: Sequence[str] | None = None,
    ) -> Retained:
        """Removes what is no longer wanted, thread by thread; runs that go on meanwhile are safe.

        Args:
            keep_last: in each thread, the newest checkpoints to keep, and what they are rebuilt from.
            older_than: threads not used for so long are deleted.
            keep_interrupted: threads that wait for an answer are not deleted.
            thread_ids: only these threads.

        Raises:
            DefinitionError: nothing is asked for, or keep_last is below 1.
        """
        _check(keep_last, older_than)
        found = self.threads(thread_ids)
        gone = _threads.outdated(found, older_than, datetime.now(UTC), keep_interrupted=keep_interrupted)
        saver = self.checkpointer
        saver.prune([thread.thread_id for thread in gone], strategy="delete")
        checkpoints = sum(thread.checkpoints for thread in gone)
        for thread in _threads.others(found, gone) if keep_last is not None else ():
            with cursor(saver.conn, saver.prelude, snapshot=True) as cur:
                checkpoints += drive(_threads.keep_last(thread.thread_id, keep_last or 1), cur)
        return Retained(threads=len(gone), checkpoints=checkpoints)

    def export(self, user: str, *, namespaces: Sequence[tuple[str, ...]] = ()) -> dict[str, Any]:
        """Everything kept about a person, as JSON: threads with their newest states, ledger, items with vectors.

        Args:
            user: the id by which `agentkit.tools.identity` knows the person.
            namespaces: places in the store that are also theirs, besides those made from their identity.
        """
        _people.check_user(user, namespaces)
        saver = self.checkpointer
        with cursor(saver.conn, saver.prelude, snapshot=True) as cur:
            ids = drive(_people.threads_of(user), cur)
            outlines = [drive(_people.outline(thread, saver.serde), cur) for thread in ids]
            items = drive(_people.items_of(user, namespaces, vectors=self.store.index.dims is not None), cur)
        threads = [run(_people.states(outline), saver) for outline in outlines]
        return _exported(user, threads, items)

    def erase(self, user: str, *, namespaces: Sequence[tuple[str, ...]] = ()) -> Erased:
        """Deletes everything kept about a person, in one transaction: what `export` shows, and older checkpoints.

        A thread that several people wrote to goes as a whole. Shared memories stay. What a run of theirs that still
        goes on stores afterwards is not deleted.
        """
        _people.check_user(user, namespaces)
        saver = self.checkpointer
        with cursor(saver.conn, saver.prelude, transaction=True) as cur:
            return drive(_people.erase(user, namespaces), cur)


@dataclass(frozen=True, kw_only=True)
class AsyncMemory:
    """As `Memory`, for the event loop it was opened in."""

    url: str = field(repr=False)
    checkpointer: AsyncPostgresSaver
    store: AsyncPostgresStore

    async def threads(self, thread_ids: Sequence[str] | None = None, *, user: str | None = None) -> list[ThreadSize]:
        """As `Memory.threads`."""
        saver = self.checkpointer
        async with acursor(saver.conn, saver.prelude) as cur:
            if user is not None:
                thread_ids = await adrive(_people.threads_of(user), cur)
            return await adrive(_threads.sizes(thread_ids), cur)

    async def retain(
        self,
        *,
        keep_last: int | None = None,
        older_than: timedelta | None = None,
        keep_interrupted: bool = True,
        thread_ids: Sequence[str] | None = None,
    ) -> Retained:
        """As `Memory.retain`."""
        _check(keep_last, older_than)
        found = await self.threads(thread_ids)
        gone = _threads.outdated(found, older_than, datetime.now(UTC), keep_interrupted=keep_interrupted)
        saver = self.checkpointer
        await saver.aprune([thread.thread_id for thread in gone], strategy="delete")
        checkpoints = sum(thread.checkpoints for thread in gone)
        for thread in _threads.others(found, gone) if keep_last is not None else ():
            async with acursor(saver.conn, saver.prelude, snapshot=True) as cur:
                checkpoints += await adrive(_threads.keep_last(thread.thread_id, keep_last or 1), cur)
        return Retained(threads=len(gone), checkpoints=checkpoints)

    async def export(self, user: str, *, namespaces: Sequence[tuple[str, ...]] = ()) -> dict[str, Any]:
        """As `Memory.export`."""
        _people.check_user(user, namespaces)
        saver = self.checkpointer
        async with acursor(saver.conn, saver.prelude, snapshot=True) as cur:
            ids = await adrive(_people.threads_of(user), cur)
            outlines = [await adrive(_people.outline(thread, saver.serde), cur) for thread in ids]
            items = await adrive(_people.items_of(user, namespaces, vectors=self.store.index.dims is not None), cur)
        threads = [await arun(_people.states(outline), saver) for outline in outlines]
        return _exported(user, threads, items)

    async def erase(self, user: str, *, namespaces: Sequence[tuple[str, ...]] = ()) -> Erased:
        """As `Memory.erase`."""
        _people.check_user(user, namespaces)
        saver = self.checkpointer
        async with acursor(saver.conn, saver.prelude, transaction=True) as cur:
            return await adrive(_people.erase(user, namespaces), cur)


def _exported(user: str, threads: list[dict[str, Any]], items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"user": user, "exported_at": datetime.now(UTC).isoformat(), "threads": threads, "items": items}


def _check(keep_last: int | None, older_than: timedelta | None) -> None:
    if keep_last is None and older_than is None:
        raise DefinitionError("retain: say what to keep, with keep_last=… or older_than=…")
    if keep_last is not None and keep_last < 1:
        raise DefinitionError(f"retain: keep_last is {keep_last}; a thread keeps at least its newest checkpoint")
