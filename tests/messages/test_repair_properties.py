"""Repair and check, whatever the history."""

import copy

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from messages.histories import any_history, conversations

from agentkit.messages import check_history, ensure_call_ids, owner_of, repair_history, safe_cut, unique_call_ids
from agentkit.testing import assert_valid


def is_subsequence(part, whole):
    rest = iter(whole)
    return all(any(item is other for other in rest) for item in part)


@settings(max_examples=300)
@given(any_history())
def test_whatever_the_history_its_repair_is_valid_and_needs_no_further_repair(messages):
    before = copy.deepcopy(messages)
    repaired, faults = repair_history(messages)
    assert_valid(repaired)
    assert messages == before
    assert faults == check_history(messages)
    assert (repaired is messages) == (not faults)
    again, none = repair_history(repaired)
    assert again is repaired
    assert none == []
    assert repair_history(before) == (repaired, faults)


@given(any_history())
def test_call_ids_can_be_made_unique_in_the_whole_history(messages):
    repaired, _ = repair_history(messages)
    unique = unique_call_ids(repaired)
    assert_valid(unique)
    ids = [call["id"] for m in unique if isinstance(m, AIMessage) for call in [*m.tool_calls, *m.invalid_tool_calls]]
    assert len(set(ids)) == len(ids)
    assert unique_call_ids(unique) is unique
    assert [(m.id, m.type) for m in unique] == [(m.id, m.type) for m in repaired]
    for at in range(len(repaired) + 1):  # what comes later changes nothing before it
        if not check_history(repaired[:at]):
            assert unique_call_ids(repaired[:at]) == unique[:at]


@given(any_history(), any_history())
def test_what_was_valid_at_the_front_keeps_its_objects(front, rest):
    valid, _ = repair_history(front)
    rest = [message.model_copy(update={"id": f"r-{message.id}"}) for message in rest]
    repaired, _ = repair_history([*valid, *rest])
    assert all(new is old for new, old in zip(repaired, valid, strict=False))
    assert len(repaired) >= len(valid)


@given(any_history())
def test_repair_loses_and_invents_nothing_but_results(messages):
    repaired, faults = repair_history(messages)
    kept = [m for m in repaired if any(m is old for old in messages)]
    talk = [m for m in messages if not isinstance(m, AIMessage | ToolMessage)]
    assert [m for m in repaired if not isinstance(m, AIMessage | ToolMessage)] == talk
    assert is_subsequence(talk, kept)
    assert [m.id for m in repaired if isinstance(m, AIMessage)] == [m.id for m in messages if isinstance(m, AIMessage)]
    made = sum(fault.kind in {"missing", "invalid_call_unanswered"} for fault in faults)
    dropped = sum(fault.kind in {"orphan", "duplicate"} for fault in faults)
    assert len(repaired) == len(messages) + made - dropped


@given(conversations(), st.data())
def test_moved_lost_doubled_and_foreign_results_come_out_right(messages, data):
    results = [m for m in messages if isinstance(m, ToolMessage)]
    lost = data.draw(st.lists(st.sampled_from(results), unique_by=lambda m: m.id)) if results else []
    foreign = [ToolMessage(content="whose?", tool_call_id="nobody", id=f"foreign-{n}") for n in range(2)]
    broken = [m for m in messages if not isinstance(m, ToolMessage)]
    for result in data.draw(st.permutations([m for m in results if m not in lost] + foreign)):
        broken.insert(data.draw(st.integers(0, len(broken))), result)
    for result in results:
        ids = [m.id for m in broken]
        owner = "ai-" + result.id.split("-")[1]
        if result not in lost and ids.index(owner) < ids.index(result.id):
            broken.append(result.model_copy(update={"id": f"second {result.id}", "content": "second"}))
    repaired, _ = repair_history(broken)
    assert is_subsequence([m for m in messages if m not in lost], repaired)
    assert [m.tool_call_id for m in repaired if isinstance(m, ToolMessage)] == [m.tool_call_id for m in results]
    assert all(m.status == "error" for m in repaired if m not in messages)


@given(conversations(reused_ids=True), st.data())
def test_with_reused_call_ids_each_result_stays_in_its_turn(messages, data):
    lost = data.draw(st.sets(st.integers(0, len(messages) - 1)))
    broken = []
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage) and at in lost:
            continue
        broken.append(message)
        if isinstance(message, ToolMessage) and data.draw(st.booleans()):
            broken.append(HumanMessage("in between", id=f"between-{at}"))
    repaired, _ = repair_history(broken)
    kept = [m for at, m in enumerate(messages) if not (isinstance(m, ToolMessage) and at in lost)]
    assert is_subsequence(kept, [m for m in repaired if not m.id.startswith("between")])


@given(any_history())
def test_an_owner_is_an_ai_message_that_has_the_call(messages):
    for call_id in ["c0", "c1", "c2"]:
        owner = owner_of(messages, call_id)
        having = [
            m
            for m in messages
            if isinstance(m, AIMessage) and call_id in {c["id"] for c in [*m.tool_calls, *m.invalid_tool_calls]}
        ]
        assert (owner is None) == (not having)
        assert owner is None or any(owner is m for m in having)


@given(conversations(), st.data())
def test_a_cut_never_parts_a_call_from_its_result(messages, data):
    shuffled = data.draw(st.permutations(messages)) if data.draw(st.booleans()) else messages
    index = data.draw(st.integers(0, len(messages)))
    cut = safe_cut(shuffled, index)
    assert 0 <= cut <= index
    called = {
        call["id"]
        for m in shuffled[:cut]
        if isinstance(m, AIMessage)
        for call in [*m.tool_calls, *m.invalid_tool_calls]
    }
    answered = {m.tool_call_id for m in shuffled[:cut] if isinstance(m, ToolMessage)}
    assert called == answered
    assert safe_cut(shuffled, cut) == cut


@given(any_history())
def test_ids_of_calls_are_given_once_and_everywhere(messages):
    for message in messages:
        if not isinstance(message, AIMessage):
            continue
        named = ensure_call_ids(message)
        ids = [call["id"] for call in [*named.tool_calls, *named.invalid_tool_calls]]
        assert all(ids)
        assert len(set(ids)) == len(ids)
        assert ensure_call_ids(named) is named
        assert ensure_call_ids(message) == named
        if isinstance(named.content, list):
            blocks = [(block["id"], block["name"]) for block in named.content if block["type"] == "tool_use"]
            assert sorted(blocks) == sorted((call["id"], call["name"]) for call in named.tool_calls)
