"""Graphs with tools that a JavaScript client runs: an agent, it as a subgraph, and a graph written by hand."""

import os
from pathlib import Path
from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from agentkit.agents import create_agent
from agentkit.testing import ScriptedModel, StrictModel, calls
from agentkit.tools import ToolNode, fan_out, tool

FOLDER = Path(os.environ.get("PROBE_FOLDER", "."))
BATCH = calls(
    ("locate", {"high": True}, "call_1"),
    ("save", {"x": 7}, "call_2"),
    ("copy_text", {"text": "hi"}, "call_3"),
    ("pick_file", {}, "call_4"),
    ("unknown_here", {}, "call_5"),
)


def client_tool(name: str, properties: dict[str, Any], **settings: Any) -> Any:
    schema = {"type": "object", "properties": properties}
    return tool(name=name, description=f"{name}, in the browser.", args_schema=schema, **settings)


@tool
def save(x: int) -> str:
    """Save, on the server."""
    with (FOLDER / "did").open("a", encoding="utf-8") as file:
        file.write(f"saved {x}\n")
    return f"saved {x}"


TOOLS = [
    client_tool("locate", {"high": {"type": "boolean"}}, result_schema={"type": "object", "required": ["lat"]}),
    client_tool("copy_text", {"text": {"type": "string"}}),
    client_tool("pick_file", {}),
    client_tool("unknown_here", {}),
    save,
]


def script(messages: list[AnyMessage]) -> Any:
    return BATCH if messages[-1].type == "human" else "done"


model = StrictModel(ScriptedModel(script))
browser = create_agent(model, TOOLS, name="browser")

parent: Any = StateGraph(MessagesState)
parent.add_node("child", browser)
parent.add_edge(START, "child")
nested = parent.compile(name="nested")


def built(*, fanned: bool) -> Any:
    graph: Any = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode(TOOLS))
    graph.add_edge(START, "model")
    edge = fan_out() if fanned else (lambda state: "tools" if state["messages"][-1].tool_calls else END)
    graph.add_conditional_edges("model", edge, ["tools", END])
    graph.add_edge("tools", "model")
    return graph.compile()


fanned, plain = built(fanned=True), built(fanned=False)
