"""Calls that the client runs: what it is asked, how it may answer, and what is made of bad answers (case B91)."""

import time
from typing import Any

import pytest
from batches import Run, paired, results, texts
from clients import GO, HERE, MIXED, THREAD, Browser, asked
from langchain_core.messages import HumanMessage
from langgraph.types import Command

from agentkit.errors import DefinitionError
from agentkit.testing import calls
from agentkit.tools import ToolPolicy, tool

ONE = calls(("locate", {"source": "wifi"}, "call_1"))


def test_the_client_is_asked_with_the_call_as_the_model_made_it(run: Run) -> None:
    browser = Browser(ONE)
    (question,) = run(browser.agent, GO, THREAD)["__interrupt__"]
    assert question.value == {
        "type": "tool",
        "tool_call": {"id": "call_1", "name": "locate", "args": {"source": "wifi"}},
    }


@pytest.mark.parametrize(
    "answer",
    [{"call_1": HERE}, HERE, {"call_1": HERE, "call_9": 1}, {"call_1": {"lat": "52.5", "lon": 13.4}}],
    ids=["keyed", "bare", "among others", "coerced"],
)
def test_an_answer_may_be_keyed_by_the_call_or_bare(run: Run, answer: Any) -> None:
    browser = Browser(ONE)
    run(browser.agent, GO, THREAD)
    output = run(browser.agent, Command(resume=answer), THREAD)
    assert texts(output) == ['{"lat": 52.5, "lon": 13.4}']
    assert results(output)[0].status == "success"
    assert paired(output["messages"])


@pytest.mark.parametrize(
    ("value", "text"),
    [("there", "there"), ([1, 2], "[1, 2]"), (7, "7"), (False, "false"), ({"a": None}, '{"a": null}'), ("", "")],
)
@pytest.mark.parametrize("keyed", [True, False])
def test_without_a_result_schema_any_json_is_a_result(run: Run, value: Any, text: str, keyed: bool) -> None:
    browser = Browser(calls(("copy_text", {"text": "x"}, "call_1")))
    run(browser.agent, GO, THREAD)
    output = run(browser.agent, Command(resume={"call_1": value} if keyed else value), THREAD)
    assert texts(output) == [text]


def test_null_is_a_result_where_it_is_keyed(run: Run) -> None:
    browser = Browser(calls(("copy_text", {"text": "x"}, "call_1")))
    run(browser.agent, GO, THREAD)
    assert texts(run(browser.agent, Command(resume={"call_1": None}), THREAD)) == ["null"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"call_1": {"error": "no permission"}}, "locate failed on the client: no permission"),
        ({"error": "no permission"}, "locate failed on the client: no permission"),
        ({"call_1": {"declined": True}}, "the user declined locate"),
        ({"declined": "not now"}, "the user declined locate: not now"),
    ],
)
def test_a_failing_or_declined_call_is_an_error_result(run: Run, answer: Any, told: str) -> None:
    browser = Browser(ONE)
    run(browser.agent, GO, THREAD)
    output = run(browser.agent, Command(resume=answer), THREAD)
    assert [(r.content, r.status) for r in results(output)] == [(told, "error")]
    assert output["messages"][-1].content == "done"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"call_1": {"lat": "north", "lon": 1}}, "lat: input should be a valid number"),
        ({"call_1": "Berlin"}, "does not fit its result_schema"),
        ({"lat": 1}, "lon: is missing"),
        ({"call_7": HERE}, "the answer is for 'call_7', but the open call of locate is 'call_1'"),
        ([], "does not fit its result_schema"),
    ],
)
def test_a_bad_answer_leaves_the_question_open_and_says_why(run: Run, answer: Any, why: str) -> None:
    browser = Browser(ONE)
    first = asked(run(browser.agent, GO, THREAD))["call_1"]
    again = asked(run(browser.agent, Command(resume=answer), THREAD))["call_1"]
    assert why in again.value.pop("error")
    assert again.value == first.value
    once_more = asked(run(browser.agent, Command(resume={again.id: answer}), THREAD))["call_1"]
    assert why in once_more.value["error"]
    # a client that still holds the first question answers it as well as one that follows
    output = run(browser.agent, Command(resume={first.id: {"call_1": HERE}}), THREAD)
    assert texts(output) == ['{"lat": 52.5, "lon": 13.4}']
    assert paired(output["messages"])


@pytest.mark.parametrize("schema", [{"type": "object", "required": ["lat"]}, dict[str, float], list[int]])
def test_a_result_schema_may_be_json_or_any_type(run: Run, schema: Any) -> None:
    browser = Browser(ONE, schema=schema)
    run(browser.agent, GO, THREAD)
    good: Any = [1, 2] if schema == list[int] else {"lat": 1.5}
    assert "error" in asked(run(browser.agent, Command(resume={"call_1": "bad"}), THREAD))["call_1"].value
    assert results(run(browser.agent, Command(resume={"call_1": good}), THREAD))[0].status == "success"


def test_arguments_that_do_not_fit_are_told_to_the_model_and_nobody_is_asked(run: Run) -> None:
    browser = Browser(calls(("locate", {"high_accuracy": "maybe"}), ("copy_text", {"txt": "x"})))
    output = run(browser.agent, GO, THREAD)
    assert asked(output) == {}
    assert [r.status for r in results(output)] == ["error", "error"]
    assert "high_accuracy" in texts(output)[0]
    assert "'text'" in texts(output)[1] or "text: is missing" in texts(output)[1]


