"""Looking at a thread from outside: its open calls, what the ledger knows of them, its faults; and mending it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.pregel import Pregel
from langgraph.types import StateSnapshot

from agentkit.agents._model_call import changes
from agentkit.errors import DefinitionError
from agentkit.messages import Fault, open_calls, repair_history
from agentkit.messages._results import missing_result
from agentkit.tools._ledger import NOTHING, Key, Record, fold, merged
from agentkit.tools._ledger_io import events_in
from agentkit.tools._recovered import LOOKED_BACK, Open, recovered_in

__all__ = ["OpenCall", "ThreadReport", "check_thread", "repair_thread"]

Known = Literal["finished", "in flight", "waiting", "not started"]


@dataclass(frozen=True, kw_only=True)
class OpenCall:
    """A tool call without a result in the thread's history.

    known: what the ledger says. "finished": its result is recorded and will be used; "in flight": the process that ran
    it ended, and its tool's policy decides; "waiting": it asked a question or raised, and runs again; "not started".
    since: when that happened, in seconds since 1970; None where the ledger has nothing.
    namespace: the graph it belongs to, "" for the outermost.
    """

    name: str
    call_id: str
    known: Known
    since: float | None
    namespace: str


@dataclass(frozen=True, kw_only=True)
class ThreadReport:
    """What `check_thread` found.

    next: the nodes that a resumed run starts with; none if the thread has come to its end.
    questions: how many answers it waits for.
    faults: what a strict provider would refuse in its history, apart from calls that are still to be run.
    """

    thread_id: str
    next: tuple[str, ...]
    questions: int
    open_calls: Sequence[OpenCall]
    faults: Sequence[Fault]


def check_thread(graph: Pregel[Any, Any, Any, Any], thread_id: str, *, messages_key: str = "messages") -> ThreadReport:
    """Look at a thread of `graph`, which needs a checkpointer with sync methods. Changes nothing.

    Raises:
        LookupError: there is no such thread.
        DefinitionError: the graph has no checkpointer.
    """
    saver, state = _opened(graph, thread_id)
    messages: list[AnyMessage] = state.values.get(messages_key, [])
    faults = list(_faults(messages, pending=bool(state.next)))
    heads = _heads(saver, thread_id)
    found = [_described(call, message, heads.get("", {}), "") for message, call in _unanswered(messages)]
    nested = [
        OpenCall(name="", call_id=key[1], known=_known(record), since=record.since, namespace=namespace)
        for namespace, records in heads.items()
        if namespace and state.next
        for key, record in records.items()
        if not record.finished
    ]
    return ThreadReport(
        thread_id=thread_id,
        next=tuple(state.next),
        questions=len(state.interrupts),
        open_calls=[*found, *nested],
        faults=faults,
    )


def repair_thread(
    graph: Pregel[Any, Any, Any, Any], thread_id: str, *, give_up: bool = False, messages_key: str = "messages"
) -> list[Fault]:
    """Mend the history of a thread, and return what was wrong with it.

    Calls that a resumed run would go on with are left alone, unless `give_up`: then each gets its recorded result and
    state updates, or one that says what is known, and open questions are dropped.

    Raises:
        LookupError: there is no such thread.
        DefinitionError: the graph has no checkpointer.
    """
    saver, state = _opened(graph, thread_id)
    messages: list[AnyMessage] = state.values.get(messages_key, [])
    kept = _resumable(messages) if state.next and not give_up else ()
    asked: list[Open] = []

    def collect(message: AIMessage, call: ToolCall) -> ToolMessage:
        asked.append((message, call))
        return missing_result(message, call)

    head = messages[: len(messages) - len(kept)]
    _, faults = repair_history(head, collect)
    if not faults:
        return []
    place: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    found = recovered_in(saver.list(place, limit=LOOKED_BACK), asked, messages_key)

    def answer(message: AIMessage, call: ToolCall) -> ToolMessage:
        return found.results.get((message.id or "", call["id"] or "")) or missing_result(message, call)

    repaired, _ = repair_history(head, answer)
    node = "model" if "model" in graph.nodes else None
    for command in found.updates:
        graph.update_state(place, dict(command.update or ()), as_node=node)
    graph.update_state(place, {messages_key: changes(messages, [*repaired, *kept])}, as_node=node)
    return faults


def _opened(graph: Pregel[Any, Any, Any, Any], thread_id: str) -> tuple[BaseCheckpointSaver[Any], StateSnapshot]:
    saver = graph.checkpointer
    if not isinstance(saver, BaseCheckpointSaver):
        raise DefinitionError("this graph has no checkpointer; compile it with one, or give create_agent checkpointer=")
    state = graph.get_state({"configurable": {"thread_id": thread_id}})
    if not state.created_at:
        raise LookupError(f"there is no thread {thread_id!r}")
    # by its id, the checkpoint as it is stored: update_state does not take along what finished tasks have written
    return saver, graph.get_state(state.config)


def _heads(saver: BaseCheckpointSaver[Any], thread_id: str) -> dict[str, dict[Key, Record]]:
    """The ledger of each graph of the thread, by namespace: of its newest checkpoint, and what that was edited from."""
    found: dict[str, dict[Key, Record]] = {}
    closed: set[str] = set()
    for item in saver.list({"configurable": {"thread_id": thread_id}}, limit=5 * LOOKED_BACK):
        namespace = item.config["configurable"].get("checkpoint_ns", "")
        if namespace not in closed:
            found[namespace] = merged(fold(events_in(item)), found.get(namespace, {}))
            if not _is_edit(item):
                closed.add(namespace)
    return found


def _is_edit(item: CheckpointTuple) -> bool:
    return item.metadata.get("source") in ("update", "fork")


def _unanswered(messages: Sequence[AnyMessage]) -> list[Open]:
    last = next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)
    return [] if last is None else [(last, call) for call in open_calls(messages)]


def _resumable(messages: list[AnyMessage]) -> list[AnyMessage]:
    """The end of a history that a resumed run goes on with: the last AI message with open calls, and its results."""
    if not open_calls(messages):
        return []
    start = max(index for index, message in enumerate(messages) if isinstance(message, AIMessage))
    tail = messages[start:]
    return tail if all(isinstance(message, ToolMessage) for message in tail[1:]) else []


def _faults(messages: list[AnyMessage], *, pending: bool) -> Sequence[Fault]:
    kept = _resumable(messages) if pending else []
    return repair_history(messages[: len(messages) - len(kept)])[1]


def _described(call: ToolCall, message: AIMessage, records: dict[Key, Record], namespace: str) -> OpenCall:
    record = records.get((message.id or "", call["id"] or ""), NOTHING)
    return OpenCall(
        name=call["name"],
        call_id=call["id"] or "",
        known=_known(record),
        since=record.since or None,
        namespace=namespace,
    )


def _known(record: Record) -> Known:
    if record.finished:
        return "finished"
    if record.in_flight:
        return "in flight"
    return "waiting" if record.attempt else "not started"
