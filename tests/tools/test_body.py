"""Bodies: what comes back and what handlers see, directly and through LangChain's callbacks, sync and async."""

import asyncio
import contextvars
import functools
import threading
from typing import Annotated, Any

import pytest
from langchain_core.callbacks import (
    AsyncCallbackHandler,
    AsyncCallbackManager,
    AsyncCallbackManagerForToolRun,
    BaseCallbackHandler,
    CallbackManager,
    CallbackManagerForToolRun,
)
from langchain_core.globals import set_debug
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool as LangChainBaseTool
from langchain_core.tools import StructuredTool, ToolException
from langchain_core.tools import tool as langchain_tool
from langchain_core.tracers.context import collect_runs, register_configure_hook
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import get_runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt
from pydantic import BaseModel, ConfigDict, ValidationError
from tool_calls import call_of, run_in_loop, run_sync, runtime_of

from agentkit.errors import ArgumentsError, InjectionError
from agentkit.tools import InjectedState, ToolRuntime, tool
from agentkit.tools._body import arun_body, run_body
from agentkit.tools._listening import is_heard
from agentkit.tools._outcome import Artifact
from agentkit.tools._plan import plan_of


@pytest.fixture(params=[run_sync, run_in_loop], ids=["sync", "async"])
def run(request):
    return request.param


class Log(BaseCallbackHandler):
    """Writes down what a handler is told of tool runs."""

    def __init__(self):
        self.events = []

    def on_tool_start(self, serialized, input_str, *, inputs=None, metadata=None, tags=None, **kwargs):
        self.events.append(("start", serialized["name"], inputs, kwargs["tool_call_id"], metadata, tags))

    def on_tool_end(self, output, **kwargs):
        self.events.append(("end", output))

    def on_tool_error(self, error, **kwargs):
        self.events.append(("error", type(error)))


class ModelLog(BaseCallbackHandler):
    """A handler that takes notice of models alone."""

    def on_llm_start(self, *args, **kwargs): ...


@pytest.fixture(params=["nobody", "handler", "manager"])
def heard(request):
    """The config of a run that nobody, a handler in a list, or a handler in a manager listens to; and the log."""
    log = Log()
    config = {
        "nobody": {},
        "handler": {"callbacks": [log], "metadata": {"m": 1}, "tags": ["t"]},
        "manager": {"callbacks": CallbackManager([log], inheritable_handlers=[log]), "metadata": {"m": 1}},
    }[request.param]
    return config, log


@tool
def add(a: int, b: int = 2) -> int:
    """Add."""
    return a + b


class Item(BaseModel):
    n: int


RETURNS = {
    "text": "text",
    "number": 3,
    "none": None,
    "dict": {"a": [1]},
    "model": Item(n=1),
    "bytes": b"\xff",
    "blocks": [{"type": "text", "text": "x"}],
    "empty": [],
    "message": ToolMessage("x", tool_call_id="call-1"),
    "command": Command(update={"a": 1}),
    "list": [Command(update={"a": 1}), ToolMessage("x", tool_call_id="call-1")],
    "tuple": ("a", "b"),
}


@pytest.mark.parametrize("kind", RETURNS)
@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_body_returns_comes_back_untouched_whoever_listens(kind, is_async, run, heard):
    def give() -> Any:
        """Give."""
        return RETURNS[kind]

    async def agive() -> Any:
        """Give."""
        return RETURNS[kind]

    made = StructuredTool.from_function(give, agive if is_async else None)
    assert run(made, {}, runtime_of(config=heard[0])) is RETURNS[kind]


def test_content_and_artifact_come_back_as_a_pair(run, heard):
    @tool(response_format="content_and_artifact")
    def give(n: int) -> Any:
        """Give."""
        return ("content", "artifact", 3)[:n]

    runtime = runtime_of(config=heard[0])
    assert run(give, {"n": 2}, runtime) == Artifact("content", "artifact")
    assert type(run(give, {"n": 2}, runtime)) is Artifact
    for wrong in (0, 1, 3):
        with pytest.raises(ValueError, match="two-tuple" if heard[0] else "must return a tuple of the two"):
            run(give, {"n": wrong}, runtime)


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), ToolException("x"), StopIteration("x")])
def test_what_a_body_raises_is_raised_whoever_listens(error, run, heard):
    @tool
    def fail() -> None:
        """Fail."""
        raise error

    expected = RuntimeError if isinstance(error, StopIteration) and run is run_in_loop else type(error)
    with pytest.raises(expected):
        run(fail, {}, runtime_of(config=heard[0]))


