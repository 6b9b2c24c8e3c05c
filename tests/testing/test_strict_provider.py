"""The real clients of OpenAI and Anthropic against the local provider."""

import json
import urllib.error
import urllib.request

import anthropic
import openai
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from agentkit.messages import open_calls, repair_history, unique_call_ids
from agentkit.testing import assert_valid, calls
from agentkit.testing.provider import HttpError, StrictProvider

REFUSAL = (openai.BadRequestError, anthropic.BadRequestError)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def openai_model(provider, **fields):
    return ChatOpenAI(base_url=provider.openai_url, api_key="none", model="gpt-5.5", max_retries=0, **fields)


def anthropic_model(provider, **fields):
    return ChatAnthropic(
        base_url=provider.anthropic_url, api_key="none", model="claude-opus-4-8", max_retries=0, **fields
    )


CLIENTS = pytest.mark.parametrize("client", [openai_model, anthropic_model], ids=["openai", "anthropic"])
HOW = pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "astream"])


async def ask(model, messages, how):
    if how == "invoke":
        return model.invoke(messages)
    if how == "ainvoke":
        return await model.ainvoke(messages)
    chunks = list(model.stream(messages)) if how == "stream" else [chunk async for chunk in model.astream(messages)]
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    fields = {"content": total.content, "tool_calls": total.tool_calls, "invalid_tool_calls": total.invalid_tool_calls}
    return AIMessage(**fields, id=total.id, usage_metadata=total.usage_metadata)


