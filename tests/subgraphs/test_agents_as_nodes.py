"""Agents as nodes of larger graphs, with shared or other state, and handoffs between them (cases B08, B30)."""

import operator
from typing import Annotated, Any, TypedDict

import pytest
from batches import Run, ask, paired, results, texts
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from agentkit.agents import create_agent, handoff
from agentkit.messages import add_history
from agentkit.testing import ScriptedModel, StrictModel, calls
from agentkit.tools import ToolRuntime, tool

THREAD = {"configurable": {"thread_id": "t"}}
GO = {"messages": [("user", "go")]}


class Shared(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_history]
    x: int
    y: int
    seen: Annotated[list[str], operator.add]


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def scripted(*responses: Any) -> Any:
    return StrictModel(ScriptedModel(list(responses)))


@pytest.mark.parametrize("saver", [True, False])
def test_an_agent_shares_the_messages_of_its_parent(run: Run, saver: bool) -> None:
    agent = create_agent(scripted(calls(("add", {"a": 1, "b": 2})), "3", "again"), [add], name="adder")
    graph: Any = StateGraph(Shared)
    graph.add_node("adder", agent)
    graph.add_node("after", lambda state: {"seen": [state["messages"][-1].content]})
    graph.add_edge(START, "adder")
    graph.add_edge("adder", "after")
    compiled = graph.compile(checkpointer=InMemorySaver() if saver else None)
    output = run(compiled, GO, THREAD)
    assert [m.content for m in output["messages"]] == ["go", "", "3", "3"]
    assert output["seen"] == ["3"]
    assert set(output) == {"messages", "seen"}, "nothing of the agent's own leaks"
    if saver:
        output = run(compiled, {"messages": [("user", "more")]}, THREAD)
        assert [m.content for m in output["messages"]][-2:] == ["more", "again"]
        assert paired(output["messages"])


def test_an_agent_with_other_state_is_wrapped_in_a_node(run: Run) -> None:
    agent = create_agent(scripted(calls(("add", {"a": 1, "b": 2})), "3"), [add])

    class Other(TypedDict, total=False):
        question: str
        answer: str

    def node(state: Other) -> Other:
        return {"answer": agent.invoke({"messages": [("user", state["question"])]})["messages"][-1].content}

    async def anode(state: Other) -> Other:
        output = await agent.ainvoke({"messages": [("user", state["question"])]})
        return {"answer": output["messages"][-1].content}

    graph: Any = StateGraph(Other)
    graph.add_node("agent", anode if run.is_async else node)
    graph.add_edge(START, "agent")
    output = run(graph.compile(checkpointer=InMemorySaver()), {"question": "1+2?"}, THREAD)
    assert output == {"question": "1+2?", "answer": "3"}


def test_a_question_inside_a_wrapped_agent_is_answered_from_outside(run: Run) -> None:
    ran: list[int] = []

    @tool
    def sure(x: int) -> str:
        """Ask."""
        answer = interrupt(f"sure {x}?")
        ran.append(x)
        return f"{x} {answer}"

    agent = create_agent(scripted(calls(("sure", {"x": 1}), ("sure", {"x": 2})), "ok"), [sure])
    graph: Any = StateGraph(Shared)
    graph.add_node("agent", agent)
    graph.add_edge(START, "agent")
    compiled = graph.compile(checkpointer=InMemorySaver())
    asked = {each.value: each.id for each in run(compiled, GO, THREAD)["__interrupt__"]}
    run(compiled, Command(resume={asked["sure 2?"]: "yes"}), THREAD)
    output = run(compiled, Command(resume="no"), THREAD)
    assert texts(output) == ["1 no", "2 yes"]
    assert sorted(ran) == [1, 2]
    assert paired(output["messages"])


