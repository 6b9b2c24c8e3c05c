import time

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from agentkit.agents import create_agent
from agentkit.testing import StrictModel
from agentkit.testing.rehearsal import RehearsalModel
from agentkit.tools import tool

NAMES = [
    "calculate",
    "current_time",
    "convert_time",
    "days_between",
    "convert_units",
    "remember",
    "recall",
    "forget",
    "add_todo",
    "finish_todo",
    "show_todos",
    "timer",
]


def named(name):
    return {
        "type": "function",
        "function": {"name": name, "description": name, "parameters": {"type": "object", "properties": {"x": {}}}},
    }


def asked(text, names=NAMES):
    """The calls that a sentence is turned into, as (name, arguments)."""
    message = RehearsalModel().bind_tools([named(name) for name in names]).invoke([HumanMessage(text)])
    return [(call["name"], call["args"]) for call in message.tool_calls]


SENTENCES = [
    ("what is 12*7?", [("calculate", {"expression": "12*7"})]),
    ("12 곱하기 7은?", [("calculate", {"expression": "12 * 7"})]),
    ("12乘以7是多少？", [("calculate", {"expression": "12*7"})]),
    (
        "What is 15% of 80, and the square root of 2?",
        [("calculate", {"expression": "15% of 80"}), ("calculate", {"expression": "sqrt(2)"})],
    ),
    (
        "what is the time in New York and Tokyo?",
        [("current_time", {"place": "New York"}), ("current_time", {"place": "Tokyo"})],
    ),
    ("서울과 도쿄는 지금 몇 시야?", [("current_time", {"place": "서울"}), ("current_time", {"place": "도쿄"})]),
    ("首尔和东京现在几点？", [("current_time", {"place": "首尔"}), ("current_time", {"place": "东京"})]),
    ("What time is it?", [("current_time", {"place": "here"})]),
    ("지금 몇 시야?", [("current_time", {"place": "here"})]),
    ("现在几点？", [("current_time", {"place": "here"})]),
    (
        "what is 9:00 in Seoul in London time?",
        [("convert_time", {"time": "9:00", "from_place": "Seoul", "to_place": "London"})],
    ),
    (
        "서울이 오후 9시면 런던은 몇 시야?",
        [("convert_time", {"time": "21:00", "from_place": "서울", "to_place": "런던"})],
    ),
    ("首尔9点的时候伦敦几点？", [("convert_time", {"time": "9:00", "from_place": "首尔", "to_place": "伦敦"})]),
    ("how many days until 2027-01-01?", [("days_between", {"start": "today", "end": "2027-01-01"})]),
    ("12월 25일까지 며칠 남았어?", [("days_between", {"start": "today", "end": "12-25"})]),
    ("到12月25日还有多少天？", [("days_between", {"start": "today", "end": "12-25"})]),
    ("convert 5 km to miles", [("convert_units", {"value": 5.0, "from_unit": "km", "to_unit": "miles"})]),
    ("5킬로미터는 몇 마일이야?", [("convert_units", {"value": 5.0, "from_unit": "킬로미터", "to_unit": "마일"})]),
    ("5公里等于多少英里？", [("convert_units", {"value": 5.0, "from_unit": "公里", "to_unit": "英里"})]),
    ("remember that I like tea and coffee", [("remember", {"text": "I like tea and coffee"})]),
    ("나는 차를 좋아한다고 기억해줘", [("remember", {"text": "나는 차를 좋아한다"})]),
    ("记住我喜欢茶", [("remember", {"text": "我喜欢茶"})]),
    ("what do you know about me?", [("recall", {"query": ""})]),
    ("나에 대해 뭘 알고 있어?", [("recall", {"query": ""})]),
    ("你知道我什么？", [("recall", {"query": ""})]),
    ("forget that I like tea", [("recall", {"query": "I like tea"})]),
    ("don't forget that I like tea", [("remember", {"text": "I like tea"})]),
    ("add milk and bread to my to-do list", [("add_todo", {"item": "milk and bread"})]),
    ("할 일에 우유 사기 추가해줘", [("add_todo", {"item": "우유 사기"})]),
    ("把牛奶加到待办清单", [("add_todo", {"item": "牛奶"})]),
    ("mark milk as done", [("finish_todo", {"item": "milk"})]),
    ("우유 끝냈어", [("finish_todo", {"item": "우유"})]),
    ("牛奶做完了", [("finish_todo", {"item": "牛奶"})]),
    ("what is on my to-do list?", [("show_todos", {})]),
    ("할 일 보여줘", [("show_todos", {})]),
    ("显示我的待办清单", [("show_todos", {})]),
    ("set a timer for 2 minutes", [("timer", {"seconds": 120.0})]),
    ("10초 타이머", [("timer", {"seconds": 10.0})]),
    ("倒计时10秒", [("timer", {"seconds": 10.0})]),
    # several kinds in one message
    (
        "remember that I like tea and what is 12*7, then add milk to my to-do list",
        [("remember", {"text": "I like tea"}), ("calculate", {"expression": "12*7"}), ("add_todo", {"item": "milk"})],
    ),
    (
        "12*7은 얼마야? 서울은 지금 몇 시야?",
        [("calculate", {"expression": "12*7"}), ("current_time", {"place": "서울"})],
    ),
    ("记住我喜欢茶，12*7等于多少？", [("remember", {"text": "我喜欢茶"}), ("calculate", {"expression": "12*7"})]),
]


@pytest.mark.parametrize(("text", "calls"), SENTENCES, ids=[text for text, _ in SENTENCES])
def test_a_sentence_becomes_its_calls(text, calls):
    assert asked(text) == calls


