"""`tool()` in all its forms, and what is refused while a tool is defined."""

import functools
import re
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool as LangChainBaseTool
from langchain_core.tools import StructuredTool, Tool
from langchain_core.tools import tool as langchain_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field
from tool_calls import run_in_loop, run_sync, runtime_of, shown_parameters

from agentkit.errors import DefinitionError
from agentkit.tools import HeadlessTool, ToolPolicy, ToolRuntime, policy_of, tool
from agentkit.tools._tool import as_tool_object, check_unique


class Where(BaseModel):
    """Where to look."""

    city: str = Field(description="The city")
    unit: Literal["C", "F"] = "C"


WHERE_JSON = {
    "type": "object",
    "description": "Where to look.",
    "properties": {"city": {"type": "string"}, "unit": {"type": "string", "default": "C"}},
    "required": ["city"],
}


def weather(city: str, unit: Literal["C", "F"] = "C", *, days: Annotated[int, "How many days"] = 1) -> str:
    """Tell the weather.

    Look out of the window.
    """
    return f"{city} {unit} {days}"


def described(made):
    return convert_to_openai_tool(made)["function"]


def test_a_bare_decorator_takes_name_description_and_schema_from_the_function():
    made = tool(weather)
    assert (made.name, made.description) == ("weather", "Tell the weather.\n\n    Look out of the window.")
    assert described(made) == described(langchain_tool(weather))
    assert isinstance(made, StructuredTool)
    assert made.invoke({"city": "Bern"}) == "Bern C 1"


@pytest.mark.parametrize(
    "options",
    [
        {"description": "Other."},
        {"return_direct": True},
        {"args_schema": Where, "infer_schema": False},
        {"args_schema": WHERE_JSON},
        {"response_format": "content_and_artifact"},
        {"parse_docstring": True},
        {"extras": {"defer_loading": True}},
        {"infer_schema": False},
    ],
    ids=lambda options: "-".join(options),
)
@pytest.mark.parametrize("form", ["decorator", "named"])
def test_every_option_means_what_it_means_in_langchain(options, form):
    def function(city: str, unit: str = "C") -> Any:
        """Tell the weather.

        Args:
            city: The city.
            unit: The unit.
        """
        return f"{city} {unit}", 1

    names = ["other"] if form == "named" else []
    ours, theirs = tool(*names, **options)(function), langchain_tool(*names, **options)(function)
    fields = ("name", "description", "return_direct", "response_format", "extras")
    assert [getattr(ours, each) for each in fields] == [getattr(theirs, each) for each in fields]
    assert described(ours) == described(theirs)


def test_a_tool_is_made_of_a_runnable_too():
    def reverse(given: dict[str, str]) -> str:
        return given["text"][::-1]

    class Text(BaseModel):
        text: str

    made = tool("reverse", RunnableLambda(reverse).with_types(input_type=Text), description="Reverse it.")
    assert shown_parameters(made) == {"text"}
    assert run_sync(made, {"text": "abc"}) == "cba"
    assert run_in_loop(made, {"text": "abc"}) == "cba"
    with pytest.raises(DefinitionError, match=r"'no_object' cannot be made of this Runnable.*object schema"):
        tool("no_object", RunnableLambda(lambda text: text).with_types(input_type=str))


@pytest.mark.parametrize("function", [weather, functools.partial(weather, unit="F")])
def test_a_function_in_a_list_of_tools_becomes_a_tool(function):
    made = as_tool_object(function)
    assert (made.name, made.description.splitlines()[0]) == ("weather", "Tell the weather.")
    assert policy_of(made) == ToolPolicy()


def test_the_policy_is_kept_with_the_tool():
    policy = ToolPolicy(timeout=3)
    assert policy_of(tool(policy=policy)(weather)) is policy
    assert policy_of(tool("other", policy=policy)(weather)) is policy
    assert policy_of(tool(weather, policy=policy)) is policy
    with pytest.raises(DefinitionError, match="ToolPolicy"):
        tool(weather, policy={"timeout": 3})


