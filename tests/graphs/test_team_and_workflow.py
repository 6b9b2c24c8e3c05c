"""The ready-made graphs `team` and `workflow`, as people talk to them."""

import json
from typing import Any

import pytest
from batches import Run, paired, texts
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from agentkit.testing import ScriptedModel, calls
from graphs import team, workflow

THREAD = {"configurable": {"thread_id": "t"}}


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Run:
    return Run(request.param)


def say(text: str) -> Any:
    return {"messages": [("user", text)]}


def call(name: str, **args: Any) -> Any:
    return say(f"call {name} {json.dumps(args)}")


def test_the_supervisor_asks_its_specialists(run: Run) -> None:
    graph = team.build(checkpointer=InMemorySaver())
    output = run(graph, call("calculator", request="what is 12*7?"), THREAD)
    assert texts(output) == ["12*7 = 84"]
    output = run(graph, call("clock", request="how many days from 2026-01-01 to 2026-01-31?"), THREAD)
    assert "30 days" in texts(output)[-1]
    assert paired(output["messages"])


def test_the_planner_takes_over_keeps_the_floor_and_hands_back(run: Run) -> None:
    graph = team.build(checkpointer=InMemorySaver())
    output = run(graph, call("transfer_to_planner", task="a list"), THREAD)
    assert output["messages"][-1].name == "planner"
    output = run(graph, say("add milk to my list and add bread to my list"), THREAD)
    assert output["todos"] == {"milk": "open", "bread": "open"}
    output = run(graph, call("transfer_to_supervisor", task="sums"), THREAD)
    assert output["messages"][-1].name == "supervisor"
    output = run(graph, call("calculator", request="what is 2+2?"), THREAD)
    assert texts(output)[-1] == "2+2 = 4"
    assert output["todos"] == {"milk": "open", "bread": "open"}
    assert paired(output["messages"])


def booking(messages: list[AnyMessage]) -> Any:
    """Books what the user lists; says what the tools said."""
    last = messages[-1]
    if isinstance(last, HumanMessage):
        items = [part.split(":") for part in str(last.content).split(",")]
        return calls(*(("book_expense", {"what": what, "euros": float(euros)}) for what, euros in items))
    return "; ".join(str(m.content) for m in messages if m.type == "tool")


def test_parallel_bookings_are_all_kept_and_only_large_totals_are_audited(run: Run) -> None:
    graph = workflow.build(ScriptedModel(booking), checkpointer=InMemorySaver())
    output = run(graph, say("train:120.5,hotel:300,dinner:-1"), THREAD)
    assert output["expenses"] == ["train: 120.50", "hotel: 300.00"]
    assert output["total"] == 420.5
    assert [m.name for m in output["messages"] if m.type == "ai"] == [None, None]
    output = run(graph, say("flight:800"), THREAD)
    assert output["total"] == 1220.5
    assert output["messages"][-1].name == "auditor"
    assert paired(output["messages"])


def test_the_workflow_runs_with_the_rehearsal_model(run: Run) -> None:
    output = run(workflow.build(), call("book_expense", what="tea", euros=3))
    assert output["expenses"] == ["tea: 3.00"]


@pytest.mark.parametrize("graph", [team.graph, workflow.graph])
def test_what_is_served_has_no_memory_of_its_own(graph: Any) -> None:
    assert (graph.checkpointer, graph.store) == (None, None)
