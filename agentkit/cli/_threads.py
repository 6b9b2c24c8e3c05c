"""`agentkit threads`: what threads hold, and removing what is no longer wanted."""

import re
import sys
from datetime import timedelta
from typing import Annotated

import typer

from agentkit.cli import _threads_repair
from agentkit.cli._failures import Stop

__all__ = ["app"]

app = typer.Typer(help="Threads: what they hold, and which to keep.", no_args_is_help=True)

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")]
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@app.command("list")
def list_threads(
    sizes: Annotated[bool, typer.Option("--sizes", help="The biggest first, with their sizes.")] = False,
    debug: Debug = False,  # noqa: ARG001  read from the arguments by whoever reports the failure
) -> int:
    """List the threads, the last used first."""
    from agentkit.cli._view import View
    from agentkit.memory import open_memory

    with open_memory() as memory:
        threads = memory.threads()
    if not threads:
        print("there are no threads yet", file=sys.stderr)
        return 0
    if not sizes:
        threads.sort(key=lambda thread: thread.last_used, reverse=True)
    heads = ["thread", "last used", "", *(["checkpoints", "kB"] if sizes else [])]
    rows = [
        [
            thread.thread_id,
            thread.last_used.astimezone().strftime("%Y-%m-%d %H:%M"),
            "waits for an answer" if thread.interrupted else "",
            *([str(thread.checkpoints), f"{thread.bytes / 1000:.1f}"] if sizes else []),
        ]
        for thread in threads
    ]
    View().table(heads, rows)
    return 0


app.command()(_threads_repair.check)
app.command()(_threads_repair.repair)


@app.command()
def prune(
    keep_last: Annotated[
        int | None, typer.Option(min=1, help="Keep so many of the newest checkpoints of each thread.")
    ] = None,
    older_than: Annotated[
        str | None, typer.Option(help="Delete threads not used for so long: 90m, 12h, 30d, 8w.")
    ] = None,
    interrupted: Annotated[
        bool, typer.Option("--interrupted", help="Delete also threads that wait for an answer.")
    ] = False,
    thread: Annotated[list[str] | None, typer.Option(help="Only this thread; may be given several times.")] = None,
    debug: Debug = False,  # noqa: ARG001  as above
) -> int:
    """Remove old checkpoints and old threads."""
    from agentkit.memory import open_memory

    if keep_last is None and older_than is None:
        raise Stop("say what to keep: --keep-last 1, or --older-than 30d")
    age = None if older_than is None else _duration(older_than)
    with open_memory() as memory:
        removed = memory.retain(
            keep_last=keep_last, older_than=age, keep_interrupted=not interrupted, thread_ids=thread or None
        )
    print(f"removed {removed.threads} threads, and {removed.checkpoints} checkpoints in all")
    return 0


def _duration(text: str) -> timedelta:
    match = re.fullmatch(r"\s*(\d{1,6})\s*([mhdw])\s*", text)
    if match is None:
        raise Stop(f"{text!r} is no duration; write a number and m, h, d or w, as in 30d")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