def test_async_functions_are_run_in_the_loop_only():
    @tool
    async def wait(n: int) -> int:
        """Wait."""
        return n

    assert run_in_loop(wait, {"n": "1"}) == 1
    with pytest.raises(NotImplementedError, match="tool 'wait' is async only"):
        run_sync(wait, {"n": 1})


# --- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "get_weather", "get-weather", "Get9", "x" * 64])
def test_names_that_providers_take_are_taken(name):
    assert tool(name)(weather).name == name


@pytest.mark.parametrize(
    ("name", "proposed"),
    [
        ("get weather", "get_weather"),
        ("Get Weather!", "get_weather"),
        ("getWeather.v2", "get_weather_v2"),
        ("HTTPServer tool", "http_server_tool"),
        ("wetter für", "wetter_f_r"),
        ("", "my_tool"),
        ("天气", "my_tool"),
        ("x" * 65, "x" * 64),
        ("trailing\n", "trailing"),
    ],
)
def test_other_names_are_refused_with_one_that_would_do(name, proposed):
    for define in (lambda: tool(name), lambda: tool(name=name, description="d", args_schema=Where)):
        with pytest.raises(DefinitionError, match=re.escape(repr(proposed)) + "$"):
            define()


def test_a_name_is_checked_wherever_the_tool_comes_from():
    with pytest.raises(DefinitionError, match="'my_tool'"):
        as_tool_object(StructuredTool.from_function(weather, name="my tool"))
    with pytest.raises(DefinitionError, match="'lambda'"):
        as_tool_object(lambda x: x)


def test_duplicates_are_refused_naming_both():
    one = tool(weather)

    @tool("weather")
    def other(city: str) -> str:
        """Tell."""
        return city

    here = r"test_tool_definition\.weather \(line \d+\)"
    with pytest.raises(DefinitionError, match=rf"two tools are named 'weather': .*{here} and .*locals>\.other \(line"):
        check_unique([one, other])
    with pytest.raises(DefinitionError, match=rf"{here} and .*{here}"):
        check_unique([one, one])
    assert check_unique([one, tool("second")(weather)]).keys() == {"weather", "second"}


@pytest.mark.parametrize("thing", [3, "weather", None, {"name": "weather"}, Where, RunnableLambda(lambda x: x)])
def test_what_is_no_tool_is_refused(thing):
    with pytest.raises(DefinitionError, match="is no tool; give a function"):
        as_tool_object(thing)


def test_a_tool_is_no_body_for_another():
    with pytest.raises(DefinitionError, match=r"'weather' is a tool already.*with_policy"):
        tool(tool(weather))


# --- signatures ----------------------------------------------------------------------------------------------------


def refused(function, message, **options):
    with pytest.raises(DefinitionError, match=message) as caught:
        tool("the_tool", **options)(function)
    assert str(caught.value).startswith("tool 'the_tool'")
    assert len(str(caught.value).splitlines()) <= 2


def no_hint(city, days: int = 1):
    """Tell."""


def no_hint_but_default(city: str, days=1):
    """Tell."""


def test_a_missing_type_hint_is_refused():
    refused(no_hint, "'city' has no type hint.*write `city: str`.*args_schema=")
    refused(no_hint_but_default, "'days' has no type hint")


def test_a_schema_makes_hints_unnecessary():
    def function(city, unit):
        """Tell."""
        return city, unit

    for schema in (Where, WHERE_JSON):
        assert run_sync(tool(args_schema=schema)(function), {"city": "Bern"}) == ("Bern", "C")


def test_a_missing_description_is_refused():
    def function(city: str):
        pass

    refused(function, "no description; write a docstring")
    refused(function, "no description", args_schema={"type": "object", "properties": {"city": {"type": "string"}}})
    assert tool("t", args_schema=Where)(lambda city, unit: city).description == "Where to look."
    assert tool("t", args_schema=WHERE_JSON)(lambda city, unit: city).description == "Where to look."


