"""The loop of an agent: model, tools, model, until it answers."""

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from agentkit.agents import create_agent
from agentkit.testing import ScriptedModel, StrictModel
from agentkit.tools import tool


def call(name, call_id, **args):
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_agent_calls_tools_until_the_model_answers(is_async):
    model = ScriptedModel([AIMessage("", tool_calls=[call("add", "c1", a=1, b=2), call("add", "c2", a=3, b=4)]), "7"])
    agent = create_agent(StrictModel(model), [add], system_prompt="Be brief.")
    given = {"messages": [("user", "add")]}
    state = await agent.ainvoke(given) if is_async else agent.invoke(given)
    assert [m.content for m in state["messages"]] == ["add", "", "3", "7", "7"]
    assert [m.tool_call_id for m in state["messages"] if isinstance(m, ToolMessage)] == ["c1", "c2"]
    assert set(state) == {"messages"}
