"""Real clients in our agent, against a server that refuses what the providers refuse: it never has to."""

import json

import pytest
from langchain.agents.middleware import ModelFallbackMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from agentkit.agents import create_agent
from agentkit.agents.middleware import AgentMiddleware
from agentkit.messages import AIMessage, HumanMessage, ToolMessage, trim_messages
from agentkit.testing import calls
from agentkit.testing.provider import HttpError, StrictProvider
from agentkit.tools import tool

NAMES = ["openai", "anthropic"]


@tool
def temperature(city: str) -> str:
    """The temperature in a city."""
    if city == "Atlantis":
        raise LookupError("under water")
    if city == "Delphi":
        return str(interrupt("may I?"))
    return f"{len(city)} degrees in {city}"


def client(name, provider, **fields):
    if name == "openai":
        return ChatOpenAI(base_url=provider.openai_url, api_key="none", model="gpt-5.5", max_retries=0, **fields)
    url = provider.anthropic_url
    return ChatAnthropic(base_url=url, api_key="none", model="claude-opus-4-8", max_retries=0, **fields)


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture(params=["whole", "streamed"])
def talk(request, run, thread):
    """Say something in a thread and get the last message's text; the answer comes whole or is streamed."""

    async def said(agent, given):
        given = {"messages": [("user", given)]} if isinstance(given, str) else given
        if request.param == "whole":
            state = await run.invoke(agent, given, thread)
        else:
            events = await run.stream(agent, given, thread, stream_mode=["messages", "values"])
            state = [event for mode, event in events if mode == "values"][-1]
            words = [event[0].text for mode, event in events if mode == "messages"]
            assert state["messages"][-1].text in "".join(words)
            assert len(words) > 2
        return state["messages"][-1].text

    said.streamed = request.param == "streamed"
    return said


def batch(*cities, ids=None):
    """An answer that asks for the temperature of several cities at once."""
    ids = ids or [f"call_{city}" for city in cities]
    return calls(*(("temperature", {"city": city}, call_id) for city, call_id in zip(cities, ids, strict=True)))


def seen(body):
    """What a request shows of the conversation: who speaks, the calls by city, the results by text."""
    out = []
    for message in body["messages"]:
        for call in message.get("tool_calls") or ():
            out.append(("call", json.loads(call["function"]["arguments"])["city"]))
        if message["role"] == "tool":
            out.append(("result", message["content"]))
            continue
        content = message.get("content") or ""
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "text" and block["text"]:
                out.append((message["role"], block["text"]))
            elif block["type"] == "tool_use":
                out.append(("call", block["input"]["city"]))
            elif block["type"] == "tool_result":
                inner = block["content"]
                out.append(("result", inner if isinstance(inner, str) else inner[0]["text"]))
    return [entry for entry in out if entry[0] != "system"]


def call_ids(body):
    """The ids of the calls in a request."""
    openai = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or ()]
    blocks = [b for message in body["messages"] if isinstance(message["content"], list) for b in message["content"]]
    return openai or [block["id"] for block in blocks if block["type"] == "tool_use"]


async def test_three_turns_of_parallel_calls_one_with_a_failing_tool(talk, name):
    script = [
        batch("Oslo", "Rome"),
        "both mild",
        batch("Atlantis", "Bern"),
        "one is under water",
        batch("Kyiv", "Lima", "Paris"),
        batch("Nice"),
        "all said",
    ]
    with StrictProvider(script) as provider:
        model = client(name, provider)
        agent = create_agent(model, [temperature], system_prompt="Be brief.", checkpointer=InMemorySaver())
        texts = [await talk(agent, said) for said in ("first", "second", "third")]
    assert provider.refusals == []
    assert texts == ["both mild", "one is under water", "all said"]
    assert seen(provider.requests[-1]) == [
        ("user", "first"),
        ("call", "Oslo"),
        ("call", "Rome"),
        ("result", "4 degrees in Oslo"),
        ("result", "4 degrees in Rome"),
        ("assistant", "both mild"),
        ("user", "second"),
        ("call", "Atlantis"),
        ("call", "Bern"),
        ("result", "Error: LookupError: under water"),
        ("result", "4 degrees in Bern"),
        ("assistant", "one is under water"),
        ("user", "third"),
        ("call", "Kyiv"),
        ("call", "Lima"),
        ("call", "Paris"),
        ("result", "4 degrees in Kyiv"),
        ("result", "4 degrees in Lima"),
        ("result", "5 degrees in Paris"),
        ("call", "Nice"),
        ("result", "4 degrees in Nice"),
    ]
    assert all(bool(body.get("stream")) is talk.streamed for body in provider.requests)


