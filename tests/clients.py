"""An agent with two headless tools and one of its own, and what a client sees of it."""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from agentkit.agents import create_agent
from agentkit.testing import ScriptedModel, StrictModel, calls
from agentkit.tools import ToolPolicy, tool

THREAD = {"configurable": {"thread_id": "t"}}


class Where(BaseModel):
    high_accuracy: bool = False
    source: str = "gps"


class Place(BaseModel):
    lat: float
    lon: float


class Browser:
    """The agent, its model, and how often its own tool ran."""

    def __init__(self, *responses: Any, timeout: float | None = None, schema: Any = Place, **agent: Any) -> None:
        self.ran: list[int] = []

        @tool
        def save(x: int) -> str:
            """Save, on the server."""
            self.ran.append(x)
            return f"saved {x}"

        policy = ToolPolicy(timeout=timeout)
        self.locate = tool(
            name="locate", description="Where the user is.", args_schema=Where, result_schema=schema, policy=policy
        )
        self.copy = tool(
            name="copy_text",
            description="Copy to the clipboard.",
            args_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        )
        self.model = ScriptedModel([*responses, "done"])
        agent.setdefault("checkpointer", InMemorySaver())
        self.agent = create_agent(StrictModel(self.model), [self.locate, self.copy, save], **agent)


MIXED = calls(("locate", {}, "call_1"), ("save", {"x": 1}, "call_2"), ("copy_text", {"text": "hi"}, "call_3"))
GO = {"messages": [("user", "go")]}
HERE = {"lat": 52.5, "lon": 13.4}


def asked(output: Any) -> dict[str, Any]:
    """The open headless calls, by call id: the interrupts."""
    return {each.value["tool_call"]["id"]: each for each in output.get("__interrupt__", ())}
