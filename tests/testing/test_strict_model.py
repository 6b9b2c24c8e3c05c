import pytest
from hypothesis import given, settings
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool, tool
from langchain_openai import ChatOpenAI
from messages.histories import any_history
from pydantic import BaseModel

from agentkit.errors import DefinitionError, HistoryError
from agentkit.messages import check_history, repair_history
from agentkit.testing import ScriptedModel, StrictModel, assert_valid, calls

HUMAN = HumanMessage("hello")
CALL = calls(("f", {}, "k1"), ("f", {}, "k2"))
ONE, TWO = (ToolMessage("ok", tool_call_id=call_id) for call_id in ("k1", "k2"))

REFUSED = {
    "a call without result": [HUMAN, CALL, ONE],
    "a result without call": [HUMAN, ONE],
    "a second result": [HUMAN, CALL, ONE, TWO, ToolMessage("again", tool_call_id="k1")],
    "results out of order": [HUMAN, CALL, TWO, ONE],
    "a human in between": [CALL, ONE, HUMAN, TWO],
    "a result before its call": [ONE, CALL, TWO],
    "two calls with one id": [calls(("f", {}, "k1"), ("f", {}, "k1")), ONE, ONE],
    "a call without id": [calls(("f", {}, None)), ToolMessage("ok", tool_call_id="")],
    "an unanswered invalid call": [calls(invalid=("f",)), HUMAN],
    "an empty list as content": [calls(("f", {}, "k1")), ToolMessage([], tool_call_id="k1")],
    "no content at all": [calls(("f", {}, "k1")), ONE.model_copy(update={"content": None})],
    "a call left in the content": [AIMessage([{"type": "tool_use", "id": "k1", "name": "f", "input": {}}]), HUMAN],
}


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@pytest.mark.parametrize("messages", REFUSED.values(), ids=REFUSED)
async def test_what_a_strict_provider_refuses_is_refused(messages):
    inner = ScriptedModel(["never"] * 9)
    model = StrictModel(inner)
    with pytest.raises(HistoryError, match="a strict provider refuses this history"):
        assert_valid(messages)
    with pytest.raises(HistoryError):
        model.invoke(messages)
    with pytest.raises(HistoryError):
        await model.ainvoke(messages)
    with pytest.raises(HistoryError):
        list(model.stream(messages))
    with pytest.raises(HistoryError):
        [chunk async for chunk in model.astream(messages)]
    with pytest.raises(HistoryError):
        model.bind_tools([add]).invoke(messages)
    assert inner.requests == []


@settings(deadline=None, database=None)
@given(any_history())
def test_what_check_history_finds_is_what_is_refused(messages):
    if check_history(messages):
        with pytest.raises(HistoryError):
            assert_valid(messages)
    else:
        assert_valid(messages)
    assert_valid(repair_history(messages)[0])


async def test_a_valid_history_passes_through_whatever_way_the_model_is_called():
    inner = ScriptedModel(lambda messages: f"{len(messages)} messages")
    model = StrictModel(inner)
    messages = [HUMAN, CALL, ONE, TWO]
    bound = model.bind_tools([add], tool_choice="any")
    assert bound.invoke(messages).content == "4 messages"
    assert (await bound.ainvoke(messages)).content == "4 messages"
    assert "".join(chunk.content for chunk in bound.stream(messages)) == "4 messages"
    assert "".join([chunk.content async for chunk in bound.astream(messages)]) == "4 messages"
    assert inner.offered == [["add"]] * 4
    assert inner.requests[0].tool_choice == "any"
    assert model.requests is inner.requests  # read through the wrapper
    with pytest.raises(AttributeError, match="nonsense"):
        model.nonsense


def test_one_call_is_one_run_with_its_tokens():
    class Watch(BaseCallbackHandler):
        def __init__(self):
            self.starts, self.tokens = 0, []

        def on_chat_model_start(self, *args, **kwargs):
            self.starts += 1

        def on_llm_new_token(self, token, **kwargs):
            self.tokens.append(token)

    watch = Watch()
    model = StrictModel(ScriptedModel(["two words"]))
    list(model.stream("x", {"callbacks": [watch]}))
    assert watch.starts == 1
    assert "".join(watch.tokens) == "two words"


async def test_a_model_that_cannot_stream_is_still_usable():
    class Unstreamed(ScriptedModel):
        _stream = ScriptedModel.__mro__[1]._stream
        _astream = ScriptedModel.__mro__[1]._astream

    model = StrictModel(Unstreamed(lambda messages: calls(("add", {"a": 1}), invalid=("add",), text="whole")))
    for message in [next(model.stream("x")), await anext(model.astream("x"))]:
        assert message.content == "whole"
        assert message.tool_calls[0]["args"] == {"a": 1}
        assert len(message.invalid_tool_calls) == 1
    assert StrictModel(FakeListChatModel(responses=["abc"])).invoke("x").content == "abc"


@pytest.mark.parametrize("name", ["my tool", "functions.add", "x" * 65, "добавить", ""])
def test_tool_names_a_provider_refuses_are_refused(name):
    model = StrictModel(ScriptedModel())
    schema = {"type": "function", "function": {"name": name, "description": "d", "parameters": {}}}
    with pytest.raises(DefinitionError, match="refuses the tool name"):
        model.bind_tools([schema])
    if name:
        with pytest.raises(DefinitionError, match="refuses the tool name"):
            model.bind_tools([StructuredTool.from_function(lambda a: a, name=name, description="d")])


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(DefinitionError, match="two tools named 'add'"):
        StrictModel(ScriptedModel()).bind_tools([add, {"name": "add", "description": "d", "input_schema": {}}])


def test_structured_output_is_the_models_own_behind_the_check():
    class Sum(BaseModel):
        total: int

    model = StrictModel(ScriptedModel([calls(("Sum", {"total": 3}))])).with_structured_output(Sum)
    assert model.invoke([HUMAN]) == Sum(total=3)
    with pytest.raises(HistoryError):
        model.invoke([HUMAN, ONE])


def test_a_real_providers_model_keeps_its_own_way_of_binding_tools():
    model = StrictModel(ChatOpenAI(model="gpt-5.5", api_key="none"))
    bound = model.bind_tools([add], strict=True)
    assert bound.kwargs["tools"][0]["function"]["strict"] is True
    assert model.model_name == "gpt-5.5"
    assert model.profile == model.model.profile