async def test_a_new_message_in_an_interrupt_takes_the_thread_on(talk, name):
    script = [batch("Oslo", "Delphi", "Rome"), "never mind then", batch("Bern", "Kyiv"), "mild"]
    with StrictProvider(script) as provider:
        agent = create_agent(client(name, provider), [temperature], checkpointer=InMemorySaver())
        await talk(agent, "ask the oracle")
        assert len(provider.requests) == 1
        texts = [await talk(agent, said) for said in ("forget it", "and elsewhere?")]
    assert provider.refusals == []
    assert texts == ["never mind then", "mild"]
    kinds = [kind for kind, _ in seen(provider.requests[1])]
    assert kinds == ["user", "call", "call", "call", "result", "result", "result", "user"]


async def test_an_answered_interrupt_takes_the_thread_on(talk, name):
    with StrictProvider([batch("Oslo", "Delphi"), "so it is", batch("Bern", "Kyiv"), "mild"]) as provider:
        agent = create_agent(client(name, provider), [temperature], checkpointer=InMemorySaver())
        await talk(agent, "ask the oracle")
        texts = [await talk(agent, given) for given in (Command(resume="you may"), "and elsewhere?")]
    assert provider.refusals == []
    assert texts == ["so it is", "mild"]
    assert seen(provider.requests[1])[-2:] == [("result", "4 degrees in Oslo"), ("result", "you may")]


ASKED = batch("Oslo", "Rome").model_copy(update={"id": "asked"})
OSLO = ToolMessage("cold", tool_call_id="call_Oslo", id="oslo")
ROME = ToolMessage("hot", tool_call_id="call_Rome", id="rome")

BROKEN = {
    "no results": [ASKED],
    "a lost result": [ASKED, ROME],
    "results out of order": [ASKED, ROME, OSLO],
    "a message in between": [ASKED, HumanMessage("hurry"), OSLO, ROME],
    "a result twice": [ASKED, OSLO, ROME, OSLO.model_copy(update={"id": "again"})],
    "a result of nothing": [ASKED, OSLO, ROME, ToolMessage("?", tool_call_id="nobody", id="orphan")],
    "calls without ids": [batch("Oslo", "Rome", ids=[None, ""]).model_copy(update={"id": "asked"})],
    "two calls of one id": [batch("Oslo", "Rome", ids=["one", "one"]).model_copy(update={"id": "asked"})],
    "an unreadable call": [calls(invalid=("temperature",)).model_copy(update={"id": "asked"})],
    "an answer that is gone": [ASKED, OSLO, ROME, AIMessage("", id="empty")],
}