def test_a_batch_is_answered_at_once_and_its_server_call_ran_once(run: Run) -> None:
    browser = Browser(MIXED)
    open_ = asked(run(browser.agent, GO, THREAD))
    assert sorted(open_) == ["call_1", "call_3"]
    answers = {open_["call_3"].id: {"call_3": {"error": "denied"}}, open_["call_1"].id: {"call_1": HERE}}
    output = run(browser.agent, Command(resume=answers), THREAD)
    assert texts(output) == ['{"lat": 52.5, "lon": 13.4}', "saved 1", "copy_text failed on the client: denied"]
    assert browser.ran == [1]
    assert paired(output["messages"])


def test_a_batch_is_answered_one_by_one_with_bad_answers_between(run: Run) -> None:
    browser = Browser(MIXED)
    open_ = asked(run(browser.agent, GO, THREAD))
    output = run(browser.agent, Command(resume={open_["call_3"].id: {"call_1": HERE}}), THREAD)
    assert "the answer is for 'call_1'" in asked(output)["call_3"].value["error"]
    assert "error" not in asked(output)["call_1"].value
    output = run(browser.agent, Command(resume={asked(output)["call_1"].id: {"call_1": HERE}}), THREAD)
    assert sorted(asked(output)) == ["call_3"]
    output = run(browser.agent, Command(resume={"call_3": "copied"}), THREAD)
    assert texts(output) == ['{"lat": 52.5, "lon": 13.4}', "saved 1", "copied"]
    assert browser.ran == [1]
    assert len(browser.model.calls) == 2


def test_answers_to_nothing_that_is_open_change_nothing(run: Run) -> None:
    browser = Browser(MIXED)
    open_ = asked(run(browser.agent, GO, THREAD))
    unknown = "0" * 32
    assert sorted(asked(run(browser.agent, Command(resume={unknown: {"call_1": HERE}}), THREAD))) == [
        "call_1",
        "call_3",
    ]
    first = {open_["call_1"].id: {"call_1": HERE}}
    run(browser.agent, Command(resume=first), THREAD)
    output = run(browser.agent, Command(resume={open_["call_1"].id: {"call_1": {"lat": 0, "lon": 0}}}), THREAD)
    assert sorted(asked(output)) == ["call_3"], "answered twice"
    output = run(browser.agent, Command(resume={"call_3": "copied"}), THREAD)
    assert texts(output) == ['{"lat": 52.5, "lon": 13.4}', "saved 1", "copied"]
    output = run(browser.agent, Command(resume=first), THREAD)
    assert len(results(output)) == 3, "answered after the end"
    assert browser.ran == [1]
    assert paired(output["messages"])


def test_a_late_answer_is_dropped_with_an_error_result(run: Run) -> None:
    browser = Browser(MIXED, timeout=0.2)
    open_ = asked(run(browser.agent, GO, THREAD))
    asked_at = time.monotonic()
    while time.monotonic() - asked_at < 0.21:  # the limit is in real time
        time.sleep(0.05)
    output = run(browser.agent, Command(resume={i.id: {c: HERE} for c, i in open_.items()}), THREAD)
    assert texts(output)[0] == "locate was not answered within 0.2 s; a late answer was dropped"
    assert [r.status for r in results(output)] == ["error", "success", "success"]
    assert browser.ran == [1]


def test_an_answer_in_time_is_taken(run: Run) -> None:
    browser = Browser(ONE, timeout=600)
    run(browser.agent, GO, THREAD)
    assert results(run(browser.agent, Command(resume={"call_1": HERE}), THREAD))[0].status == "success"


def test_a_new_message_instead_of_an_answer_closes_the_call_honestly(run: Run) -> None:
    browser = Browser(MIXED)
    open_ = asked(run(browser.agent, GO, THREAD))
    output = run(browser.agent, {"messages": [HumanMessage("never mind")]}, THREAD)
    assert asked(output) == {}
    assert [r.status for r in results(output)][::2] == ["error", "error"]
    assert texts(output)[0].startswith("Not completed: the client had not answered this call of locate")
    assert [m.type for m in output["messages"]] == ["human", "ai", "tool", "tool", "tool", "human", "ai"]
    assert paired(output["messages"])
    late = run(browser.agent, Command(resume={open_["call_1"].id: {"call_1": HERE}}), THREAD)
    assert late["messages"] == output["messages"], "an answer to a closed call changes nothing"
    assert browser.ran == [1]


def test_a_headless_tool_that_returns_directly_ends_the_run_unless_it_failed(run: Run) -> None:
    pick = tool(name="pick", description="Pick a file.", args_schema={"type": "object"}, return_direct=True)
    for answer, last in (({"call_1": "a.txt"}, "a.txt"), ({"call_1": {"error": "closed"}}, "done")):
        browser = Browser(calls(("pick", {}, "call_1")))
        from agentkit.agents import create_agent

        agent = create_agent(browser.model, [pick], checkpointer=browser.agent.checkpointer)
        run(agent, GO, THREAD)
        assert run(agent, Command(resume=answer), THREAD)["messages"][-1].content == last


def test_what_cannot_be_a_headless_tool_is_refused_when_it_is_defined() -> None:
    good: dict[str, Any] = {"name": "x", "description": "X.", "args_schema": {"type": "object"}}
    with pytest.raises(DefinitionError, match="result_schema is no valid JSON schema"):
        tool(**good, result_schema={"type": "nonsense"})
    with pytest.raises(DefinitionError, match="args_schema is no valid JSON schema"):
        tool(**{**good, "args_schema": {"type": 5}})
    with pytest.raises(DefinitionError, match="needs name=, description= and args_schema="):
        tool(name="x", description="X.")
    with pytest.raises(DefinitionError, match="has no body"):
        tool(**good)(lambda: 1)


def test_by_hand_it_cannot_be_run() -> None:
    made = tool(name="x", description="X.", args_schema={"type": "object"}, policy=ToolPolicy(timeout=5))
    with pytest.raises(NotImplementedError, match="headless"):
        made.invoke({})
