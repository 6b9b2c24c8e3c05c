import asyncio
import threading

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel

from agentkit.errors import AgentkitError
from agentkit.testing import Request, ScriptedModel, ai, calls


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def whole(chunks):
    total = None
    for chunk in chunks:
        total = chunk if total is None else total + chunk
    return total


async def awhole(chunks):
    return whole([chunk async for chunk in chunks])


def spoken(message):
    return (message.content, message.tool_calls, message.invalid_tool_calls, message.usage_metadata)


def test_answers_come_in_order_and_requests_are_remembered():
    model = ScriptedModel(
        ["one", calls(("add", {"a": 1, "b": 2})), ValueError("busy"), KeyError, lambda m: f"{len(m)}!"]
    )
    bound = model.bind_tools([add, {"type": "web_search"}], tool_choice="any")
    assert model.invoke("first").content == "one"
    assert bound.invoke("second", stop=["."]).tool_calls == [
        {"name": "add", "args": {"a": 1, "b": 2}, "id": "call_add_0", "type": "tool_call"}
    ]
    with pytest.raises(ValueError, match="busy"):
        model.invoke("third")
    with pytest.raises(KeyError):
        model.invoke("fourth")
    assert model.invoke([HumanMessage("fifth"), ai("well")]).content == "2!"
    assert model.offered == [[], ["add", "web_search"], [], [], []]
    assert [[m.content for m in seen] for seen in model.calls] == [
        ["first"],
        ["second"],
        ["third"],
        ["fourth"],
        ["fifth", "well"],
    ]
    second = model.requests[1]
    assert second == Request(
        messages=[HumanMessage("second")],
        offered=["add", "web_search"],
        tools=second.tools,
        tool_choice="any",
        options={"stop": ["."]},
    )
    assert second.tools[0]["function"]["parameters"]["required"] == ["a", "b"]
    assert second.tools[1] == {"type": "web_search"}


def test_a_script_that_is_at_its_end_says_so():
    model = ScriptedModel(["one"])
    model.invoke("x")
    with pytest.raises(AgentkitError, match=r"has 1 responses, and it was asked a 2\. time.*'more'"):
        model.invoke("more")


async def test_a_function_makes_each_answer_from_the_history():
    def script(messages):
        if isinstance(messages[-1], ToolMessage):
            return f"it is {messages[-1].content}"
        return calls(("add", {"a": 1, "b": 2}))

    async def slow(messages):
        await asyncio.sleep(0)
        return script(messages)

    question = [HumanMessage("1+2?")]
    answered = [*question, calls(("add", {"a": 1, "b": 2})), ToolMessage("3", tool_call_id="call_add_0")]
    for model in (ScriptedModel(script), ScriptedModel(slow), ScriptedModel([slow, slow])):
        assert (await model.ainvoke(question)).tool_calls[0]["name"] == "add"
        assert (await model.ainvoke(answered)).content == "it is 3"
    assert ScriptedModel(script).invoke(answered).content == "it is 3"
    with pytest.raises(AgentkitError, match="ainvoke"):
        ScriptedModel(slow).invoke(question)


async def test_streamed_answers_add_up_to_the_whole_ones():
    answers = [
        ai("some words, and\nmore"),
        calls(("add", {"a": 1, "b": [2, "ü"]}), ("add", {}, "own"), text="let me see"),
        calls(("add", {"a": 1}), invalid=("add",)),
        calls(("add", {}, None), ("add", {}, "same"), ("add", {}, "same")),
        AIMessage([{"type": "text", "text": "block"}], id="its-own", response_metadata={"finish_reason": "stop"}),
        ai(""),
    ]
    for answer in answers:
        model = ScriptedModel([answer] * 3)
        plain = model.invoke("x")
        chunks = list(model.stream("x"))
        streamed = whole(chunks)
        astreamed = await awhole(model.astream("x"))
        for found in (streamed, astreamed):
            assert spoken(found)[:2] == spoken(plain)[:2]
            assert [call["args"] for call in found.invalid_tool_calls] == [
                call["args"] for call in plain.invalid_tool_calls
            ]
            assert found.usage_metadata == plain.usage_metadata
            assert found.response_metadata.items() >= plain.response_metadata.items()
    assert len(list(ScriptedModel(["one two three"]).stream("x"))) >= 3


def test_pieces_of_a_tool_call_are_streamed():
    chunks = list(ScriptedModel([calls(("add", {"a": 1, "b": 2}))]).stream("x"))
    pieces = [piece for chunk in chunks for piece in chunk.tool_call_chunks]
    assert len(pieces) > 1
    assert pieces[0]["name"] == "add"
    assert "".join(piece["args"] for piece in pieces) == '{"a": 1, "b": 2}'


def test_usage_is_made_up_unless_the_script_gives_it():
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    model = ScriptedModel(["x" * 40, ai("y", usage_metadata=usage)])
    first = model.invoke("z" * 40).usage_metadata
    assert first == {"input_tokens": 11, "output_tokens": 11, "total_tokens": 22}
    assert model.invoke("z").usage_metadata == usage


def test_one_message_given_twice_is_two_messages():
    again = calls(("add", {"a": 1, "b": 1}))
    model = ScriptedModel([again, again])
    first, second = model.invoke("x"), model.invoke("x")
    assert first.id != second.id
    assert again.id is None


def test_threads_get_each_answer_once():
    model = ScriptedModel([str(n) for n in range(200)])
    found = []
    threads = [
        threading.Thread(target=lambda: found.extend(model.invoke("x").content for _ in range(20))) for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found, key=int) == [str(n) for n in range(200)]


def test_structured_output_works_as_with_a_real_model():
    class Sum(BaseModel):
        total: int

    model = ScriptedModel([calls(("Sum", {"total": 3}))])
    assert model.with_structured_output(Sum).invoke("1+2?") == Sum(total=3)
    assert model.requests[0].tool_choice == "any"


def test_calls_have_ids_that_one_can_guess_and_set():
    message = calls(("add", {"a": 1}), ("now", {}, "mine"), ("now", {}, None), invalid=("add",), text="hm", id="m")
    assert [call["id"] for call in message.tool_calls] == ["call_add_0", "mine", None]
    assert [call["id"] for call in message.invalid_tool_calls] == ["call_add_3"]
    assert (message.content, message.id) == ("hm", "m")


@pytest.mark.parametrize("wrong", [42, HumanMessage("no"), None])
def test_a_script_of_something_else_is_refused_when_it_is_played(wrong):
    with pytest.raises(AgentkitError, match="a script gives AIMessage, str or exceptions"):
        ScriptedModel([wrong]).invoke("x")
