"""Agents and graphs in notebooks: drawn in the page itself, without a web service.

`import agentkit` in a notebook is enough: a graph as the last expression of a cell is shown. `show(graph)` does it
anywhere in a cell, and `html(graph)` gives the page fragment.
"""

from agentkit._ipython import register
from agentkit.notebook._display import Shown, html, show

__all__ = ["Shown", "html", "register", "show"]
