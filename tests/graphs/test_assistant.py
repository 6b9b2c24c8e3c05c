import re
from datetime import date

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from agentkit.messages import check_history
from agentkit.testing import ScriptedModel, StrictModel, ai, calls
from agentkit.testing.rehearsal import RehearsalModel
from graphs import assistant
from graphs._dates import day_of, time_of_day


def config(thread="1", user="anna"):
    return {"configurable": {"thread_id": thread, "user_id": user}}


def say(agent, text, **whose):
    return agent.invoke({"messages": [HumanMessage(text)]}, config(**whose))


def build(**memory):
    return assistant.build(StrictModel(RehearsalModel()), **memory)


def test_it_is_exported_without_checkpointer_and_store():
    assert assistant.graph.checkpointer is None
    assert assistant.graph.store is None
    assert assistant.graph.name == "assistant"


def test_a_question_with_several_parts_is_answered_by_several_calls_at_once():
    state = say(build(), "what is 12*7, the time in 서울, 5 km in miles and how many days until 12-25?")
    results = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    assert [result.name for result in results] == ["calculate", "current_time", "convert_units", "days_between"]
    assert results[0].text == "84"
    assert re.fullmatch(r"\d\d:\d\d on \w+day \d{4}-\d\d-\d\d \(Asia/Seoul, UTC\+0900\)", results[1].text)
    assert results[2].text == "5 km = 3.10686 mi"
    assert re.fullmatch(r"\d+ days? from \d{4}-\d\d-\d\d to \d{4}-12-25", results[3].text)
    assert check_history(state["messages"]) == []


async def test_the_to_do_list_belongs_to_the_thread_and_parallel_calls_keep_each_others_items(acheckpointer):
    agent = build(checkpointer=acheckpointer)

    async def ask(text, thread):
        return await agent.ainvoke({"messages": [HumanMessage(text)]}, config(thread))

    await ask("add milk to my to-do list and add bread to my to-do list, then add tea to my to-do list", "a")
    state = await ask("mark milk as done and mark bread as done", "a")
    assert state["todos"] == {"milk": "done", "bread": "done", "tea": "open"}
    assert (await ask("show my to-do list", "a"))["messages"][-1].text == "To do:\n[x] milk\n[x] bread\n[ ] tea"
    assert (await ask("show my to-do list", "b"))["messages"][-1].text == "To do:\nnothing to do"


def test_a_preference_told_in_one_thread_is_known_in_another_but_not_to_another_user(checkpointer, store):
    agent = build(checkpointer=checkpointer, store=store)
    say(agent, "remember that I like tea", thread="a")
    assert "I like tea" in say(agent, "what do you know about me?", thread="b")["messages"][-1].text
    assert "tea" not in say(agent, "what do you know about me?", thread="c", user="bert")["messages"][-1].text
    say(agent, "forget that I like tea", thread="d")
    assert "tea" not in say(agent, "what do you know about me?", thread="e")["messages"][-1].text


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (("calculate", {"expression": "1/0"}), "divides by zero"),
        (("calculate", {"expression": "__import__('os')"}), "is not arithmetic"),
        (("calculate", {"expression": "9**9**9"}), "too large"),
        (("current_time", {"place": "Seol"}), "did you mean Seoul?"),
        (("current_time", {"place": "Zzyzx Springs"}), "give a large city or a zone such as Asia/Seoul"),
        (("convert_time", {"time": "25:00", "from_place": "Seoul", "to_place": "London"}), "write it like 9:30"),
        (("days_between", {"start": "today", "end": "2026-13-01"}), "write it like 2026-12-25"),
        (
            ("convert_units", {"value": 1, "from_unit": "km", "to_unit": "kg"}),
            "km measures length and kg measures mass",
        ),
        (("convert_units", {"value": 1, "from_unit": "foots", "to_unit": "m"}), "did you mean 'foot'?"),
        (("add_todo", {"item": "  "}), "the item is empty"),
        (("finish_todo", {"item": "milk"}), "fits 0 items; on the list: nothing yet"),
        (("timer", {"seconds": 1e9}), "out of range"),
        (("timer", {"seconds": -1}), "out of range"),
    ],
)
def test_bad_arguments_become_an_error_result_with_the_fix(call, error):
    name, args = call
    agent = assistant.build(StrictModel(ScriptedModel([calls((name, args)), ai("done")])), checkpointer=InMemorySaver())
    state = say(agent, "go")
    result = state["messages"][2]
    assert (result.status, result.name) == ("error", name)
    assert error in result.text
    assert state["messages"][-1].text == "done"


async def test_the_timer_tells_its_progress_sync_and_async():
    agent = build()
    asked = {"messages": [HumanMessage("wait 1 second")]}
    sync = list(agent.stream(asked, config(), stream_mode="custom"))
    asynchronous = [event async for event in agent.astream(asked, config(), stream_mode="custom")]
    for events in (sync, asynchronous):
        assert {event["type"] for event in events} == {"tool_progress"}
        assert {event["name"] for event in events} == {"timer"}
        assert [event["done"] for event in events] == sorted(event["done"] for event in events)
        assert {event["total"] for event in events} == {1.0}


def test_days_and_times_are_read_as_people_write_them():
    today = date(2026, 11, 30)
    assert day_of("today", today) == today
    assert day_of("12-25", today) == date(2026, 12, 25)
    assert day_of("1-2", today) == date(2027, 1, 2)
    assert day_of("02-29", today) == date(2028, 2, 29)
    assert day_of("2026-3-1", today) == date(2026, 3, 1)
    assert [time_of_day(text) for text in ("9", "9:30", "12 am", "12pm", "9 PM")] == [
        (9, 0),
        (9, 30),
        (0, 0),
        (12, 0),
        (21, 0),
    ]
    for wrong in ("24:00", "9:60", "noon", "13 am x", ""):
        with pytest.raises(ValueError, match="is no time of day"):
            time_of_day(wrong)


def test_the_model_comes_from_the_environment_where_none_is_given(monkeypatch):
    monkeypatch.setenv("AGENTKIT_MODEL", "nobody:nothing")
    with pytest.raises(ValueError, match="nobody"):
        assistant.build()
    monkeypatch.delenv("AGENTKIT_MODEL")
    assert say(assistant.build(), "what is 12*7?")["messages"][-1].text == "12*7 = 84"
