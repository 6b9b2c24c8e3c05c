"""A model's arguments: validated like LangChain's, unknown ones refused, and every refusal says how to do better."""

import enum
import json
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.tools import BaseTool as LangChainBaseTool
from langchain_core.tools import StructuredTool, Tool
from langchain_core.tools import tool as langchain_tool
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import validator
from tool_calls import run_in_loop, run_sync, runtime_of

from agentkit.errors import ArgumentsError
from agentkit.tools import InjectedState, ToolRuntime, tool
from agentkit.tools._tool import as_tool_object


@pytest.fixture(params=[run_sync, run_in_loop], ids=["sync", "async"])
def run(request):
    return request.param


def problems(run, made, args, runtime=None):
    """The lines of the refusal after its first, without their dashes."""
    with pytest.raises(ArgumentsError) as caught:
        run(made, args, runtime)
    first, *lines = str(caught.value).splitlines()
    assert first == f"the arguments do not fit tool {made.name!r}:"
    assert all(line.startswith("- ") for line in lines)
    return [line.removeprefix("- ") for line in lines]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    y: float = 0.0


def everything(
    n: int,
    text: str = "t",
    point: Point | None = None,
    points: list[Point] = [],
    color: Color = Color.RED,
    day: date | None = None,
    mode: Literal["a", "b"] = "a",
    limited: Annotated[int, Field(ge=0, le=9, description="A digit")] = 3,
    table: dict[str, int] | None = None,
    anything: Any = None,
):
    """Take everything."""
    return n, text, point, points, color, day, mode, limited, table, anything


OURS, THEIRS = tool(everything), langchain_tool(everything)
VALUES = st.none() | st.booleans() | st.integers(-3, 12) | st.sampled_from(["a", "7", "red", "2026-11-30", "1.5", ""])
OBJECTS = st.dictionaries(st.sampled_from(["x", "y", "z"]), VALUES, max_size=3)
ARGUMENTS = st.dictionaries(
    st.sampled_from(list(everything.__annotations__)),
    VALUES | OBJECTS | st.lists(VALUES | OBJECTS, max_size=2),
    max_size=5,
)


@settings(max_examples=300, deadline=None)
@given(ARGUMENTS)
def test_a_schema_inferred_from_a_function_takes_and_refuses_what_langchains_does(args):
    ours, theirs = OURS, THEIRS
    before = json.dumps(args)
    try:
        expected = theirs.invoke(dict(args))
    except ValidationError:
        expected = None
    if expected is None:
        with pytest.raises(ArgumentsError):
            run_sync(ours, args)
    else:
        assert run_sync(ours, args) == expected
        assert run_sync(theirs, args) == expected
        assert [type(each) for each in run_sync(ours, args)] == [type(each) for each in expected]
    assert json.dumps(args) == before


def test_typed_arguments_arrive_as_objects_and_defaults_are_applied(run):
    result = run(tool(everything), {"n": "1", "point": {"x": "2"}, "points": [{"x": 3}], "color": "blue"})
    assert result == (1, "t", Point(x=2), [Point(x=3)], Color.BLUE, None, "a", 3, None, None)


def test_each_problem_has_field_problem_expected_and_got(run):
    found = problems(run, tool(everything), {"text": 5, "points": [{"x": "no"}], "limited": 10, "day": "soon"})
    integer, day = (
        "unable to parse string as an integer",
        "input should be a valid date or datetime, input is too short",
    )
    assert found == [
        "n: is missing; expected integer",
        "text: input should be a valid string; expected string; got 5",
        f"points[0].x: input should be a valid integer, {integer}; expected integer; got 'no'",
        f"day: {day}; expected string (format date) or null; got 'soon'",
        "limited: input should be less than or equal to 9; expected integer (at least 0, at most 9); got 10",
    ]


def test_unknown_arguments_are_refused_beside_other_problems(run):
    @tool
    def add(a: int, b: int = 1) -> int:
        """Add."""
        return a + b

    assert problems(run, add, {"a": 1, "c": 2, "B": 3}) == [
        "B: there is no such argument; expected only a, b; got 3",
        "c: there is no such argument; expected only a, b; got 2",
    ]
    assert problems(run, add, {"a": "x", "c": 2}) == [
        "c: there is no such argument; expected only a, b; got 2",
        "a: input should be a valid integer, unable to parse string as an integer; expected integer; got 'x'",
    ]


