"""What `import agentkit` does in a notebook: graphs that are the result of a cell are drawn in the page itself.

langgraph draws them with a web service, which fails offline and tells it what your graph looks like.
"""

import sys
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
    from agentkit.notebook import show  # when the first graph is shown: `import agentkit` loads nothing

    shown = show(graph)
    return {"text/html": shown._repr_html_(), "text/plain": repr(shown)}
