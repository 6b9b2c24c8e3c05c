"""The command `agentkit`: talk to a graph, see the demonstration, look after the database."""

import sys

from agentkit.cli import _failures

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. The exit code: 0; 1 something failed; 2 something the user can mend; 130 ctrl-C."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        from agentkit.cli._app import run  # typer and rich come with an extra

        return run(given)
    except BaseException as error:  # noqa: BLE001  this is the top: each failure becomes a line and an exit code
        return _failures.report(error, debug="--debug" in given)
