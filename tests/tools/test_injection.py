"""Injection depends on what a parameter means, not on how its annotation is spelt."""

import functools
from dataclasses import dataclass
from typing import Annotated, Any, Optional, TypedDict

import postponed_tools
import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool as LangChainBaseTool
from langchain_core.tools import InjectedToolArg
from langchain_core.tools import tool as langchain_tool
from langgraph.prebuilt import ToolRuntime as LangGraphToolRuntime
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel, ConfigDict
from pydantic.v1 import BaseModel as BaseModelV1
from tool_calls import call_of, run_in_loop, run_sync, runtime_of, shown_parameters
from typing_extensions import TypeAliasType

from agentkit.errors import DefinitionError, InjectionError
from agentkit.tools import InjectedState, InjectedStore, InjectedToolCallId, ToolRuntime, tool
from agentkit.tools._body import run_body
from agentkit.tools._plan import plan_of
from agentkit.tools._tool import as_tool_object


@pytest.fixture(params=[run_sync, run_in_loop], ids=["sync", "async"])
def run(request):
    return request.param


@dataclass
class Context:
    user: str = "u"


class State(TypedDict, total=False):
    city: str


class X(BaseModel):
    x: int


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    x: int


class WithRuntime(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    x: int
    runtime: LangGraphToolRuntime | None = None


class XV1(BaseModelV1):
    x: int


JSON = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}


def plain(x: int, runtime: ToolRuntime):
    """Answer with the runtime."""
    return x, runtime


async def asynchronous(x: int, runtime: ToolRuntime):
    """Answer with the runtime."""
    return x, runtime


def langgraphs(x: int, runtime: LangGraphToolRuntime):
    """Answer with the runtime."""
    return x, runtime


def optional(x: int, runtime: Optional[ToolRuntime]):  # noqa: UP045 - the old spelling is the case
    """Answer with the runtime."""
    return x, runtime


def or_none(x: int, runtime: ToolRuntime | None = None):
    """Answer with the runtime."""
    return x, runtime


def generic(x: int, runtime: ToolRuntime[Context, State]):
    """Answer with the runtime."""
    return x, runtime


def optional_generic(x: int, runtime: ToolRuntime[Context] | None = None):
    """Answer with the runtime."""
    return x, runtime


def annotated(x: int, runtime: Annotated[ToolRuntime, "the run"]):
    """Answer with the runtime."""
    return x, runtime


def quoted(x: int, runtime: "ToolRuntime"):
    """Answer with the runtime."""
    return x, runtime


def quoted_inside(x: int, runtime: Optional["ToolRuntime"] = None):
    """Answer with the runtime."""
    return x, runtime


def other_name(x: int, rt: ToolRuntime):
    """Answer with the runtime."""
    return x, rt


def keyword_only(x: int, *, runtime: ToolRuntime):
    """Answer with the runtime."""
    return x, runtime


def first_of_all(runtime: ToolRuntime, x: int):
    """Answer with the runtime."""
    return x, runtime


def with_rest(x: int, runtime: ToolRuntime, **rest: Any):
    """Answer with the runtime."""
    assert not rest
    return x, runtime


def before_partial(add: int, x: int, runtime: ToolRuntime):
    """Answer with the runtime."""
    return x + add, runtime


Alias = TypeAliasType("Alias", ToolRuntime | None)


def aliased(x: int, runtime: Alias = None):
    """Answer with the runtime."""
    return x, runtime


class Methods:
    def method(self, x: int, runtime: ToolRuntime):
        """Answer with the runtime."""
        return x, runtime

    @classmethod
    def class_method(cls, x: int, runtime: ToolRuntime):
        """Answer with the runtime."""
        return x, runtime

    @staticmethod
    def static_method(x: int, runtime: ToolRuntime):
        """Answer with the runtime."""
        return x, runtime


class CallableObject:
    """Answer with the runtime."""

    def __call__(self, x: int, runtime: ToolRuntime):
        return x, runtime


