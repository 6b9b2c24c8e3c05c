"""LangChain's middleware under our name, so that an import needs one word changed."""

from importlib import import_module
from typing import Any

_HERE = "agentkit.agents.middleware"


def __getattr__(name: str) -> Any:
    """A name of LangChain's middleware package, which is loaded when it is first asked for."""
    if not name.startswith("_"):
        try:
            theirs = import_module("langchain.agents.middleware")
        except ImportError:
            raise AttributeError(
                f"{_HERE} has no {name!r}; for LangChain's own middleware: pip install 'agentkit[models]'"
            ) from None
        if hasattr(theirs, name):
            return getattr(theirs, name)
    raise AttributeError(f"module {_HERE!r} has no attribute {name!r}")
