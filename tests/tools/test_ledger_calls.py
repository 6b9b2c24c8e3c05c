"""Law 2: a finished call never runs again, one that was in flight is noticed (kinds K2, K3)."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from batches import Run, ask, graph_of, paired, results, texts
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.types import Command, interrupt

from agentkit.testing import crash
from agentkit.tools import ToolNode, ToolPolicy, ToolRuntime, tool

CONFIG = {"configurable": {"thread_id": "t"}}


class World:
    """What tools did, and under which keys."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.keys: list[str | None] = []

    def tool(self, name: str, **policy: Any) -> Any:
        @tool(name, policy=ToolPolicy(**policy))
        def work(runtime: ToolRuntime, x: int = 0) -> str:
            """Have an effect."""
            self.effects.append(f"{name} {x}")
            self.keys.append(runtime.idempotency_key)
            return f"{name} {x} done"

        return work


@pytest.fixture
def world() -> World:
    return World()


def crashed(run: Run, graph: Any, saver: Any, point: crash.Point, message: Any, **trap: Any) -> None:
    # sync: under "async" a process can end before the call itself is stored, and then nothing has begun
    with crash.at(saver, point, **trap), suppress(crash.Crashed):
        run(graph, {"messages": [message]}, CONFIG, durability="sync")


ONE = ask(("pay", {"x": 1}, "c1"))
TWO = ask(("pay", {"x": 1}, "c1"), ("pay", {"x": 2}, "c2"))


@pytest.mark.parametrize("point", ["after start", "after effect", "during commit"])
def test_a_call_that_was_in_flight_is_never_run_again_and_the_model_is_told(
    run: Run, form: str, checkpointer: Any, world: World, point: crash.Point
) -> None:
    graph = graph_of(ToolNode([world.tool("pay")]), form=form, checkpointer=checkpointer)
    crashed(run, graph, checkpointer, point, ONE)
    before = list(world.effects)
    output = run(graph, None, CONFIG)
    assert world.effects == before
    assert results(output)[0].status == "error"
    assert texts(output)[0].startswith("Outcome unknown: the process stopped while this call of pay was running")
    assert paired(output["messages"])


def test_a_call_whose_start_was_never_recorded_runs_once(run: Run, form: str, checkpointer: Any, world: World) -> None:
    graph = graph_of(ToolNode([world.tool("pay")]), form=form, checkpointer=checkpointer)
    crashed(run, graph, checkpointer, "before start", ONE)
    assert world.effects == []
    assert texts(run(graph, None, CONFIG)) == ["pay 1 done"]
    assert world.effects == ["pay 1"]


def test_a_finished_call_is_not_run_again_after_a_crash(run: Run, form: str, checkpointer: Any, world: World) -> None:
    graph = graph_of(ToolNode([world.tool("pay")]), form=form, checkpointer=checkpointer)
    crashed(run, graph, checkpointer, "after finish", TWO, call_id="c2")
    output = run(graph, None, CONFIG)
    assert len(world.effects) == len(set(world.effects))
    assert texts(output)[1] == "pay 2 done"
    assert paired(output["messages"])


def test_an_idempotent_call_runs_again_under_the_same_key(run: Run, form: str, checkpointer: Any, world: World) -> None:
    graph = graph_of(ToolNode([world.tool("pay", on_crash="rerun")]), form=form, checkpointer=checkpointer)
    crashed(run, graph, checkpointer, "after effect", ONE)
    assert texts(run(graph, None, CONFIG)) == ["pay 1 done"]
    assert world.effects == ["pay 1", "pay 1"]
    assert len(set(world.keys)) == 1
    assert world.keys[0]


def test_an_idempotent_call_that_finished_is_not_run_again(
    run: Run, form: str, checkpointer: Any, world: World
) -> None:
    graph = graph_of(ToolNode([world.tool("pay", on_crash="rerun")]), form=form, checkpointer=checkpointer)
    crashed(run, graph, checkpointer, "after finish", ONE)
    assert texts(run(graph, None, CONFIG)) == ["pay 1 done"]
    assert world.effects == ["pay 1"]


def test_the_state_update_of_a_recorded_call_is_put_in_place(run: Run, checkpointer: Any) -> None:
    ran = []

    @tool
    def note(runtime: ToolRuntime) -> Command:
        """Write a note."""
        ran.append(1)
        done = ToolMessage("noted", tool_call_id=runtime.tool_call_id)
        return Command(update={"messages": [done], "note": "hello", "count": 3})

    graph = graph_of(ToolNode([note]), form="send", checkpointer=checkpointer)
    crashed(run, graph, checkpointer, "after finish", ask(("note", {}, "c1")))
    output = run(graph, None, CONFIG)
    assert (output["note"], output["count"], texts(output), ran) == ("hello", 3, ["noted"], [1])