class AsyncCallableObject:
    """Answer with the runtime."""

    async def __call__(self, x: int, runtime: ToolRuntime):
        return x, runtime


class ByInference(LangChainBaseTool):
    name: str = "by_inference"
    description: str = "Answer with the runtime."

    def _run(self, x: int, runtime: ToolRuntime | None = None):
        return x, runtime


class BySchema(LangChainBaseTool):
    name: str = "by_schema"
    description: str = "Answer with the runtime."
    args_schema: type[BaseModel] = Strict

    def _run(self, x, runtime):
        return x, runtime


class BySchemaAnnotated(BySchema):
    def _run(self, x: int, runtime: ToolRuntime, config: RunnableConfig):
        return x, runtime


class WithItsOwnAsync(BySchema):
    async def _arun(self, x: int, rt: ToolRuntime):
        return x, rt


class RuntimeInTheSchema(LangChainBaseTool):
    name: str = "runtime_in_the_schema"
    description: str = "Answer with the runtime."
    args_schema: type[BaseModel] = WithRuntime

    def _run(self, x, runtime):
        return x, runtime


def with_schema(schema, decorate=tool):
    @decorate("with_schema", args_schema=schema)
    def function(x, runtime: ToolRuntime):
        """Answer with the runtime."""
        return x, runtime

    return function


FUNCTIONS = [
    *(plain, asynchronous, langgraphs, optional, or_none, generic, optional_generic, annotated, quoted, quoted_inside),
    *(other_name, keyword_only, first_of_all, with_rest, aliased, postponed_tools.wrapped),
    *(postponed_tools.known_to_the_type_checker_only, postponed_tools.optional_to_the_type_checker_only),
    *(Methods().method, Methods.class_method, Methods().static_method),
]
SPELLINGS = {
    **{function.__name__: function for function in FUNCTIONS},
    "partial": functools.partial(before_partial, 0),
    "partial_by_name": functools.partial(before_partial, add=0),
    "object": CallableObject(),
    "async_object": AsyncCallableObject(),
    "local_import": postponed_tools.imported_inside(tool),
    "local_import_around_a_class": postponed_tools.imported_inside_a_class(tool),
    "local_import_resolved_late": postponed_tools.imported_inside_by_its_name(),
    "schema": with_schema(X),
    "forbidding_schema": with_schema(Strict),
    "v1_schema": with_schema(XV1),
    "json_schema": with_schema(JSON),
    "schema_with_the_runtime": with_schema(WithRuntime),
    "langchain": langchain_tool(plain),
    "langchain_optional": langchain_tool(or_none),
    "langchain_forbidding_schema": with_schema(Strict, langchain_tool),
    "langchain_json_schema": with_schema(JSON, langchain_tool),
    "subclass": ByInference(),
    "subclass_with_schema": BySchema(),
    "subclass_with_schema_and_hints": BySchemaAnnotated(),
    "subclass_with_its_own_async": WithItsOwnAsync(),
    "subclass_with_the_runtime_in_its_schema": RuntimeInTheSchema(),
}
IN_LOOP_ONLY = ("asynchronous", "async_object")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_runtime_is_injected_hidden_and_cannot_be_forged_however_it_is_spelt(spelling, run):
    made = as_tool_object(SPELLINGS[spelling])
    runtime = runtime_of(tool_name=made.name)
    if spelling in IN_LOOP_ONLY and run is run_sync:
        with pytest.raises(NotImplementedError, match="async only"):
            run(made, {"x": "3"}, runtime)
        return
    for forged in ({}, dict.fromkeys(plan_of(made).injected, "forged")):
        x, injected = run(made, {"x": 3} | forged, runtime)
        assert (x, injected is runtime) == (3, True)
    assert shown_parameters(made) == ({"x", "rest"} if spelling == "with_rest" else {"x"})