def team(first: Any, *others: tuple[str, Any], tools: Any = (), saver: Any = None) -> Any:
    """An agent that may hand over, and those it hands over to."""
    graph: Any = StateGraph(Shared)
    names = tuple(name for name, _ in others)
    handoffs = [handoff(name) for name in names]
    graph.add_node("first", create_agent(first, [*handoffs, *tools], name="first"), destinations=names)
    for name, model in others:
        graph.add_node(name, create_agent(model, [add], name=name))
        graph.add_edge(name, END)
    graph.add_edge(START, "first")
    return graph.compile(checkpointer=saver)


@pytest.mark.parametrize("saver", [True, False])
def test_a_handoff_leaves_a_valid_history_on_both_sides(run: Run, saver: bool) -> None:
    ask_ = calls(("transfer_to_second", {"task": "add"}), ("add", {"a": 1, "b": 1}))
    second = scripted(calls(("add", {"a": 2, "b": 2})), "4")
    graph = team(scripted(ask_), ("second", second), tools=[add], saver=InMemorySaver() if saver else None)
    output = run(graph, GO, THREAD)
    assert texts(output) == ["Handed over to second: add", "2", "4"]
    assert [m.type for m in output["messages"]] == ["human", "ai", "tool", "tool", "ai", "tool", "ai"]
    assert output["messages"][-1].name == "second"
    assert paired(output["messages"])


@pytest.mark.parametrize("repeat", range(3))
def test_parallel_handoffs_start_both_and_their_histories_merge(run: Run, repeat: int) -> None:
    both = calls(("transfer_to_left", {"task": "l"}), ("add", {"a": 1, "b": 1}), ("transfer_to_right", {"task": "r"}))
    left = scripted(calls(("add", {"a": 2, "b": 2}, "one-id")), "left done", "left again")
    right = scripted(calls(("add", {"a": 3, "b": 3}, "one-id")), "right done", "right again")
    graph = team(scripted(both, both), ("left", left), ("right", right), tools=[add], saver=InMemorySaver())
    output = run(graph, GO, THREAD)
    assert texts(output)[:3] == ["Handed over to left: l", "2", "Handed over to right: r"]
    assert sorted(texts(output)[3:]) == ["4", "6"]
    assert sorted(m.name for m in output["messages"] if m.type == "ai" and m.content) == ["left", "right"]
    assert paired(output["messages"])
    output = run(graph, {"messages": [HumanMessage("once more")]}, THREAD)
    assert paired(output["messages"])
    assert sorted(m.content for m in output["messages"][-2:]) == ["left again", "right again"]


def to_parent(name: str, key: str) -> Any:
    @tool(name)
    def write(runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        """Write the parent's state."""
        return Command(graph=Command.PARENT, update={key: 1}, goto="other")

    return write


def test_updates_of_several_calls_reach_the_parent_with_all_results_of_the_batch(run: Run) -> None:
    model = scripted(calls(("h1", {}), ("h2", {}), ("add", {"a": 1, "b": 2})))
    graph: Any = StateGraph(Shared)
    graph.add_node(
        "agent", create_agent(model, [to_parent("h1", "x"), to_parent("h2", "y"), add]), destinations=("other",)
    )
    graph.add_node("other", lambda state: {"seen": ["other"]})
    graph.add_edge(START, "agent")
    output = run(graph.compile(checkpointer=InMemorySaver()), GO, THREAD)
    assert (output["x"], output["y"], output["seen"]) == (1, 1, ["other"])
    assert texts(output)[2] == "3"
    assert len(results(output)) == 3
    assert paired(output["messages"])


def test_open_calls_of_a_parents_history_are_closed_before_a_subgraphs_model_is_called(run: Run) -> None:
    model = ScriptedModel(["ok"])
    graph: Any = StateGraph(Shared)
    graph.add_node("agent", create_agent(StrictModel(model), [add]))
    graph.add_edge(START, "agent")
    given = [HumanMessage("go"), ask(("gone", {}, "c1")), HumanMessage("and now?")]
    output = run(graph.compile(), {"messages": given})
    assert [m.type for m in model.calls[0]] == ["human", "ai", "tool", "human"]
    assert output["messages"][-1].content == "ok"
    assert paired(output["messages"])
