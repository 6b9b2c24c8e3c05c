"""Law 4: order, limits, and the state that several calls write (case B29 and its kind)."""

import logging
import operator
import random
import threading
import time
from typing import Annotated, Any, TypedDict

import pytest
from batches import Run, ask, graph_of, paired, results, texts
from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send
from pydantic import BaseModel

from agentkit.messages import add_history
from agentkit.tools import ToolNode, ToolPolicy, ToolRuntime, fan_out, tool, tools_condition


class Log:
    """What happened, in order, from several threads."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.lock = threading.Lock()

    def add(self, event: str) -> None:
        with self.lock:
            self.events.append(event)


def noting(log: Log, name: str, policy: ToolPolicy | None = None) -> Any:
    @tool(name, policy=policy)
    def note() -> str:
        """Note when it starts and when it ends."""
        log.add(f"{name}+")
        time.sleep(0.01)  # work that takes a moment, so that an overlap would be seen
        log.add(f"{name}-")
        return name

    return note


def test_a_sequential_tool_waits_for_earlier_calls_and_later_calls_wait_for_it(run: Run, form: str) -> None:
    log = Log()
    tools = [noting(log, "a"), noting(log, "s", ToolPolicy(sequential=True)), noting(log, "b")]
    graph = graph_of(ToolNode(tools), form=form)
    message = ask(("a", {}, "1"), ("a", {}, "2"), ("s", {}, "3"), ("b", {}, "4"), ("b", {}, "5"))
    assert texts(run(graph, {"messages": [message]})) == ["a", "a", "s", "b", "b"]
    start, end = log.events.index("s+"), log.events.index("s-")
    assert end == start + 1
    assert sorted(log.events[:start]) == ["a+", "a+", "a-", "a-"]
    assert sorted(log.events[end + 1 :]) == ["b+", "b+", "b-", "b-"]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_order_never_deadlocks_however_few_the_workers(run: Run, form: str, workers: int) -> None:
    log = Log()
    tools = [noting(log, "a", ToolPolicy(limit=1)), noting(log, "s", ToolPolicy(sequential=True)), noting(log, "b")]
    graph = graph_of(ToolNode(tools), form=form, checkpointer=InMemorySaver())
    message = ask(("a", {}, "1"), ("s", {}, "2"), ("a", {}, "3"), ("b", {}, "4"), ("s", {}, "5"))
    config = {"max_concurrency": workers, "configurable": {"thread_id": "t"}}
    assert texts(run(graph, {"messages": [message]}, config)) == ["a", "s", "a", "b", "s"]


def test_a_group_runs_at_most_its_limit_at_once(run: Run, form: str) -> None:
    running, most, lock = [0], [0], threading.Lock()

    def limited(name: str) -> Any:
        @tool(name, policy=ToolPolicy(group="db", limit=2))
        def query() -> str:
            """Ask the database."""
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            time.sleep(0.01)
            with lock:
                running[0] -= 1
            return name

        return query

    graph = graph_of(ToolNode([limited("x"), limited("y")]), form=form)
    message = ask(*[("x" if n % 2 else "y", {}, str(n)) for n in range(6)])
    assert len(texts(run(graph, {"messages": [message]}))) == 6
    assert most[0] == 2


def test_identical_calls_run_once_and_each_gets_the_result(run: Run, form: str) -> None:
    ran = []

    @tool(policy=ToolPolicy(dedupe=True))
    def look(x: int, y: int = 0) -> str:
        """Look."""
        ran.append((x, y))
        return f"saw {x} {y}"

    message = ask(
        ("look", {"x": 1, "y": 2}, "1"),
        ("look", {"y": 2, "x": 1}, "2"),
        ("look", {"x": 2}, "3"),
        ("look", {"x": 1}, "4"),
    )
    output = run(graph_of(ToolNode([look]), form=form), {"messages": [message]})
    assert texts(output) == ["saw 1 2", "saw 1 2", "saw 2 0", "saw 1 0"]
    assert paired(output["messages"])
    assert sorted(ran) == [(1, 0), (1, 2), (2, 0)]


@tool
def write(value: str, runtime: ToolRuntime) -> Command:
    """Write a plain key."""
    time.sleep(random.random() / 100)
    message = ToolMessage(value, tool_call_id=runtime.tool_call_id)
    return Command(update={"note": value, "messages": [message], "count": 1})


@pytest.mark.parametrize("values", [["a", "b", "c"], ["same", "same"]])
@pytest.mark.parametrize("saver", [False, True])
def test_a_plain_key_takes_the_last_write_in_call_order_and_says_so(
    run: Run, values: list[str], saver: bool, caplog: pytest.LogCaptureFixture
) -> None:
    message = ask(*[("write", {"value": value}, str(n)) for n, value in enumerate(values)])
    graph = graph_of(ToolNode([write]), checkpointer=InMemorySaver() if saver else None)
    with caplog.at_level(logging.WARNING, "agentkit"):
        output = run(graph, {"messages": [message]}, {"configurable": {"thread_id": "t"}})
    assert (output["note"], output["count"]) == (values[-1], len(values))
    assert "StateConflict" in caplog.text
    assert paired(output["messages"])


def test_keys_with_a_reducer_merge_in_call_order(run: Run, form: str) -> None:
    class Listed(TypedDict, total=False):
        messages: Annotated[list[AnyMessage], add_history]
        seen: Annotated[list[int], operator.add]

    @tool
    def see(x: int, runtime: ToolRuntime) -> Command:
        """See."""
        time.sleep(random.random() / 100)
        return Command(update={"seen": [x], "messages": [ToolMessage("ok", tool_call_id=runtime.tool_call_id)]})

    graph = graph_of(ToolNode([see]), form=form, state=Listed)
    output = run(graph, {"messages": [ask(*[("see", {"x": n}, str(n)) for n in range(8)])]})
    assert output["seen"] == list(range(8))


def test_large_updates_are_not_copied(run: Run) -> None:
    big = {"rows": list(range(1000))}
    node = ToolNode([tool_returning_update(big)])
    (command,) = run(node, {"messages": [ask(("put", {}, "c1"))]})
    assert command.update["big"] is big


def tool_returning_update(big: Any) -> Any:
    @tool
    def put(runtime: ToolRuntime) -> Command:
        """Put."""
        return Command(update={"big": big, "messages": [ToolMessage("ok", tool_call_id=runtime.tool_call_id)]})

    return put


def test_a_tool_can_send_work_to_another_node(run: Run, form: str) -> None:
    class Sent(TypedDict, total=False):
        messages: Annotated[list[AnyMessage], add_history]
        got: Annotated[list[str], operator.add]

    @tool
    def spread(runtime: ToolRuntime) -> Command:
        """Send."""
        message = ToolMessage("sent", tool_call_id=runtime.tool_call_id)
        return Command(update={"messages": [message]}, goto=[Send("sink", {"x": "1"}), Send("sink", {"x": "2"})])

    graph: Any = StateGraph(Sent)
    graph.add_node("tools", ToolNode([spread]))
    graph.add_node("sink", lambda given: {"got": [given["x"]]})
    if form == "send":
        graph.add_conditional_edges(START, fan_out(), ["tools", END])
    else:
        graph.add_edge(START, "tools")
    output = run(graph.compile(), {"messages": [ask(("spread", {}, "c1"), ("spread", {}, "c2"))]})
    assert output["got"] == ["1", "2", "1", "2"]
    assert texts(output) == ["sent", "sent"]


class PydanticState(BaseModel):
    messages: Annotated[list[AnyMessage], add_history]
    city: str = "Oslo"


@tool
def where(runtime: ToolRuntime) -> str:
    """Read the state."""
    state = runtime.state
    return state["city"] if isinstance(state, dict) else state.city


def test_a_pydantic_state_is_read_as_it_is(run: Run, form: str) -> None:
    output = run(graph_of(ToolNode([where]), form=form, state=PydanticState), {"messages": [ask(("where", {}, "c1"))]})
    assert texts(output) == ["Oslo"]


def test_a_state_may_keep_its_messages_under_another_key(run: Run) -> None:
    class Talk(TypedDict):
        talk: Annotated[list[AnyMessage], add_history]
        city: str

    node = ToolNode([where], messages_key="talk")
    graph: Any = StateGraph(Talk)
    graph.add_node("tools", node)
    graph.add_conditional_edges(START, lambda state: tools_condition(state, "talk"), ["tools", END])
    output = run(graph.compile(), {"talk": [ask(("where", {}, "c1"))], "city": "Rom"})
    assert output["talk"][-1].content == "Rom"


def test_a_list_of_messages_gives_a_list_of_results(run: Run) -> None:
    @tool
    def hello() -> str:
        """Greet."""
        return "hi"

    (result,) = run(ToolNode([hello]), [ask(("hello", {}, "c1"))])
    assert (result.content, result.tool_call_id) == ("hi", "c1")


def test_calls_can_be_given_directly(run: Run) -> None:
    @tool
    def double(x: int) -> int:
        """Double."""
        return 2 * x

    calls = [{"type": "tool_call", "name": "double", "args": {"x": n}, "id": str(n)} for n in (1, 2)]
    assert texts(run(ToolNode([double]), calls)) == ["2", "4"]


def test_langgraph_s_own_messages_state_works(run: Run, form: str) -> None:
    @tool
    def hello() -> str:
        """Greet."""
        return "hi"

    output = run(graph_of(ToolNode([hello]), form=form, state=MessagesState), {"messages": [ask(("hello", {}, "c1"))]})
    assert texts(output) == ["hi"]


def test_where_to_go_is_asked_of_the_open_calls() -> None:
    message = ask(("x", {}, "c1"))
    assert tools_condition({"messages": [message]}) == "tools"
    assert tools_condition([message, ToolMessage("done", tool_call_id="c1")]) == "__end__"
    with pytest.raises(ValueError, match="No messages"):
        tools_condition({"messages": []})


def test_only_what_was_offered_runs(run: Run) -> None:
    ran = []

    @tool
    def admin() -> str:
        """Must not run."""
        ran.append(1)
        return "done"

    @tool
    def read() -> str:
        """May run."""
        return "read"

    node = ToolNode([admin, read], offered_only=True)
    message = ask(("admin", {}, "c1"), ("read", {}, "c2"))
    output = run(node, {"messages": [message], "agentkit_offered": {"ai-1": ["read"]}})
    assert texts(output) == ["Error: admin is not a valid tool, try one of [read].", "read"]
    for record in ({}, {"agentkit_offered": {}}, {"agentkit_offered": {"another": ["admin"]}}):
        assert {result.status for result in results(run(node, {"messages": [message], **record}))} == {"error"}
    assert ran == []