def test_a_tool_without_arguments_refuses_all(run):
    @tool
    def now() -> str:
        """Tell the time."""
        return "now"

    assert run(now, {}) == "now"
    assert problems(run, now, {"zone": "UTC"}) == ["zone: there is no such argument; expected no arguments; got 'UTC'"]


def test_arguments_for_rest_parameters_reach_them_validated(run):
    @tool
    def collect(a: int, **rest: int) -> Any:
        """Collect."""
        return a, rest

    assert run(collect, {"a": 1, "b": "2"}) == (1, {"b": 2})
    assert run(collect, {"a": 1, "rest": {"b": 2}, "c": 3}) == (1, {"b": 2, "c": 3})
    assert run(collect, {"a": 1}) == (1, {})
    assert problems(run, collect, {"a": 1, "b": "x"})[0].startswith("rest.b: input should be a valid integer")


@pytest.mark.parametrize("extra", [None, "ignore", "forbid", "allow"])
def test_a_schema_that_allows_extra_arguments_passes_them_on(extra, run):
    class Schema(BaseModel):
        model_config = ConfigDict() if extra is None else ConfigDict(extra=extra)
        a: int

    @tool(args_schema=Schema)
    def collect(a, **rest):
        """Collect."""
        return a, rest

    @tool(args_schema=Schema)
    def closed(a, b=0):
        """Take a."""
        return a, b

    if extra == "forbid":
        assert problems(run, collect, {"a": 1, "b": 2}) == ["b: there is no such argument; got 2"]
    else:
        assert run(collect, {"a": 1, "b": 2}) == (1, {"b": 2})
    if extra == "allow":
        assert run(closed, {"a": 1, "b": 2}) == (1, 2)
    else:
        assert problems(run, closed, {"a": 1, "b": 2})[0].startswith("b: there is no such argument")


