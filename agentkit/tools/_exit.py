"""Leaving to a parent graph: the Commands of a batch that are bound for it go together, with what its history needs."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.types import Command, Send

from agentkit.tools._outcome import Outcome, parent_parts


def leave_together(message: AIMessage | None, outcomes: Sequence[Outcome], messages_key: str) -> Command[Any]:
    """One Command for the parent graph from the outcomes of a batch, in call order.

    Its messages are the AI message with the calls, the results of all calls directly after it, then what else the
    Commands bring; an AI message or result that a Command already carries is not added twice. Keys that several
    Commands write are written in call order, so that the parent's reducer decides. All targets follow one another.
    """
    leaving = [item for outcome in outcomes for item in outcome.items if isinstance(item, Command) and _leaves(item)]
    results = {outcome.result.tool_call_id: outcome.result for outcome in outcomes if outcome.result is not None}
    carried: list[BaseMessage] = []
    updates: list[tuple[str, Any]] = []
    goto: list[Send | str] = []
    for command in leaving:
        messages, rest, targets = parent_parts(command, messages_key)
        carried.extend(messages)
        updates.extend(rest)
        goto.extend(target for target in targets if target not in goto or isinstance(target, Send))
    history = _history(message, results, carried)
    return Command(graph=leaving[0].graph, update=[(messages_key, history), *updates], goto=goto)


def _leaves(command: Command[Any]) -> bool:
    return command.graph is not None


def _history(
    message: AIMessage | None, results: dict[str, ToolMessage], carried: Sequence[BaseMessage]
) -> list[BaseMessage]:
    """What was carried, with the AI message and the batch's results in their place, each once."""
    if message is None:
        return [*results.values(), *(m for m in carried if not _is_result(m, results))]
    ordered = [results[call["id"]] for call in message.tool_calls if call["id"] in results]
    out: list[BaseMessage] = []
    seen: set[str] = set()
    placed = False
    for item in carried:
        if item.id is not None and item.id in seen:
            continue
        if item.id is not None:
            seen.add(item.id)
        if item.id == message.id and isinstance(item, AIMessage):
            out += [message, *ordered]
            placed = True
        elif not _is_result(item, results):
            out.append(item)
    return out if placed else [message, *ordered, *out]


def _is_result(message: BaseMessage, results: dict[str, ToolMessage]) -> bool:
    return isinstance(message, ToolMessage) and message.tool_call_id in results
