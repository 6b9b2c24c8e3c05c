"""`agentkit db`: the database agentkit uses, above all the embedded one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentkit.cli._failures import Stop

if TYPE_CHECKING:
    from agentkit.memory._embedded import EmbeddedServer

__all__ = ["app"]

app = typer.Typer(help="The database: start and stop the embedded Postgres, find it, save it.", no_args_is_help=True)

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")]


@app.command()
def start(debug: Debug = False) -> int:  # noqa: ARG001  read from the arguments by whoever reports the failure
    """Start the embedded Postgres and keep it running until `agentkit db stop`."""
    _note_other_database()
    print(_embedded().keep())
    return 0


@app.command()
def stop(debug: Debug = False) -> int:  # noqa: ARG001  as above
    """Stop the embedded Postgres, also under those who use it."""
    print("stopped" if _embedded().stop() else "it was not running")
    return 0


@app.command()
def status(debug: Debug = False) -> int:  # noqa: ARG001  as above
    """Say which database is used, where its files are, and what is in it. Ends with 1 if it does not run."""
    given = os.environ.get("AGENTKIT_DATABASE_URL")
    if given:
        print(f"AGENTKIT_DATABASE_URL: {_without_password(given)}")
        return _counts(given)
    server = _embedded()
    pid = server.pid()
    print(f"embedded Postgres in {server.home}")
    if pid is None:
        print("not running (it starts by itself when it is needed)")
        return 1
    print(f"running, process {pid}, {'until agentkit db stop' if server.kept else 'as long as somebody uses it'}")
    return _counts(server.url())


@app.command()
def url(debug: Debug = False) -> int:  # noqa: ARG001  as above
    """Print the URL of the database, for psql and other programs."""
    print(os.environ.get("AGENTKIT_DATABASE_URL") or _embedded().url())
    return 0


@app.command()
def dump(
    file: Annotated[Path | None, typer.Argument(help="Where to; else stdout.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    debug: Debug = False,  # noqa: ARG001  as above
) -> int:
    """Save the whole database as SQL, which psql reads back. Starts the embedded Postgres if needed."""
    from agentkit.memory import database

    if file is not None and file.exists() and not force:
        raise Stop(f"{file} exists; choose another name, or --force")
    with database() as found:
        command, environment = _pg_dump(found)
        if file is None:
            sys.stdout.flush()
            return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603  our own program
        part = file.with_name(file.name + ".part")
        try:
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:  # noqa: PTH123  a mode
                done = subprocess.run(command, env=environment, check=False, stdout=out)  # noqa: S603  our own program
            if done.returncode == 0:
                part.replace(file)
                print(f"saved to {file}", file=sys.stderr)
            return done.returncode
        finally:
            part.unlink(missing_ok=True)


def _embedded() -> "EmbeddedServer":
    if sys.platform == "win32":
        raise Stop("the embedded Postgres needs Linux or macOS; set AGENTKIT_DATABASE_URL")
    from agentkit.memory._embedded import EmbeddedServer

    return EmbeddedServer()


def _note_other_database() -> None:
    if os.environ.get("AGENTKIT_DATABASE_URL"):
        print("note: AGENTKIT_DATABASE_URL is set, and agentkit uses that database instead", file=sys.stderr)


def _without_password(given: str) -> str:
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    try:
        parts = conninfo_to_dict(given)
    except ProgrammingError:
        return "(it cannot be read)"
    parts.pop("password", None)
    return make_conninfo("", **parts)


def _counts(found: str) -> int:
    from agentkit.memory import open_memory

    with open_memory(found) as memory:
        threads = memory.threads()
        items = memory.store.count()
    size = sum(thread.bytes for thread in threads)
    print(f"{len(threads)} threads with {size / 1e6:.1f} MB, {items} items in the store")
    return 0


def _pg_dump(found: str) -> tuple[list[str], dict[str, str]]:
    """The command, and an environment with the password, which others could read on a command line."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    parts = conninfo_to_dict(found)
    environment = dict(os.environ)
    if password := parts.pop("password", None):
        environment["PGPASSWORD"] = str(password)
    return [_program(), "--no-owner", "--dbname", make_conninfo("", **parts)], environment


def _program() -> str:
    from agentkit.errors import MissingExtraError

    try:
        from agentkit.memory._pgfiles import binaries

        return str(binaries() / "pg_dump")
    except (ImportError, MissingExtraError):
        found = shutil.which("pg_dump")
        if found is None:
            raise Stop(
                "there is no pg_dump; install PostgreSQL's client, or pip install 'agentkit[embedded]'"
            ) from None
        return found
