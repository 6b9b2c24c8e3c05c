"""An open memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from agentkit.errors import DefinitionError
from agentkit.memory import _threads
from agentkit.memory._drive import adrive, drive
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

    def threads(self, thread_ids: Sequence[str] | None = None) -> list[ThreadSize]:
        """What threads hold, the biggest first; all of them, or these."""
        saver = self.checkpointer
        with cursor(saver.conn, saver.prelude) as cur:
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


@dataclass(frozen=True, kw_only=True)
class AsyncMemory:
    """As `Memory`, for the event loop it was opened in."""

    url: str = field(repr=False)
    checkpointer: AsyncPostgresSaver
    store: AsyncPostgresStore

    async def threads(self, thread_ids: Sequence[str] | None = None) -> list[ThreadSize]:
        """As `Memory.threads`."""
        saver = self.checkpointer
        async with acursor(saver.conn, saver.prelude) as cur:
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


def _check(keep_last: int | None, older_than: timedelta | None) -> None:
    if keep_last is None and older_than is None:
        raise DefinitionError("retain: say what to keep, with keep_last=… or older_than=…")
    if keep_last is not None and keep_last < 1:
        raise DefinitionError(f"retain: keep_last is {keep_last}; a thread keeps at least its newest checkpoint")
