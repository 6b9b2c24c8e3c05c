"""The official Postgres savers, on a pool that is really used, with one statement per step."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.postgres import PostgresSaver as OfficialSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver as OfficialAsyncSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from psycopg import AsyncCursor, Cursor
from psycopg.rows import DictRow

from agentkit.memory import _deltas, _rows, _threads
from agentkit.memory._drive import adrive, drive
from agentkit.memory._patience import apatient, patient
from agentkit.memory._pool import AsyncPool, Pool, acursor, cursor
from agentkit.memory._versions import next_version

_NEWEST = "SELECT max(checkpoint_id) AS id FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s"


class PostgresSaver(OfficialSaver):
    """The checkpointer of a `Memory`. Its async methods work too, in a thread; `AsyncPostgresSaver` does better.

    `put` raises ThreadBusyError when another run has written to the thread since this run loaded it.
    """

    conn: Pool

    def __init__(self, pool: Pool, *, prelude: str = "", serde: SerializerProtocol | None = None) -> None:
        super().__init__(pool, serde=serde)
        self.prelude = prelude
        self._inline = not isinstance(self.serde, EncryptedSerializer)
        self._runs = _rows.Runs()

    def get_next_version(self, current: str | None, channel: None) -> str:  # noqa: ARG002  the base class has it
        """See `_versions`."""
        return next_version(current)

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Cursor[DictRow]]:
        with cursor(self.conn, self.prelude, transaction=pipeline) as cur:
            yield cur

    @patient
    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint `config` names, else the newest of its thread and namespace; None if there is none."""
        thread, ns = _rows.thread_key(config)
        found = super().get_tuple(config)
        run = self._runs.key(config)
        if run is not None and not self._runs.knows(run):
            newest = "" if found is None else found.config["configurable"]["checkpoint_id"]
            if config["configurable"].get("checkpoint_id"):  # time travel: newer ones are known to be there
                with self._cursor() as cur:
                    row = cur.execute(_NEWEST, (thread, ns)).fetchone()
                newest = (row and row["id"]) or ""
            self._runs.saw(run, config, newest)
        return found

    @patient
    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint with its blobs, in one statement. Raises ThreadBusyError, see the class."""
        run = self._runs.key(config)
        params = _rows.put_params(
            self.serde,
            config,
            checkpoint,
            metadata,
            new_versions,
            newest=self._runs.newest(run),
            inline=self._inline,
        )
        with self._cursor() as cur:
            row = cur.execute(_rows.PUT, params).fetchone()
        if row is None or not row["stored"]:
            raise self._runs.refused(config, checkpoint["id"])
        if run is not None and self._runs.knows(run):
            self._runs.saw(run, config, checkpoint["id"])
        return _rows.put_config(config, checkpoint)

    def holds(self, config: RunnableConfig) -> bool:
        """Whether this object knows, without asking the database, that the checkpoint `config` names is stored."""
        return self._runs.hold(config)

    def check_awaited(self, config: RunnableConfig) -> None:
        """For who waits for a checkpoint to appear: raises ThreadBusyError when its run has been refused."""
        self._runs.check(config)

    @patient
    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores the writes of a task, in one statement."""
        if writes:
            with self._cursor() as cur:
                cur.execute(*_rows.writes_statement(self.serde, config, writes, task_id, task_path))

    @patient
    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What delta channels are rebuilt from, see `_deltas`."""
        thread, ns = _rows.thread_key(config)
        with self._cursor() as cur:
            checkpoint = config["configurable"].get("checkpoint_id")
            if not checkpoint:
                row = cur.execute(_NEWEST, (thread, ns)).fetchone()
                checkpoint = (row and row["id"]) or ""
            return drive(_deltas.histories(self.serde, thread, ns, checkpoint, channels), cur)

    def delete_thread(self, thread_id: str) -> None:
        """Deletes all of a thread."""
        self.prune([thread_id], strategy="delete")

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints, writes and blobs of a thread to another, which keeps what it has of the same ids."""
        with self._cursor() as cur:
            drive(_threads.copy(str(source_thread_id), str(target_thread_id)), cur)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes what these runs wrote, except what later checkpoints of other runs are rebuilt from."""
        with cursor(self.conn, self.prelude, snapshot=True) as cur:
            drive(_threads.delete_runs([str(run) for run in run_ids]), cur)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`keep_latest` keeps each namespace's newest checkpoint and what it is rebuilt from; `delete` keeps nothing.

        Raises:
            ValueError: unknown strategy.
            TypeError: `thread_ids` is a single str.
        """
        for steps in _threads.prune(thread_ids, strategy):
            with cursor(self.conn, self.prelude, snapshot=True) as cur:
                drive(steps, cur)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  the base class named it
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`."""
        found = await asyncio.to_thread(lambda: list(self.list(config, filter=filter, before=before, limit=limit)))
        for item in found:
            yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put`."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """As `put_writes`."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread`."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune`."""
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """As `get_delta_channel_history`."""
        return await asyncio.to_thread(lambda: self.get_delta_channel_history(config=config, channels=channels))


class AsyncPostgresSaver(OfficialAsyncSaver):
    """The checkpointer of an `AsyncMemory`. Its sync methods work from other threads than the loop's."""

    conn: AsyncPool

    def __init__(self, pool: AsyncPool, *, prelude: str = "", serde: SerializerProtocol | None = None) -> None:
        super().__init__(pool, serde=serde)
        self.prelude = prelude
        self._inline = not isinstance(self.serde, EncryptedSerializer)
        self._runs = _rows.Runs()

    def get_next_version(self, current: str | None, channel: None) -> str:  # noqa: ARG002  the base class has it
        """See `_versions`."""
        return next_version(current)

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        async with acursor(self.conn, self.prelude, transaction=pipeline) as cur:
            yield cur

    @apatient
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint `config` names, else the newest of its thread and namespace; None if there is none."""
        thread, ns = _rows.thread_key(config)
        found = await super().aget_tuple(config)
        run = self._runs.key(config)
        if run is not None and not self._runs.knows(run):
            newest = "" if found is None else found.config["configurable"]["checkpoint_id"]
            if config["configurable"].get("checkpoint_id"):  # time travel: newer ones are known to be there
                async with self._cursor() as cur:
                    row = await (await cur.execute(_NEWEST, (thread, ns))).fetchone()
                newest = (row and row["id"]) or ""
            self._runs.saw(run, config, newest)
        return found

    @apatient
    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint with its blobs, in one statement. Raises ThreadBusyError, see the sync class."""
        run = self._runs.key(config)
        params = _rows.put_params(
            self.serde,
            config,
            checkpoint,
            metadata,
            new_versions,
            newest=self._runs.newest(run),
            inline=self._inline,
        )
        async with self._cursor() as cur:
            row = await (await cur.execute(_rows.PUT, params)).fetchone()
        if row is None or not row["stored"]:
            raise self._runs.refused(config, checkpoint["id"])
        if run is not None and self._runs.knows(run):
            self._runs.saw(run, config, checkpoint["id"])
        return _rows.put_config(config, checkpoint)

    def holds(self, config: RunnableConfig) -> bool:
        """Whether this object knows, without asking the database, that the checkpoint `config` names is stored."""
        return self._runs.hold(config)

    def check_awaited(self, config: RunnableConfig) -> None:
        """For who waits for a checkpoint to appear: raises ThreadBusyError when its run has been refused."""
        self._runs.check(config)

    @apatient
    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores the writes of a task, in one statement."""
        if writes:
            async with self._cursor() as cur:
                await cur.execute(*_rows.writes_statement(self.serde, config, writes, task_id, task_path))

    @apatient
    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What delta channels are rebuilt from, see `_deltas`."""
        thread, ns = _rows.thread_key(config)
        async with self._cursor() as cur:
            checkpoint = config["configurable"].get("checkpoint_id")
            if not checkpoint:
                row = await (await cur.execute(_NEWEST, (thread, ns))).fetchone()
                checkpoint = (row and row["id"]) or ""
            return await adrive(_deltas.histories(self.serde, thread, ns, checkpoint, channels), cur)

    async def adelete_thread(self, thread_id: str) -> None:
        """Deletes all of a thread."""
        await self.aprune([thread_id], strategy="delete")

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints, writes and blobs of a thread to another, which keeps what it has of the same ids."""
        async with self._cursor() as cur:
            await adrive(_threads.copy(str(source_thread_id), str(target_thread_id)), cur)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes what these runs wrote, except what later checkpoints of other runs are rebuilt from."""
        async with acursor(self.conn, self.prelude, snapshot=True) as cur:
            await adrive(_threads.delete_runs([str(run) for run in run_ids]), cur)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `PostgresSaver.prune`."""
        for steps in _threads.prune(thread_ids, strategy):
            async with acursor(self.conn, self.prelude, snapshot=True) as cur:
                await adrive(steps, cur)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `acopy_thread`, from another thread than the loop's."""
        self._wait(self.acopy_thread(source_thread_id, target_thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `adelete_for_runs`, from another thread than the loop's."""
        self._wait(self.adelete_for_runs(run_ids))

    def _wait(self, work: Any) -> None:
        try:
            inside = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            inside = False
        if inside:
            work.close()
            raise asyncio.InvalidStateError("this would block the event loop: use the method with `a` before its name")
        asyncio.run_coroutine_threadsafe(work, self.loop).result()
