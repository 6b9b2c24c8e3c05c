"""`update_state` writes in a node's name, and the run goes where that node would have gone."""

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from agentkit.agents import create_agent
from agentkit.agents.middleware import AgentMiddleware, hook_config
from agentkit.testing import ScriptedModel, StrictModel, calls
from agentkit.tools import tool

HI = {"messages": [("user", "hi")]}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Everywhere(AgentMiddleware):
    @hook_config(can_jump_to=["end"])
    def before_model(self, state, runtime):
        return None

    def after_model(self, state, runtime):
        return None

    def after_agent(self, state, runtime):
        return None


@pytest.mark.parametrize("middleware", [[], [Everywhere()]])
def test_what_is_written_in_a_nodes_name_goes_where_that_node_goes(middleware, thread):
    model = StrictModel(ScriptedModel([calls(("add", {"a": 1, "b": 2})), "3", "again"]))
    agent = create_agent(model, [add], middleware=middleware, checkpointer=InMemorySaver(), interrupt_before=["tools"])
    agent.invoke(HI, thread)
    assert agent.get_state(thread).next == ("tools",)
    call_id = "call_add_0"
    agent.update_state(thread, {"messages": [ToolMessage("by hand", tool_call_id=call_id)]}, as_node="tools")
    entry = "Everywhere.before_model" if middleware else "model"
    assert agent.get_state(thread).next == (entry,)
    assert agent.invoke(None, thread)["messages"][-1].text == "3"
    last = "Everywhere.after_model" if middleware else "model"
    agent.update_state(thread, {"messages": [AIMessage("the end")]}, as_node=last)
    assert agent.get_state(thread).next == (("Everywhere.after_agent",) if middleware else ())
    if middleware:
        agent.update_state(thread, None, as_node="Everywhere.before_model")
        assert agent.get_state(thread).next == ("model",)


def test_an_edited_call_is_what_runs(thread):
    agent = create_agent(
        StrictModel(ScriptedModel([calls(("add", {"a": 1, "b": 2})), "done"])),
        [add],
        checkpointer=InMemorySaver(),
        interrupt_before=["tools"],
    )
    agent.invoke(HI, thread)
    message = agent.get_state(thread).values["messages"][-1]
    edited = message.model_copy(update={"tool_calls": [{**message.tool_calls[0], "args": {"a": 40, "b": 2}}]})
    agent.update_state(thread, {"messages": [edited]}, as_node="model")
    assert [m.text for m in agent.invoke(None, thread)["messages"]] == ["hi", "", "42", "done"]


def test_private_state_is_no_part_of_snapshots_and_streams(thread):
    agent = create_agent(
        StrictModel(ScriptedModel([calls(("add", {"a": 1, "b": 2})), "done"])), [add], checkpointer=InMemorySaver()
    )
    events = list(agent.stream(HI, thread, stream_mode=["updates", "values"]))
    keys = {key for mode, event in events for key in (event if mode == "values" else next(iter(event.values())) or {})}
    assert keys == {"messages"}
    assert set(agent.get_state(thread).values) == {"messages"}
