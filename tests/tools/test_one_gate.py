"""Law 1: whatever produced it, every call gets exactly one result, and it is this call's (cases of kind K1)."""

import dataclasses
import enum
import json
import logging
from typing import Any

import pytest
from batches import Run, ask, graph_of, paired, results, texts
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command
from pydantic import BaseModel

from agentkit.errors import PairingError
from agentkit.tools import ToolNode, ToolRuntime, tool, tools_condition


def returning(value: Any) -> Any:
    """A tool that returns a value, or what a function of its runtime returns."""

    @tool
    def give(runtime: ToolRuntime) -> Any:
        """Return the value."""
        return value(runtime) if callable(value) else value

    return give


class City(BaseModel):
    name: str
    size: int


@dataclasses.dataclass
class Point:
    x: int
    y: float


class Colour(enum.Enum):
    RED = "red"


ONE = ask(("give", {}, "c1"))


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        ("", ""),
        (42, "42"),
        (1.5, "1.5"),
        (True, "true"),
        (None, "null"),
        ({"a": 1}, '{"a": 1}'),
        ([], "[]"),
        ([1, "b"], '[1, "b"]'),
        ((1, 2), "[1, 2]"),
        ({"b": "é"}, '{"b": "é"}'),
        (City(name="Oslo", size=3), '{"name":"Oslo","size":3}'),
        (Point(1, 2.0), '{"x": 1, "y": 2.0}'),
        (
            {"colour": Colour.RED, "city": City(name="Rom", size=1)},
            '{"colour": "red", "city": {"name": "Rom", "size": 1}}',
        ),
        (b"plain bytes", "plain bytes"),
        (b"\xff\xfe\x00\x01", "4 bytes of binary data (kept as the artifact of this result)"),
        ([{"type": "text", "text": "hi"}], [{"type": "text", "text": "hi"}]),
        ("nul\x00 and lone \ud800 surrogate", "nul\ufffd and lone \ufffd surrogate"),
        (HumanMessage("said"), "said"),
    ],
    ids=str,
)
def test_any_returned_value_becomes_content_a_provider_takes(run: Run, value: Any, content: Any) -> None:
    output = run(ToolNode([returning(value)]), {"messages": [ONE]})
    (result,) = results(output)
    assert (result.content, result.name, result.tool_call_id, result.status) == (content, "give", "c1", "success")


def test_an_image_in_bytes_becomes_an_image_block(run: Run) -> None:
    (result,) = results(run(ToolNode([returning(b"\x89PNG\r\n\x1a\n...")]), {"messages": [ONE]}))
    assert result.content[0]["type"] == "image"
    assert result.content[0]["mime_type"] == "image/png"


def test_content_and_artifact_are_kept_apart(run: Run) -> None:
    @tool(response_format="content_and_artifact")
    def give() -> Any:
        """Give."""
        return "shown", {"rows": [1, 2]}

    (result,) = results(run(ToolNode([give]), {"messages": [ONE]}))
    assert (result.content, result.artifact) == ("shown", {"rows": [1, 2]})


FOREIGN = ToolMessage("for another", tool_call_id="c2")
TWICE = [ToolMessage("one", tool_call_id="c1"), ToolMessage("two", tool_call_id="c1")]
UNPAIRED = {
    "a result for another call": FOREIGN,
    "a Command with a result for another call": Command(update={"messages": [FOREIGN]}),
    "a Command without a result": Command(update={"note": "x"}),
    "two results": TWICE,
    "two results in one Command": Command(update={"messages": TWICE}),
    "a list that mixes results and values": [ToolMessage("one", tool_call_id="c1"), "text"],
    "a list with a result for another call": [TWICE[0], FOREIGN],
}