def test_finished_siblings_of_a_question_never_run_again(run: Run, form: str, checkpointer: Any, world: World) -> None:
    @tool("ask")
    def ask_(q: str) -> str:
        """Ask."""
        return f"{q}={interrupt(q)}"

    graph = graph_of(ToolNode([ask_, world.tool("pay")]), form=form, checkpointer=checkpointer)
    message = ask(("pay", {"x": 1}, "c1"), ("ask", {"q": "A"}, "c2"), ("pay", {"x": 2}, "c3"))
    run(graph, {"messages": [message]}, CONFIG)
    with crash.at(checkpointer, "after finish", call_id="c2"), suppress(crash.Crashed):
        run(graph, Command(resume="yes"), CONFIG)
    output = run(graph, None, CONFIG)
    assert texts(output) == ["pay 1 done", "A=yes", "pay 2 done"]
    assert sorted(world.effects) == ["pay 1", "pay 2"]


def test_a_call_that_asked_and_was_answered_is_in_flight_after_it(run: Run, form: str, checkpointer: Any) -> None:
    sent = []

    @tool
    def send() -> str:
        """Ask, then send."""
        answer = interrupt("sure?")
        sent.append(answer)
        return "sent"

    graph = graph_of(ToolNode([send]), form=form, checkpointer=checkpointer)
    run(graph, {"messages": [ask(("send", {}, "c1"))]}, CONFIG)
    with crash.at(checkpointer, "after effect"), suppress(crash.Crashed):
        run(graph, Command(resume="yes"), CONFIG)
    output = run(graph, None, CONFIG)
    assert sent == ["yes"]
    assert texts(output)[0].startswith("Outcome unknown")


@pytest.mark.parametrize(
    ("answer", "effects", "text"),
    [
        ("rerun", 2, "pay 1 done"),
        ("skip", 1, "Outcome unknown"),
        ({"result": "paid, says the bank"}, 1, "paid, says the bank"),
    ],
)
def test_a_person_decides_what_becomes_of_a_call_that_was_in_flight(
    run: Run, checkpointer: Any, world: World, answer: Any, effects: int, text: str
) -> None:
    graph = graph_of(ToolNode([world.tool("pay", on_crash="ask")]), form="send", checkpointer=checkpointer)
    crashed(run, graph, checkpointer, "after effect", ONE)
    asked = run(graph, None, CONFIG)["__interrupt__"]
    assert len(asked) == 1
    assert asked[0].value["type"] == "unknown_outcome"
    assert asked[0].value["tool_call"] == {"id": "c1", "name": "pay", "args": {"x": 1}}
    output = run(graph, Command(resume={asked[0].id: answer}), CONFIG)
    assert len(world.effects) == effects
    assert texts(output)[0].startswith(text)
    assert paired(output["messages"])


def test_an_answer_that_is_none_leaves_the_question_open(run: Run, checkpointer: Any, world: World) -> None:
    graph = graph_of(ToolNode([world.tool("pay", on_crash="ask")]), form="send", checkpointer=checkpointer)
    crashed(run, graph, checkpointer, "after effect", ONE)
    run(graph, None, CONFIG)
    again = run(graph, Command(resume="do it!"), CONFIG)["__interrupt__"]
    assert again[0].value["error"] == "'do it!' is no answer to this"
    assert len(world.effects) == 1
    assert texts(run(graph, Command(resume="rerun"), CONFIG)) == ["pay 1 done"]
    assert len(world.effects) == 2


