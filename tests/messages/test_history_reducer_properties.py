"""The reducer, whatever is written to it."""

import copy

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, RemoveMessage, ToolMessage
from messages.histories import ai_messages, any_history, conversations, removals, results, talk, writable, writes

from agentkit.messages import add_history, check_history, history

EVERYTHING = writes(writable() | removals())


@settings(max_examples=300)
@given(any_history() | st.lists(writable(), max_size=6), EVERYTHING)
def test_how_writes_are_batched_makes_no_difference(state, written):
    whole = history(state, written)
    for at in range(len(written) + 1):
        assert history(history(state, written[:at]), written[at:]) == whole
    one_by_one = state
    for write in written:
        one_by_one = history(one_by_one, [write])
    flat = [item for write in written for item in (write if isinstance(write, list) else [write])]
    assert history(state, flat) == history(state, [flat]) == whole
    assert one_by_one == whole or not written


@settings(max_examples=300)
@given(conversations(reused_ids=True) | conversations(), st.data())
def test_removals_and_changes_amid_a_turns_results_may_be_batched_too(messages, data):
    """Where the reducer remembers where it is: results come one by one while the list changes before them."""
    written = []
    for message in messages:
        written.append(message)
        if len(written) > 1 and data.draw(st.booleans()):
            other = data.draw(st.sampled_from(messages))
            change = other.model_copy(update={"content": "other"})
            if isinstance(other, AIMessage):
                order = data.draw(st.sampled_from([slice(None), slice(None, None, -1), slice(1, None), slice(0)]))
                change = change.model_copy(update={"tool_calls": other.tool_calls[order], "invalid_tool_calls": []})
            written.append(data.draw(st.sampled_from([RemoveMessage(id=other.id), change])))
    one_by_one = []
    for write in written:
        one_by_one = history(one_by_one, [write])
    assert history([], written) == one_by_one


@settings(max_examples=300)
@given(
    st.lists(ai_messages(ids=st.none()) | talk(ids=st.none()), max_size=5),
    st.lists(results(ids=st.none()), min_size=2, max_size=6),
)
def test_results_for_several_open_messages_may_be_batched_too(open_messages, late):
    state = history([], open_messages)
    one_by_one = state
    for result in late:
        one_by_one = history(one_by_one, [result])
    assert [(m.type, m.content) for m in history(state, late)] == [(m.type, m.content) for m in one_by_one]


@given(any_history(), EVERYTHING)
def test_neither_the_state_nor_what_is_written_is_changed(state, written):
    before = copy.deepcopy((state, written))
    first = history(state, written)
    assert (state, written) == before
    assert history(state, written) == first


@given(EVERYTHING)
def test_every_message_has_an_id_of_its_own(written):
    ids = [message.id for message in history([], written)]
    assert all(ids)
    assert len(set(ids)) == len(ids)


@settings(max_examples=300)
@given(any_history(max_size=12))
def test_no_result_whose_ai_message_is_there_is_misplaced_or_doubled(written):
    kinds = {fault.kind for fault in check_history(history([], [written]))}
    assert not kinds & {"misplaced", "duplicate"}


@given(conversations(), st.data())
def test_a_conversation_written_in_any_order_of_results_ends_in_order(messages, data):
    talk = [message for message in messages if not isinstance(message, ToolMessage)]
    shuffled = list(talk)
    for result in data.draw(st.permutations([m for m in messages if isinstance(m, ToolMessage)])):
        shuffled.insert(data.draw(st.integers(0, len(shuffled))), result)
    again = [m for m in messages if isinstance(m, ToolMessage)]
    doubled = [m.model_copy(update={"id": f"second {m.id}", "content": "second"}) for m in again]
    assert history([], [shuffled, *doubled]) == messages
    assert history([], [shuffled, *again]) == messages  # the same results written once more


@given(conversations(reused_ids=True), st.data())
def test_reused_call_ids_keep_each_turns_results_in_their_turn(messages, data):
    state = []
    late = []
    for message in messages:
        if isinstance(message, AIMessage):
            state = history(state, data.draw(st.permutations(late)))
            late = []
            state = history(state, [message])
        elif isinstance(message, ToolMessage):
            late.append(message)
        else:
            state = history(state, [message])
    assert history(state, [late]) == messages


@given(conversations(), st.data())
def test_removing_and_replacing_is_what_it_says(messages, data):
    gone = data.draw(st.lists(st.sampled_from(messages), unique_by=lambda m: m.id))
    kept = history(messages, [[RemoveMessage(id=message.id) for message in gone]])
    assert kept == [message for message in messages if message not in gone]
    replaced = data.draw(st.sampled_from(messages))
    other = replaced.model_copy(update={"content": "other"})
    expected = [other if message is replaced else message for message in messages]
    found = history(messages, [other])
    assert found == expected
    assert all(new is old for new, old in zip(found, expected, strict=True))


@given(any_history(), writable())
def test_the_two_argument_form_does_the_same(state, write):
    assert add_history(state, write) == add_history(state, [write]) == history(state, [write])