def test_a_local_name_is_found_while_its_function_runs():
    from agentkit.tools import ToolRuntime as LocalName

    def function(x: int, runtime: "LocalName"):
        """Answer with the runtime."""
        return x, runtime

    made, runtime = as_tool_object(function), runtime_of()
    assert run_sync(made, {"x": 1}, runtime) == (1, runtime)


def test_the_runtime_holds_what_langgraphs_does_and_is_one():
    seen = []
    runtime = runtime_of(
        state={"city": "Bern"},
        context=Context("ada"),
        config={"configurable": {"a": 1}},
        stream_writer=seen.append,
        store=InMemoryStore(),
        tools=[],
        tool_name="t",
        idempotency_key="key",
    )
    assert isinstance(runtime, LangGraphToolRuntime)
    assert runtime.state["city"] == "Bern"
    assert runtime.context.user == "ada"
    assert runtime.config["configurable"] == {"a": 1}
    assert runtime.tool_call_id == "call-1"
    assert (runtime.execution_info, runtime.server_info, runtime.idempotency_key) == (None, None, "key")
    runtime.stream_writer("hello")
    assert seen == ["hello"]


def test_progress_is_one_typed_event():
    seen = []
    runtime_of(stream_writer=seen.append, tool_name="copy").progress(1, 3, "first of three")
    assert seen == [
        {
            "type": "tool_progress",
            "tool_call_id": "call-1",
            "name": "copy",
            "done": 1,
            "total": 3,
            "note": "first of three",
        }
    ]


@pytest.mark.parametrize("annotation", [RunnableConfig, RunnableConfig | None, Optional[RunnableConfig]])  # noqa: UP045
@pytest.mark.parametrize("decorate", [tool, langchain_tool])
def test_the_config_is_injected_and_hidden(annotation, decorate, run):
    def function(x: int, config: annotation):
        """Answer with the config."""
        return config

    made = as_tool_object(decorate(function))
    config = {"configurable": {"a": 1}}
    assert run(made, {"x": 1, "config": {}}, runtime_of(config=config)) is config
    assert shown_parameters(made) == {"x"}


def test_state_store_and_call_id_are_injected_hidden_and_cannot_be_forged(run):
    @tool
    def look(
        x: int,
        state: Annotated[dict, InjectedState],
        city: Annotated[str, InjectedState("city")],
        store: Annotated[Any, InjectedStore()],
        call_id: Annotated[str, InjectedToolCallId],
    ):
        """Answer with everything."""
        return x, state, city, store, call_id

    state, store = {"city": "Bern", "messages": []}, InMemoryStore()
    forged = {"x": 1, "state": {}, "city": "Rome", "store": None, "call_id": "forged"}
    result = run(look, forged, runtime_of(state=state, store=store))
    assert result == (1, state, "Bern", store, "call-1")
    assert result[1] is state
    assert shown_parameters(look) == {"x"}


@pytest.mark.parametrize(
    "annotation",
    [
        Optional[Annotated[str, InjectedState("city")]],  # noqa: UP045 - the old spelling is the case
        Annotated[str, InjectedState("city")] | None,
        Annotated[Annotated[str, InjectedState("city")], "doc"],
        Annotated[str, "doc", InjectedState("city")],
        'Annotated[str, InjectedState("city")]',
        InjectedState("city"),
    ],
)
@pytest.mark.parametrize("default", [False, True])
def test_a_state_field_is_found_wherever_it_is_marked(annotation, default, run):
    if default:

        def function(x: int, city: annotation = "Rome"):
            """Answer with the city."""
            return city

    else:

        def function(x: int, city: annotation):
            """Answer with the city."""
            return city

    made = as_tool_object(function)
    assert run(made, {"x": 1, "city": "forged"}, runtime_of(state={"city": "Bern"})) == "Bern"
    assert shown_parameters(made) == {"x"}


