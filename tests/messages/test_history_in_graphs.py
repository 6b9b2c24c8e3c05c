"""The reducer where it lives: in a channel of a graph, plain and delta, saved and replayed."""

from typing import Annotated

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from agentkit.messages import REMOVE_ALL_MESSAGES, add_history, history


class Plain(TypedDict):
    messages: Annotated[list[AnyMessage], add_history]


class Delta(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(history)]


class OftenSaved(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(history, snapshot_frequency=2)]


CALLING = AIMessage("", id="a", tool_calls=[{"name": "f", "args": {}, "id": c} for c in ("k1", "k2")])

# What the one node writes, turn by turn.
TURNS = [
    [CALLING],
    ToolMessage("two", tool_call_id="k2", id="r2"),
    [ToolMessage("one", tool_call_id="k1", id="r1"), "a string"],
    ("ai", "a tuple"),
    [("ai", "a tuple in a list"), {"role": "assistant", "content": "a dict"}],
    {"role": "assistant", "content": "a dict"},
    ("ai", [{"type": "text", "text": "blocks"}]),
    [RemoveMessage(id="r2"), RemoveMessage(id="nobody")],
    [ToolMessage("two again", tool_call_id="k2", id="r3"), ToolMessage("and again", tool_call_id="k2", id="r4")],
    [AIMessage("no id"), HumanMessage("no id either")],
    [RemoveMessage(id=REMOVE_ALL_MESSAGES), "afresh"],
    [CALLING],
]


def graph(schema, checkpointer):
    def write(state):
        return {"messages": TURNS[int(state["messages"][-1].content)]}

    builder = StateGraph(schema).add_node("write", write).add_edge(START, "write").add_edge("write", END)
    return builder.compile(checkpointer=checkpointer)


CONFIG = {"configurable": {"thread_id": "t"}}
SCHEMAS = pytest.mark.parametrize("schema", [Plain, Delta, OftenSaved])


def said(messages):
    assert len({m.id for m in messages}) == len(messages)
    return [(m.type, m.content) for m in messages]


@SCHEMAS
def test_what_a_run_sees_is_what_is_read_later(schema, checkpointer):
    compiled = graph(schema, checkpointer)
    expected = []
    seen = {}
    for turn, written in enumerate(TURNS):
        question = HumanMessage(str(turn), id=f"h{turn}")
        found = compiled.invoke({"messages": [question]}, CONFIG)["messages"]
        state = compiled.get_state(CONFIG)
        assert state.values["messages"] == found
        seen[state.config["configurable"]["checkpoint_id"]] = found
        expected = history(expected, [question, written])
        assert said(found) == said(expected)
    for past in compiled.get_state_history(CONFIG):  # every earlier state, rebuilt from its own writes
        found = seen.pop(past.config["configurable"]["checkpoint_id"], None)
        assert found is None or past.values["messages"] == found
    assert seen == {}


@SCHEMAS
async def test_what_an_async_run_sees_is_what_is_read_later(schema, acheckpointer):
    compiled = graph(schema, acheckpointer)
    expected = []
    for turn, written in enumerate(TURNS):
        question = HumanMessage(str(turn), id=f"h{turn}")
        found = (await compiled.ainvoke({"messages": [question]}, CONFIG))["messages"]
        assert (await compiled.aget_state(CONFIG)).values["messages"] == found
        expected = history(expected, [question, written])
        assert said(found) == said(expected)


@pytest.mark.parametrize("schema", [Plain, Delta])
def test_parallel_nodes_results_stand_in_call_order(schema):
    def answering(call_id):
        return lambda state: {"messages": ToolMessage(call_id, tool_call_id=call_id, id=f"r-{call_id}")}

    builder = StateGraph(schema)
    for name, call_id in [("a_second", "k2"), ("b_first", "k1")]:
        builder.add_node(name, answering(call_id)).add_edge(START, name)
    compiled = builder.compile()
    found = compiled.invoke({"messages": [CALLING, HumanMessage("meanwhile", id="h")]})["messages"]
    assert [m.id for m in found] == ["a", "r-k1", "r-k2", "h"]


@pytest.mark.parametrize("bad", [42, {"no": "role"}, None, [None], ("a", "b", "c")])
def test_what_is_no_message_is_refused(bad):
    with pytest.raises(ValueError):
        history([], [bad])
    with pytest.raises(ValueError):
        add_history([], bad)


def test_the_two_argument_form_takes_a_single_message_on_either_side():
    hello = HumanMessage("hello", id="h")
    assert add_history(hello, CALLING) == add_history([hello], [CALLING]) == [hello, CALLING]
    assert [m.content for m in add_history("hello", ("ai", "hi"))] == ["hello", "hi"]


def test_the_ids_that_messages_are_given_are_the_same_in_every_process():
    found = history([], ["hello", "hello", ("user", "hello"), HumanMessage("hello"), {"role": "ai", "content": "hi"}])
    assert [m.id for m in found] == [
        "dc76ae74-81b8-577f-8907-2f0253046ef2",
        "70387259-90c8-583f-9d11-06ca0ee04395",
        "4ede5200-d021-5de9-8798-d238de9c1da8",
        "03022dbd-2f9e-532c-959f-bbcbd37c8ddb",
        "60e09abb-b113-5672-884c-ccb30d454ca7",
    ]


def test_a_pair_that_a_saver_made_a_list_of_is_still_one_message():
    assert history([], [["ai", "yes"]]) == history([], [("ai", "yes")]) == history([], [[("ai", "yes")]])
    assert history([], [[["ai", "yes"]]]) == history([], [("ai", "yes")])
    assert [m.content for m in history([], [["one", "two"]])] == ["one", "two"]
