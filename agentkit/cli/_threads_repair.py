"""`agentkit threads check` and `repair`: what is open or wrong in one thread, and mending it."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import typer

from agentkit.cli._failures import Stop

__all__ = ["check", "repair"]

T = TypeVar("T")

Thread = Annotated[str, typer.Argument(help="The thread's id, as `agentkit threads list` shows it.")]
Graph = Annotated[
    str | None,
    typer.Option(help="The thread's graph: a name in langgraph.json, FILE.py:NAME or module:NAME; else the assistant."),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")]

_MEANS = {
    "finished": "its result is recorded; the run takes it from there",
    "in flight": "its process ended while it ran; its tool's policy decides",
    "waiting": "it asked a question or raised an error; it runs again",
    "not started": "it will run",
}


def check(
    thread: Thread,
    graph: Graph = None,
    debug: Debug = False,  # noqa: ARG001  read from the arguments by whoever reports the failure
) -> int:
    """Show a thread's open calls, what the ledger knows of them, and faults. Ends with 1 if there are faults."""
    from agentkit.agents import check_thread
    from agentkit.cli._view import View

    report = _with_graph(graph, thread, lambda made: check_thread(made, thread))
    if report.questions:
        print(f"it waits for {_count(report.questions, 'answer')}")
    elif report.next:
        print(f"it was left in the middle; a resumed run goes on with: {', '.join(report.next)}")
    else:
        print("it has come to its end; it takes the next message")
    if report.open_calls:
        rows = [
            [call.name or "(a subagent's call)", call.call_id, call.known, _when(call.since), _MEANS[call.known]]
            for call in report.open_calls
        ]
        View().table(["open call", "id", "ledger", "since", ""], rows)
    for fault in report.faults:
        print(f"fault: {fault.detail}")
    if report.faults:
        print(f"mend it with: agentkit threads repair {thread}")
    return 1 if report.faults else 0


def repair(
    thread: Thread,
    graph: Graph = None,
    give_up: Annotated[
        bool,
        typer.Option("--give-up", help="Close also calls that a resumed run would go on with, and their questions."),
    ] = False,
    debug: Debug = False,  # noqa: ARG001  as above
) -> int:
    """Mend a thread's history: every call gets its recorded result, or one that says what is known of it."""
    from agentkit.agents import repair_thread

    mended = _with_graph(graph, thread, lambda made: repair_thread(made, thread, give_up=give_up))
    for fault in mended:
        print(f"mended: {fault.detail}")
    if not mended:
        print("there was nothing to mend" + ("" if give_up else "; --give-up closes calls that are still open"))
    return 0


def _with_graph(wanted: str | None, thread: str, work: Callable[[Any], T]) -> T:
    from agentkit.cli._find import find_graph
    from agentkit.cli._open import open_graph
    from agentkit.memory import open_memory

    source = find_graph(wanted)

    async def main(checkpointer: Any, store: Any) -> T:
        async with AsyncExitStack() as stack:
            made = await open_graph(source, stack, model=None, checkpointer=checkpointer, store=store)
            return await asyncio.to_thread(work, made)

    with open_memory() as memory:
        try:
            return asyncio.run(main(memory.checkpointer, memory.store))
        except LookupError as error:
            raise Stop(f"there is no thread {thread!r}; `agentkit threads list` shows what there is") from error


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _when(seconds: float | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
