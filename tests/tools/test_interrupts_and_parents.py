"""Questions of parallel calls, and batches that leave for a parent graph (cases B07, B08, B08b, B67)."""

import asyncio
import operator
import random
from typing import Annotated, Any, TypedDict

import pytest
from batches import Run, State, ask, graph_of, paired, results, texts
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from agentkit.messages import add_history
from agentkit.tools import ToolNode, ToolRuntime, fan_out, tool

CONFIG = {"configurable": {"thread_id": "t"}}


def questions(output: Any) -> dict[str, str]:
    """Interrupt ids by question."""
    return {question.value: question.id for question in output["__interrupt__"]}


def asking(run: Run, ran: list[str]) -> Any:
    if run.is_async:

        @tool("ask")
        async def ask_later(q: str) -> str:
            """Ask after a moment."""
            await asyncio.sleep(random.random() / 200)
            answer = interrupt(q)
            ran.append(q)
            return f"{q}={answer}"

        return ask_later

    @tool("ask")
    def ask_now(q: str) -> str:
        """Ask."""
        answer = interrupt(q)
        ran.append(q)
        return f"{q}={answer}"

    return ask_now


ABC = ask(("ask", {"q": "A"}, "1"), ("plain", {}, "2"), ("ask", {"q": "B"}, "3"), ("ask", {"q": "C"}, "4"))


@pytest.mark.parametrize("repeat", range(3))
def test_all_questions_of_a_batch_are_asked_at_once_and_each_answer_reaches_its_call(
    run: Run, form: str, repeat: int
) -> None:
    plain_ran: list[int] = []
    ran: list[str] = []

    @tool
    def plain() -> str:
        """Work."""
        plain_ran.append(1)
        return "plain"

    graph = graph_of(ToolNode([asking(run, ran), plain]), form=form, checkpointer=InMemorySaver())
    asked = questions(run(graph, {"messages": [ABC]}, CONFIG))
    assert sorted(asked) == ["A", "B", "C"]
    output = run(graph, Command(resume={asked[q]: q.lower() for q in "CAB"}), CONFIG)
    assert texts(output) == ["A=a", "plain", "B=b", "C=c"]
    assert paired(output["messages"])
    assert plain_ran == [1]
    assert sorted(ran) == ["A", "B", "C"]


def test_questions_can_be_answered_one_by_one(run: Run, form: str) -> None:
    ran: list[str] = []
    plain = tool("plain")(_plain)
    graph = graph_of(ToolNode([asking(run, ran), plain]), form=form, checkpointer=InMemorySaver())
    asked = questions(run(graph, {"messages": [ABC]}, CONFIG))
    output = run(graph, Command(resume={asked["B"]: "b"}), CONFIG)
    assert sorted(questions(output)) == ["A", "C"]
    output = run(graph, Command(resume={asked["C"]: "c"}), CONFIG)
    assert sorted(questions(output)) == ["A"]
    output = run(graph, Command(resume="a"), CONFIG)
    assert texts(output) == ["A=a", "plain", "B=b", "C=c"]
    assert sorted(ran) == ["A", "B", "C"]


def _plain() -> str:
    """Work."""
    return "plain"