@pytest.mark.parametrize("value", UNPAIRED.values(), ids=UNPAIRED)
def test_a_tool_that_does_not_answer_its_call_once_is_a_clear_error_for_its_developer(run: Run, value: Any) -> None:
    with pytest.raises(PairingError, match=r"(?s)'give' \(call 'c1'\).*\n\S"):
        run(graph_of(ToolNode([returning(value)])), {"messages": [ONE]})


@pytest.mark.parametrize("value", UNPAIRED.values(), ids=UNPAIRED)
def test_a_node_that_repairs_makes_exactly_one_result_and_logs(
    run: Run, form: str, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "agentkit"):
        output = run(graph_of(ToolNode([returning(value)], pairing="repair"), form=form), {"messages": [ONE]})
    assert paired(output["messages"])
    assert [message.tool_call_id for message in results(output)] == ["c1"]
    assert "repaired" in caplog.text


def test_a_command_that_only_goes_somewhere_gets_a_result(run: Run, form: str) -> None:
    output = run(graph_of(ToolNode([returning(Command(goto="__end__"))]), form=form), {"messages": [ONE]})
    assert paired(output["messages"])
    assert texts(output) == ["Done."]


def test_two_tools_that_answer_each_other_still_get_one_result_each_when_repaired(run: Run, form: str) -> None:
    @tool
    def one() -> Any:
        """Answer the other call."""
        return ToolMessage("from one", tool_call_id="c2")

    @tool
    def two() -> Any:
        """Answer this call."""
        return "from two"

    node = ToolNode([one, two], pairing="repair")
    output = run(graph_of(node, form=form), {"messages": [ask(("one", {}, "c1"), ("two", {}, "c2"))]})
    assert paired(output["messages"])
    assert texts(output) == ["from one", "from two"]


WRAPPED = {
    "a text": ("done by the wrapper", "done by the wrapper"),
    "a dict": ({"ok": True}, '{"ok": true}'),
    "a Command with a result": (
        Command(update={"messages": [ToolMessage("by command", tool_call_id="c1")]}),
        "by command",
    ),
}


@pytest.mark.parametrize(("value", "content"), WRAPPED.values(), ids=WRAPPED)
def test_what_a_wrapper_returns_passes_the_same_gate(run: Run, form: str, value: Any, content: str) -> None:
    node = ToolNode([returning("unused")], wrap_tool_call=lambda request, handler: value)
    output = run(graph_of(node, form=form), {"messages": [ONE]})
    assert paired(output["messages"])
    assert texts(output) == [content]


@pytest.mark.parametrize(
    "value", [None, FOREIGN, Command(update={"note": "x"})], ids=["None", "foreign id", "no result"]
)
def test_a_wrapper_that_does_not_answer_the_call_is_a_clear_error(run: Run, value: Any) -> None:
    node = ToolNode([returning("unused")], wrap_tool_call=lambda request, handler: value)
    with pytest.raises(PairingError, match="wrapper 'give' \\(call 'c1'\\)"):
        run(graph_of(node), {"messages": [ONE]})
    mended = ToolNode([returning("unused")], wrap_tool_call=lambda request, handler: value, pairing="repair")
    assert paired(run(graph_of(mended), {"messages": [ONE]})["messages"])


def test_a_result_that_a_wrapper_takes_from_another_call_is_mended_or_refused(run: Run) -> None:
    def wrap(request: Any, handler: Any) -> Any:
        return handler(request.override(tool_call={**request.tool_call, "id": "other"}))

    output = run(ToolNode([returning("fine")], wrap_tool_call=wrap), {"messages": [ONE]})
    assert [result.tool_call_id for result in results(output)] == ["c1"]


def test_a_single_message_in_a_command_is_accepted(run: Run, form: str) -> None:
    def value(runtime: ToolRuntime) -> Any:
        return Command(update={"messages": ToolMessage("alone", tool_call_id=runtime.tool_call_id), "note": "n"})

    output = run(graph_of(ToolNode([returning(value)]), form=form), {"messages": [ONE]})
    assert (texts(output), output["note"]) == (["alone"], "n")
    assert paired(output["messages"])


