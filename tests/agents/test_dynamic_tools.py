"""Tools that change from call to call: what is offered is what runs."""

from dataclasses import dataclass
from typing import NotRequired

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt

from agentkit.agents import AgentState, create_agent
from agentkit.agents.middleware import AgentMiddleware, wrap_model_call
from agentkit.errors import DefinitionError
from agentkit.testing import ScriptedModel, StrictModel, calls
from agentkit.tools import tool

HI = {"messages": [("user", "hi")]}


class Tools:
    """Three tools that note that they ran."""

    def __init__(self):
        self.ran = []
        self.all = [self.make(name) for name in ("read", "write", "delete")]

    def make(self, name):
        def body(x: int = 0) -> str:
            self.ran.append(name)
            return f"{name} ran"

        return tool(name, description=f"{name} something")(body)


@pytest.fixture
def tools():
    return Tools()


def filtering(choose):
    class Filter(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            return handler(request.override(tools=[t for t in request.tools if t.name in choose(request)]))

    return Filter()


async def results(run, agent, config=None, **kwargs):
    state = await run.invoke(agent, HI, config, **kwargs)
    return [m.status for m in state["messages"] if m.type == "tool"]


async def test_tools_are_filtered_by_state_and_the_filter_holds_for_calls(run, tools):
    class State(AgentState):
        signed_in: NotRequired[bool]

    model = ScriptedModel(lambda m: calls(("read", {}), ("write", {})) if m[-1].type == "human" else "done")
    choose = filtering(lambda request: {"read", "write"} if request.state.get("signed_in") else {"read"})
    agent = create_agent(StrictModel(model), tools.all, middleware=[choose], state_schema=State)
    assert await results(run, agent) == ["success", "error"]
    assert tools.ran == ["read"]
    state = await run.invoke(agent, {**HI, "signed_in": True})
    assert [m.status for m in state["messages"] if m.type == "tool"] == ["success", "success"]
    assert model.offered[0] == ["read"]


async def test_tools_are_filtered_by_the_store(run, tools):
    store = InMemoryStore()
    store.put(("features",), "u1", {"enabled": ["read"]})
    choose = filtering(lambda request: request.runtime.store.get(("features",), "u1").value["enabled"])
    model = ScriptedModel([calls(("read", {}), ("delete", {})), "done"])
    agent = create_agent(StrictModel(model), tools.all, middleware=[choose], store=store)
    assert await results(run, agent) == ["success", "error"]


async def test_tools_are_filtered_by_context(run, tools):
    @dataclass
    class Context:
        role: str

    roles = {"admin": {"read", "write", "delete"}, "viewer": {"read"}}
    choose = filtering(lambda request: roles[request.runtime.context.role])
    model = ScriptedModel(lambda m: calls(("delete", {})) if m[-1].type == "human" else "done")
    agent = create_agent(StrictModel(model), tools.all, middleware=[choose], context_schema=Context)
    assert await results(run, agent, context=Context("viewer")) == ["error"]
    assert await results(run, agent, context=Context("admin")) == ["success"]
    assert tools.ran == ["delete"]


async def test_the_filter_of_the_asking_call_holds_after_a_resume_in_another_process(run, thread, tools):
    """The record travels with the checkpoint: a second agent object knows what the first one offered."""
    saver = InMemorySaver()
    allowed = {"read", "ask"}

    @tool
    def ask() -> str:
        """Ask a person."""
        return str(interrupt("?"))

    def build(model, names):
        return create_agent(
            StrictModel(model), [*tools.all, ask], middleware=[filtering(lambda _: names)], checkpointer=saver
        )

    first = build(ScriptedModel([calls(("ask", {}), ("delete", {}), ("read", {}))]), allowed)
    await run.invoke(first, HI, thread)
    second = build(ScriptedModel(["done"]), {"read", "ask", "delete"})
    state = await run.invoke(second, Command(resume="ok"), thread)
    assert [(m.name, m.status) for m in state["messages"] if m.type == "tool"] == [
        ("ask", "success"),
        ("delete", "error"),
        ("read", "success"),
    ]
    assert tools.ran == ["read"]


@tool
def tip(bill: float) -> str:
    """Work out a tip."""
    return f"{bill * 0.2:.2f}"


class Dynamic(AgentMiddleware):
    def wrap_model_call(self, request, handler):
        return handler(request.override(tools=[*request.tools, tip]))

    def wrap_tool_call(self, request, handler):
        return handler(request.override(tool=tip) if request.tool_call["name"] == "tip" else request)


async def test_a_tool_that_is_only_known_at_run_time_is_offered_and_run_by_two_hooks(run, tools):
    model = ScriptedModel([calls(("tip", {"bill": 85}), ("read", {})), "done"])
    agent = create_agent(StrictModel(model), tools.all, middleware=[Dynamic()])
    state = await run.invoke(agent, HI)
    assert [m.text for m in state["messages"] if m.type == "tool"] == ["17.00", "read ran"]
    assert model.offered[0] == ["read", "write", "delete", "tip"]


async def test_a_tool_that_nothing_could_run_is_named_before_the_model_is_called(run, tools):
    @wrap_model_call
    def offer(request, handler):
        return handler(request.override(tools=[*request.tools, tip]))

    model = ScriptedModel([])
    with pytest.raises(DefinitionError, match=r"tip"):
        await run.invoke(create_agent(StrictModel(model), tools.all, middleware=[offer]), HI)
    assert model.requests == []
    with pytest.raises(ValueError, match="doesn't know how to execute"):  # what LangChain raises and says
        await run.invoke(create_agent(StrictModel(model), tools.all, middleware=[offer]), HI)
