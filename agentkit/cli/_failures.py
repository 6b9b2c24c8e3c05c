"""How a command fails: one line that says what to do, an exit code, and a traceback only where it is asked for."""

import os
import sys
import traceback

from agentkit.errors import AgentkitError

__all__ = ["Stop", "explain", "first_line", "report"]

FAILED, MEND, INTERRUPTED = 1, 2, 130


class Stop(Exception):  # noqa: N818  it is the end of the command, not an error of the library
    """Ends the command with exit code 2; its text is the line the user sees: what is wrong, and the fix."""


def first_line(error: BaseException, limit: int = 300) -> str:
    """The exception's first line of text, or the name of its class."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"


def explain(error: BaseException) -> tuple[int, str]:
    """The exit code and the line for a failure."""
    if callable(message := getattr(error, "format_message", None)):  # a wrong option or command
        return MEND, f"{message() or 'no command given'} (agentkit --help lists what there is)"
    match error:
        case KeyboardInterrupt():
            found = INTERRUPTED, "interrupted"
        case Stop() | AgentkitError():
            found = MEND, "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
        case ModuleNotFoundError(name="typer" | "rich"):
            found = MEND, "the command line needs typer and rich: pip install 'agentkit[cli]'"
        case PermissionError(filename=str() as path):
            found = (
                MEND,
                f"no permission for {path}; set AGENTKIT_DATA_DIR to a folder of yours, or mend its permissions",
            )
        case OSError(filename=str() as path):
            found = MEND, f"{error.strerror}: {path}"
        case _:
            found = FAILED, f"{type(error).__name__}: {first_line(error)} (--debug shows the traceback)"
    return found


def report(error: BaseException, *, debug: bool) -> int:
    """Print the line to stderr, with the traceback if `debug`, and give the exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FAILED
    if isinstance(error, BrokenPipeError):  # whoever read our output has gone; nothing can be told to it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    code, line = explain(error)
    if debug:
        traceback.print_exception(error)
    print(f"error: {line}", file=sys.stderr)
    return code