@pytest.mark.parametrize("history", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("way", ["given", "written into the thread"])
async def test_a_broken_history_is_mended_before_the_provider_sees_it(run, thread, name, history, way):
    history = [HumanMessage("a", id="a"), *history]
    if way == "given":
        before, given = [], history
    else:
        before, given = history, []
    with StrictProvider(["fine", batch("Bern", "Kyiv"), "mild"]) as provider:
        agent = create_agent(client(name, provider), [temperature], checkpointer=InMemorySaver())
        if before:
            agent.update_state(thread, {"messages": before})
        texts = []
        for messages in ([*given, HumanMessage("still there?")], [HumanMessage("and elsewhere?")]):
            state = await run.invoke(agent, {"messages": messages}, thread)
            texts.append(state["messages"][-1].text)
    assert provider.refusals == []
    assert texts == ["fine", "mild"]


class Wrapper(AgentMiddleware):
    """Passes on what `change(messages)` makes of a request's messages."""

    def __init__(self, change):
        self.change = change

    def wrap_model_call(self, request, handler):
        return handler(request.override(messages=self.change(request.messages)))

    async def awrap_model_call(self, request, handler):
        return await handler(request.override(messages=self.change(request.messages)))


def emptied_in_place(messages):
    del messages[: len(messages) - 3]
    return messages


def trimmed(messages):
    """The newest three, at least one of them the user's."""
    return trim_messages(messages, max_tokens=3, token_counter=len, strategy="last", allow_partial=False) or messages


CHANGES = {
    **{f"the newest {n}": lambda messages, n=n: messages[-n:] for n in (1, 2, 3, 5)},
    **{f"all but the newest {n}": lambda messages, n=n: messages[:-n] or messages for n in (1, 2)},
    "trim_messages": trimmed,
    "cut in place": emptied_in_place,
    "results taken out": lambda messages: [m for m in messages if m.type != "tool"],
    "calls taken out": lambda messages: [m for m in messages if not getattr(m, "tool_calls", None)],
    "turned round": lambda messages: messages[::-1],
    "twice": lambda messages: messages * 2,
    "as dicts": lambda messages: [{"role": "user", "content": "before"}, *messages[-2:]],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_wrapper_that_parts_calls_from_results_sends_none_unpaired(run, thread, name, change):
    script = [batch("Oslo", "Rome"), "mild", batch("Bern", "Kyiv"), "mild again", batch("Nice", "Lima"), "done"]

    def with_a_user(messages):  # no call is left over without a message that says what it is for
        return [HumanMessage("summary of what was"), *change(messages)]

    with StrictProvider(script) as provider:
        agent = create_agent(
            client(name, provider), [temperature], middleware=[Wrapper(with_a_user)], checkpointer=InMemorySaver()
        )
        for said in ("first", "second", "third"):
            state = await run.invoke(agent, {"messages": [("user", said)]}, thread)
    assert provider.refusals == []
    assert state["messages"][-1].text == "done"
    if change is not emptied_in_place:  # who changes the list itself changes the thread, as in LangChain
        assert [m.text for m in state["messages"] if m.type == "ai" and m.text] == ["mild", "mild again", "done"]
        assert sum(m.type == "tool" for m in state["messages"]) == 6


async def test_a_result_that_a_wrapper_takes_out_is_said_to_be_left_out_and_is_not_sent(run, name):
    def secret(messages):
        return [m for m in messages if m.type != "tool"]

    with StrictProvider([batch("Oslo", "Atlantis"), "done"]) as provider:
        agent = create_agent(client(name, provider), [temperature], middleware=[Wrapper(secret)])
        state = await run.invoke(agent, {"messages": [("user", "hi")]})
    left_out = "the result of this call of temperature is left out here: the call was answered earlier."
    assert seen(provider.requests[1])[-2:] == [("result", left_out)] * 2
    assert next(m.text for m in state["messages"] if m.type == "tool") == "4 degrees in Oslo"


async def test_call_ids_that_come_again_in_each_turn_are_unique_for_the_provider(talk, name):
    again = batch("Oslo", "Rome", ids=["call_0", "call_1"])
    with StrictProvider([again, "one", again, again, "two", again, "three"], reuse_ids=True) as provider:
        agent = create_agent(client(name, provider), [temperature], checkpointer=InMemorySaver())
        texts = [await talk(agent, said) for said in ("first", "second", "third")]
    assert provider.refusals == []
    assert texts == ["one", "two", "three"]
    ids = [call_ids(body) for body in provider.requests]
    assert len(ids[-1]) == len(set(ids[-1])) == 8
    assert all(ids[-1][: len(earlier)] == earlier for earlier in ids)  # what was sent is sent alike: caches hold


async def test_a_thread_goes_on_with_the_other_provider(talk):
    again = batch("Oslo", "Atlantis", ids=["call_0", "call_1"])
    with StrictProvider([again, "one", again, "two", again, "three"], reuse_ids=True) as provider:
        saver = InMemorySaver()
        agents = [create_agent(client(name, provider), [temperature], checkpointer=saver) for name in NAMES]
        texts = [await talk(agents[at % 2], said) for at, said in enumerate(("first", "second", "third"))]
    assert provider.refusals == []
    assert texts == ["one", "two", "three"]


async def test_another_provider_steps_in_in_the_middle_of_a_turn(run, thread):
    busy = HttpError(status=429, message="slow down", kind="rate_limit_error")
    again = batch("Oslo", "Rome", ids=["call_0", "call_1"])
    with StrictProvider([again, busy, again, busy, "mild", "and on"], reuse_ids=True) as provider:
        first, second = (client(name, provider) for name in NAMES)
        agent = create_agent(
            first, [temperature], middleware=[ModelFallbackMiddleware(second)], checkpointer=InMemorySaver()
        )
        for said in ("first", "second"):
            state = await run.invoke(agent, {"messages": [("user", said)]}, thread)
    assert provider.refusals == []
    turn = ["ai", "tool", "tool"]
    assert [m.type for m in state["messages"]] == ["human", *turn, *turn, "ai", "human", "ai"]
