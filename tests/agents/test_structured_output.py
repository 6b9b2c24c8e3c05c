"""Structured answers: an agent that wants one ends with it, or with a clear error."""

from dataclasses import dataclass

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from agentkit.agents import Limits, create_agent
from agentkit.agents.middleware import AgentMiddleware
from agentkit.agents.structured_output import (
    AutoStrategy,
    MultipleStructuredOutputsError,
    ProviderStrategy,
    StructuredOutputError,
    StructuredOutputValidationError,
    ToolStrategy,
)
from agentkit.errors import DefinitionError
from agentkit.testing import ScriptedModel, StrictModel, calls
from agentkit.tools import tool

HI = {"messages": [("user", "hi")]}


class Weather(BaseModel):
    """The weather."""

    temperature: float = Field(ge=-90, le=60)
    sky: str


@dataclass
class WeatherData:
    """The weather."""

    temperature: float
    sky: str


class WeatherDict(TypedDict):
    """The weather."""

    temperature: float
    sky: str


SCHEMA = {
    "title": "weather",
    "type": "object",
    "properties": {"temperature": {"type": "number"}, "sky": {"type": "string"}},
    "required": ["temperature", "sky"],
}
GOOD = {"temperature": 21.0, "sky": "blue"}
PROFILE = {"structured_output": True}


@tool
def look(city: str) -> str:
    """Look outside."""
    return f"blue in {city}"


async def answer(run, responses, response_format, tools=(look,), model=None, **settings):
    model = model or ScriptedModel(responses, **settings.pop("fields", {}))
    state = await run.invoke(
        create_agent(StrictModel(model), list(tools), response_format=response_format, **settings), HI
    )
    return state, model


@pytest.mark.parametrize(
    ("schema", "name", "value"),
    [
        (Weather, "Weather", Weather(**GOOD)),
        (WeatherData, "WeatherData", WeatherData(**GOOD)),
        (WeatherDict, "WeatherDict", GOOD),
        (SCHEMA, "weather", GOOD),
    ],
)
async def test_every_kind_of_schema_answers_through_a_tool_and_through_the_provider(run, schema, name, value):
    script = [calls(("look", {"city": "Oslo"})), calls((name, GOOD))]
    state, model = await answer(run, script, ToolStrategy(schema))
    assert state["structured_response"] == value
    assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "ai", "tool"]
    assert model.offered[0] == ["look", name]
    assert model.requests[0].tool_choice == "any"
    text = '{"temperature": 21.0, "sky": "blue"}'
    state, model = await answer(run, [calls(("look", {"city": "Oslo"})), text], ProviderStrategy(schema))
    assert state["structured_response"] == value
    assert model.requests[0].options["response_format"]["json_schema"]["name"] == name


async def test_a_plain_schema_uses_what_the_model_can_do(run):
    _, model = await answer(run, [calls(("Weather", GOOD))], Weather)
    assert model.offered[0] == ["look", "Weather"]
    state, model = await answer(
        run, ['{"temperature": 1, "sky": "x"}'], AutoStrategy(Weather), fields={"profile": PROFILE}
    )
    assert model.offered[0] == ["look"]
    assert state["structured_response"] == Weather(temperature=1, sky="x")


async def test_of_a_union_the_model_chooses_one(run):
    state, model = await answer(run, [calls(("WeatherDict", GOOD))], ToolStrategy(Weather | WeatherDict))
    assert model.offered[0] == ["look", "Weather", "WeatherDict"]
    assert state["structured_response"] == GOOD


async def test_an_answer_that_does_not_fit_is_told_to_the_model_and_given_again(run):
    wrong = {"temperature": 500, "sky": "blue"}
    state, model = await answer(run, [calls(("Weather", wrong)), calls(("Weather", GOOD))], ToolStrategy(Weather))
    assert state["structured_response"] == Weather(**GOOD)
    assert "less than or equal to 60" in model.calls[1][-1].text
    state, _ = await answer(
        run, ["no JSON", '{"temperature": 500}', '{"temperature": 1, "sky": "x"}'], ProviderStrategy(Weather)
    )
    assert state["structured_response"] == Weather(temperature=1, sky="x")


async def test_an_answer_in_plain_text_is_asked_for_again(run):
    state, model = await answer(run, ["It is nice.", calls(("Weather", GOOD))], ToolStrategy(Weather))
    assert state["structured_response"] == Weather(**GOOD)
    assert isinstance(model.calls[1][-1], HumanMessage)
    assert "Weather" in model.calls[1][-1].text