def test_a_person_is_asked_beside_the_tools_own_questions(run: Run, form: str, checkpointer: Any) -> None:
    heard = []

    @tool(policy=ToolPolicy(on_crash="ask"))
    def send() -> str:
        """Ask twice, then send."""
        heard.append((interrupt("first"), interrupt("second")))
        return f"sent {heard[-1]}"

    def resume(answer: Any) -> Any:
        output = run(graph, Command(resume=answer), CONFIG)
        return output["__interrupt__"][0].value if "__interrupt__" in output else texts(output)

    graph = graph_of(ToolNode([send]), form=form, checkpointer=checkpointer)
    run(graph, {"messages": [ask(("send", {}, "c1"))]}, CONFIG)
    assert resume("one") == "second"
    with crash.at(checkpointer, "after effect"), suppress(crash.Crashed):
        resume("two")
    assert run(graph, None, CONFIG)["__interrupt__"][0].value["type"] == "unknown_outcome"
    assert resume("rerun") == "first"  # it runs from its beginning, so it asks again
    assert resume("uno") == "second"
    assert resume("due") == ["sent ('uno', 'due')"]
    assert heard == [("one", "two"), ("uno", "due")]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("found", "text", "effects"), [("paid before", "paid before", 1), (None, "Outcome unknown", 1)]
)
def test_a_probe_finds_out_what_became_of_a_call(
    run: Run, checkpointer: Any, world: World, is_async: bool, found: Any, text: str, effects: int
) -> None:
    asked = []

    def probe(call: Any, key: str) -> Any:
        asked.append((call["id"], key))
        return found

    async def aprobe(call: Any, key: str) -> Any:
        await asyncio.sleep(0)
        return probe(call, key)

    pay = world.tool("pay", on_crash=aprobe if is_async else probe)
    graph = graph_of(ToolNode([pay]), form="send", checkpointer=checkpointer)
    crashed(run, graph, checkpointer, "after effect", ONE)
    output = run(graph, None, CONFIG)
    assert asked == [("c1", world.keys[0])]
    assert texts(output)[0].startswith(text)
    assert len(world.effects) == effects


def test_a_probe_that_fails_leaves_the_outcome_unknown_and_says_why(run: Run, checkpointer: Any, world: World) -> None:
    def probe(call: Any, key: str) -> Any:
        raise ConnectionError("no route to bank")

    graph = graph_of(ToolNode([world.tool("pay", on_crash=probe)]), form="send", checkpointer=checkpointer)
    crashed(run, graph, checkpointer, "after effect", ONE)
    text = texts(run(graph, None, CONFIG))[0]
    assert "Outcome unknown" in text
    assert "ConnectionError: no route to bank" in text


def test_an_error_that_is_raised_lets_the_call_run_again_when_the_run_is_resumed(run: Run, checkpointer: Any) -> None:
    broken = [True]

    @tool
    def flaky() -> str:
        """Fail once."""
        if broken.pop() if broken else False:
            raise ValueError("not yet")
        return "now"

    graph = graph_of(ToolNode([flaky], on_tool_error="raise"), form="send", checkpointer=checkpointer)
    with pytest.raises(ValueError, match="not yet"):
        run(graph, {"messages": [ask(("flaky", {}, "c1"))]}, CONFIG)
    assert texts(run(graph, None, CONFIG)) == ["now"]


def test_a_call_id_that_comes_again_in_a_later_turn_is_another_call(run: Run, checkpointer: Any, world: World) -> None:
    graph = graph_of(ToolNode([world.tool("pay")]), form="send", checkpointer=checkpointer)
    crashed(run, graph, checkpointer, "after finish", ONE)
    run(graph, None, CONFIG)
    later = {"messages": [HumanMessage("again", id="h"), ask(("pay", {"x": 1}, "c1"), id="ai-2")]}
    crashed(run, graph, checkpointer, "after finish", later["messages"][1])
    output = run(graph, None, CONFIG)
    assert texts(output) == ["pay 1 done", "pay 1 done"]
    assert world.effects == ["pay 1", "pay 1"]
    assert len(set(world.keys)) == 2


def test_without_a_checkpointer_nothing_is_recorded_and_everything_works(run: Run, form: str, world: World) -> None:
    assert texts(run(graph_of(ToolNode([world.tool("pay")]), form=form), {"messages": [TWO]})) == [
        "pay 1 done",
        "pay 2 done",
    ]


def test_identical_calls_still_run_once_when_one_of_them_ended_before_a_crash(
    run: Run, form: str, checkpointer: Any, world: World
) -> None:
    @tool("ask")
    def ask_() -> str:
        """Ask."""
        return str(interrupt("?"))

    pay = world.tool("pay", dedupe=True, sequential=True)
    graph = graph_of(ToolNode([pay, ask_]), form=form, checkpointer=checkpointer)
    message = ask(("pay", {"x": 1}, "c1"), ("pay", {"x": 1}, "c2"))
    crashed(run, graph, checkpointer, "after finish", message, call_id="c1")
    forget_this_process()
    output = run(graph, None, CONFIG)
    assert texts(output) == ["pay 1 done", "pay 1 done"]
    assert world.effects == ["pay 1"]


def forget_this_process() -> None:
    """As if the next run were in another process."""
    from agentkit.tools import _turn

    _turn._TURNS.clear()
