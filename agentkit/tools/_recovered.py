"""Calls that were left open: what the ledger of a thread's recent checkpoints knows of them.

A new message, `update_state` or a run that was given up can leave calls without a result. langgraph drops what their
finished siblings wrote; the ledger still has it, under the checkpoint where they ran.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import Command

from agentkit.messages import error_result
from agentkit.tools._langgraph import checkpointer_of, runtime_of
from agentkit.tools._ledger import NOTHING, Key, Record, fold, merged, signature_of
from agentkit.tools._ledger_io import Recent, events_in, thread_of
from agentkit.tools._outcome import Outcome, messages_in
from agentkit.tools._recovery import unknown_text
from agentkit.tools._steps import Story

LOOKED_BACK = 20
"""How many checkpoints of a thread are looked at, newest first."""

Open = tuple[AIMessage, ToolCall]


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovered:
    """What is known of open calls.

    results: the results of those of which something is known, by key; honest error results where that is not much.
    updates: the state updates of those that had finished, in call order, without their messages.
    """

    results: Mapping[Key, ToolMessage] = field(default_factory=dict)
    updates: Sequence[Command[Any]] = ()


def recover(config: RunnableConfig, calls: Sequence[Open], messages_key: str = "messages") -> Story[Recovered]:
    """Look for open calls in the ledger of the thread and graph that the node with this config belongs to."""
    saver, info = checkpointer_of(config), runtime_of(config).execution_info
    if saver is None or info is None or info.thread_id is None or not calls:
        return Recovered()
    place = {"thread_id": thread_of(info), "checkpoint_ns": info.checkpoint_ns.rpartition("|")[0]}
    checkpoints = yield Recent(saver, {"configurable": place}, LOOKED_BACK)
    return recovered_in(checkpoints, calls, messages_key)


def recovered_in(
    checkpoints: Iterable[CheckpointTuple], calls: Sequence[Open], messages_key: str = "messages"
) -> Recovered:
    """What the ledger in these checkpoints, newest first, knows of the calls."""
    known: Mapping[Key, Record] = {}
    for found in checkpoints:
        known = merged(fold(events_in(found)), known)
    results: dict[Key, ToolMessage] = {}
    updates: list[Command[Any]] = []
    for message, call in calls:
        key = (message.id or "", call["id"] or "")
        record = known.get(key, NOTHING)
        if record is NOTHING or (record.signature and record.signature != signature_of(call)):
            continue
        outcome = record.outcome(call, messages_key) if record.finished else None
        if outcome is not None and outcome.result is not None and not outcome.leaves:
            results[key] = outcome.result
            updates += _updates(outcome, messages_key)
        elif (text := _told(record, call["name"])) is not None:
            results[key] = error_result(call, text, message_id=message.id)
    return Recovered(results=results, updates=updates)


def _told(record: Record, name: str) -> str | None:
    if record.in_flight:
        return unknown_text(name)
    if record.finished:
        return f"Not completed: {name} was to hand over to another agent when the conversation went on without it."
    if record.attempt:
        return (
            f"Not completed: this call of {name} was waiting, or had failed, when the conversation went on without it. "
            "Call it again if it is still needed."
        )
    return None


def _updates(outcome: Outcome, messages_key: str) -> list[Command[Any]]:
    """The state updates of a finished call, without messages and without where it wanted to go."""
    found: list[Command[Any]] = []
    for item in outcome.items:
        if not isinstance(item, Command) or item.update is None:
            continue
        whole = messages_in(item.update, messages_key)
        update = item.update if whole is None or whole.update is None else whole.update
        pairs = (
            list(update.items()) if isinstance(update, dict) else [pair for pair in update if isinstance(pair, tuple)]
        )
        if rest := [(key, value) for key, value in pairs if key != messages_key]:
            found.append(Command(update=rest))
    return found