def test_a_wrapper_that_catches_everything_does_not_swallow_a_question(run: Run, form: str) -> None:
    def wrap(request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except Exception as error:
            return ToolMessage(f"caught {error}", tool_call_id=request.tool_call["id"])

    ran: list[str] = []
    node = ToolNode([asking(run, ran)], wrap_tool_call=wrap)
    graph = graph_of(node, form=form, checkpointer=InMemorySaver())
    message = ask(("ask", {"q": "A"}, "1"), ("ask", {"q": "B"}, "2"))
    asked = questions(run(graph, {"messages": [message]}, CONFIG))
    output = run(graph, Command(resume={asked["A"]: 1, asked["B"]: 2}), CONFIG)
    assert texts(output) == ["A=1", "B=2"]


def test_a_tool_that_catches_everything_does_not_swallow_its_question(run: Run, form: str) -> None:
    def answered(q: str) -> str:
        try:
            return f"{q}={interrupt({'question': q})}"
        except Exception:
            return "swallowed"

    if run.is_async:

        @tool("ask")
        async def ask_later(q: str) -> str:
            """Ask."""
            await asyncio.sleep(0)
            return answered(q)

    asker = ask_later if run.is_async else tool("ask", description="Ask.")(answered)
    graph = graph_of(ToolNode([asker]), form=form, checkpointer=InMemorySaver())
    message = ask(("ask", {"q": "A"}, "1"), ("ask", {"q": "B"}, "2"))
    output = run(graph, {"messages": [message]}, CONFIG)
    asked = {question.value["question"]: question.id for question in output["__interrupt__"]}
    output = run(graph, Command(resume={asked["A"]: 1, asked["B"]: 2}), CONFIG)
    assert texts(output) == ["A=1", "B=2"]


def test_several_questions_of_one_call_are_asked_one_after_another(run: Run, form: str) -> None:
    @tool
    def twice() -> str:
        """Ask twice."""
        return f"{interrupt('first')} {interrupt('second')}"

    graph = graph_of(ToolNode([twice]), form=form, checkpointer=InMemorySaver())
    assert list(questions(run(graph, {"messages": [ask(("twice", {}, "c1"))]}, CONFIG))) == ["first"]
    assert list(questions(run(graph, Command(resume="one"), CONFIG))) == ["second"]
    assert texts(run(graph, Command(resume="two"), CONFIG)) == ["one two"]


def test_a_call_that_runs_again_after_its_question_has_the_same_key(run: Run, form: str) -> None:
    keys = []

    @tool
    def pay(runtime: ToolRuntime) -> str:
        """Ask, then pay."""
        keys.append(runtime.idempotency_key)
        return str(interrupt("sure?"))

    graph = graph_of(ToolNode([pay]), form=form, checkpointer=InMemorySaver())
    run(graph, {"messages": [ask(("pay", {}, "c1"))]}, CONFIG)
    run(graph, Command(resume="yes"), CONFIG)
    assert len(keys) == 2
    assert len(set(keys)) == 1


class Parent(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_history]
    x: int
    y: int
    seen: Annotated[list[str], operator.add]


def in_parent(node: ToolNode, form: str, message: Any, saver: Any = None) -> Any:
    """A parent graph with an agent-like child: the child's model asks, its tools hand over."""
    child: Any = StateGraph(State)
    child.add_node("model", lambda state: {"messages": [message]})
    child.add_node("tools", node)
    child.add_edge(START, "model")
    if form == "send":
        child.add_conditional_edges("model", fan_out(), ["tools", END])
    else:
        child.add_edge("model", "tools")
    graph: Any = StateGraph(Parent)
    graph.add_node("child", child.compile(), destinations=("other", "another"))
    graph.add_node("other", lambda state: {"seen": ["other"]})
    graph.add_node("another", lambda state: {"seen": ["another"]})
    graph.add_edge(START, "child")
    return graph.compile(checkpointer=saver)


def handing(name: str, key: str, goto: str | None = None) -> Any:
    @tool(name)
    def hand(runtime: ToolRuntime) -> Command:
        """Hand over."""
        return Command(graph=Command.PARENT, update={key: 1}, goto=goto or ())

    return hand


@tool
def plain(x: int = 0) -> str:
    """Work."""
    return f"plain {x}"


@pytest.mark.parametrize("saver", [False, True])
def test_a_batch_leaves_to_the_parent_together(run: Run, form: str, saver: bool) -> None:
    message = ask(("h1", {}, "1"), ("plain", {}, "2"), ("h2", {}, "3"))
    node = ToolNode([handing("h1", "x", "other"), handing("h2", "y", "another"), plain])
    graph = in_parent(node, form, message, InMemorySaver() if saver else None)
    output = run(graph, {"messages": [HumanMessage("go", id="h")]}, CONFIG)
    assert (output["x"], output["y"]) == (1, 1)
    assert sorted(output["seen"]) == ["another", "other"]
    assert [m.type for m in output["messages"]] == ["human", "ai", "tool", "tool", "tool"]
    assert [r.tool_call_id for r in results(output)] == ["1", "2", "3"]
    assert texts(output)[1] == "plain 0"
    assert paired(output["messages"])


@pytest.mark.parametrize("workers", [1, 2, None])
def test_a_batch_leaves_together_however_few_the_workers(run: Run, form: str, workers: int | None) -> None:
    calls = [("plain", {"x": n}, str(n)) for n in range(4)]
    message = ask(calls[0], ("h1", {}, "h"), *calls[1:])
    graph = in_parent(ToolNode([handing("h1", "x", "other"), plain]), form, message)
    output = run(graph, {"messages": [HumanMessage("go", id="h")]}, {"max_concurrency": workers})
    assert (output["x"], output["seen"]) == (1, ["other"])
    assert texts(output) == ["plain 0", "Control was handed over to the parent graph.", "plain 1", "plain 2", "plain 3"]
    assert paired(output["messages"])


def test_a_single_handoff_leaves_a_valid_history_in_the_parent(run: Run, form: str) -> None:
    @tool
    def transfer(runtime: ToolRuntime) -> Command:
        """Transfer."""
        done = ToolMessage("transferred", tool_call_id=runtime.tool_call_id)
        return Command(graph=Command.PARENT, goto="other", update={"messages": [done]})

    graph = in_parent(ToolNode([transfer]), form, ask(("transfer", {}, "c1")))
    output = run(graph, {"messages": [HumanMessage("go", id="h")]})
    assert [m.type for m in output["messages"]] == ["human", "ai", "tool"]
    assert texts(output) == ["transferred"]
    assert paired(output["messages"])


def test_a_handoff_that_brings_the_history_itself_does_not_double_it(run: Run, form: str) -> None:
    @tool
    def transfer(runtime: ToolRuntime) -> Command:
        """Transfer with everything."""
        done = ToolMessage("transferred", tool_call_id=runtime.tool_call_id)
        return Command(graph=Command.PARENT, goto="other", update={"messages": [*runtime.state["messages"], done]})

    message = ask(("plain", {}, "1"), ("transfer", {}, "2"))
    output = run(in_parent(ToolNode([transfer, plain]), form, message), {"messages": [HumanMessage("go", id="h")]})
    assert [m.type for m in output["messages"]] == ["human", "ai", "tool", "tool"]
    assert texts(output) == ["plain 0", "transferred"]
    assert paired(output["messages"])


def test_a_batch_does_not_leave_before_its_questions_are_answered(run: Run, form: str) -> None:
    ran: list[str] = []
    message = ask(("h1", {}, "1"), ("ask", {"q": "A"}, "2"))
    node = ToolNode([handing("h1", "x", "other"), asking(run, ran)])
    graph = in_parent(node, form, message, InMemorySaver())
    asked = questions(run(graph, {"messages": [HumanMessage("go", id="h")]}, CONFIG))
    assert list(asked) == ["A"]
    output = run(graph, Command(resume="yes"), CONFIG)
    assert (output["x"], output["seen"]) == (1, ["other"])
    assert texts(output)[1] == "A=yes"
    assert paired(output["messages"])
