"""The durability modes, other savers, and where graphs run inside graphs."""

import asyncio
import logging
import operator
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from batches import Run, State, ask, graph_of, paired, texts
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from agentkit.agents import as_tool, create_agent
from agentkit.errors import DefinitionError
from agentkit.messages import add_history
from agentkit.testing import ScriptedModel, StrictModel, crash
from agentkit.tools import ToolNode, ToolPolicy, ToolRuntime, _turn, _undurable, fan_out, tool

CONFIG = {"configurable": {"thread_id": "t"}}
ONE = ask(("pay", {"x": 1}, "c1"))


def paying(effects: list[int], **policy: Any) -> Any:
    @tool(policy=ToolPolicy(**policy))
    def pay(x: int) -> str:
        """Pay."""
        effects.append(x)
        return f"paid {x}"

    return pay


@pytest.fixture(params=["sync", "async", "exit"])
def durability(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_start_and_finish_are_durable_before_and_after_the_body(run: Run, form: str, memory: Any) -> None:
    """Whoever looks at the database while the body runs sees the checkpoint and the start."""
    saver = memory.checkpointer
    for durability in ("sync", "async"):
        config = {"configurable": {"thread_id": durability}}
        seen = []

        @tool
        def look() -> str:
            """Look."""
            seen.append(crash.recorded(saver, config))
            return "looked"

        graph = graph_of(ToolNode([look]), form=form, checkpointer=saver)
        run(graph, {"messages": [ask(("look", {}, "c1"))]}, config, durability=durability)
        assert seen == [[("start", "c1")]]


def test_under_exit_a_tool_that_must_not_run_twice_is_warned_about_once(
    run: Run, form: str, checkpointer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    _undurable._warn.cache_clear()
    effects: list[int] = []
    graph = graph_of(ToolNode([paying(effects)]), form=form, checkpointer=checkpointer)
    with caplog.at_level(logging.WARNING, "agentkit"):
        for thread in ("a", "b"):
            config = {"configurable": {"thread_id": thread}}
            output = run(graph, {"messages": [ONE]}, config, durability="exit")
            assert texts(output) == ["paid 1"]
    assert effects == [1, 1]
    assert sum("durability='exit'" in record.getMessage() for record in caplog.records) == 1


def test_under_exit_such_a_tool_can_be_refused(run: Run, form: str, checkpointer: Any) -> None:
    effects: list[int] = []
    node = ToolNode([paying(effects)], undurable="refuse")
    output = run(graph_of(node, form=form, checkpointer=checkpointer), {"messages": [ONE]}, CONFIG, durability="exit")
    assert "was not run: this run keeps no record" in texts(output)[0]
    assert effects == []
    idempotent = ToolNode([paying(effects, on_crash="rerun")], undurable="refuse")
    graph = graph_of(idempotent, form=form, checkpointer=checkpointer)
    config = {"configurable": {"thread_id": "other"}}
    assert texts(run(graph, {"messages": [ONE]}, config, durability="exit")) == ["paid 1"]


def test_without_a_checkpointer_nothing_is_refused(run: Run, form: str) -> None:
    effects: list[int] = []
    graph = graph_of(ToolNode([paying(effects)], undurable="refuse"), form=form)
    assert texts(run(graph, {"messages": [ONE]})) == ["paid 1"]


def test_an_unknown_setting_is_refused_at_build_time() -> None:
    with pytest.raises(DefinitionError, match="undurable='maybe'"):
        ToolNode([paying([])], undurable="maybe")  # type: ignore[arg-type]


@pytest.mark.parametrize("point", ["after effect", "after finish"])
def test_sqlite_keeps_the_ledger_too(form: str, point: crash.Point, tmp_path: Path) -> None:
    effects: list[int] = []
    with SqliteSaver.from_conn_string(str(tmp_path / "t.db")) as saver:
        graph = graph_of(ToolNode([paying(effects)]), form=form, checkpointer=saver)
        with crash.at(saver, point), suppress(crash.Crashed):
            graph.invoke({"messages": [ONE]}, CONFIG)
        (text,) = texts(graph.invoke(None, CONFIG))
    assert text.startswith("Outcome unknown" if point == "after effect" else "paid 1")
    assert effects == [1]


@pytest.mark.parametrize("durability", ["sync", "async"])
def test_langgraphs_own_postgres_savers_keep_the_ledger(
    run: Run, form: str, durability: str, memory: Any, postgres_url: str
) -> None:
    effects: list[int] = []

    def first_and_again(graph: Any, saver: Any, invoke: Any) -> Any:
        with crash.at(saver, "after effect"), suppress(crash.Crashed):
            invoke(graph, {"messages": [ONE]})
        return invoke(graph, None)

    if run.is_async:

        async def main() -> Any:
            async with AsyncPostgresSaver.from_conn_string(postgres_url) as saver:
                graph = graph_of(ToolNode([paying(effects)]), form=form, checkpointer=saver)
                with crash.at(saver, "after effect"), suppress(crash.Crashed):
                    await graph.ainvoke({"messages": [ONE]}, CONFIG, durability=durability)
                return await graph.ainvoke(None, CONFIG, durability=durability)

        output = asyncio.run(main())
    else:
        with PostgresSaver.from_conn_string(postgres_url) as saver:
            graph = graph_of(ToolNode([paying(effects)]), form=form, checkpointer=saver)
            output = first_and_again(graph, saver, lambda g, given: g.invoke(given, CONFIG, durability=durability))
    assert texts(output)[0].startswith("Outcome unknown")
    assert effects == [1]


def call(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def worker(effects: list[int], *calls: dict[str, Any], **policy: Any) -> Any:
    model = StrictModel(ScriptedModel([AIMessage("", tool_calls=list(calls)), "inner done"] * 5))
    return create_agent(model, [paying(effects, **policy)], name="worker")


@pytest.mark.parametrize("point", ["after effect", "after finish"])
def test_an_agent_that_is_a_subgraph_has_its_own_ledger(run: Run, checkpointer: Any, point: crash.Point) -> None:
    effects: list[int] = []
    graph = StateGraph(MessagesState)
    graph.add_node("worker", worker(effects, call("pay", "c1", x=1), call("pay", "c2", x=2)))
    graph.add_edge(START, "worker")
    compiled = graph.compile(checkpointer=checkpointer)
    with crash.at(checkpointer, point, call_id="c2"), suppress(crash.Crashed):
        run(compiled, {"messages": [HumanMessage("go")]}, CONFIG)
    output = run(compiled, None, CONFIG)
    assert len(effects) == len(set(effects))
    assert paired(output["messages"])
    assert output["messages"][-1].content == "inner done"


def test_parallel_subagents_in_tools_keep_their_ledgers_apart(run: Run, checkpointer: Any) -> None:
    effects: list[int] = []

    def subagent(name: str, x: int) -> Any:
        return as_tool(worker(effects, call("pay", "c1", x=x)), name=name, description="Work.")

    outer = StrictModel(
        ScriptedModel(
            [AIMessage("", tool_calls=[call("one", "s1", request="a"), call("two", "s2", request="b")]), "done"]
        )
    )
    agent = create_agent(outer, [subagent("one", 1), subagent("two", 2)], checkpointer=checkpointer)
    in_turn = {**CONFIG, "max_concurrency": 1}  # a real crash ends the sibling's thread too; a raised one does not
    with crash.at(checkpointer, "after finish", call_id="s2"), suppress(crash.Crashed):
        run(agent, {"messages": [HumanMessage("go")]}, in_turn)
    output = run(agent, None, CONFIG)
    assert sorted(effects) == [1, 2]
    assert texts(output) == ["inner done", "inner done"]


def test_a_question_of_a_subagent_is_answered_once_and_its_finished_calls_stay(run: Run, checkpointer: Any) -> None:
    effects: list[int] = []

    @tool("ask")
    def ask_(q: str) -> str:
        """Ask."""
        return f"{q}={interrupt(q)}"

    inner = create_agent(
        StrictModel(
            ScriptedModel([AIMessage("", tool_calls=[call("pay", "c1", x=1), call("ask", "c2", q="ok?")]), "in"])
        ),
        [paying(effects), ask_],
    )
    outer = StrictModel(ScriptedModel([AIMessage("", tool_calls=[call("sub", "s1", request="a")]), "done"]))
    agent = create_agent(outer, [as_tool(inner, name="sub", description="Work.")], checkpointer=checkpointer)
    asked = run(agent, {"messages": [HumanMessage("go")]}, CONFIG)["__interrupt__"]
    assert [each.value for each in asked] == ["ok?"]
    output = run(agent, Command(resume={asked[0].id: "yes"}), CONFIG)
    assert (texts(output), effects) == (["in"], [1])


class Parent(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_history]
    x: int
    seen: Annotated[list[str], operator.add]


def in_parent(node: ToolNode, form: str, message: Any, saver: Any) -> Any:
    """A parent graph whose child's model asks and whose child's tools hand over."""
    child: Any = StateGraph(State)
    child.add_node("model", lambda state: {"messages": [message]})
    child.add_node("tools", node)
    child.add_edge(START, "model")
    if form == "send":
        child.add_conditional_edges("model", fan_out(), ["tools", END])
    else:
        child.add_edge("model", "tools")
    graph: Any = StateGraph(Parent)
    graph.add_node("child", child.compile(), destinations=("other",))
    graph.add_node("other", lambda state: {"seen": ["other"]})
    graph.add_edge(START, "child")
    return graph.compile(checkpointer=saver)


def test_a_batch_that_leaves_for_its_parent_takes_the_results_of_an_earlier_process_along(
    run: Run, form: str, checkpointer: Any
) -> None:
    effects: list[int] = []

    @tool("ask")
    def ask_(q: str) -> str:
        """Ask."""
        return f"{q}={interrupt(q)}"

    @tool
    def hand(runtime: ToolRuntime) -> Command:
        """Hand over."""
        done = ToolMessage("handed", tool_call_id=runtime.tool_call_id)
        return Command(graph=Command.PARENT, goto="other", update={"x": 1, "messages": [done]})

    message = ask(("pay", {"x": 1}, "c1"), ("hand", {}, "c2"), ("ask", {"q": "A"}, "c3"))
    graph = in_parent(ToolNode([paying(effects), hand, ask_]), form, message, checkpointer)
    asked = run(graph, {"messages": [HumanMessage("go", id="h")]}, CONFIG)["__interrupt__"]
    _turn._TURNS.clear()  # the rest happens in another process
    output = run(graph, Command(resume={asked[0].id: "yes"}), CONFIG)
    assert texts(output) == ["paid 1", "handed", "A=yes"]
    assert (output["x"], output["seen"], effects) == (1, ["other"], [1])
    assert paired(output["messages"])


def test_a_result_that_cannot_be_stored_becomes_an_error_result_and_its_siblings_are_recorded(
    run: Run, form: str, checkpointer: Any
) -> None:
    class Odd:
        def __reduce__(self) -> Any:
            raise TypeError("no")

    @tool
    def odd(runtime: ToolRuntime) -> Any:
        """Return a message whose metadata no serializer takes."""
        return ToolMessage("x", tool_call_id=runtime.tool_call_id, additional_kwargs={"odd": Odd()})

    effects: list[int] = []
    graph = graph_of(ToolNode([paying(effects), odd]), form=form, checkpointer=checkpointer)
    output = run(graph, {"messages": [ask(("pay", {"x": 1}, "c1"), ("odd", {}, "c2"))]}, CONFIG)
    assert texts(output)[0] == "paid 1"
    assert "cannot be stored" in texts(output)[1]
    assert paired(output["messages"])


def test_an_agent_with_a_checkpointer_of_its_own_inside_a_tool_keeps_its_own_thread(run: Run) -> None:
    effects: list[int] = []
    own = InMemorySaver()
    model = StrictModel(ScriptedModel([AIMessage("", tool_calls=[call("pay", "c1", x=1)]), "in"]))
    inner = create_agent(model, [paying(effects)], checkpointer=own)

    @tool(policy=ToolPolicy(on_crash="rerun"))
    def sub() -> str:
        """Work in a thread of its own."""
        config = {"configurable": {"thread_id": "inner", "checkpoint_ns": ""}}
        return str(inner.invoke({"messages": [HumanMessage("go")]}, config)["messages"][-1].content)

    graph = graph_of(ToolNode([sub]), form="send", checkpointer=InMemorySaver())
    assert texts(run(graph, {"messages": [ask(("sub", {}, "s1"))]}, CONFIG)) == ["in"]
    assert effects == [1]


@pytest.mark.parametrize("kept", [None, False, True])
def test_a_subgraph_runs_whatever_is_kept_of_it(run: Run, form: str, checkpointer: Any, kept: bool | None) -> None:
    effects: list[int] = []
    child: Any = StateGraph(State)
    child.add_node("tools", ToolNode([paying(effects)]))
    if form == "send":
        child.add_conditional_edges(START, fan_out(), ["tools", END])
    else:
        child.add_edge(START, "tools")
    graph: Any = StateGraph(State)
    graph.add_node("child", child.compile(checkpointer=kept))
    graph.add_edge(START, "child")
    compiled = graph.compile(checkpointer=checkpointer)
    message = ask(("pay", {"x": 1}, "c1"), ("pay", {"x": 2}, "c2"))
    assert texts(run(compiled, {"messages": [message]}, CONFIG)) == ["paid 1", "paid 2"]
    assert sorted(effects) == [1, 2]


@pytest.mark.parametrize("thread_id", [7, uuid.UUID(int=7), "seven"])
@pytest.mark.parametrize("point", ["after effect", "after finish"])
def test_a_thread_id_of_any_type_has_a_ledger(
    run: Run, form: str, checkpointer: Any, thread_id: Any, point: crash.Point
) -> None:
    effects: list[int] = []
    config = {"configurable": {"thread_id": thread_id}}
    graph = graph_of(ToolNode([paying(effects)]), form=form, checkpointer=checkpointer)
    with crash.at(checkpointer, point), suppress(crash.Crashed):
        run(graph, {"messages": [ONE]}, config)
    assert texts(run(graph, None, config))[0].startswith("Outcome unknown" if point == "after effect" else "paid 1")
    assert effects == [1]
