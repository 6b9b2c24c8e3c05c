"""From what the user typed to the object that is a graph, or makes one."""

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

import agentkit
from agentkit.cli._failures import Stop, first_line
from agentkit.cli._modules import import_file, import_named

__all__ = ["BUILDER", "Source", "find_graph", "parameters", "ready_made"]

BUILDER = "build"  # a function of this name is preferred: it takes model, checkpointer and store
NAMES = (BUILDER, "graph", "agent", "make_graph")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A graph that was found: its name, and the object that is one or makes one."""

    name: str
    made_by: Any

    @property
    def takes_model(self) -> bool:
        """Whether the model can be chosen from outside."""
        return "model" in parameters(self.made_by)


def find_graph(wanted: str | None) -> Source:
    """The graph that is wanted: a name in langgraph.json, FILE.py, FILE.py:NAME or module:NAME; else the assistant.

    Raises:
        Stop: there is none, or its file raises; the message says what to do.
    """
    if wanted is None:
        return _from_file(ready_made() / "assistant.py", None)
    path, name = _divided(wanted)
    if path.endswith(".py") or "/" in path:
        return _from_file(Path(path), name)
    served = _served(Path.cwd())
    if name is None and path in served:
        found = find_graph(served[path])
        return Source(name=path, made_by=found.made_by)
    if name is not None:
        return _named(import_named(path), name, wanted)
    known = ", ".join(sorted(served)) or "none here"
    raise Stop(f"no graph {wanted!r}; give FILE.py:NAME, or a name in langgraph.json ({known})")


def parameters(made_by: Any) -> Mapping[str, inspect.Parameter]:
    """What a function that makes a graph takes; nothing, for a graph itself."""
    if isinstance(made_by, StateGraph | Pregel) or not callable(made_by):
        return {}
    try:
        return inspect.signature(made_by).parameters
    except (TypeError, ValueError):
        return {}


def _divided(wanted: str) -> tuple[str, str | None]:
    """FILE.py:NAME as path and name; a drive letter is no file."""
    path, colon, name = wanted.rpartition(":")
    return (path, name) if colon and name.isidentifier() and len(path) > 1 else (wanted, None)


def ready_made() -> Path:
    """Where the graphs are that come with agentkit: beside it in a checkout, inside it once installed."""
    package = Path(agentkit.__file__).parent
    places = (package / "_ready" / "graphs", package.parent / "graphs")
    return next((place for place in places if (place / "assistant.py").is_file()), places[0])


def _served(start: Path) -> dict[str, str]:
    """The graphs of the nearest langgraph.json, upwards from `start`, by name; paths made absolute."""
    file = next(
        (folder / "langgraph.json" for folder in (start, *start.parents) if (folder / "langgraph.json").is_file()), None
    )
    if file is None:
        return {}
    try:
        entries = json.loads(file.read_text(encoding="utf-8")).get("graphs", {})
        paths = {name: entry["path"] if isinstance(entry, dict) else entry for name, entry in entries.items()}
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise Stop(
            f'{file} is no langgraph.json: {first_line(error)}; its graphs are {{"name": "./file.py:graph"}}'
        ) from error
    return {name: str(file.parent / path) if "/" in path or ".py:" in path else path for name, path in paths.items()}


def _from_file(path: Path, name: str | None) -> Source:
    if not path.is_file():
        raise Stop(f"there is no file {path}; give the path of a Python file, as in graphs/assistant.py:graph")
    module = import_file(path)
    return _named(module, name, f"{path}:{name}" if name else str(path))


def _named(module: ModuleType, name: str | None, shown: str) -> Source:
    """The object called `name`; for `graph`, a builder beside it that takes a model, since it makes the same."""
    has = [each for each in NAMES if hasattr(module, each)]
    graphs = [each for each, value in vars(module).items() if isinstance(value, Pregel | StateGraph)]
    if name is None:
        name = next(iter([*has, *graphs]), None)
    if name is None or not hasattr(module, name):
        known = ", ".join(dict.fromkeys([*has, *graphs])) or "none"
        raise Stop(f"{shown} has no graph{f' {name!r}' if name else ''}; graphs found there: {known}")
    found = getattr(module, name)
    builder = getattr(module, BUILDER, None)
    if name == "graph" and callable(builder) and "model" in parameters(builder):
        found = builder
    return Source(name=Path(shown.split(":", maxsplit=1)[0]).stem if name in NAMES else name, made_by=found)
