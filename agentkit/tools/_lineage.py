"""Where a checkpoint comes from: does it go on with the calls of its parent, or replay them on a branch of its own?"""

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

_BRANCHES = ("update", "fork")
AROUND = 50  # checkpoints of a thread that are looked at, newest first


@dataclass(frozen=True, kw_only=True, slots=True)
class Lineage:
    """A checkpoint and its parent, where it was made by `update_state` or by running an earlier checkpoint again."""

    checkpoint_id: str
    parent_id: str | None
    is_branch: bool
    thread: RunnableConfig

    @classmethod
    def of(cls, found: CheckpointTuple) -> "Lineage":
        """The lineage of a checkpoint."""
        place = found.config["configurable"]
        parent = _id(found.parent_config)
        return cls(
            checkpoint_id=place["checkpoint_id"],
            parent_id=parent,
            is_branch=parent is not None and found.metadata.get("source") in _BRANCHES,
            thread={
                "configurable": {
                    "thread_id": place["thread_id"],
                    "checkpoint_ns": place.get("checkpoint_ns", ""),
                }
            },
        )

    def look(self, around: Sequence[CheckpointTuple]) -> tuple[list[CheckpointTuple], bool]:
        """The checkpoints this one continues, oldest first, and whether the thread had gone on from them elsewhere.

        `update_state` at the head of a thread makes a child of a checkpoint that has no other: the same calls are
        still to be run. A checkpoint of the past already has a child, so this is another branch.
        """
        by_id = {item.config["configurable"]["checkpoint_id"]: item for item in around}
        chain: list[str] = [self.checkpoint_id]
        at = self.parent_id
        while at is not None and at in by_id:
            chain.append(at)
            item = by_id[at]
            if item.metadata.get("source") not in _BRANCHES:
                break
            at = _id(item.parent_config)
        mine = set(chain)
        superseded = any(
            _id(item.parent_config) in chain[1:] and item.config["configurable"]["checkpoint_id"] not in mine
            for item in around
        )
        return [by_id[each] for each in reversed(chain[1:]) if each in by_id], superseded


def _id(config: RunnableConfig | None) -> str | None:
    return None if config is None else config["configurable"].get("checkpoint_id")