class Other:
    pass


def runtime_of_another_type(x: int, runtime: str):
    """Do."""


def runtime_without_a_type(x: int, runtime):
    """Do."""


def runtime_as_config(x: int, runtime: RunnableConfig):
    """Do."""


def runtime_unresolvable(x: int, runtime: "Unknown"):  # noqa: F821 - the case
    """Do."""


def config_of_another_type(x: int, config: dict):
    """Do."""


def config_without_a_type(x: int, config=None):
    """Do."""


def config_as_other(x: int, config: Other | None = None):
    """Do."""


def callbacks_of_another_type(x: int, callbacks: list[str]):
    """Do."""


def run_manager_of_another_type(x: int, run_manager: str):
    """Do."""


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (runtime_of_another_type, "named 'runtime' is reserved.*write `runtime: ToolRuntime`, or give it another name"),
        (runtime_without_a_type, "'runtime' is reserved"),
        (runtime_as_config, "'runtime' is reserved"),
        (runtime_unresolvable, "'runtime' is reserved"),
        (config_of_another_type, "named 'config' is reserved.*write `config: RunnableConfig`"),
        (config_without_a_type, "'config' is reserved"),
        (config_as_other, "'config' is reserved"),
        (callbacks_of_another_type, "'callbacks' is reserved for LangChain's callbacks"),
        (run_manager_of_another_type, "'run_manager' is reserved"),
    ],
)
def test_reserved_parameters_of_another_type_are_refused_with_and_without_a_schema(function, message):
    refused(function, message)
    name = list(function.__annotations__)[-1] if len(function.__annotations__) > 1 else "runtime"
    schema = {"type": "object", "properties": {"x": {"type": "integer"}, name: {"type": "string"}}}
    refused(function, message, args_schema=schema)


def unresolvable(x: "Unknown"):  # noqa: F821 - the case
    """Do."""


def unresolvable_inside(x: "list[Unknown]"):  # noqa: F821 - the case
    """Do."""


def positional_only(x: int, /):
    """Do."""


def any_number(*numbers: int):
    """Do."""


def generator(x: int):
    """Do."""
    yield x


async def async_generator(x: int):
    """Do."""
    yield x


def underscored(_x: int):
    """Do."""


def named_args(args: list[str] | None = None):
    """Do."""


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (named_args, "a schema cannot have a field named 'args'"),
        (unresolvable, "'Unknown' of parameter 'x' cannot be found at run time; import it outside TYPE_CHECKING"),
        (unresolvable_inside, "list.*Unknown.* of parameter 'x' cannot be found"),
        (positional_only, "remove the '/' after 'x'"),
        (any_number, r"a model cannot fill \*numbers; take a list"),
        (generator, "a generator returns nothing"),
        (async_generator, "a generator returns nothing"),
        (underscored, "a schema cannot have a field named '_x'; give the parameter another name"),
    ],
)
def test_an_impossible_signature_is_refused(function, message):
    refused(function, message)


def test_a_method_without_its_object_is_refused():
    class Window:
        def look(self, city: str):
            """Tell."""
            return city

    refused(Window.look, r"nothing fills 'self'.*tool\(object\.look\)")
    assert run_sync(tool(Window().look), {"city": "Bern"}) == "Bern"


def test_a_schema_that_does_not_fit_the_function_is_refused():
    refused(lambda city: city, "args_schema has 'unit', which the function does not take", args_schema=Where)
    refused(
        lambda city, unit, other: city,
        "the function needs 'other', but args_schema does not have it",
        args_schema=Where,
    )
    refused(lambda city: city, "must be a pydantic model class or a JSON schema dict", args_schema=str)
    refused(lambda city: city, "args_schema must be a pydantic model", args_schema=[1])
    assert tool("t", args_schema=Where)(lambda city, **rest: (city, rest))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "objekt"}, "no valid JSON schema"),
        ({"type": "object", "properties": {"x": {"type": "int"}}}, r"no valid JSON schema.*properties/x/type"),
        ({"type": "object", "properties": {"x": {"$ref": "#/$defs/Nothing"}}}, "refers to what it does not hold"),
        ({"$ref": "http://127.0.0.1:9/schema.json"}, "refers to what it does not hold"),
    ],
)
def test_a_wrong_json_schema_is_refused_and_never_fetched(schema, message):
    refused(lambda x=None: x, message, args_schema=schema, description="d")


