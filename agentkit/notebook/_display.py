"""Graphs as HTML, and as what IPython shows."""

from dataclasses import dataclass
from html import escape
from typing import Any

from langchain_core.tools import BaseTool
from langgraph.pregel import Pregel

from agentkit.agents import AgentTool
from agentkit.notebook._layout import layout
from agentkit.notebook._svg import svg
from agentkit.tools import HeadlessTool, ToolNode

_SHORTENED = 120
Graph = Pregel[Any, Any, Any, Any]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A graph on display: what `show` returns, for the end of a cell or `display()`."""

    graph: Graph

    def _repr_html_(self) -> str:
        return html(self.graph)

    def __repr__(self) -> str:
        return _text(self.graph)


def show(graph: Graph) -> Shown:
    """Show a graph and its tools. Nothing is fetched."""
    return Shown(graph=graph)


def html(graph: Graph) -> str:
    """A graph as a piece of HTML: its drawing as inline SVG, and its tools as a table. Nothing is fetched.

    Subgraphs that langgraph knows of are drawn as part of it.
    """
    drawable = graph.get_graph(xray=True)
    labels = {name: node.name for name, node in drawable.nodes.items()}
    drawing = layout(labels, [(edge.source, edge.target, edge.conditional) for edge in drawable.edges])
    tools = tools_of(graph)
    rows = "".join(
        f"<tr><td><code>{escape(tool.name)}</code></td><td>{escape(_kind(tool))}</td>"
        f"<td>{escape(_summary(tool.description))}</td></tr>"
        for tool in tools
    )
    table = f"<table><thead><tr><th>tool</th><th></th><th>what it does</th></tr></thead>{rows}</table>" if tools else ""
    return (
        '<div style="overflow-x:auto"><div style="font-weight:600">'
        f"{escape(graph.get_name())}</div>{svg(drawing)}{table}</div>"
    )


def tools_of(graph: Graph) -> list[BaseTool]:
    """The tools of a graph and of its subgraphs, each name once."""
    found: dict[str, BaseTool] = {}
    graphs = [graph, *(subgraph for _, subgraph in graph.get_subgraphs(recurse=True))]
    for each in graphs:
        for node in getattr(each, "nodes", {}).values():
            if isinstance(bound := getattr(node, "bound", None), ToolNode):
                for name, tool in bound.tools_by_name.items():
                    found.setdefault(name, tool)
    return list(found.values())


def _text(graph: Graph) -> str:
    tools = ", ".join(tool.name for tool in tools_of(graph))
    nodes = ", ".join(name for name in graph.nodes if not name.startswith("__"))
    return f"<graph {graph.get_name()!r}: nodes {nodes}{f'; tools {tools}' if tools else ''}>"


def _kind(tool: BaseTool) -> str:
    if isinstance(tool, HeadlessTool):
        return "runs in the client"
    return "agent" if isinstance(tool, AgentTool) else ""


def _summary(description: str) -> str:
    first = description.strip().partition("\n")[0]
    return first if len(first) <= _SHORTENED else f"{first[: _SHORTENED - 1]}…"