@pytest.mark.parametrize("update", ["dict", "pairs", "dataclass", "pydantic", "message dicts"])
def test_every_form_of_update_is_looked_into(run: Run, update: str) -> None:
    @dataclasses.dataclass
    class Data:
        messages: list[Any]
        note: str

    class Model(BaseModel):
        messages: list[Any]
        note: str

    def value(runtime: ToolRuntime) -> Any:
        message = ToolMessage("here", tool_call_id=runtime.tool_call_id)
        made = {
            "dict": {"messages": [message], "note": "n"},
            "pairs": [("messages", [message]), ("note", "n")],
            "dataclass": Data([message], "n"),
            "pydantic": Model(messages=[message], note="n"),
            "message dicts": {
                "messages": [{"role": "tool", "content": "here", "tool_call_id": runtime.tool_call_id}],
                "note": "n",
            },
        }[update]
        return Command(update=made)

    output = run(graph_of(ToolNode([returning(value)])), {"messages": [ONE]})
    assert (texts(output), output["note"]) == (["here"], "n")


def test_a_transcript_that_brings_its_own_calls_is_no_foreign_result(run: Run, form: str) -> None:
    def value(runtime: ToolRuntime) -> Any:
        inner = [ask(("x", {}, "inner"), id="ai-inner"), ToolMessage("inner", tool_call_id="inner")]
        return Command(update={"messages": [ToolMessage("own", tool_call_id=runtime.tool_call_id), *inner]})

    output = run(graph_of(ToolNode([returning(value)]), form=form), {"messages": [ONE]})
    assert paired(output["messages"])
    assert texts(output) == ["own", "inner"]


def test_an_old_result_may_be_edited(run: Run, form: str) -> None:
    old = [ask(("give", {}, "c0"), id="ai-0"), ToolMessage("very long", tool_call_id="c0", id="r0")]

    def value(runtime: ToolRuntime) -> Any:
        edit = ToolMessage("cleared", tool_call_id="c0", id="r0")
        return Command(update={"messages": [edit, ToolMessage("own", tool_call_id=runtime.tool_call_id)]})

    output = run(graph_of(ToolNode([returning(value)]), form=form), {"messages": [*old, ONE]})
    assert paired(output["messages"])
    assert texts(output) == ["cleared", "own"]