def test_an_option_that_does_not_exist_is_refused():
    with pytest.raises(DefinitionError, match=r"no argument 'retun_direct'; .*return_direct"):
        tool(weather, retun_direct=True)


# --- headless ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [Where, WHERE_JSON])
def test_a_name_a_description_and_a_schema_make_a_headless_tool(schema):
    made = tool(name="locate", description="Find the user.", args_schema=schema, result_schema=Where)
    assert isinstance(made, HeadlessTool)
    assert described(made)["description"] == "Find the user."
    assert shown_parameters(made) == {"city", "unit"}
    assert made.result_schema is Where
    with pytest.raises(NotImplementedError, match=r"'locate' is headless.*put it in a ToolNode"):
        made.invoke({"city": "Bern"})


async def test_a_headless_tool_cannot_be_run_by_hand_in_a_loop_either():
    made = tool(name="locate", description="Find the user.", args_schema=Where)
    with pytest.raises(NotImplementedError, match="'locate' is headless"):
        await made.ainvoke({"city": "Bern"})


def test_half_a_headless_tool_is_refused():
    with pytest.raises(DefinitionError, match="needs name=, description= and args_schema="):
        tool(name="locate")
    with pytest.raises(DefinitionError, match=r"write @tool\('the_name'\)"):
        tool(weather, name="locate")
    with pytest.raises(DefinitionError, match=r"give the name first: @tool\('locate', \.\.\.\)"):

        @tool(name="locate", description="d", args_schema=Where)
        def locate(city: str, unit: str) -> str:
            return city


# --- by hand, without a node ---------------------------------------------------------------------------------------


def test_a_model_loop_by_hand():
    tools = [tool(weather), tool("second")(weather)]
    tool_map = {each.name: each for each in tools}
    ai = AIMessage(
        "",
        tool_calls=[
            {"name": "weather", "args": {"city": "Bern"}, "id": "c1", "type": "tool_call"},
            {"name": "second", "args": {"city": "Rome", "days": 2}, "id": "c2", "type": "tool_call"},
        ],
    )
    results = [tool_map[call["name"]].invoke(call) for call in ai.tool_calls]
    assert results == [
        ToolMessage("Bern C 1", name="weather", tool_call_id="c1"),
        ToolMessage("Rome C 2", name="second", tool_call_id="c2"),
    ]


async def test_a_model_loop_by_hand_in_a_loop():
    @tool
    async def look(city: str, config: RunnableConfig | None = None, *, runtime: ToolRuntime | None = None) -> str:
        """Look."""
        assert config is not None
        assert runtime is None
        return city

    call = {"name": "look", "args": {"city": "Bern"}, "id": "c1", "type": "tool_call"}
    assert await look.ainvoke(call) == ToolMessage("Bern", name="look", tool_call_id="c1")


def test_by_hand_the_caller_gives_what_a_run_would_inject():
    @tool
    def look(city: str, runtime: ToolRuntime) -> Any:
        """Look."""
        return runtime

    runtime = runtime_of()
    assert look.invoke({"city": "Bern", "runtime": runtime}) is runtime


def test_foreign_tools_are_taken_as_they_are():
    class Foreign(LangChainBaseTool):
        name: str = "foreign"
        description: str = "Foreign."

        def _run(self, x: int) -> int:
            return x

    for foreign in (Foreign(), langchain_tool(weather), Tool("t", str.upper, "d")):
        assert as_tool_object(foreign) is foreign