@pytest.mark.parametrize("saying", ["plain", "wrong", "two", "json"])
async def test_a_model_that_never_answers_ends_in_an_error_and_the_thread_lives(run, thread, saying):
    wrong = calls(("Weather", {"sky": 1}))
    say = {"plain": "text", "wrong": wrong, "two": calls(("Weather", GOOD), ("Weather", GOOD)), "json": "{"}[saying]
    strategy = ProviderStrategy(Weather) if saying == "json" else ToolStrategy(Weather)
    script = {"on": True}
    model = ScriptedModel(
        lambda messages: (
            say
            if script["on"]
            else ('{"temperature": 1, "sky": "x"}' if saying == "json" else calls(("Weather", GOOD)))
        )
    )
    agent = create_agent(StrictModel(model), [look], response_format=strategy, checkpointer=InMemorySaver())
    expected = MultipleStructuredOutputsError if saying == "two" else StructuredOutputValidationError
    with pytest.raises(expected):
        await run.invoke(agent, HI, thread)
    assert len(model.requests) == 4, "the first attempt and three more"
    script["on"] = False
    assert (await run.invoke(agent, HI, thread))["structured_response"] is not None


async def test_attempts_are_bounded_also_when_tools_work_between_them(run):
    wrong, fine = calls(("Weather", {"sky": 1})), calls(("look", {"city": "Rome"}))
    model = ScriptedModel(
        lambda messages: wrong if messages[-1].type == "human" or messages[-1].name == "look" else fine
    )
    with pytest.raises(StructuredOutputError):
        await answer(run, None, ToolStrategy(Weather), model=model)
    assert len(model.requests) < 12


async def test_the_number_of_attempts_is_a_limit(run):
    model = ScriptedModel(lambda messages: "text")
    with pytest.raises(StructuredOutputError):
        await answer(run, None, ToolStrategy(Weather), model=model, limits=Limits(retries=0))
    assert len(model.requests) == 1


async def test_errors_are_handled_as_the_strategy_says(run):
    wrong = calls(("Weather", {"sky": 1}))

    async def told(handle):
        _, model = await answer(run, [wrong, calls(("Weather", GOOD))], ToolStrategy(Weather, handle_errors=handle))
        return model.calls[1][-1].text

    assert await told("again, please") == "again, please"
    assert await told(lambda error: type(error).__name__) == "StructuredOutputValidationError"
    assert "Weather" in await told(StructuredOutputValidationError)
    assert "Weather" in await told((KeyError, StructuredOutputError))
    for handle in (False, KeyError, (KeyError,)):
        with pytest.raises(StructuredOutputValidationError):
            await told(handle)


async def test_a_structured_answer_beside_calls_lets_them_run_and_then_ends(run):
    ran = []

    @tool
    def effect() -> str:
        """Have an effect."""
        ran.append(1)
        return "done"

    state, model = await answer(run, [calls(("Weather", GOOD), ("effect", {}))], ToolStrategy(Weather), tools=[effect])
    assert state["structured_response"] == Weather(**GOOD)
    assert ran == [1]
    assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "tool"]
    assert len(model.requests) == 1


async def test_an_earlier_answer_is_not_taken_for_a_later_one(run, thread):
    script = [
        calls(("Weather", GOOD)),
        calls(("look", {"city": "Rome"})),
        calls(("Weather", {"temperature": 1, "sky": "x"})),
    ]
    agent = create_agent(
        StrictModel(ScriptedModel(script)), [look], response_format=ToolStrategy(Weather), checkpointer=InMemorySaver()
    )
    await run.invoke(agent, HI, thread)
    state = await run.invoke(agent, HI, thread)
    assert state["structured_response"] == Weather(temperature=1, sky="x")


async def test_a_wrapper_may_narrow_the_schemas_but_not_bring_new_ones(run):
    class Narrow(AgentMiddleware):
        def __init__(self, strategy):
            self.strategy = strategy

        def wrap_model_call(self, request, handler):
            return handler(request.override(response_format=self.strategy))

    model = ScriptedModel([calls(("WeatherDict", GOOD))])
    await answer(
        run, None, ToolStrategy(Weather | WeatherDict), model=model, middleware=[Narrow(ToolStrategy(WeatherDict))]
    )
    assert model.offered[0] == ["look", "WeatherDict"]
    with pytest.raises(DefinitionError, match="WeatherData"):
        await answer(run, ["x"], ToolStrategy(Weather), middleware=[Narrow(ToolStrategy(WeatherData))])


async def test_a_refusal_is_not_asked_again(run):
    refusal = AIMessage("", additional_kwargs={"refusal": "no"}, response_metadata={"model_provider": "openai"})
    with pytest.raises(StructuredOutputError):
        await answer(run, [refusal], ProviderStrategy(Weather))


def test_what_is_no_schema_is_refused_when_the_agent_is_built():
    with pytest.raises(DefinitionError, match="schema"):
        create_agent(ScriptedModel([]), response_format=int)
