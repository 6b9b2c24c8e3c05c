"""Real clients against a server that refuses what the providers refuse."""

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from agentkit.agents import create_agent
from agentkit.testing import calls
from agentkit.testing.provider import StrictProvider
from agentkit.tools import tool

BATCH = calls(("temperature", {"city": "Oslo"}, "a"), ("temperature", {"city": "Rome"}, "b"))


@tool
def temperature(city: str) -> str:
    """The temperature in a city."""
    if city == "Atlantis":
        raise LookupError("under water")
    if city == "Delphi":
        return str(interrupt("may I?"))
    return f"{len(city)} degrees in {city}"


def client(name, provider):
    if name == "openai":
        return ChatOpenAI(base_url=provider.openai_url, api_key="none", model="gpt-4o", max_retries=0)
    return ChatAnthropic(base_url=provider.anthropic_url, api_key="none", model="claude-test", max_retries=0)


@pytest.fixture(params=["openai", "anthropic"])
def name(request):
    return request.param


async def test_three_turns_of_parallel_calls_with_an_error_and_an_interrupt_that_nobody_answers(run, thread, name):
    script = [
        BATCH,
        "both mild",
        calls(("temperature", {"city": "Atlantis"}, "c"), ("temperature", {"city": "Bern"}, "d")),
        "one is under water",
        calls(("temperature", {"city": "Delphi"}, "e"), ("temperature", {"city": "Kyiv"}, "f")),
        "never mind then",
        "and on it goes",
    ]
    with StrictProvider(script) as provider:
        agent = create_agent(
            client(name, provider), [temperature], system_prompt="Be brief.", checkpointer=InMemorySaver()
        )
        texts = []
        for said in ("first", "second", "third", "never mind", "and?"):
            state = await run.invoke(agent, {"messages": [("user", said)]}, thread)
            texts.append(state["messages"][-1].text)
        assert provider.refusals == []
        assert [texts[0], texts[1], texts[3], texts[4]] == [
            "both mild",
            "one is under water",
            "never mind then",
            "and on it goes",
        ]
        assert len(provider.requests) == 7


async def test_a_broken_history_is_mended_before_the_provider_sees_it(run, name):
    with StrictProvider(["fine"]) as provider:
        agent = create_agent(client(name, provider), [temperature])
        state = await run.invoke(agent, {"messages": [("user", "a"), BATCH, ("user", "still there?")]})
        assert provider.refusals == []
        assert state["messages"][-1].text == "fine"


async def test_streamed_calls_run_and_are_answered(run, thread, name):
    with StrictProvider([BATCH, "both mild"]) as provider:
        agent = create_agent(client(name, provider), [temperature], checkpointer=InMemorySaver())
        events = await run.stream(agent, {"messages": [("user", "hi")]}, thread, stream_mode="messages")
        assert "".join(m.text for m, meta in events if meta["langgraph_node"] == "model").endswith("both mild")
        assert provider.refusals == []
