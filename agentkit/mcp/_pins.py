"""Pinned tools: a file that says what each tool was when it was accepted, so that a server cannot change it unseen."""

import difflib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentkit.errors import DefinitionError

_LINES = 40


def definition_of(tool: Any) -> dict[str, Any]:
    """What is pinned of a tool: everything that a model reads, or that decides how it is called."""
    whole: dict[str, Any] = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {key: value for key, value in sorted(whole.items()) if key not in ("_meta", "icons")}


def canonical(definition: Mapping[str, Any]) -> str:
    """One text for equal definitions."""
    return json.dumps(definition, sort_keys=True, indent=2, ensure_ascii=False)


class Pins:
    """The lock file of an adapter.

    The first listing of a server writes what it offers; from then on a tool that differs from what was accepted, or
    that is new, is refused until it is accepted again.

    Raises:
        DefinitionError: the file is there and cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._servers = self._read()

    def refused(self, server: str, definitions: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
        """Why tools are refused, by name: a diff. At a server's first listing nothing is, and it is written."""
        known = self._servers.get(server)
        if known is None:
            self.accept(server, definitions)
            return {}
        found: dict[str, str] = {}
        for name, definition in definitions.items():
            if name not in known:
                found[name] = f"{name} is new: it was not there when the tools of {server} were accepted"
            elif known[name] != definition:
                found[name] = difference(known[name], definition)
        return found

    def accept(self, server: str, definitions: Mapping[str, Mapping[str, Any]]) -> None:
        """Take what the server offers now, beside what was accepted and is not there now, and write the file."""
        with self._lock:
            known = self._servers.get(server, {})
            accepted = {**known, **{name: dict(each) for name, each in definitions.items()}}
            self._servers = {**self._servers, server: accepted}
            self._write()

    def _read(self) -> dict[str, dict[str, Any]]:
        if not self.path.exists():
            return {}
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            servers: dict[str, dict[str, Any]] = {name: dict(each["tools"]) for name, each in found["servers"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DefinitionError(f"{self.path} holds no pinned tools ({type(error).__name__}: {error})") from error
        return servers

    def _write(self) -> None:
        whole = {"version": 1, "servers": {name: {"tools": each} for name, each in sorted(self._servers.items())}}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        draft.write_text(canonical(whole) + "\n", encoding="utf-8")
        draft.replace(self.path)


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """A diff of two definitions, for people; at most some forty lines."""
    lines = list(
        difflib.unified_diff(
            canonical(old).splitlines(), canonical(new).splitlines(), "accepted", "offered now", lineterm="", n=1
        )
    )
    if len(lines) > _LINES:
        lines = [*lines[:_LINES], f"… {len(lines) - _LINES} more lines"]
    return "\n".join(lines)