def test_a_history_that_a_tool_wipes_keeps_no_orphan(run: Run, form: str) -> None:
    def value(runtime: ToolRuntime) -> Any:
        result = ToolMessage("own", tool_call_id=runtime.tool_call_id)
        return Command(update={"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), result, HumanMessage("start over")]})

    output = run(graph_of(ToolNode([returning(value)]), form=form), {"messages": [HumanMessage("old"), ONE]})
    assert paired(output["messages"])
    assert [message.content for message in output["messages"]] == ["start over"]


def test_calls_without_id_or_with_the_same_id_get_ids_of_their_own_before_they_run(run: Run) -> None:
    message = ask(("give", {}, "same"), ("give", {}, "same"), ("give", {}, None))
    output = run(graph_of(ToolNode([returning("done")])), {"messages": [message]})
    assert paired(output["messages"])
    assert texts(output) == ["done", "done", "done"]
    ids = [call["id"] for call in output["messages"][0].tool_calls]
    assert len(set(ids)) == 3
    assert all(ids)


def test_a_call_id_that_an_earlier_turn_used_too_is_answered_in_its_own_turn(run: Run, form: str) -> None:
    earlier = [ask(("give", {}, "call_0"), id="ai-0"), ToolMessage("first", tool_call_id="call_0")]
    output = run(
        graph_of(ToolNode([returning("second")]), form=form),
        {"messages": [*earlier, ask(("give", {}, "call_0"), id="ai-2")]},
    )
    assert paired(output["messages"])
    assert texts(output) == ["first", "second"]


def test_calls_that_could_not_be_parsed_are_answered_with_an_error(run: Run, form: str) -> None:
    broken = {"name": "give", "args": '{"x": ', "id": "c2", "error": "cut off", "type": "invalid_tool_call"}
    for calls in ([], ONE.tool_calls):
        message = AIMessage("", tool_calls=calls, invalid_tool_calls=[broken], id="ai")
        output = run(graph_of(ToolNode([returning("fine")]), form=form), {"messages": [message]})
        assert paired(output["messages"])
        assert [result.status for result in results(output)] == ["success"] * len(calls) + ["error"]
        assert "cut off" in texts(output)[-1]
        assert tools_condition({"messages": [message]}) == "tools"
        assert tools_condition(output) == "__end__"


def test_calls_that_have_a_result_are_not_run_again(run: Run) -> None:
    ran = []

    @tool
    def give(x: int) -> int:
        """Note it."""
        ran.append(x)
        return x

    message = ask(("give", {"x": 1}, "c1"), ("give", {"x": 2}, "c2"))
    done = ToolMessage("1", tool_call_id="c1")
    assert texts(run(ToolNode([give]), {"messages": [message, done]})) == ["2"]
    assert run(ToolNode([give]), {"messages": [ask(("give", {"x": 3}, "c1")), done]}) == {"messages": []}
    assert ran == [2]


def test_results_stand_in_call_order_whoever_finished_first(run: Run, form: str) -> None:
    import threading

    second_done = threading.Event()

    @tool
    def slow() -> str:
        """Wait for the other."""
        assert second_done.wait(10)
        return "slow"

    @tool
    def quick() -> str:
        """Finish first."""
        second_done.set()
        return "quick"

    output = run(
        graph_of(ToolNode([slow, quick]), form=form), {"messages": [ask(("slow", {}, "a"), ("quick", {}, "b"))]}
    )
    assert texts(output) == ["slow", "quick"]
    assert paired(output["messages"])


def test_a_message_that_a_tool_returns_to_several_calls_is_not_changed_under_them(run: Run) -> None:
    shared = ToolMessage("shared", tool_call_id="c1")
    node = ToolNode([returning(shared)], pairing="repair")
    output = run(node, {"messages": [ask(("give", {}, "c1"), ("give", {}, "c2"))]})
    assert [result.tool_call_id for result in results(output)] == ["c1", "c2"]
    assert (shared.tool_call_id, shared.name) == ("c1", None)


def test_a_long_result_is_cut_and_kept_whole_as_artifact(run: Run) -> None:
    from agentkit.tools import with_policy

    text = "".join(f"{n:05d}\n" for n in range(1000))
    node = ToolNode([with_policy(returning(text), max_output=300)])
    (result,) = results(run(node, {"messages": [ONE]}))
    assert result.artifact == text
    assert result.content.startswith("00000")
    assert result.content.endswith("00999\n")
    assert "characters left out" in result.content
    assert len(result.content) < 450


def test_an_object_that_cannot_be_shown_as_json_is_shown_as_text(run: Run) -> None:
    class Odd:
        def __repr__(self) -> str:
            return "an odd thing"

    assert "an odd thing" in texts(run(ToolNode([returning(lambda _: {"it": Odd()})]), {"messages": [ONE]}))[0]
    json.loads(texts(run(ToolNode([returning(lambda _: {"it": Odd()})]), {"messages": [ONE]}))[0])


def test_a_state_that_has_no_ai_message_is_a_clear_error(run: Run) -> None:
    node = ToolNode([returning("x")])
    with pytest.raises(ValueError, match="No message found"):
        run(node, {"messages": []})
    with pytest.raises(ValueError, match="No AIMessage found"):
        run(node, {"messages": [HumanMessage("hi")]})


def test_ai_messages_without_calls_run_nothing(run: Run) -> None:
    assert run(ToolNode([returning("x")]), {"messages": [AIMessage("hello")]}) == {"messages": []}
