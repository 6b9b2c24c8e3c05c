"""`agentkit memory`: what is kept about a person, to hand out or to delete."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from agentkit.cli._failures import Stop

__all__ = ["app"]

app = typer.Typer(help="A person's data: all of it, to hand out or to delete.", no_args_is_help=True)

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")]
User = Annotated[str, typer.Argument(help="The id by which agents know the person.")]
Namespaces = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace", help="A place in the store that is also theirs, as prefs/ann; may be given several times."
    ),
]


@app.command()
def export(
    user: User,
    namespace: Namespaces = None,
    out: Annotated[Path | None, typer.Option(help="The file to write; else stdout.")] = None,
    debug: Debug = False,  # noqa: ARG001  read from the arguments by whoever reports the failure
) -> int:
    """Write everything kept about a person as JSON."""
    from agentkit.memory import open_memory

    with open_memory() as memory:
        found = memory.export(user, namespaces=_namespaces(namespace))
    text = json.dumps(found, ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace").decode()
    if out is None:
        print(text)
    else:
        with open(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123  a mode
            file.write(text + "\n")
    print(f"{len(found['threads'])} threads and {len(found['items'])} items of {user}", file=sys.stderr)
    return 0


@app.command()
def erase(
    user: User,
    namespace: Namespaces = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    debug: Debug = False,  # noqa: ARG001  as above
) -> int:
    """Delete everything kept about a person. It cannot be undone."""
    from agentkit.memory import open_memory

    places = _namespaces(namespace)
    if not yes and not (sys.stdin.isatty() and typer.confirm(f"Delete everything kept about {user}?")):
        raise Stop("nothing was deleted; without a question: --yes")
    with open_memory() as memory:
        erased = memory.erase(user, namespaces=places)
    print(f"deleted {erased.threads} threads with {erased.checkpoints} checkpoints, and {erased.items} items of {user}")
    return 0


def _namespaces(given: list[str] | None) -> list[tuple[str, ...]]:
    return [tuple(place.split("/")) for place in given or ()]
