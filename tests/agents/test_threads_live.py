"""Whatever ends a run in the middle of a batch, the thread takes the next message."""

import asyncio

import pytest
from langchain_core.messages import ToolMessage
from langgraph.types import Command, interrupt

from agentkit.agents import create_agent
from agentkit.testing import ScriptedModel, StrictModel, assert_valid, calls
from agentkit.tools import tool

HI = {"messages": [("user", "hi")]}
NEXT = {"messages": [("user", "never mind")]}


def agent_with(body, checkpointer, **settings):
    @tool
    def risky(x: int = 0) -> str:
        """Do something risky."""
        return body()

    @tool
    async def arisky(x: int = 0) -> str:
        """Do something risky, async."""
        return await body()

    @tool
    def fine() -> str:
        """Be fine."""
        return "fine"

    name = "arisky" if asyncio.iscoroutinefunction(body) else "risky"
    model = ScriptedModel([calls(("fine", {}), (name, {})), "alive", "alive again"])
    return create_agent(StrictModel(model), [risky, arisky, fine], checkpointer=checkpointer, **settings)


def test_a_new_message_instead_of_an_answer_to_an_interrupt(checkpointer, thread):
    agent = agent_with(lambda: interrupt("sure?"), checkpointer)
    assert "__interrupt__" in agent.invoke(HI, thread)
    state = agent.invoke(NEXT, thread)
    assert state["messages"][-1].text == "alive"
    assert_valid(agent.get_state(thread).values["messages"])
    assert agent.invoke(NEXT, thread)["messages"][-1].text == "alive again"


async def test_a_new_message_instead_of_an_answer_to_an_interrupt_async(acheckpointer, thread):
    agent = agent_with(lambda: interrupt("sure?"), acheckpointer)
    assert "__interrupt__" in await agent.ainvoke(HI, thread)
    assert (await agent.ainvoke(NEXT, thread))["messages"][-1].text == "alive"
    assert_valid((await agent.aget_state(thread)).values["messages"])


def test_an_exception_that_is_raised(checkpointer, thread):
    def fail():
        raise RuntimeError("broken")

    agent = agent_with(fail, checkpointer, on_tool_error="raise")
    with pytest.raises(RuntimeError, match="broken"):
        agent.invoke(HI, thread)
    assert agent.invoke(NEXT, thread)["messages"][-1].text == "alive"
    assert_valid(agent.get_state(thread).values["messages"])


async def test_a_run_that_is_cancelled_in_the_middle_of_a_tool(acheckpointer, thread):
    started = asyncio.Event()

    async def hang():
        started.set()
        await asyncio.Event().wait()

    agent = agent_with(hang, acheckpointer)
    running = asyncio.create_task(agent.ainvoke(HI, thread))
    await asyncio.wait_for(started.wait(), 20)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await agent.ainvoke(NEXT, thread))["messages"][-1].text == "alive"
    assert_valid((await agent.aget_state(thread)).values["messages"])


def test_an_interrupt_that_is_answered_goes_on_where_it_was(checkpointer, thread):
    agent = agent_with(lambda: str(interrupt("sure?")), checkpointer)
    agent.invoke(HI, thread)
    state = agent.invoke(Command(resume="yes"), thread)
    assert [m.text for m in state["messages"]][2:] == ["fine", "yes", "alive"]


def test_a_history_that_came_broken_is_mended_in_the_thread_too(checkpointer, thread):
    model = ScriptedModel(["one", "two"])
    agent = create_agent(StrictModel(model), [], checkpointer=checkpointer)
    broken = [("user", "a"), calls(("gone", {}, "x")), ToolMessage("orphan", tool_call_id="nobody"), ("user", "b")]
    agent.invoke({"messages": broken}, thread)
    assert_valid(agent.get_state(thread).values["messages"])
    agent.invoke(NEXT, thread)
    first, second = model.calls
    assert second[: len(first)] == first, "a repaired history must not change again: prompt caches depend on it"