@pytest.mark.parametrize("decorate", [tool, langchain_tool])
def test_a_marker_may_be_the_annotation_itself(decorate, run):
    @decorate
    def look(x: int, state: InjectedState, store: InjectedStore, call_id: InjectedToolCallId):
        """Answer with everything."""
        return x, state, store, call_id

    made, state, store = as_tool_object(look), {"city": "Bern"}, InMemoryStore()
    forged = {"x": 1, "state": {}, "store": None, "call_id": "forged"}
    assert run(made, forged, runtime_of(state=state, store=store)) == (1, state, store, "call-1")
    assert shown_parameters(made) == {"x"}


@pytest.mark.parametrize("name", ["marked_with_a_stranger", "all_strangers"])
def test_what_is_injected_may_be_known_to_the_type_checker_only(name, run):
    made = as_tool_object(getattr(postponed_tools, name))
    config = {"configurable": {}}
    result = run(made, {"x": "1"}, runtime_of(state={"city": "Bern"}, config=config))
    assert result == (1, {"city": "Bern"}, "Bern", config)
    assert shown_parameters(made) == {"x"}


class PydanticState(BaseModel):
    city: str = "Bern"


@dataclass
class DataclassState:
    city: str = "Bern"


@pytest.mark.parametrize("state", [{"city": "Bern"}, PydanticState(), DataclassState()])
def test_state_may_be_a_dict_a_model_or_a_dataclass(state, run):
    @tool
    def look(city: Annotated[str, InjectedState("city")], whole: Annotated[Any, InjectedState()]):
        """Answer with the city."""
        return city, whole

    assert run(look, {}, runtime_of(state=state)) == ("Bern", state)


def test_a_bare_list_of_messages_is_the_state_of_its_key(run):
    @tool
    def look(messages: Annotated[list, InjectedState("messages")], state: Annotated[dict, InjectedState]):
        """Answer with the messages."""
        return messages, state

    messages = ["a message"]
    assert run(look, {}, runtime_of(state=messages)) == (messages, {"messages": messages})


@pytest.mark.parametrize("state", [{}, PydanticState(), ["a message"]])
def test_an_absent_state_key_is_none_where_none_is_allowed_else_the_default_else_a_developers_error(state, run):
    @tool
    def may_be_none(land: Annotated[str | None, InjectedState("land")]):
        """Answer with the land."""
        return land

    @tool
    def has_default(land: Annotated[str | None, InjectedState("land")] = "CH"):
        """Answer with the land."""
        return land

    @tool
    def must_be(land: Annotated[str, InjectedState("land")]):
        """Answer with the land."""
        return land

    runtime = runtime_of(state=state)
    assert run(may_be_none, {}, runtime) is None
    assert run(has_default, {}, runtime) == "CH"
    with pytest.raises(InjectionError, match=r"tool 'must_be': parameter 'land' .* no 'land'"):
        run(must_be, {}, runtime)


def test_an_absent_key_of_a_langchain_tool_follows_the_same_rule(run):
    @langchain_tool
    def may_be_none(city: Annotated[str | None, InjectedState("city")]):
        """Answer with the city."""
        return city

    assert run(may_be_none, {}) is None


def test_a_missing_store_is_a_developers_error_unless_the_tool_can_do_without(run):
    @tool
    def must_have(store: Annotated[Any, InjectedStore()]):
        """Answer with the store."""
        return store

    @tool
    def can_do_without(store: Annotated[InMemoryStore | None, InjectedStore()] = None):
        """Answer with the store."""
        return store

    assert run(can_do_without, {}) is None
    with pytest.raises(InjectionError, match=r"'must_have'.*'store'.*compile it with store="):
        run(must_have, {})