def test_bad_arguments_and_missing_injections_are_the_same_errors_whoever_listens(run, heard):
    @tool
    def look(x: int, city: Annotated[str, InjectedState("city")]) -> str:
        """Look."""
        return city

    config, log = heard
    runtime = runtime_of(config=config)
    with pytest.raises(ArgumentsError, match="x: input should be a valid integer"):
        run(look, {"x": "no"}, runtime)
    with pytest.raises(InjectionError, match="the state has no 'city'"):
        run(look, {"x": 1}, runtime)
    ends = [event[:2] for event in log.events if event[0] != "start"]
    assert ends == ([("error", ArgumentsError), ("error", InjectionError)] if config else [])


def test_handlers_see_what_they_see_of_langchains_own_tools(run):
    def look(x: int, runtime: ToolRuntime | None = None, state: Annotated[Any, InjectedState] = None) -> str:
        """Look."""
        return f"saw {x}"

    seen = []
    for made in (tool(look), langchain_tool(look)):
        made.tags, made.metadata = ["own"], {"own": True}
        log = Log()
        config = {"callbacks": [log], "metadata": {"m": 1}, "tags": ["t"]}
        runtime = runtime_of(config=config, state={"secret": 1})
        run(made, {"x": "3", "runtime": "forged", "state": "forged"}, runtime)
        seen.append(log.events)
        log = Log()
        made.invoke(call_of(made, {"x": "3"}), {**config, "callbacks": [log]})
        seen.append(log.events)
    assert seen[0] == [
        ("start", "look", {"x": "3"}, "call-1", {"m": 1, "own": True}, ["t", "own"]),
        ("end", ToolMessage("saw 3", name="look", tool_call_id="call-1")),
    ]
    assert all(each == seen[0] for each in seen)


def test_a_tools_own_callbacks_and_the_surrounding_context_are_heard(run):
    log = Log()
    made = StructuredTool.from_function(lambda: 1, name="one", description="d", callbacks=[log])
    assert run(made, {}) == 1
    assert [event[0] for event in log.events] == ["start", "end"]
    with collect_runs() as collected:
        assert run(add, {"a": 1}) == 3
    assert [(each.name, each.inputs) for each in collected.traced_runs] == [("add", {"a": 1})]


def test_an_async_handler_is_told_in_the_loop():
    seen = []

    class Handler(AsyncCallbackHandler):
        async def on_tool_start(self, *args, **kwargs):
            seen.append(asyncio.get_running_loop())

    async def main():
        config = {"callbacks": AsyncCallbackManager([Handler()])}

        @tool
        async def look(x: int) -> int:
            """Look."""
            return x

        runtime = runtime_of(config=config)
        assert await arun_body(plan_of(look), look, call_of(look, {"x": 1}), runtime, config) == 1
        return asyncio.get_running_loop()

    assert seen == [asyncio.run(main())]


def test_who_counts_as_a_listener():
    assert not is_heard(add, {})
    assert not is_heard(add, {"callbacks": []})
    assert not is_heard(add, {"callbacks": CallbackManager([])})
    assert is_heard(add, {"callbacks": [ModelLog()]})
    assert is_heard(add, {"callbacks": CallbackManager([Log()])})
    assert is_heard(add.model_copy(update={"verbose": True}), {})
    set_debug(True)
    try:
        assert is_heard(add, {})
    finally:
        set_debug(False)


def test_handlers_that_others_add_to_the_context_or_by_the_environment_are_heard(monkeypatch):
    variable = contextvars.ContextVar("handler", default=None)
    register_configure_hook(variable, inheritable=True, handle_class=Log, env_var="AGENTKIT_TEST_HANDLER")
    assert not is_heard(add, {})
    monkeypatch.setenv("AGENTKIT_TEST_HANDLER", "true")
    assert is_heard(add, {})
    monkeypatch.delenv("AGENTKIT_TEST_HANDLER")
    token = variable.set(Log())
    assert is_heard(add, {})
    variable.reset(token)
    assert not is_heard(add, {})


@pytest.mark.parametrize("config", [{}, {"callbacks": CallbackManager([])}])
def test_langsmiths_tracing_counts_as_a_listener(config):
    from langsmith.run_helpers import tracing_context

    with tracing_context(enabled=True):
        assert is_heard(add, config)
    with tracing_context(enabled=False):
        assert not is_heard(add, config)


