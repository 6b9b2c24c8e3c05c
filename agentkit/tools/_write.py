"""What the tools node writes: results and Commands in call order, shaped as langgraph shapes them."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command, Send

from agentkit.messages import unreadable_result
from agentkit.tools._batch import Batch
from agentkit.tools._exit import leave_together
from agentkit.tools._langgraph import plain_keys
from agentkit.tools._outcome import Item, Outcome, results_in, targets_of
from agentkit.tools._turn import give_up

logger = logging.getLogger(__name__)

Targets: TypeAlias = "str | Sequence[Send | str] | None"
Route: TypeAlias = Callable[[ToolCall, BaseTool | None, ToolMessage | None, Sequence[Send | str]], Targets]


def combined(batch: Batch, outcomes: Sequence[Outcome]) -> Any:
    """`{messages_key: results}` or the list of results; a list of updates and Commands where there is a Command."""
    items: list[Item] = _sent_together([item for outcome in outcomes for item in outcome.items])
    first: list[Any] = [batch.message] if batch.renamed and batch.message is not None and batch.message.id else []
    items += [unreadable_result(call) for call in batch.unreadable]
    if not any(isinstance(item, Command) for item in items):
        messages = [*first, *items]
        return messages if batch.form == "list" else {batch.messages_key: messages}
    items = _last_of_plain(batch, items)
    wrapped: list[Any] = [*first, *items]
    return [
        item if isinstance(item, Command) else [item] if batch.form == "list" else {batch.messages_key: [item]}
        for item in wrapped
    ]


def routed(batch: Batch, outcomes: Sequence[Outcome], route: Route) -> list[Command[Any]]:
    """Each outcome as Commands, the last of which goes where the graph's `route` says."""
    commands: list[Command[Any]] = []
    for outcome, running in zip(outcomes, batch.ran, strict=True):
        goto = route(running.call, running.tool, outcome.result, outcome.goto) or ()
        own = [
            replace(item, goto=()) if isinstance(item, Command) else Command(update={batch.messages_key: [item]})
            for item in outcome.items
        ]
        last = own.pop() if own else Command()
        commands += [*own, replace(last, goto=goto)]
    return commands


def stay_behind(outcome: Outcome, messages_key: str) -> Outcome:
    """The outcome without its Commands for a parent graph, when another call of the batch takes them there."""
    items = [item for item in outcome.items if not (isinstance(item, Command) and item.graph is not None)]
    if outcome.result is not None and outcome.result not in results_in(items, messages_key):
        items.append(outcome.result)
    return Outcome(result=outcome.result, items=tuple(items))


def exit_of(batch: Batch, outcomes: Sequence[Outcome]) -> Command[Any] | None:
    """The Command that takes the whole batch to the parent graph, if this invocation is the one to send it."""
    if not batch.in_graph:
        return None
    leaving = any(outcome.leaves for outcome in outcomes)
    if not batch.shared:
        return leave_together(batch.message, outcomes, batch.messages_key) if leaving else None
    turn, seat = batch.turn, batch.ran[0].seat
    expected = batch.expected()
    goes = turn.may_exit(seat, expected, leaving=leaving)
    if expected is not None and turn.has_ended(expected):
        give_up(batch.step)
    if not goes:
        return None
    return leave_together(batch.message, turn.outcomes(), batch.messages_key)


def _sent_together(items: list[Item]) -> list[Item]:
    """Outside a graph, the Commands that only send to the parent's nodes become one, as langgraph's node does it."""
    out: list[Item] = []
    first: int | None = None
    for item in items:
        if isinstance(item, Command) and item.graph is not None and _only_sends(item.goto):
            if first is not None:
                earlier: Any = out[first]
                out[first] = replace(earlier, goto=[*earlier.goto, *targets_of(item.goto)])
                continue
            first = len(out)
        out.append(item)
    return out


def _only_sends(goto: Any) -> bool:
    return isinstance(goto, list) and all(isinstance(target, Send) for target in goto)


def _last_of_plain(batch: Batch, items: list[Item]) -> list[Item]:
    """Of a key without a reducer only the last write in call order is kept, as if the calls had run in turn."""
    writers: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        if isinstance(item, Command) and item.graph is None and isinstance(item.update, dict):
            for key in item.update:
                if key != batch.messages_key:
                    writers.setdefault(key, []).append(index)
    doubled = {key: where for key, where in writers.items() if len(where) > 1}
    plain = plain_keys(batch.config) if doubled else frozenset()
    items = list(items)
    for key in doubled.keys() & plain:
        logger.warning("StateConflict: %d calls of one batch wrote %r, which has no reducer; the last one counts",
                       len(doubled[key]), key)  # fmt: skip
        for index in doubled[key][:-1]:
            command: Any = items[index]
            items[index] = replace(command, update={name: v for name, v in command.update.items() if name != key})
    return items
