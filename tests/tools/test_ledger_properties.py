"""What the events of a call say does not depend on the order in which they are read."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command, Send

from agentkit.tools._ledger import NOTHING, event, fold, merged, packed, signature_of, unpacked
from agentkit.tools._outcome import Outcome

KEY = ("ai-1", "c1")


@st.composite
def lives(draw: st.DrawFn) -> tuple[list[Any], dict[str, Any]]:
    """The events of one call's life, and what is true at its end."""
    events: list[Any] = []
    clock = 0.0
    in_flight = finished = False
    attempts = draw(st.integers(0, 4))
    for attempt in range(1, attempts + 1):
        events.append({**event("start", KEY, attempt, s="sig"), "t": (clock := clock + 1)})
        in_flight = True
        end = draw(st.sampled_from(["crash", "suspend", "finish"] if attempt == attempts else ["crash", "suspend"]))
        if end == "suspend":
            events.append({**event("suspend", KEY, attempt), "t": (clock := clock + 1)})
            in_flight = False
        elif end == "finish":
            events.append({**event("finish", KEY, attempt, s="sig", o=[]), "t": (clock := clock + 1)})
            in_flight, finished = False, True
        elif draw(st.booleans()):
            events.append({**event("ask", KEY, attempt, n=draw(st.integers(0, 3))), "t": (clock := clock + 1)})
    return events, {"attempt": attempts, "in_flight": in_flight, "finished": finished}


@given(lives(), st.randoms())
def test_events_say_the_same_in_any_order(life: tuple[list[Any], dict[str, Any]], random: Any) -> None:
    events, truth = life
    shuffled = list(events)
    random.shuffle(shuffled)
    in_order, mixed = fold(events).get(KEY, NOTHING), fold(shuffled).get(KEY, NOTHING)
    assert in_order == mixed
    assert {name: getattr(mixed, name) for name in truth} == truth


@given(lives(), st.data())
def test_events_say_the_same_however_they_are_spread_over_checkpoints(life: Any, data: st.DataObject) -> None:
    events, truth = life
    cut = data.draw(st.integers(0, len(events)))
    both = merged(fold(events[:cut]), fold(events[cut:])).get(KEY, NOTHING)
    assert {name: getattr(both, name) for name in truth} == truth
    assert both == fold(events).get(KEY, NOTHING)


MESSAGE = ToolMessage("done", tool_call_id="c1", id="m")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
UPDATES = st.dictionaries(st.text("xyz", min_size=1, max_size=3), VALUES, max_size=3)
COMMANDS = st.builds(
    Command,
    graph=st.sampled_from([None, Command.PARENT]),
    update=st.none() | UPDATES | st.lists(st.tuples(st.text("xyz", min_size=1, max_size=3), VALUES), min_size=1),
    goto=st.just(())
    | st.just("node")
    | st.lists(st.just("node") | st.builds(Send, st.just("node"), VALUES), min_size=1),
)


@given(st.lists(st.just(MESSAGE) | COMMANDS, max_size=4))
def test_an_outcome_comes_back_from_the_database_as_it_was(items: list[Any]) -> None:
    serde = JsonPlusSerializer()
    outcome = Outcome(result=MESSAGE, items=tuple(items))
    back = [unpacked(item) for item in serde.loads_typed(serde.dumps_typed(packed(outcome)))]
    assert len(back) == len(items)
    for old, new in zip(items, back, strict=True):
        if isinstance(old, Command):
            assert (new.graph, new.update) == (old.graph, old.update)
            assert list(new.goto) == list(old.goto)
        else:
            assert new == old


def test_a_signature_tells_calls_apart_by_name_and_arguments_whatever_the_order_of_the_arguments() -> None:
    def call(name: str, **args: Any) -> Any:
        return {"name": name, "args": args, "id": "c1", "type": "tool_call"}

    assert signature_of(call("a", x=1, y=2)) == signature_of(call("a", y=2, x=1))
    assert len({signature_of(each) for each in (call("a"), call("b"), call("a", x=1), call("a", x="1"))}) == 4
    assert signature_of(call("a", x="\ud800"))