def test_the_stream_of_model_messages_does_not_count_for_tools():
    heard = []

    @tool
    def look(config: RunnableConfig) -> str:
        """Look."""
        heard.append(is_heard(look, config))
        return "x"

    for mode in ("messages", "updates", "tools"):
        list(graph_around(look, {}).stream({"messages": []}, stream_mode=mode))
    assert heard == [False, False, True]


# --- a tool's own error settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "text"),
    [(True, "it broke"), ("sorry", "sorry"), (lambda error: f"because: {error}", "because: it broke")],
    ids=["true", "text", "function"],
)
def test_a_tool_that_handles_its_errors_makes_an_error_result(setting, text, run, heard):
    def fail() -> None:
        """Fail."""
        raise ToolException("it broke")

    made = StructuredTool.from_function(fail, handle_tool_error=setting)
    expected = ToolMessage(text, name="fail", tool_call_id="call-1", status="error")
    assert run(made, {}, runtime_of(config=heard[0])) == expected


@pytest.mark.parametrize("args", [{"a": "x"}, {"a": 1, "c": 2}, {}])
@pytest.mark.parametrize("decorate", [tool, langchain_tool])
def test_a_tool_that_handles_validation_errors_makes_an_error_result(args, decorate, run, heard):
    def add_up(a: int) -> int:
        """Add."""
        return a

    made = decorate(add_up)
    for setting, text in (
        (True, "Tool input validation error"),
        ("sorry", "sorry"),
        (lambda error: type(error).__name__, "ValidationError"),
    ):
        made.handle_validation_error = setting
        expected = ToolMessage(text, name="add_up", tool_call_id="call-1", status="error")
        assert run(made, args, runtime_of(config=heard[0])) == expected


# --- threads and contexts ------------------------------------------------------------------------------------------


def test_a_sync_body_runs_in_this_thread_or_beside_the_loop():
    @tool
    def where() -> Any:
        """Where."""
        return threading.get_ident()

    assert run_sync(where, {}) == threading.get_ident()
    assert run_in_loop(where, {}) != threading.get_ident()


@pytest.mark.parametrize("config", [{}, {"callbacks": [Log()]}], ids=["direct", "heard"])
async def test_a_sync_body_does_not_block_the_loop(config):
    go_on = threading.Event()

    loop, started = asyncio.get_running_loop(), asyncio.Event()

    @tool
    def wait() -> str:
        """Wait."""
        loop.call_soon_threadsafe(started.set)
        assert go_on.wait(30)
        return "done"

    async def release():
        await started.wait()
        go_on.set()

    runtime = runtime_of(config=config)
    body = arun_body(plan_of(wait), wait, call_of(wait, {}), runtime, config)
    result, _ = await asyncio.wait_for(asyncio.gather(body, release()), 30)
    assert result == "done"


VARIABLE = contextvars.ContextVar("variable", default="unset")


def test_a_body_sees_the_callers_context_and_a_sync_body_does_not_change_it(run, heard):
    @tool
    def look() -> str:
        """Look."""
        found = VARIABLE.get()
        VARIABLE.set("changed")
        return found

    token = VARIABLE.set("caller")
    try:
        assert run(look, {}, runtime_of(config=heard[0])) == "caller"
        assert VARIABLE.get() == "caller"
    finally:
        VARIABLE.reset(token)


def test_a_function_that_hides_that_it_is_async_is_awaited_or_refused(run, heard):
    async def wait(n: int) -> int:
        return n

    def hiding(n: int) -> Any:
        """Wait."""
        return wait(n)

    made = tool(hiding)
    runtime = runtime_of(config=heard[0])
    if run is run_in_loop:
        assert run(made, {"n": 1}, runtime) == 1
    else:
        with pytest.raises(NotImplementedError, match="tool 'hiding' is async"):
            run(made, {"n": 1}, runtime)


# --- what LangChain hands to bodies --------------------------------------------------------------------------------


def test_a_body_that_asks_for_a_run_manager_gets_a_real_one(run, heard):
    class Look(LangChainBaseTool):
        name: str = "look"
        description: str = "Look."

        def _run(self, x: int, run_manager: CallbackManagerForToolRun) -> Any:
            return x, run_manager

    x, manager = run(Look(), {"x": 1}, runtime_of(config=heard[0]))
    assert x == 1
    assert isinstance(manager, CallbackManagerForToolRun)
    assert isinstance(manager.get_child(), CallbackManager)


