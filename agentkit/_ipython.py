"""What `import agentkit` does in a notebook: graphs that are the result of a cell are drawn in the page itself.

langgraph draws them with a web service, which fails offline and tells it what your graph looks like.
"""

import sys
from importlib import import_module
from typing import Any

__all__ = ["register"]


def register() -> bool:
    """Make IPython show graphs by `agentkit.notebook`. Returns whether IPython runs here. Imports nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    if shell is None:
        return False
    shell.display_formatter.mimebundle_formatter.for_type_by_name("langgraph.pregel.main", "Pregel", _bundle)
    return True


def _bundle(graph: Any) -> dict[str, str]:
    # by name, when the first graph is shown: `import agentkit` loads nothing, and stays below all layers
    shown = import_module("agentkit.notebook").show(graph)
    return {"text/html": shown._repr_html_(), "text/plain": repr(shown)}