def test_a_custom_injected_argument_is_stripped_and_needs_a_default(run):
    @tool
    def by_hand(x: int, user: Annotated[str, InjectedToolArg] = "nobody"):
        """Answer with the user."""
        return user

    @tool
    def never_given(x: int, user: Annotated[str, InjectedToolArg]):
        """Answer with the user."""
        return user

    assert run(by_hand, {"x": 1, "user": "forged"}) == "nobody"
    assert by_hand.invoke({"x": 1, "user": "ada"}) == "ada"
    assert shown_parameters(by_hand) == {"x"}
    with pytest.raises(InjectionError, match=r"'never_given'.*'user'"):
        run(never_given, {"x": 1, "user": "forged"})


def test_injection_declared_on_the_schema_reaches_a_body_that_does_not_repeat_it(run):
    class Schema(BaseModel):
        model_config = ConfigDict(extra="forbid")
        x: int
        state: Annotated[dict, InjectedState]
        city: Annotated[str, InjectedState("city")] = "Rome"
        call_id: Annotated[str, InjectedToolCallId]

    class Look(LangChainBaseTool):
        name: str = "look"
        description: str = "Look."
        args_schema: type[BaseModel] = Schema

        def _run(self, x, state, city, call_id):
            return x, state, city, call_id

    state = {"city": "Bern"}
    made = as_tool_object(Look())
    assert run(made, {"x": "1", "state": {"forged": 1}}, runtime_of(state=state)) == (1, state, "Bern", "call-1")
    assert run(made, {"x": "1"}, runtime_of(state={})) == (1, {}, "Rome", "call-1")
    assert shown_parameters(made) == {"x"}


def test_injected_values_are_neither_copied_nor_validated(run):
    class Touchy:
        def touched(self, *args):
            raise AssertionError("touched")

        __iter__ = __len__ = __getitem__ = keys = items = touched
        __copy__ = __deepcopy__ = __reduce_ex__ = __eq__ = __hash__ = __repr__ = touched

    @tool
    def look(x: int, state: Annotated[dict, InjectedState], runtime: ToolRuntime):
        """Answer with the state."""
        return [state, runtime.state]

    state = Touchy()
    found = run(look, {"x": 1}, runtime_of(state=state))
    assert [id(each) for each in found] == [id(state)] * 2


def test_two_ways_to_inject_one_parameter_are_refused():
    with pytest.raises(DefinitionError, match=r"'twice'.*'y'.*two ways"):

        @tool
        def twice(x: int, y: Annotated[Any, InjectedState("a"), InjectedStore()]):
            """Do."""


def test_sync_and_async_bodies_may_ask_for_different_things():
    class Both(LangChainBaseTool):
        name: str = "both"
        description: str = "Both."
        args_schema: type[BaseModel] = X

        def _run(self, x, city: Annotated[str, InjectedState("city")]):
            return x, city

        async def _arun(self, x, rt: ToolRuntime):
            return x, rt

    runtime = runtime_of(state={"city": "Bern"})
    assert run_sync(Both(), {"x": 1, "rt": 0}, runtime) == (1, "Bern")
    assert run_in_loop(Both(), {"x": 1, "city": 0}, runtime) == (1, runtime)


def test_a_plan_is_made_once_and_dies_with_its_tool():
    import gc

    from agentkit.tools import _plan

    made = as_tool_object(plain)
    assert plan_of(made) is plan_of(made)
    key = id(made)
    assert key in _plan._plans
    del made
    gc.collect()
    assert key not in _plan._plans


def test_a_tool_whose_function_is_replaced_gets_a_new_plan():
    made = tool(plain)
    runtime = runtime_of()
    assert run_sync(made, {"x": 1}, runtime) == (1, runtime)
    made.func = lambda x: x + 1
    assert run_body(plan_of(made), made, call_of(made, {"x": 1}), runtime, {}) == 2


def test_tools_of_langchain_may_rely_on_the_name_runtime_alone():
    from langchain_core.tools import tool as langchain_tool

    @langchain_tool
    def look(x: int, runtime: Any) -> str:
        """Look."""
        return f"{x} {type(runtime).__name__}"

    assert "runtime" in plan_of(look).injected