def test_an_async_body_gets_an_async_run_manager(heard):
    class Look(LangChainBaseTool):
        name: str = "look"
        description: str = "Look."

        def _run(self) -> None: ...

        async def _arun(self, x: int, run_manager: AsyncCallbackManagerForToolRun) -> Any:
            return run_manager

    class Schema(BaseModel):
        x: int

    made = Look(args_schema=Schema)
    assert isinstance(run_in_loop(made, {"x": 1}, runtime_of(config=heard[0])), AsyncCallbackManagerForToolRun)


def test_a_runnable_as_a_tool_keeps_its_place_in_the_trace(run):
    class Text(BaseModel):
        text: str

    class Chains(Log):
        def on_chain_start(self, serialized, inputs, *, parent_run_id=None, run_id, **kwargs):
            self.events.append(("chain", parent_run_id is not None))

    log = Chains()
    inner = RunnableLambda(lambda given: given["text"].upper()).with_types(input_type=Text)
    made = tool("upper", inner, description="Upper.")
    assert run(made, {"text": "a"}, runtime_of(config={"callbacks": [log]})) == "A"
    assert ("chain", True) in log.events
    assert run(made, {"text": "a"}) == "A"


# --- classes with a way of their own -------------------------------------------------------------------------------


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    x: int


class ItsOwnWay(LangChainBaseTool):
    name: str = "its_own_way"
    description: str = "Look."
    args_schema: type[BaseModel] = Strict
    seen: list = []

    def invoke(self, given, config=None, **kwargs):
        self.seen.append(("invoke", dict(given["args"])))
        return super().invoke(given, config, **kwargs)

    async def ainvoke(self, given, config=None, **kwargs):
        self.seen.append(("ainvoke", dict(given["args"])))
        return await super().ainvoke(given, config, **kwargs)

    def _run(self, x: int, runtime: ToolRuntime, config: RunnableConfig) -> Any:
        return f"{x} {runtime.tool_name} {config['configurable']['a']}"


def test_a_class_that_invokes_its_own_way_keeps_it_and_gets_what_it_asks_for(run, heard):
    made = ItsOwnWay(seen=[])
    config = {**heard[0], "configurable": {"a": 1}}
    runtime = runtime_of(config=config, tool_name="the name")
    result = run(made, {"x": 3, "runtime": "forged"}, runtime)
    assert result == ToolMessage("3 the name 1", name="its_own_way", tool_call_id="call-1")
    assert made.seen == [("ainvoke" if run is run_in_loop else "invoke", {"x": 3})]
    with pytest.raises(ArgumentsError, match="x: input should be a valid integer"):
        run(made, {"x": "no"}, runtime)
    with pytest.raises(ArgumentsError, match="y: there is no such argument"):
        run(made, {"x": 1, "y": 2}, runtime)


def test_a_validation_error_of_a_body_is_not_taken_for_one_of_the_arguments(run, heard):
    class Broken(ItsOwnWay):
        def _run(self, x: int) -> Any:
            return Item(n="no")

    @tool
    def broken(x: int) -> Any:
        """Break."""
        return Item(n="no")

    for made in (Broken(), broken):
        with pytest.raises(ValidationError, match="Item"):
            run(made, {"x": 1}, runtime_of(config=heard[0]))


# --- inside a graph ------------------------------------------------------------------------------------------------


