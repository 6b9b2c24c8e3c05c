"""Limits: a run that reaches one ends with a valid history that says so, and the thread goes on."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from agentkit.agents import Limits, _limits, create_agent
from agentkit.agents.middleware import after_agent, before_model
from agentkit.errors import DefinitionError
from agentkit.testing import ScriptedModel, StrictModel, assert_valid, calls
from agentkit.tools import tool

HI = {"messages": [("user", "hi")]}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def for_ever(batch=1):
    return ScriptedModel(lambda messages: calls(*[("add", {"a": n, "b": 1}) for n in range(batch)]))


async def ended(run, model, config=None, middleware=(), **limits):
    agent = create_agent(StrictModel(model), [add], limits=Limits(**limits), middleware=middleware)
    state = await run.invoke(agent, HI, config)
    assert_valid(state["messages"])
    return state["messages"]


async def test_model_calls_are_limited(run):
    model = for_ever()
    messages = await ended(run, model, model_calls=3)
    assert len(model.requests) == 3
    assert messages[-1].text == "Stopped: the limit of 3 model calls for one run is reached."


async def test_tool_calls_beyond_the_limit_are_answered_instead_of_run(run):
    messages = await ended(run, for_ever(batch=3), tool_calls=4)
    results = [m for m in messages if m.type == "tool"]
    assert [m.status for m in results] == ["success"] * 4 + ["error"] * 2
    assert messages[-1].text == "Stopped: the limit of 4 tool calls for one run is reached."


async def test_a_run_may_use_its_tool_calls_up_and_then_answer(run):
    model = ScriptedModel([calls(("add", {"a": 1, "b": 1}), ("add", {"a": 2, "b": 1})), "done"])
    assert (await ended(run, model, tool_calls=2))[-1].text == "done"


async def test_tokens_are_limited(run):
    model = for_ever()
    messages = await ended(run, model, tokens=1)
    assert len(model.requests) == 1
    assert "1 tokens" in messages[-1].text


async def test_time_is_limited(run, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(_limits.time, "time", lambda: clock[0])

    @tool
    def wait() -> str:
        """Wait."""
        clock[0] += 100
        return "waited"

    model = ScriptedModel(lambda messages: calls(("wait", {})))
    agent = create_agent(StrictModel(model), [wait], limits=Limits(seconds=150))
    messages = (await run.invoke(agent, HI))["messages"]
    assert [m.text for m in messages if m.type == "tool"] == ["waited", "waited"]
    assert messages[-1].text == "Stopped: the limit of 150 seconds for one run is reached."


async def test_counting_goes_on_across_an_interrupt_and_anew_with_a_new_message(run, thread):
    @tool
    def ask() -> str:
        """Ask."""
        return str(interrupt("?"))

    model = ScriptedModel(lambda messages: calls(("ask", {})))
    agent = create_agent(StrictModel(model), [ask], limits=Limits(model_calls=2), checkpointer=InMemorySaver())
    await run.invoke(agent, HI, thread)
    await run.invoke(agent, Command(resume="a"), thread)
    state = await run.invoke(agent, Command(resume="b"), thread)
    assert len(model.requests) == 2
    assert state["messages"][-1].text.startswith("Stopped")
    await run.invoke(agent, HI, thread)
    assert len(model.requests) == 3


@pytest.mark.parametrize(
    ("limit", "hooks"), [*((limit, False) for limit in range(2, 9)), *((limit, True) for limit in range(4, 11))]
)
async def test_the_recursion_limit_ends_in_words_and_not_in_an_exception(run, thread, limit, hooks):
    log = []

    @before_model
    def before(state, runtime):
        log.append("before")

    @after_agent
    def after(state, runtime):
        log.append("after")

    middleware = [before, after] if hooks else []
    agent = create_agent(StrictModel(for_ever()), [add], checkpointer=InMemorySaver(), middleware=middleware)
    state = await run.invoke(agent, HI, {**thread, "recursion_limit": limit})
    assert state["messages"][-1].text == "Stopped: the recursion limit of this run is reached."
    assert_valid(state["messages"])
    assert log.count("after") == hooks


def test_limits_that_make_no_sense_are_refused():
    with pytest.raises(DefinitionError, match="model_calls=-1"):
        Limits(model_calls=-1)
