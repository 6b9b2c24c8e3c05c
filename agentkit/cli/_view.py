"""What a conversation looks like in the terminal: streamed text, and a line for each tool call."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

__all__ = ["View", "plain"]

_WIDEST = 70  # letters of arguments and results on a call's line


@dataclass(kw_only=True)
class _Running:
    """A call that has started and has no result yet."""

    shown: str
    since: float = field(default_factory=time.monotonic)
    progress: str = ""


class View:
    """Writes to one console. A terminal shows running calls live; elsewhere each start and each end is a line."""

    def __init__(self, console: Console | None = None) -> None:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal without a letter shows ?, and goes on
        self.console = console or Console(highlight=False, emoji=False, markup=False)
        self._running: dict[str, _Running] = {}
        self._live: Live | None = None
        self._in_line = False

    def say(self, text: str, style: str = "") -> None:
        """A line of the program's own."""
        self._end_line()
        self.console.print(Text(plain(text), style=style), soft_wrap=True)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Rows under heads."""
        table = Table(*heads, box=None, pad_edge=False, header_style="dim")
        for row in rows:
            table.add_row(*(Text(plain(cell)) for cell in row))
        self.console.print(table)

    def text(self, chunk: str) -> None:
        """More of what the model says."""
        self._stop_live()
        self.console.print(Text(plain(chunk)), end="", soft_wrap=True)
        self._in_line = not chunk.endswith("\n")

    def call(self, call: ToolCall) -> None:
        """A tool call starts."""
        shown = call_text(call)
        self._running[str(call["id"])] = _Running(shown=shown)
        if self.console.is_terminal:
            self._show_live()
        else:
            self.say(f"· {shown}", "dim")

    def progress(self, event: Mapping[str, Any]) -> None:
        """A running call tells how far it is; ignored if it is not known."""
        running = self._running.get(str(event.get("tool_call_id")))
        if running is None:
            return
        done, total, note = event.get("done"), event.get("total"), event.get("note")
        running.progress = " ".join(
            part
            for part in (f"{done:g}" + (f"/{total:g}" if total else "") if done is not None else "", str(note or ""))
            if part
        )
        self._show_live()

    def result(self, message: ToolMessage) -> None:
        """A tool call has its result."""
        running = self._running.pop(str(message.tool_call_id), None)
        failed = message.status == "error"
        shown = running.shown if running else str(message.name or "tool")
        took = f"  {time.monotonic() - running.since:.1f} s" if running else ""
        line = Text("✗ " if failed else "✓ ", style="red" if failed else "green")
        line.append(f"{shown} → ", style="dim").append(plain(short(message.text)), style="red" if failed else "")
        if self._running:
            self._show_live()
        else:
            self._stop_live()
        self._end_line()
        self.console.print(line.append(took, style="dim"), soft_wrap=True)

    def end(self) -> None:
        """The turn is over, finished or not."""
        self._stop_live()
        self._running.clear()
        self._end_line()

    def history(self, messages: Sequence[BaseMessage]) -> None:
        """A conversation so far."""
        for message in messages:
            match message:
                case HumanMessage():
                    self.say(f"> {message.text}", "bold")
                case AIMessage():
                    for call in message.tool_calls:
                        self.say(f"· {call_text(call)}", "dim")
                    if message.text:
                        self.say(message.text)
                case ToolMessage():
                    self.say(
                        f"{'✗' if message.status == 'error' else '✓'} {message.name or 'tool'} → {short(message.text)}",
                        "dim",
                    )

    def _end_line(self) -> None:
        if self._in_line:
            self.console.print()
            self._in_line = False

    def _show_live(self) -> None:
        if not self.console.is_terminal or not self._running:
            return
        self._end_line()
        lines = Group(
            *(
                Spinner("dots", Text(f"{running.shown}  {running.progress}", style="dim"))
                for running in self._running.values()
            )
        )
        if self._live is None:
            self._live = Live(lines, console=self.console, refresh_per_second=8, transient=True)
            self._live.start()
        else:
            self._live.update(lines)

    def _stop_live(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def call_text(call: ToolCall) -> str:
    """A call as it would be written: name and arguments, shortened."""
    args = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in call["args"].items()
    )
    return plain(f"{call['name']}({short(args)})")


def short(text: str) -> str:
    """On one line, and not wider than a line should be."""
    line = " ".join(text.split())
    return line if len(line) <= _WIDEST else line[: _WIDEST - 1] + "…"


def plain(text: str) -> str:
    """Without control characters: what a model or a tool writes must not steer the terminal."""
    return "".join(letter for letter in text if letter in "\n\t" or letter.isprintable())