def graph_around(made, args, **compiled):
    """A graph whose one node runs one call of the tool, sync and async."""

    def runtime_in(state, config):
        runtime = get_runtime()
        return runtime_of(state=state, config=config, stream_writer=runtime.stream_writer, store=runtime.store)

    def node(state: MessagesState, config: RunnableConfig) -> Any:
        given = run_body(plan_of(made), made, call_of(made, args), runtime_in(state, config), config)
        return {"messages": [("ai", str(given))]}

    async def anode(state: MessagesState, config: RunnableConfig) -> Any:
        given = await arun_body(plan_of(made), made, call_of(made, args), runtime_in(state, config), config)
        return {"messages": [("ai", str(given))]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", RunnableLambda(node, anode))
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    return graph.compile(**compiled)


class Sync:
    """Runs a graph in sync code; Async does so in a loop."""

    @staticmethod
    def invoke(graph, *args):
        return graph.invoke(*args)

    @staticmethod
    def stream(graph, *args, **kwargs):
        return list(graph.stream(*args, **kwargs))


class Async:
    @staticmethod
    def invoke(graph, *args):
        return asyncio.run(graph.ainvoke(*args))

    @staticmethod
    def stream(graph, *args, **kwargs):
        async def collect():
            return [event async for event in graph.astream(*args, **kwargs)]

        return asyncio.run(collect())


@pytest.fixture(params=[Sync, Async])
def drive(request):
    return request.param


@pytest.mark.parametrize("callbacks", [[], [Log()]], ids=["direct", "heard"])
def test_interrupts_streams_the_store_and_the_runtime_reach_a_body_in_a_graph(callbacks, drive):
    @tool
    def ask(question: str) -> str:
        """Ask."""
        get_stream_writer()({"asked": question})
        get_runtime().store.put(("asked",), "q", {"text": question})
        return f"answer: {interrupt(question)}"

    store = InMemoryStore()
    graph = graph_around(ask, {"question": "why?"}, checkpointer=InMemorySaver(), store=store)
    config = {"configurable": {"thread_id": "t"}, "callbacks": callbacks}
    events = drive.stream(graph, {"messages": []}, config, stream_mode=["custom", "updates"])
    assert events[0] == ("custom", {"asked": "why?"})
    assert events[1][1]["__interrupt__"][0].value == "why?"
    assert store.get(("asked",), "q").value == {"text": "why?"}
    done = drive.invoke(graph, Command(resume="because"), config)
    assert done["messages"][-1].content == "answer: because"


@pytest.mark.parametrize("callbacks", [[], [Log()]], ids=["direct", "heard"])
def test_an_agent_inside_a_tool_runs_as_part_of_the_run(callbacks, drive):
    @tool
    def inner_tool(config: RunnableConfig) -> str:
        """Look."""
        return config["metadata"]["from"]

    inner = graph_around(inner_tool, {})

    def sub() -> str:
        """Delegate."""
        return inner.invoke({"messages": []})["messages"][-1].content

    async def asub() -> str:
        """Delegate."""
        return (await inner.ainvoke({"messages": []}))["messages"][-1].content

    delegate = StructuredTool.from_function(sub, asub)
    config = {"metadata": {"from": "outer"}, "callbacks": callbacks}
    assert drive.invoke(graph_around(delegate, {}), {"messages": []}, config)["messages"][-1].content == "outer"


def test_progress_is_streamed_as_a_custom_event(drive):
    @tool
    def copy_files(runtime: ToolRuntime) -> str:
        """Copy."""
        runtime.progress(1, 2)
        runtime.progress(2, 2, "done")
        return "copied"

    events = drive.stream(graph_around(copy_files, {}), {"messages": []}, stream_mode="custom")
    assert [(event["type"], event["done"], event["note"]) for event in events] == [
        ("tool_progress", 1, None),
        ("tool_progress", 2, "done"),
    ]


def test_the_tools_stream_shows_a_call_as_it_shows_langchains(drive):
    @tool
    def look(x: int, runtime: ToolRuntime) -> str:
        """Look."""
        runtime.emit_output_delta("half")
        return f"saw {x}"

    events = drive.stream(graph_around(look, {"x": 1}), {"messages": []}, stream_mode="tools")
    assert events == [
        {"event": "tool-started", "tool_call_id": "call-1", "tool_name": "look", "input": {"x": 1}},
        {"event": "tool-output-delta", "tool_call_id": "call-1", "delta": "half"},
        {
            "event": "tool-finished",
            "tool_call_id": "call-1",
            "output": ToolMessage("saw 1", name="look", tool_call_id="call-1"),
        },
    ]


@pytest.mark.parametrize("callbacks", [[], [Log()]], ids=["direct", "heard"])
def test_a_wrong_answer_to_an_interrupt_is_not_handled_as_a_bad_argument(callbacks, drive):
    def ask() -> str:
        """Ask."""
        return str(interrupt("how many?", response_schema=Item))

    made = StructuredTool.from_function(ask, handle_validation_error=True)
    graph = graph_around(made, {}, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}, "callbacks": callbacks}
    drive.invoke(graph, {"messages": []}, config)
    with pytest.raises(ValidationError):
        drive.invoke(graph, Command(resume={"n": "no"}), config)


def test_a_partial_and_a_method_are_called_as_functions_are(run, heard):
    class Counter:
        total = 0

        def count(self, n: int) -> int:
            """Count."""
            self.total += n
            return self.total

    counter = Counter()
    for made in (tool(counter.count), tool("again", description="d")(functools.partial(counter.count))):
        run(made, {"n": 2}, runtime_of(config=heard[0]))
    assert counter.total == 4
