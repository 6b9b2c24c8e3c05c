"""Histories that broke conversations in the field."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from agentkit.errors import PairingError
from agentkit.messages import (
    Fault,
    check_history,
    ensure_call_ids,
    error_result,
    history,
    open_calls,
    owner_of,
    repair_history,
    result_id,
    safe_cut,
    unique_call_ids,
    unreadable_calls,
)


def ai(message_id, *call_ids, invalid=(), **fields):
    return AIMessage(
        content=fields.pop("content", ""),
        id=message_id,
        tool_calls=[{"name": "f", "args": {"n": at}, "id": call_id} for at, call_id in enumerate(call_ids)],
        invalid_tool_calls=[
            {"name": "f", "args": "{not", "id": call_id, "error": "cut off", "type": "invalid_tool_call"}
            for call_id in invalid
        ],
        **fields,
    )


def result(call_id, content="ok", **fields):
    return ToolMessage(content=content, tool_call_id=call_id, id=fields.pop("id", f"result of {call_id}"), **fields)


def ids(messages):
    return [message.id for message in messages]


HUMAN = HumanMessage("hello", id="human")


def test_a_valid_history_is_given_back_itself():
    messages = [HUMAN, ai("a", "k1", "k2", invalid=["k3"]), result("k1"), result("k2"), result("k3"), ai("b")]
    repaired, faults = repair_history(messages)
    assert repaired is messages
    assert faults == []


def test_open_calls_are_those_of_the_last_ai_message_without_result():
    assert open_calls([]) == []
    assert open_calls([HUMAN]) == []
    assert open_calls([ai("a")]) == []
    last = ai("a", "k1", "k2", invalid=["k3"])
    assert open_calls([last]) == last.tool_calls
    assert open_calls([ai("b", "k2"), last, result("k2")]) == [last.tool_calls[0]]
    assert open_calls([last, result("k1"), HUMAN, result("k2")]) == []
    assert open_calls([result("k1"), last]) == last.tool_calls
    assert open_calls([last, ai("b", "k9"), ai("c")]) == []


def test_unreadable_calls_are_the_unanswered_invalid_ones_of_the_last_ai_message():
    last = ai("a", "k1", invalid=["c1", "c2"])
    assert unreadable_calls([HUMAN]) == []
    assert unreadable_calls([ai("b", invalid=["c9"]), last]) == last.invalid_tool_calls
    assert unreadable_calls([last, result("k1"), result("c1")]) == [last.invalid_tool_calls[1]]


def test_of_two_open_calls_with_one_id_one_result_answers_one():
    twice = ai("a", "k1", "k1")
    assert open_calls([twice, result("k1")]) == [twice.tool_calls[1]]
    assert open_calls([twice, result("k1"), result("k1", id="other")]) == []


def test_a_call_without_id_is_open_until_a_result_without_id_answers_it():
    nameless = ai("a", None)
    assert open_calls([nameless]) == nameless.tool_calls
    assert open_calls([nameless, result("")]) == []


def test_open_calls_reads_no_further_back_than_the_last_ai_message():
    class Watched(list):
        lowest = 10**9

        def __getitem__(self, index):
            self.lowest = min(self.lowest, index)
            return super().__getitem__(index)

        def __iter__(self):
            raise AssertionError("the whole history was read")

    messages = Watched([*[HUMAN] * 1000, ai("a", "k1", "k2"), result("k1")])
    assert [call["id"] for call in open_calls(messages)] == ["k2"]
    assert messages.lowest == 1000


def test_an_interrupted_turn_is_closed_before_the_new_message():  # B30
    messages = [HUMAN, ai("a", "k1", "k2"), result("k2"), HumanMessage("never mind", id="new")]
    repaired, faults = repair_history(messages)
    made = repaired[2]
    assert ids(repaired) == ["human", "a", result_id("a", "k1"), "result of k2", "new"]
    assert (made.tool_call_id, made.status, made.name) == ("k1", "error", "f")
    assert made.content.startswith("no result was recorded for this call of f")
    assert faults == [
        Fault(
            kind="missing",
            message_index=1,
            message_id="a",
            call_id="k1",
            detail="call 'k1' of f at 1: it has no result",
        )
    ]


def test_answers_for_lost_results_come_from_the_callers_function():
    messages = [ai("a", "k1", "k2"), result("k2")]

    def answer(message, call):
        return ToolMessage(f"{message.id} {call['id']} was found in the ledger", tool_call_id=call["id"])

    repaired, _ = repair_history(messages, answer)
    assert repaired[1].content == "a k1 was found in the ledger"
    assert repaired[1].id == result_id("a", "k1")
    with pytest.raises(PairingError, match=r"call 'k1' and got one for 'k9'.*\n?.*own id"):
        repair_history(messages, lambda message, call: result("k9"))


def test_a_person_writing_between_calls_and_results_moves_no_result_away():
    messages = [ai("a", "k1", "k2"), HUMAN, result("k2"), SystemMessage("s", id="s"), result("k1")]
    repaired, faults = repair_history(messages)
    assert ids(repaired) == ["a", "result of k1", "result of k2", "human", "s"]
    assert [(fault.kind, fault.call_id) for fault in faults] == [("misplaced", "k2"), ("misplaced", "k1")]


def test_interleaved_ai_messages_get_their_own_results():  # B17
    messages = [ai("a", "k1"), ai("b", "k2"), result("k1"), result("k2")]
    assert [(fault.kind, fault.call_id) for fault in check_history(messages)] == [
        ("misplaced", "k1"),
        ("misplaced", "k2"),
    ]
    assert ids(repair_history(messages)[0]) == ["a", "result of k1", "b", "result of k2"]


def test_a_cut_never_splits_a_pair():  # B17
    messages = [ai("a", "k1"), ai("b", "k2"), result("k1"), result("k2"), HUMAN]
    assert [safe_cut(messages, at) for at in range(6)] == [0, 0, 0, 0, 4, 5]
    assert safe_cut(messages, -1) == 4
    assert safe_cut(messages, 99) == 5
    assert safe_cut(messages, -99) == 0
    assert safe_cut([HUMAN, ai("a", "k1", "k2"), result("k1")], 3) == 1  # the result of k2 is still to come
    assert safe_cut([HUMAN, ai("a", "k1"), ai("b")], 2) == 2  # that of k1 is not: the conversation went on


def test_two_calls_with_one_id_get_two_and_their_results_follow():  # B27
    twice = ai("a", "k1", "k1")
    named = ensure_call_ids(twice)
    first, second = (call["id"] for call in named.tool_calls)
    assert first == "k1"
    assert second != "k1"
    repaired, faults = repair_history([twice, result("k1", "one", id="x"), result("k1", "two", id="y")])
    assert repaired == [named, result("k1", "one", id="x"), result(second, "two", id="y")]
    assert [fault.kind for fault in faults] == ["duplicate_call_id"]


def test_a_call_id_used_again_in_a_later_turn_belongs_to_that_turn():  # B27c
    first = [HUMAN, ai("a", "call_0"), result("call_0", "first", id="r1"), ai("b")]
    again = ai("c", "call_0")
    assert open_calls([*first, again]) == again.tool_calls
    assert owner_of([*first, again], "call_0") is again
    assert history(first, [again, result("call_0", "second", id="r2")])[-2:] == [
        again,
        result("call_0", "second", id="r2"),
    ]
    repaired, faults = repair_history([*first, again, HumanMessage("well?", id="h2")])
    assert ids(repaired) == ["human", "a", "r1", "b", "c", result_id("c", "call_0"), "h2"]
    assert [fault.kind for fault in faults] == ["missing"]
    assert result_id("a", "call_0") != result_id("c", "call_0")


def test_a_result_left_behind_by_a_cut_is_not_taken_for_that_of_a_later_call():  # B27c
    left_behind = result("call_0", "old", id=result_id("cut away", "call_0"))
    state = history([left_behind], [ai("c", "call_0")])
    assert open_calls(state)
    assert ids(state) == [left_behind.id, "c"]
    repaired, faults = repair_history([*state, HUMAN])
    assert ids(repaired) == ["c", result_id("c", "call_0"), "human"]
    assert [fault.kind for fault in faults] == ["orphan", "missing"]
    other_tool = result("call_0", "old", name="g")
    assert open_calls(history([other_tool], [ai("c", "call_0")]))


def test_results_that_come_before_their_ai_message_are_brought_to_it():
    early = [result("k2"), HUMAN, ai("a", "k1", "k2"), result("k1")]
    assert ids(history([], [early])) == ["human", "a", "result of k1", "result of k2"]
    assert ids(repair_history(early)[0]) == ["human", "a", "result of k1", "result of k2"]


def test_results_follow_the_call_order_of_a_message_that_is_replaced():
    before = [ai("a", "k1", "k2", "k3"), result("k1"), result("k2"), result("k3"), HUMAN]
    reordered = ai("a", "k3", "k1")
    found = history(before, [reordered])
    assert found[0] is reordered
    assert ids(found) == ["a", "result of k3", "result of k1", "result of k2", "human"]  # k2's is nobody's now
    assert ids(history(found, [ai("a", "k2", "k3", "k4"), result("k4")])) == [
        "a",
        "result of k2",
        "result of k3",
        "result of k4",
        "result of k1",
        "human",
    ]


def test_an_open_call_of_an_older_message_is_not_mistaken_for_a_newer_one():
    messages = [ai("a", "k1", "k2"), ai("b", "k2")]
    found = history(messages, [result("k1"), result("k2", "newer", id="r2"), result("k2", "older", id="r3")])
    assert ids(found) == ["a", "result of k1", "r3", "b", "r2"]


def test_unnamed_calls_are_named_everywhere_alike():  # B28
    message = ai(
        "a",
        None,
        "",
        content=[
            {"type": "text", "text": "let me see"},
            {"type": "tool_use", "id": None, "name": "f", "input": {"n": 1}},
            {"type": "tool_use", "id": None, "name": "f", "input": {"n": 0}},
        ],
        additional_kwargs={
            "tool_calls": [
                {"id": None, "type": "function", "function": {"name": "f", "arguments": '{"n": 0}'}},
                {"id": "", "type": "function", "function": {"name": "f", "arguments": '{"n": 1}'}},
            ]
        },
    )
    named = ensure_call_ids(message)
    zero, one = (call["id"] for call in named.tool_calls)
    assert zero
    assert one
    assert zero != one
    assert [block.get("id") for block in named.content] == [None, one, zero]
    assert [call["id"] for call in named.additional_kwargs["tool_calls"]] == [zero, one]
    assert ensure_call_ids(message) == named
    assert message.tool_calls[0]["id"] is None
    assert max(len(zero), len(one)) <= 40  # OpenAI's limit


def test_calls_of_a_message_without_id_can_be_named_too():
    named = ensure_call_ids(ai(None, None, None))
    assert len({call["id"] for call in named.tool_calls}) == 2


def test_every_invalid_call_gets_a_result_that_says_what_was_wrong():  # B10
    messages = [HUMAN, ai("a", "k1", invalid=["c1"]), result("k1")]
    repaired, faults = repair_history(messages, lambda message, call: pytest.fail("only valid calls are asked for"))
    assert ids(repaired) == ["human", "a", "result of k1", result_id("a", "c1")]
    assert repaired[3].status == "error"
    assert "its arguments are malformed or truncated (cut off)" in repaired[3].content
    assert [fault.kind for fault in faults] == ["invalid_call_unanswered"]
    assert repair_history([ai("a", invalid=["c1"]), result("c1")])[1] == []


def test_a_call_that_only_a_content_block_holds_goes_or_is_listed():
    block = {"type": "tool_use", "id": "k1", "name": "f", "input": {"n": 1}}
    text = {"type": "text", "text": "hm"}
    taken_out = AIMessage(content=[text, block], id="a")
    repaired, faults = repair_history([HUMAN, taken_out, HUMAN.model_copy(update={"id": "h2"})])
    assert repaired[1].content == [text]
    assert [(fault.kind, fault.call_id) for fault in faults] == [("unlisted_call", "k1")]
    repaired, _ = repair_history([HUMAN, taken_out, result("k1")])
    assert repaired[1].content == [text, block]
    assert repaired[1].tool_calls == [{"name": "f", "args": {"n": 1}, "id": "k1", "type": "tool_call"}]
    assert repaired[2].id == "result of k1"
    raw = {"id": "k1", "type": "function", "function": {"name": "f", "arguments": '{"n": 1}'}}
    emptied = AIMessage(content="", id="a", additional_kwargs={"tool_calls": [raw]}).model_copy(
        update={"tool_calls": []}
    )
    assert repair_history([emptied, HUMAN])[0][0].additional_kwargs == {}
    assert repair_history([emptied, result("k1")])[0][0].tool_calls[0]["args"] == {"n": 1}


def test_a_tools_name_that_providers_refuse_is_shown_in_letters_that_pass():
    message = AIMessage(
        content=[{"type": "tool_use", "id": "k1", "name": "functions.f", "input": {}}],
        id="a",
        tool_calls=[{"name": "functions.f", "args": {}, "id": "k1"}, {"name": "", "args": {}, "id": "k2"}],
        invalid_tool_calls=[{"name": None, "args": "", "id": "k3", "error": None, "type": "invalid_tool_call"}],
    )
    messages = [HUMAN, message, result("k1", name="functions.f"), result("k2"), result("k3")]
    repaired, faults = repair_history(messages)
    assert [call["name"] for call in repaired[1].tool_calls] == ["functions_f", "unknown_tool"]
    assert repaired[1].content[0]["name"] == "functions_f"
    assert repaired[1].invalid_tool_calls[0]["name"] == "unknown_tool"
    assert repaired[2:] == messages[2:]
    assert [(fault.kind, fault.call_id) for fault in faults] == [("unusable_name", k) for k in ("k1", "k2", "k3")]
    assert message.tool_calls[0]["name"] == "functions.f"


def test_reused_call_ids_are_made_unique_for_providers_that_want_it():
    first = [HUMAN, ai("a", "call_0"), result("call_0", "first", id="r1")]
    messages = [*first, ai("b", "call_0", "call_1"), result("call_0", id="r2"), result("call_1", id="r3")]
    unique = unique_call_ids(messages)
    new = unique[3].tool_calls[0]["id"]
    assert new not in {"call_0", "call_1"}
    assert [m.tool_call_id for m in unique if isinstance(m, ToolMessage)] == ["call_0", new, "call_1"]
    assert all(now is before for now, before in zip(unique[:3], first, strict=True))
    assert unique[5] is messages[5]
    assert unique_call_ids(first) is first


def test_an_error_result_answers_its_call():
    call = ai("a", "k1").tool_calls[0]
    assert error_result(call, "no", message_id="a") == ToolMessage(
        content="no", tool_call_id="k1", name="f", status="error", id=result_id("a", "k1")
    )
    assert error_result(call, "no").id is None