@CLIENTS
@HOW
async def test_a_three_turn_conversation_with_parallel_calls(client, how):
    two = calls(("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4}), text="let me see")
    script = [two, "3 and 7", two, "again", calls(("add", {"a": 1, "b": 1})), "done"]
    with StrictProvider(script) as provider:
        model = client(provider).bind_tools([add])
        messages = [SystemMessage("be brief")]
        for turn in range(3):
            messages.append(HumanMessage(f"turn {turn}"))
            while True:
                messages.append(await ask(model, messages, how))
                if not open_calls(messages):
                    break
                messages += [add.invoke(call) for call in open_calls(messages)]
    assert [m.text for m in messages if isinstance(m, AIMessage)] == [
        "let me see",
        "3 and 7",
        "let me see",
        "again",
        "",
        "done",
    ]
    assert [m.content for m in messages if isinstance(m, ToolMessage)] == ["3", "7", "3", "7", "2"]
    ids = [call["id"] for m in messages if isinstance(m, AIMessage) for call in m.tool_calls]
    assert len(set(ids)) == 5
    assert provider.refusals == []
    assert len(provider.requests) == 6
    assert_valid(messages)


HUMAN = HumanMessage("hello")
CALL = calls(("add", {"a": 1, "b": 2}, "k1"), ("add", {"a": 3, "b": 4}, "k2"))
ONE, TWO = ToolMessage("3", tool_call_id="k1"), ToolMessage("7", tool_call_id="k2")
LEFT_OUT = "must be followed by tool messages responding to each 'tool_call_id'.*: k2"
LEFT_OUT_A = "`tool_use` ids were found without `tool_result` blocks immediately after: k2"
ORPHAN = "messages with role 'tool' must be a response to a preceeding message"
ORPHAN_A = r"messages\.0\.content\.1: unexpected `tool_use_id` found in `tool_result` blocks: k1"

# What is wrong: the history, OpenAI's words, Anthropic's words.
BROKEN = {
    "a lost result": ([HUMAN, CALL, ONE], LEFT_OUT, LEFT_OUT_A),
    "a lost result, and a new message": ([HUMAN, CALL, ONE, HUMAN], LEFT_OUT, LEFT_OUT_A),
    "an orphan": ([HUMAN, ONE], ORPHAN, ORPHAN_A),
    "an orphan after an answer": (
        [HUMAN, AIMessage("hi"), ONE],
        ORPHAN,
        r"messages\.2\.content\.0: unexpected `tool_use_id`",
    ),
    "a second result": (
        [HUMAN, CALL, ONE, TWO, ONE],
        "Duplicate value for 'tool_call_id' of 'k1', in messages.2. and messages.4.",
        "each tool_use must have a single result",
    ),
    "a foreign result": (
        [HUMAN, CALL, ONE, TWO, ToolMessage("x", tool_call_id="k9")],
        "'tool_call_id' of 'k9' not found in 'tool_calls' of previous message",
        "unexpected `tool_use_id` found in `tool_result` blocks: k9",
    ),
    "results out of order": (
        [HUMAN, CALL, TWO, ONE],
        "not in the order of 'tool_calls'",
        "not in the order of the `tool_use` blocks",
    ),
    "a human between call and results": (
        [HUMAN, CALL, HUMAN, ONE, TWO],
        "did not have response messages: k1, k2",
        "without `tool_result` blocks immediately after: k1, k2",
    ),
    "two calls with one id": (
        [HUMAN, calls(("add", {"a": 1, "b": 2}, "k1"), ("add", {"a": 3, "b": 4}, "k1")), ONE],
        "Duplicate value for 'id' of 'k1'",
        "`tool_use` ids must be unique",
    ),
    "an unanswered invalid call": (
        [HUMAN, calls(invalid=("add",)), HUMAN],
        "did not have response messages: call_add_0",
        "without `tool_result` blocks immediately after: call_add_0",
    ),
    "a name that providers refuse": (
        [HUMAN, calls(("functions.add", {"a": 1, "b": 2}, "k1")), ONE],
        r"Invalid 'messages\[1\]\.tool_calls\[0\]\.function\.name': string does not match pattern",
        r"messages\.1\.content\.0\.tool_use\.name: String should match pattern",
    ),
    "a call left in the content": (
        [HUMAN, AIMessage([{"type": "tool_use", "id": "k2", "name": "add", "input": {"a": 1}}]), HUMAN],
        None,  # OpenAI's client leaves such blocks out
        LEFT_OUT_A,
    ),
    "an unnamed call": (
        [HUMAN, calls(("add", {"a": 1, "b": 2}, None)), ToolMessage("3", tool_call_id="")],
        r"Missing required parameter: 'messages\[1\]\.tool_calls\[0\]\.id'",
        None,  # Anthropic's client does not get that far
    ),
}


@pytest.mark.parametrize(("messages", "openai_words", "anthropic_words"), BROKEN.values(), ids=BROKEN)
@CLIENTS
async def test_a_broken_history_is_refused_and_its_repair_is_taken(client, messages, openai_words, anthropic_words):
    words = openai_words if client is openai_model else anthropic_words
    with StrictProvider(["fine", "fine"]) as provider:
        model = client(provider)
        if words:
            for how in ("invoke", "astream"):
                with pytest.raises(REFUSAL, match=words):
                    await ask(model, messages, how)
            assert len(provider.refusals) == 2
            assert provider.requests == []
        repaired, faults = repair_history([m.model_copy(update={"id": f"m{at}"}) for at, m in enumerate(messages)])
        assert faults
        assert model.invoke(repaired).content == "fine"
        assert (await model.ainvoke(repaired)).content == "fine"


@CLIENTS
def test_reused_call_ids_can_be_sent_once_they_are_unique(client):
    turn = [HUMAN, calls(("add", {"a": 1, "b": 2}, "call_0")), ToolMessage("3", tool_call_id="call_0")]
    messages = [m.model_copy(update={"id": f"m{at}"}) for at, m in enumerate([*turn, *turn])]
    assert repair_history(messages) == (messages, [])
    with StrictProvider(["fine"]) as provider:
        model = client(provider)
        if client is anthropic_model:
            with pytest.raises(REFUSAL, match=r"messages\.3\.content\.0: `tool_use` ids must be unique"):
                model.invoke(messages)
        assert model.invoke(unique_call_ids(messages)).content == "fine"


@CLIENTS
@HOW
async def test_invalid_calls_and_usage_reach_the_client(client, how):
    usage = {"input_tokens": 11, "output_tokens": 5, "total_tokens": 16}
    answer = calls(("add", {"a": 1, "b": 2}), invalid=("add",), usage_metadata=usage)
    with StrictProvider([answer]) as provider:
        fields = {"stream_usage": True} if client is openai_model else {}
        message = await ask(client(provider, **fields).bind_tools([add]), [HUMAN], how)
    assert message.tool_calls[0]["args"] == {"a": 1, "b": 2}
    if client is openai_model or "stream" in how:  # a whole answer of Anthropic's cannot hold what is no JSON
        assert message.invalid_tool_calls[0]["args"] == "not JSON"
    assert message.usage_metadata["input_tokens"] == 11
    assert message.usage_metadata["output_tokens"] == 5


@CLIENTS
def test_a_provider_can_be_busy(client):
    with StrictProvider([HttpError(status=429, message="slow down", kind="rate_limit_error"), "fine"]) as provider:
        with pytest.raises((openai.RateLimitError, anthropic.RateLimitError), match="slow down"):
            client(provider).invoke([HUMAN])
        assert client(provider).invoke([HUMAN]).content == "fine"


def test_a_function_answers_from_the_body():
    with StrictProvider(lambda body: f"{len(body['messages'])} messages for {body['model']}") as provider:
        assert openai_model(provider).invoke([HUMAN, AIMessage("a"), HUMAN]).content == "3 messages for gpt-5.5"


@CLIENTS
def test_tool_names_and_schemas_are_checked(client):
    with StrictProvider(["fine"]) as provider:
        bad = {"name": "no good", "description": "d", "input_schema": {"type": "object", "properties": {}}}
        with pytest.raises(REFUSAL, match="match pattern"):
            client(provider).bind_tools([bad]).invoke([HUMAN])


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_refusals_have_the_shape_of_the_providers():
    with StrictProvider([]) as provider:
        tool_first = [{"role": "tool", "tool_call_id": "k1", "content": "x"}]
        assert post(f"{provider.openai_url}/chat/completions", {"model": "m", "messages": tool_first}) == (
            400,
            {
                "error": {
                    "message": "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
                    "message with 'tool_calls'.",
                    "type": "invalid_request_error",
                    "param": "messages.[0].role",
                    "code": None,
                }
            },
        )
        asked = {"role": "assistant", "content": [{"type": "tool_use", "id": "k1", "name": "f", "input": {}}]}
        body = {"model": "m", "max_tokens": 9, "messages": [asked]}
        assert post(f"{provider.anthropic_url}/v1/messages", body) == (
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "messages.0: `tool_use` ids were found without `tool_result` blocks immediately after: "
                    "k1. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
                },
                "request_id": "req_local",
            },
        )
        text_first = {
            "role": "user",
            "content": [
                {"type": "text", "text": "so"},
                {"type": "tool_result", "tool_use_id": "k1", "content": "x"},
            ],
        }
        status, answer = post(f"{provider.anthropic_url}/v1/messages", {**body, "messages": [asked, text_first]})
        assert (status, "immediately after: k1" in answer["error"]["message"]) == (400, True)
        assert post(f"{provider.anthropic_url}/v2", {})[0] == 404


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "Missing required parameter: 'messages'"),
        ({"messages": []}, "Invalid 'messages': empty array"),
        ({"messages": [{"role": "user", "content": []}]}, r"Invalid 'messages[0].content': empty array"),
        ({"messages": [{"role": "user", "content": "x"}], "tools": []}, "Invalid 'tools': empty array"),
        ({"messages": [{"role": "user", "content": "x"}], "tool_choice": "auto"}, "only allowed when 'tools'"),
        ({"messages": [{"role": "tool", "tool_call_id": "k", "content": None}]}, "expected a string, got null"),
        ({"messages": [{"role": "assistant", "content": "x", "tool_calls": []}]}, "messages[0].tool_calls': empty"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "x" * 41, "function": {}}]}]},
            "string too long. Expected a string with maximum length 40",
        ),
    ],
)
def test_openai_bodies_that_are_refused(body, words):
    with StrictProvider([]) as provider:
        status, answer = post(f"{provider.openai_url}/chat/completions", body)
    assert status == 400
    assert words in answer["error"]["message"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"max_tokens": 1, "messages": []}, "model: Field required"),
        ({"model": "m", "messages": []}, "max_tokens: Field required"),
        ({"messages": []}, "at least one message"),
        ({"messages": [{"role": "system", "content": "x"}]}, 'Unexpected role "system"'),
        ({"messages": [{"role": "user", "content": ""}]}, "all messages must have non-empty content"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]}, "must be non-empty"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a b"}]}]}, "match pattern"),
        ({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": ""}]}]}, "match pattern"),
        (
            {"messages": [{"role": "user", "content": "x"}], "tools": [{"name": "f"}, {"name": "f"}]},
            "Tool names must be unique",
        ),
    ],
)
def test_anthropic_bodies_that_are_refused(body, words):
    with StrictProvider([]) as provider:
        given = body if "model" in body or "max_tokens" in body else {"model": "m", "max_tokens": 9, **body}
        status, answer = post(f"{provider.anthropic_url}/v1/messages", given)
    assert status == 400
    assert words in answer["error"]["message"]


def test_a_script_that_is_at_its_end_says_so_and_a_stopped_provider_has_no_address():
    with StrictProvider(["one"]) as provider:
        openai_model(provider).invoke([HUMAN])
        with pytest.raises(REFUSAL, match="the script has 1 answers only"):
            openai_model(provider).invoke([HUMAN])
    with pytest.raises(RuntimeError, match="inside"):
        provider.openai_url
