"""Calls that a new message, update_state, a fork, a cancel or a crash left behind (cases B30 and its kind)."""

import asyncio
from contextlib import suppress
from typing import Annotated, Any

import pytest
from batches import Run
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.types import Command, interrupt

from agentkit.agents import AgentState, create_agent
from agentkit.testing import ScriptedModel, StrictModel, assert_valid, crash
from agentkit.tools import ToolPolicy, ToolRuntime, tool

CONFIG = {"configurable": {"thread_id": "t"}}


def call(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


class State(AgentState):
    paid: Annotated[int, lambda left, right: left + right]
    note: str


class Shop:
    """An agent that pays, asks and is interrupted."""

    def __init__(self, saver: Any, answers: list[Any], **policy: Any) -> None:
        self.effects: list[int] = []
        self.hanging = asyncio.Event()

        @tool(policy=ToolPolicy(**policy))
        def pay(n: int, runtime: ToolRuntime) -> Command:
            """Pay."""
            self.effects.append(n)
            done = ToolMessage(f"paid {n}", tool_call_id=runtime.tool_call_id)
            return Command(update={"messages": [done], "paid": n, "note": f"last {n}"})

        @tool("ask")
        def ask_(q: str) -> str:
            """Ask."""
            return f"{q}={interrupt(q)}"

        @tool
        async def hang() -> str:
            """Never end."""
            self.hanging.set()
            await asyncio.Event().wait()
            return "never"

        self.model = StrictModel(ScriptedModel(answers))
        self.agent = create_agent(self.model, [pay, ask_, hang], state_schema=State, checkpointer=saver)


BOTH = AIMessage("", tool_calls=[call("pay", "c1", n=7), call("ask", "c2", q="sure?")])


def contents(output: Any) -> list[Any]:
    return [message.content for message in output["messages"]]


def test_a_new_message_instead_of_an_answer_finds_the_finished_results_again(run: Run, checkpointer: Any) -> None:
    shop = Shop(checkpointer, [BOTH, "sorry"])
    run(shop.agent, {"messages": [HumanMessage("pay")]}, CONFIG)
    output = run(shop.agent, {"messages": [HumanMessage("never mind")]}, CONFIG)
    assert_valid(output["messages"])
    texts = contents(output)
    assert texts[2] == "paid 7"
    assert texts[3].startswith("Not completed: this call of ask was waiting")
    assert texts[4:] == ["never mind", "sorry"]
    assert (output["paid"], output["note"], shop.effects) == (7, "last 7", [7])


def test_the_recovered_update_is_put_in_place_once(run: Run, checkpointer: Any) -> None:
    shop = Shop(checkpointer, [BOTH, "sorry", "still here"])
    run(shop.agent, {"messages": [HumanMessage("pay")]}, CONFIG)
    run(shop.agent, {"messages": [HumanMessage("never mind")]}, CONFIG)
    output = run(shop.agent, {"messages": [HumanMessage("hello?")]}, CONFIG)
    assert output["paid"] == 7
    assert contents(output)[-1] == "still here"


@pytest.mark.parametrize(("point", "text"), [("after effect", "Outcome unknown"), ("after finish", "paid 7")])
def test_a_new_message_after_a_crash_tells_what_is_known(
    run: Run, checkpointer: Any, point: crash.Point, text: str
) -> None:
    shop = Shop(checkpointer, [AIMessage("", tool_calls=[call("pay", "c1", n=7)]), "sorry"])
    with crash.at(checkpointer, point), suppress(crash.Crashed):
        run(shop.agent, {"messages": [HumanMessage("pay")]}, CONFIG)
    output = run(shop.agent, {"messages": [HumanMessage("did you?")]}, CONFIG)
    assert_valid(output["messages"])
    assert contents(output)[2].startswith(text)
    assert shop.effects == [7]
    assert output.get("paid", 0) == (7 if text == "paid 7" else 0)


async def test_a_cancelled_run_leaves_a_thread_that_takes_the_next_message(acheckpointer: Any) -> None:
    first = AIMessage("", tool_calls=[call("pay", "c1", n=7), call("hang", "c2")])
    shop = Shop(acheckpointer, [first, "sorry"])
    running = asyncio.create_task(shop.agent.ainvoke({"messages": [HumanMessage("pay")]}, CONFIG))
    await asyncio.wait_for(shop.hanging.wait(), 10)
    async with asyncio.timeout(10):
        while not await _recorded(acheckpointer, "finish", "c1"):  # noqa: ASYNC110 - a database has no event
            await asyncio.sleep(0.01)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    output = await shop.agent.ainvoke({"messages": [HumanMessage("stop")]}, CONFIG)
    assert_valid(output["messages"])
    assert contents(output)[2] == "paid 7"
    assert contents(output)[3].startswith("Outcome unknown")
    assert (shop.effects, output["paid"]) == ([7], 7)


async def _recorded(saver: Any, event: str, call_id: str) -> bool:
    found = await saver.aget_tuple(CONFIG)
    writes = found.pending_writes or () if found else ()
    return any(c == "__agentkit_call__" and (v["e"], v["k"][1]) == (event, call_id) for _, c, v in writes)


def test_update_state_in_the_middle_does_not_run_finished_calls_again(run: Run, checkpointer: Any) -> None:
    shop = Shop(checkpointer, [BOTH, "done"])
    run(shop.agent, {"messages": [HumanMessage("pay")]}, CONFIG)
    shop.agent.update_state(CONFIG, {"note": "edited"}, as_node="model")
    asked = run(shop.agent, None, CONFIG)["__interrupt__"]
    assert [each.value for each in asked] == ["sure?"]
    output = run(shop.agent, Command(resume={asked[0].id: "yes"}), CONFIG)
    assert contents(output)[2:] == ["paid 7", "sure?=yes", "done"]
    assert (shop.effects, output["paid"]) == ([7], 7)


def test_update_state_after_a_crash_still_knows_what_was_in_flight(run: Run, checkpointer: Any) -> None:
    shop = Shop(checkpointer, [AIMessage("", tool_calls=[call("pay", "c1", n=7)]), "done"])
    with crash.at(checkpointer, "after effect"), suppress(crash.Crashed):
        run(shop.agent, {"messages": [HumanMessage("pay")]}, CONFIG)
    shop.agent.update_state(CONFIG, {"note": "edited"}, as_node="model")
    output = run(shop.agent, None, CONFIG)
    assert contents(output)[2].startswith("Outcome unknown")
    assert shop.effects == [7]


def _at_the_calls(shop: Shop) -> Any:
    """The config of the checkpoint before the tools ran."""
    return next(state.config for state in shop.agent.get_state_history(CONFIG) if state.next and "tools" in state.next)


@pytest.mark.parametrize(("policy", "effects"), [("rerun", [7, 7]), ("reuse", [7])])
def test_a_call_that_a_fork_meets_again_runs_or_is_reused_as_its_policy_says(
    run: Run, checkpointer: Any, policy: Any, effects: list[int]
) -> None:
    shop = Shop(checkpointer, [AIMessage("", tool_calls=[call("pay", "c1", n=7)]), "done", "again"], on_replay=policy)
    run(shop.agent, {"messages": [HumanMessage("pay")]}, CONFIG)
    output = run(shop.agent, None, _at_the_calls(shop))
    assert contents(output)[2:] == ["paid 7", "again"]
    assert shop.effects == effects


def test_a_fork_with_other_arguments_runs_the_call(run: Run, checkpointer: Any) -> None:
    shop = Shop(checkpointer, [AIMessage("", tool_calls=[call("pay", "c1", n=7)]), "done", "again"], on_replay="reuse")
    run(shop.agent, {"messages": [HumanMessage("pay")]}, CONFIG)
    at = _at_the_calls(shop)
    asked = shop.agent.get_state(at).values["messages"][-1]
    edited = asked.model_copy(update={"tool_calls": [call("pay", "c1", n=8)]})
    fork = shop.agent.update_state(at, {"messages": [edited]}, as_node="model")
    output = run(shop.agent, None, fork)
    assert contents(output)[2:] == ["paid 8", "again"]
    assert shop.effects == [7, 8]


def test_questions_are_answered_by_their_id_one_by_one_and_a_bare_answer_to_several_is_refused(
    run: Run, checkpointer: Any
) -> None:
    first = AIMessage("", tool_calls=[call("ask", "c1", q="A"), call("ask", "c2", q="B"), call("pay", "c3", n=1)])
    shop = Shop(checkpointer, [first, "done"])
    asked = {
        each.value: each.id for each in run(shop.agent, {"messages": [HumanMessage("go")]}, CONFIG)["__interrupt__"]
    }
    with pytest.raises(RuntimeError, match="must specify the interrupt id"):
        run(shop.agent, Command(resume="yes"), CONFIG)
    left = run(shop.agent, Command(resume={asked["B"]: "b"}), CONFIG)["__interrupt__"]
    assert [each.value for each in left] == ["A"]
    output = run(shop.agent, Command(resume={asked["A"]: "a"}), CONFIG)
    assert contents(output)[2:] == ["A=a", "B=b", "paid 1", "done"]
    assert shop.effects == [1]