def test_an_extra_argument_that_a_body_cannot_take_is_refused_though_the_schema_allows_it(run):
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        a: int

    for schema in (Open, {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": True}):
        closed = tool("closed", args_schema=schema, description="d")(lambda a: a)
        assert run(closed, {"a": 1}) == 1
        assert problems(run, closed, {"a": 1, "b": 2}) == ["b: there is no such argument; expected only a; got 2"]


def test_aliases_and_validators_of_a_schema_work(run):
    class Schema(BaseModel):
        city: str = Field(validation_alias=AliasChoices("town", AliasPath("place", "name")))
        unit: str = Field("C", alias="Unit")

        @field_validator("city")
        @classmethod
        def known(cls, value):
            if value == "Atlantis":
                raise ValueError("it has sunk")
            return value.title()

    @tool(args_schema=Schema)
    def look(city, unit):
        """Look."""
        return city, unit

    assert run(look, {"town": "bern", "Unit": "F"}) == ("Bern", "F")
    assert run(look, {"place": {"name": "bern"}}) == ("Bern", "C")
    assert problems(run, look, {"town": "Atlantis"})[0].startswith(
        "town: value error, it has sunk; expected string; got 'Atlantis'"
    )
    assert problems(run, look, {"town": "Bern", "city": "Bern"})[0].startswith("city: there is no such argument")


def test_a_schema_that_reads_its_raw_input_decides_itself_what_is_unknown(run):
    class Schema(BaseModel):
        query: str

        @model_validator(mode="before")
        @classmethod
        def from_q(cls, data):
            return {"query": data["q"]} if "q" in data else data

        @model_validator(mode="after")
        def not_empty(self):
            if not self.query:
                raise ValueError("give something to search")
            return self

    @tool(args_schema=Schema)
    def search(query):
        """Search."""
        return query

    assert run(search, {"q": "x"}) == "x"
    assert problems(run, search, {"q": ""}) == ["value error, give something to search"]


def test_pydantic_v1_schemas_follow_the_same_rules(run):
    class Schema(BaseModelV1):
        a: int
        b: int = 2

        @validator("a", allow_reuse=True)
        def not_negative(cls, value):
            if value < 0:
                raise ValueError("must not be negative")
            return value

    @tool(args_schema=Schema)
    def add(a, b, state: Annotated[dict, InjectedState]):
        """Add."""
        return a, b, state

    assert run(add, {"a": "1"}, runtime_of(state={"s": 1})) == (1, 2, {"s": 1})
    assert problems(run, add, {"c": 1, "state": 2}) == [
        "c: there is no such argument; expected only a, b; got 1",
        "a: is missing; expected integer",
    ]
    assert problems(run, add, {"a": -1}) == ["a: must not be negative; expected integer; got -1"]


JSON = {
    "type": "object",
    "properties": {
        "x": {"type": "integer", "minimum": 0},
        "mode": {"enum": ["a", "b"], "default": "a"},
        "nested": {"type": "object", "properties": {"y": {"type": "string"}}, "required": ["y"]},
        "many": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
    },
    "required": ["x"],
    "$defs": {"Item": {"type": ["integer", "null"]}},
}


@pytest.fixture
def json_tool():
    @tool(args_schema=JSON)
    def look(x, mode, nested=None, many=()):
        """Look."""
        return x, mode, nested, many

    return look


def test_a_json_schema_is_validated_and_its_defaults_fill_what_the_body_needs(json_tool, run):
    assert run(json_tool, {"x": 3}) == (3, "a", None, ())
    assert run(json_tool, {"x": 3, "mode": "b", "many": [1, None]}) == (3, "b", None, [1, None])


def test_json_schema_problems_have_field_problem_expected_and_got(json_tool, run):
    args = {"y": "not an int", "mode": "c", "nested": {}, "many": [1, "two"]}
    assert problems(run, json_tool, args) == [
        "y: there is no such argument; expected only many, mode, nested, x; got 'not an int'",
        "x: is missing; expected integer (at least 0)",
        "many[1]: has the wrong type; expected integer or null; got 'two'",
        "mode: is not an allowed value; expected one of 'a', 'b'; got 'c'",
        "nested.y: is missing; expected string",
    ]
    assert problems(run, json_tool, {"x": "3"}) == [
        "x: has the wrong type; expected integer (at least 0); got '3'",
    ]
    assert problems(run, json_tool, {"x": -1}) == [
        "x: -1 is less than the minimum of 0; expected integer (at least 0); got -1"
    ]


@pytest.mark.parametrize("decorate", [tool, langchain_tool])
def test_a_json_schema_tool_called_with_a_wrong_argument_is_refused(decorate, run):
    @decorate("look", args_schema={"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]})
    def look(x):
        """Look."""
        return x

    assert problems(run, look, {"y": "not an int"}) == [
        "y: there is no such argument; expected only x; got 'not an int'",
        "x: is missing; expected integer",
    ]


def test_a_json_schema_that_forbids_extras_says_so_once(run):
    schema = {"type": "object", "properties": {"x": {}}, "additionalProperties": False}
    look = tool("look", args_schema=schema, description="d")(lambda x=0, **rest: (x, rest))
    assert problems(run, look, {"z": 1, "y": 2}) == [
        "y: there is no such argument; expected only x; got 2",
        "z: there is no such argument; expected only x; got 1",
    ]


def test_a_server_gets_arguments_beyond_its_schema_and_no_defaults_of_ours(run):
    schema = {"type": "object", "properties": {"x": {"type": "integer", "default": 3}}}
    server = StructuredTool(name="server", description="d", args_schema=schema, func=lambda **args: args)
    assert run(server, {"y": 1}) == {"y": 1}


def test_a_combined_json_schema_decides_itself_what_is_unknown(run):
    schema = {
        "type": "object",
        "anyOf": [
            {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}}, "required": ["b"]},
        ],
    }
    look = StructuredTool(name="look", description="d", args_schema=schema, func=lambda a=None, b=None: (a, b))
    assert run(look, {"b": "x"}) == (None, "x")
    assert len(problems(run, look, {"b": 1})) == 1


@pytest.mark.parametrize("value", ["x" * 10_000, list(range(10_000)), b"x" * 10_000, {"k": "v" * 10_000}])
def test_a_long_value_is_shortened(value, run):
    @tool
    def look(x: int) -> int:
        """Look."""
        return x

    (line,) = problems(run, look, {"x": value})
    assert len(line) < 300
    assert "..." in line


def test_many_problems_are_cut_to_what_a_model_can_use(run):
    @tool
    def look(numbers: list[int]) -> Any:
        """Look."""
        return numbers

    lines = problems(run, look, {"numbers": ["x"] * 1000})
    assert len(lines) == 21
    assert lines[-1] == "and 980 more"


def test_a_value_that_cannot_be_shown_does_not_hide_the_problem(run):
    class Rude:
        def __repr__(self):
            raise RuntimeError("no")

    @tool
    def look(x: int) -> int:
        """Look."""
        return x

    assert problems(run, look, {"x": Rude()})[0].endswith("expected integer; got a Rude")


def test_injected_values_never_appear_in_a_refusal(run):
    class Schema(BaseModel):
        x: int
        state: Annotated[dict, InjectedState]

        @model_validator(mode="after")
        def check(self):
            raise ValueError("never")

    class Look(LangChainBaseTool):
        name: str = "look"
        description: str = "d"
        args_schema: type[BaseModel] = Schema

        def _run(self, x: int, state: dict, runtime: ToolRuntime) -> None: ...

    runtime = runtime_of(state={"password": "hunter2"})
    for args in ({}, {"x": 1}, {"x": "no", "state": "hunter2", "runtime": "hunter2"}):
        text = "\n".join(problems(run, Look(), args, runtime))
        assert "hunter2" not in text
        assert "state" not in text
        assert "runtime" not in text


def test_a_tool_of_one_text_takes_one_argument_whatever_its_name(run):
    upper = Tool("upper", str.upper, "d", coroutine=None)
    assert run(upper, {"__arg1": "a"}) == "A"
    assert run(upper, {"text": "a"}) == "A"
    with pytest.raises(ArgumentsError, match=r"takes one argument; got 2"):
        run(upper, {"a": "a", "b": "b"})
    with pytest.raises(ArgumentsError, match=r"takes one argument; got 0"):
        run(upper, {})


def test_a_subclass_without_a_schema_is_checked_against_its_signature(run):
    class Add(LangChainBaseTool):
        name: str = "add"
        description: str = "d"

        def _run(self, a: int, b: int = 2) -> int:
            return a + b

    class Anything(Add):
        def _run(self, *args, **kwargs) -> Any:
            return args, kwargs

    assert run(Add(), {"a": "1"}) == 3
    assert problems(run, Add(), {"c": 1}) == [
        "c: there is no such argument; expected only a, b; got 1",
        "a: is missing; expected integer",
    ]
    assert run(Anything(), {"whatever": "1"}) == ((), {"whatever": "1"})


def test_a_method_body_gets_a_field_called_kwargs_as_it_is(run):
    class Schema(BaseModel):
        args: list[str]
        kwargs: dict[str, int]

    class Look(LangChainBaseTool):
        name: str = "look"
        description: str = "d"
        args_schema: type[BaseModel] = Schema

        def _run(self, *_args, **values) -> Any:
            return values

    assert run(Look(), {"args": ["a"], "kwargs": {"b": 1}}) == {"args": ["a"], "kwargs": {"b": 1}}


def test_by_hand_a_bad_argument_is_pydantics_error():
    @tool
    def add(a: int) -> int:
        """Add."""
        return a

    with pytest.raises(ValidationError, match="valid integer"):
        add.invoke({"a": "x"})
    with pytest.raises(ValidationError, match="there is no such argument"):
        add.invoke({"a": 1, "b": 2})


def test_a_foreign_tool_keeps_its_leniency_by_hand():
    made = as_tool_object(langchain_tool(everything))
    assert made.invoke({"n": 1, "unknown": 2})[0] == 1
