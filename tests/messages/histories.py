"""Histories for property tests: valid ones, broken ones, and whatever can be written to `messages`."""

from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from agentkit.messages import REMOVE_ALL_MESSAGES

CALL_IDS = st.sampled_from(["c0", "c1", "c2"])
MESSAGE_IDS = st.sampled_from([f"m{n}" for n in range(7)])
NAMES = st.sampled_from(["f", "f", "g", "functions.f"])


@st.composite
def ai_messages(draw, ids=MESSAGE_IDS, call_ids=CALL_IDS | st.none() | st.just("")):
    """AI messages with and without calls, valid and invalid; call ids repeat and may be missing."""
    calls = [
        {"name": draw(NAMES), "args": {}, "id": call_id, "type": "tool_call"}
        for call_id in draw(st.lists(call_ids, max_size=3))
    ]
    invalid = [
        {"name": draw(NAMES | st.none()), "args": "no", "id": call_id, "error": None, "type": "invalid_tool_call"}
        for call_id in draw(st.lists(call_ids, max_size=draw(st.sampled_from([0, 0, 1]))))
    ]
    content = draw(st.sampled_from(["", "a", "b"]))
    if calls and draw(st.booleans()):
        content = [{"type": "text", "text": "x"}] + [
            {"type": "tool_use", "name": call["name"], "input": {}, "id": call["id"]} for call in calls
        ]
    return AIMessage(content=content, id=draw(ids), tool_calls=calls, invalid_tool_calls=invalid)


@st.composite
def results(draw, ids=MESSAGE_IDS, call_ids=CALL_IDS | st.just("")):
    return ToolMessage(
        content=draw(st.sampled_from(["r", "s"])),
        tool_call_id=draw(call_ids),
        name=draw(st.none() | NAMES),
        id=draw(ids),
    )


@st.composite
def talk(draw, ids=MESSAGE_IDS):
    return draw(st.sampled_from([HumanMessage, SystemMessage]))(content=draw(st.sampled_from("xy")), id=draw(ids))


def any_history(max_size=9):
    """Messages in any order, each with an id of its own."""
    kinds = st.lists(
        st.one_of(ai_messages(ids=st.none()), results(ids=st.none()), talk(ids=st.none())), max_size=max_size
    )
    return kinds.map(lambda found: [message.model_copy(update={"id": f"m{at}"}) for at, message in enumerate(found)])


def writable():
    """Everything a node may write for `messages`, but removals."""
    ids = MESSAGE_IDS | st.none()
    return st.one_of(
        ai_messages(ids=ids),
        results(ids=ids),
        talk(ids=ids),
        st.sampled_from(["hello", "again", ("user", "hello"), ("ai", "yes"), AIMessageChunk(content="piece")]),
        st.sampled_from(
            [
                {"role": "user", "content": "hello"},
                {"role": "user", "content": "hello", "id": "m1"},
                {"role": "tool", "content": "r", "tool_call_id": "c1"},
                {"type": "tool", "content": "r", "tool_call_id": "c0", "id": "m3"},
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"name": "f", "args": {}, "id": "c1", "type": "tool_call"}],
                },
            ]
        ),
    )


def removals():
    return (MESSAGE_IDS | st.just(REMOVE_ALL_MESSAGES)).map(lambda found: RemoveMessage(id=found))


def writes(items, max_size=7):
    """What the nodes of some steps wrote: single message-likes, and lists of them."""
    return st.lists(items | st.lists(items, max_size=4), max_size=max_size)


@st.composite
def conversations(draw, *, reused_ids=False):
    """Valid histories of some turns. With `reused_ids`, each turn counts its calls from call_0."""
    messages: list[BaseMessage] = []
    for turn in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            messages.append(HumanMessage(content=f"question {turn}", id=f"human-{turn}"))
        count = draw(st.integers(0, 3))
        ids = [f"call_{at}" if reused_ids else f"call_{turn}_{at}" for at in range(count)]
        split = draw(st.integers(0, count))
        messages.append(
            AIMessage(
                content="",
                id=f"ai-{turn}",
                tool_calls=[{"name": "f", "args": {}, "id": call_id, "type": "tool_call"} for call_id in ids[:split]],
                invalid_tool_calls=[
                    {"name": "f", "args": "no", "id": call_id, "error": None, "type": "invalid_tool_call"}
                    for call_id in ids[split:]
                ],
            )
        )
        messages += [
            ToolMessage(content=f"result {turn} {call_id}", tool_call_id=call_id, id=f"result-{turn}-{call_id}")
            for call_id in ids
        ]
    return messages
