"""Headless tools whose client is a Python program."""

import asyncio
import threading
from typing import Any

import pytest
from batches import Run, paired, results, texts
from clients import GO, HERE, MIXED, THREAD, Browser, asked

from agentkit.agents import create_agent
from agentkit.errors import AnswerError, DefinitionError
from agentkit.testing import ScriptedModel, calls
from agentkit.tools import arun_headless, implement, run_headless, tool


def headless(run: Run, agent: Any, given: Any, bodies: list[Any], config: Any = None) -> Any:
    if run.is_async:
        return asyncio.run(arun_headless(agent, given, bodies, config))
    return run_headless(agent, given, bodies, config)


def test_calls_are_answered_until_the_agent_has_answered(run: Run) -> None:
    browser = Browser(MIXED, calls(("copy_text", {"text": "again"}, "call_4")))
    copied: list[str] = []
    seen: list[Any] = []

    def locate(high_accuracy: bool, source: str) -> dict[str, float]:
        seen.append((high_accuracy, source))
        return HERE

    bodies = [implement(browser.locate, locate), implement(browser.copy, lambda text: copied.append(text) or "ok")]
    output = headless(run, browser.agent, GO, bodies, THREAD)
    assert texts(output) == ['{"lat": 52.5, "lon": 13.4}', "saved 1", "ok", "ok"]
    assert copied == ["hi", "again"]
    assert seen == [(False, "gps")], "with the types and defaults of the schema"
    assert browser.ran == [1]
    assert paired(output["messages"])


def test_what_a_body_raises_is_told_to_the_model(run: Run) -> None:
    browser = Browser(MIXED)

    def locate(**_: Any) -> Any:
        raise PermissionError("location is off")

    bodies = [implement(browser.locate, locate), implement(browser.copy, lambda text: text)]
    output = headless(run, browser.agent, GO, bodies, THREAD)
    assert texts(output)[0] == "locate failed on the client: PermissionError: location is off"
    assert [r.status for r in results(output)] == ["error", "success", "success"]


def test_questions_of_others_are_left_open(run: Run) -> None:
    browser = Browser(MIXED)
    output = headless(run, browser.agent, GO, [implement(browser.locate, lambda **_: HERE)], THREAD)
    assert list(asked(output)) == ["call_3"]
    output = headless(run, browser.agent, None, [implement(browser.copy, lambda text: text)], THREAD)
    assert texts(output) == ['{"lat": 52.5, "lon": 13.4}', "saved 1", "hi"]
    assert browser.ran == [1]


def test_a_body_whose_result_does_not_fit_is_a_mistake_and_the_question_stays_open(run: Run) -> None:
    browser = Browser(calls(("locate", {}, "call_1")))
    with pytest.raises(AnswerError, match="lon: is missing"):
        headless(run, browser.agent, GO, [implement(browser.locate, lambda **_: {"lat": 1})], THREAD)
    assert [each.value["tool_call"]["id"] for each in browser.agent.get_state(THREAD).interrupts] == ["call_1"]


def test_an_agent_without_a_checkpointer_gets_one_for_the_run(run: Run) -> None:
    browser = Browser(MIXED, checkpointer=None)
    bodies = [implement(browser.locate, lambda **_: HERE), implement(browser.copy, lambda text: text)]
    output = headless(run, browser.agent, GO, bodies)
    assert texts(output) == ['{"lat": 52.5, "lon": 13.4}', "saved 1", "hi"]
    assert browser.agent.checkpointer is None


async def test_open_calls_are_worked_on_at_the_same_time() -> None:
    here = asyncio.Event()
    loop = asyncio.get_running_loop()
    browser = Browser(MIXED)

    async def locate(**_: Any) -> Any:
        await asyncio.wait_for(here.wait(), 10)
        return HERE

    def copy(text: str) -> str:
        assert threading.current_thread() is not threading.main_thread()
        loop.call_soon_threadsafe(here.set)
        return text

    bodies = [implement(browser.locate, locate), implement(browser.copy, copy)]
    assert texts(await arun_headless(browser.agent, GO, bodies, THREAD))[2] == "hi"


def test_mistakes_are_said_before_or_while_running() -> None:
    browser = Browser(calls(("locate", {}, "call_1")))

    @tool
    def add(a: int) -> int:
        """Add."""
        return a

    with pytest.raises(DefinitionError, match="'add' is not headless"):
        implement(add, lambda a: a)  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="not a function"):
        implement(browser.locate, 5)  # type: ignore[arg-type]
    one = implement(browser.locate, lambda **_: HERE)
    with pytest.raises(DefinitionError, match="two implementations of 'locate'"):
        run_headless(browser.agent, GO, [one, one], THREAD)

    async def later(**_: Any) -> Any:
        return HERE

    with pytest.raises(DefinitionError, match="use arun_headless"):
        run_headless(browser.agent, GO, [implement(browser.locate, later)], THREAD)


def test_a_second_process_takes_the_answer(checkpointer: Any) -> None:
    """The question outlives the graph object that asked it."""
    asking = Browser(MIXED, checkpointer=checkpointer)
    open_ = asked(asking.agent.invoke(GO, THREAD))
    answering = Browser(checkpointer=checkpointer)
    bodies = [implement(answering.locate, lambda **_: HERE), implement(answering.copy, lambda text: text)]
    output = run_headless(answering.agent, None, bodies, THREAD)
    assert sorted(open_) == ["call_1", "call_3"]
    assert texts(output) == ['{"lat": 52.5, "lon": 13.4}', "saved 1", "hi"]
    assert (asking.ran, answering.ran) == ([1], [])


async def test_a_second_process_takes_the_answer_async(acheckpointer: Any) -> None:
    asking = Browser(MIXED, checkpointer=acheckpointer)
    await asking.agent.ainvoke(GO, THREAD)
    answering = Browser(checkpointer=acheckpointer)
    bodies = [implement(answering.locate, lambda **_: HERE), implement(answering.copy, lambda text: text)]
    output = await arun_headless(answering.agent, None, bodies, THREAD)
    assert texts(output) == ['{"lat": 52.5, "lon": 13.4}', "saved 1", "hi"]
    assert (asking.ran, answering.ran) == ([1], [])


def test_an_agent_inside_a_graph_is_answered_as_well(run: Run) -> None:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, MessagesState, StateGraph

    browser = Browser(MIXED, checkpointer=None)
    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", browser.agent)
    graph.add_edge(START, "agent")
    bodies = [implement(browser.locate, lambda **_: HERE), implement(browser.copy, lambda text: text)]
    output = headless(run, graph.compile(checkpointer=InMemorySaver()), GO, bodies, THREAD)
    assert texts(output) == ['{"lat": 52.5, "lon": 13.4}', "saved 1", "hi"]
    assert browser.ran == [1]
    assert paired(output["messages"])


def test_the_model_is_offered_a_headless_tool_like_any_other() -> None:
    browser = Browser()
    create_agent(model := ScriptedModel(["hi"]), [browser.locate]).invoke(GO)
    assert model.requests[0].tools[0]["function"]["name"] == "locate"
    assert set(model.requests[0].tools[0]["function"]["parameters"]["properties"]) == {"high_accuracy", "source"}
