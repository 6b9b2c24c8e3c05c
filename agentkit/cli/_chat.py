"""`agentkit chat`: a conversation in the terminal, or with lines from a pipe."""

import asyncio
import concurrent.futures
import getpass
import importlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from typing import Any

from langchain_core.language_models import BaseChatModel

from agentkit.cli._failures import Stop, first_line
from agentkit.cli._find import Source, find_graph
from agentkit.cli._open import open_graph
from agentkit.cli._session import Session
from agentkit.cli._view import View, plain
from agentkit.memory import aopen_memory
from agentkit.testing.rehearsal import RehearsalModel

__all__ = ["chat"]

NO_LLM = "rehearsal model, no LLM: matches patterns"
_BROKEN = re.compile("[\ud800-\udfff]")  # what Python makes of bytes that are no letters; nothing can store it
REFUSED = {401, 403, 404}  # what providers answer to a wrong key or a wrong model name


def chat(*, graph: str | None, model: str | None, user: str | None, resume: str | None, debug: bool) -> int:
    """Talk until the input ends; 0, or 1 if a message from a pipe could not be answered."""
    view = View()
    source = find_graph(graph)
    chosen = model or _preset(source) or RehearsalModel(pause=0.01 if view.console.is_terminal else 0)
    workers, stack = _Workers(), AsyncExitStack()
    failures = 0
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(workers)
        try:
            session = runner.run(_opened(stack, source, chosen, view, user or _account()))
            view.say(_title(source, chosen, session.thread), "dim")
            if resume is not None:
                runner.run(session.resume(resume))
            for line in _lines(session, view):
                failures += not _take(runner, session, view, line, debug=debug)
        except KeyboardInterrupt:  # pressed once more in the instant between two lines: at a keyboard that leaves, too
            if not _interactive():
                raise
        finally:
            runner.run(stack.aclose())
        code = int(failures > 0 and not _interactive())
        workers.leave(code)  # before the runner is closed, which waits for all threads
    return code


async def _opened(stack: AsyncExitStack, source: Source, model: str | BaseChatModel, view: View, user: str) -> Session:
    memory = await stack.enter_async_context(aopen_memory())
    graph = await open_graph(source, stack, model=model, checkpointer=memory.checkpointer, store=memory.store)
    return Session(graph=graph, memory=memory, view=view, user=user)


def _take(runner: asyncio.Runner, session: Session, view: View, line: str, *, debug: bool) -> bool:
    """One line; False if it failed. The thread stays usable whatever happened."""
    try:
        runner.run(session.take(line))
    except KeyboardInterrupt:
        view.end()
        view.say("stopped; the conversation goes on with your next message", "yellow")
    except Exception as error:
        if getattr(error, "status_code", None) in REFUSED:
            raise Stop(
                f"the model refuses: {first_line(error)}; choose another with --model, or mend the key"
            ) from error
        if debug:
            traceback.print_exc()
        view.say(f"error: {type(error).__name__}: {first_line(error)}", "red")
        return False
    return True


def _lines(session: Session, view: View) -> Iterator[str]:
    """What is typed, or what comes through a pipe, without empty lines, until /quit or the end."""
    read: Callable[[], str] = _typed if _interactive() else _piped(view)
    if _interactive():
        with suppress(ImportError):  # some Pythons come without it
            importlib.import_module("readline")  # its mere presence gives `input` arrow keys and a history
    while not session.left:
        try:
            line = read().strip()
        except EOFError:
            return
        if line:
            yield _BROKEN.sub("\ufffd", line)


def _typed() -> str:
    """A line from the keyboard; ctrl-C gives up the line, and twice in a row the conversation."""
    try:
        return input("> ")
    except KeyboardInterrupt:
        print("  (ctrl-D or /quit leaves)")
    try:
        return input("> ")
    except KeyboardInterrupt:
        print("  goodbye")
        raise EOFError from None


def _piped(view: View) -> Callable[[], str]:
    def read() -> str:
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        view.say(f"> {line.strip()}", "bold")
        return line

    return read


def _interactive() -> bool:
    return sys.stdin.isatty()


def _preset(source: Source) -> str | None:
    """The model for all graphs that leave the choice open; one that chooses its own is none of its business."""
    return os.environ.get("AGENTKIT_MODEL") or None if source.takes_model else None


def _account() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # an account without a name
        return "local"


def _title(source: Source, model: str | BaseChatModel, thread: str) -> str:
    shown = (model if isinstance(model, str) else NO_LLM) if source.takes_model else "its own model"
    return f"agentkit chat: graph {source.name}, {plain(shown)}, thread {thread}; /help lists the commands"


class _Workers(ThreadPoolExecutor):
    """The threads that tools run in. One that a stopped turn left behind must not hold up the end."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="agentkit")
        self._pending: set[Future[Any]] = set()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return future

    def leave(self, code: int) -> None:
        """End the process at once if some thread still works; nobody can stop a thread."""
        if concurrent.futures.wait(set(self._pending), timeout=1).not_done:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