def test_only_tools_that_were_bound_are_called_and_what_is_missing_is_said():
    assert asked("what is 12*7 and the time in Seoul?", ["calculate"]) == [("calculate", {"expression": "12*7"})]
    assert asked("what is 12*7?", []) == []
    answer = RehearsalModel().invoke("what is 12*7?")
    assert answer.text == "That needs a tool I was not offered: calculate"
    assert "calculate" not in RehearsalModel().bind_tools([named("timer")]).invoke("what can you do?").text


def test_any_bound_tool_is_called_by_its_name():
    assert asked('call get_weather {"city": "Paris"}', ["get_weather"]) == [("get_weather", {"city": "Paris"})]
    assert asked('call get_weather {"city": "Paris"}', ["calculate"]) == []
    assert asked('call get_weather {"city": ', ["get_weather"]) == []
    answer = RehearsalModel().bind_tools([named("get_weather")]).invoke("what is 12*7?").text
    assert answer.splitlines()[0] == "That needs a tool I was not offered: calculate"
    assert answer.splitlines()[-1] == '- call get_weather {"x": "..."}'


def test_results_become_an_answer_in_the_language_of_the_question():
    model = StrictModel(RehearsalModel()).bind_tools([named(name) for name in NAMES])
    for question, expected in [
        (
            "what is 12*7 and hello there and the time in Atlantis?",
            "12*7 = 84\ncurrent_time did not work: no such place",
        ),
        ("12*7은 얼마야? 아틀란티스는 지금 몇 시야?", "12*7 = 84\ncurrent_time 호출이 실패했어요: no such place"),
        ("12*7等于多少？亚特兰蒂斯现在几点？", "12*7 = 84\ncurrent_time 没有成功：no such place"),
    ]:
        asking = model.invoke([HumanMessage(question)])
        results = [
            ToolMessage("84", tool_call_id=asking.tool_calls[0]["id"]),
            ToolMessage("no such place", tool_call_id=asking.tool_calls[1]["id"], status="error"),
        ]
        answer = model.invoke([HumanMessage(question), asking, *results])
        assert answer.text == expected
        assert answer.tool_calls == []


def test_what_it_does_not_understand_it_says():
    model = RehearsalModel().bind_tools([named("calculate")])
    lost = model.invoke("what is the meaning of life?").text
    assert "no LLM: matches patterns" in lost
    assert "what is 12*7?" in lost
    asking = model.invoke("what is the weather in Paris and 3*4?")
    results = [ToolMessage("12", tool_call_id=asking.tool_calls[0]["id"])]
    answer = model.invoke([HumanMessage("what is the weather in Paris and 3*4?"), asking, *results])
    assert answer.text == "3*4 = 12\nI did not understand: what is the weather in Paris"


def test_forgetting_looks_the_memory_up_and_then_deletes_it():
    deleted = []

    @tool
    def recall(query: str) -> str:
        """Look up."""
        return "[a1b2, 2026-11-30] I like tea\n[c3d4, 2026-11-30] I live in Seoul"

    @tool
    def forget(memory_id: str) -> str:
        """Delete."""
        deleted.append(memory_id)
        return f"forgot {memory_id}"

    agent = create_agent(StrictModel(RehearsalModel()), [recall, forget])
    answer = agent.invoke({"messages": [("user", "forget that I like tea")]})["messages"][-1]
    assert deleted == ["a1b2"]
    assert answer.text == "Done: forgot a1b2."
    answer = agent.invoke({"messages": [("user", "forget that I like coffee")]})["messages"][-1]
    assert deleted == ["a1b2"]
    assert "I like tea" in answer.text


async def test_it_streams_word_by_word_and_calls_come_whole():
    model = RehearsalModel().bind_tools([named("calculate")])
    words = [chunk.text for chunk in model.stream("hello") if chunk.text]
    assert words == [chunk.text async for chunk in model.astream("hello") if chunk.text]
    assert "".join(words) == model.invoke("hello").text
    assert len(words) == len("".join(words).split())
    chunks = [chunk async for chunk in model.astream("what is 1+1 and 2+2?")]
    calls = [call for chunk in chunks for call in chunk.tool_calls]
    assert [call["args"]["expression"] for call in calls] == ["1+1", "2+2"]
    assert len({call["id"] for call in calls}) == 2


async def test_the_pause_lies_between_the_words():
    began = time.monotonic()
    words = [chunk async for chunk in RehearsalModel(pause=0.02).astream("hello") if chunk.text]
    assert time.monotonic() - began >= 0.02 * len(words)


def test_no_call_is_made_for_an_old_question_once_a_new_one_is_asked():
    model = RehearsalModel().bind_tools([named("calculate")])
    old = [HumanMessage("what is 1+1?"), AIMessage("2"), HumanMessage("thanks")]
    assert model.invoke(old).text == "You are welcome."


@pytest.mark.parametrize(
    "text", ["a " * 5000, "remember, " * 1000, "现在" * 3000, "(((" * 3000, "add " * 2000, "1+" * 3000]
)
def test_a_long_message_is_read_quickly(text):
    began = time.process_time()
    asked(text)
    assert time.process_time() - began < 5  # unbounded patterns would take hours


@pytest.mark.parametrize("messages", [[], [AIMessage("hi")], [HumanMessage("")]])
def test_a_history_without_a_question_gets_an_answer(messages):
    assert RehearsalModel().bind_tools([named("calculate")]).invoke(messages or "").text
