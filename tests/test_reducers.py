"""Reducers: their contracts, by example and by property, and inside a graph whose nodes run in parallel."""

import copy
import operator
from typing import Annotated, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from agentkit import reducers
from agentkit.errors import StateConflictError
from agentkit.reducers import append, append_unique, counter, first, last, maximum, merge_dict, minimum, reject

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3)
ITEMS = SCALARS | st.dictionaries(st.sampled_from("ab"), st.integers(0, 3), max_size=2)
LISTS = st.lists(ITEMS, max_size=5)
WRITES = LISTS | ITEMS
NUMBERS = st.none() | st.integers(-9, 9) | st.just(float("nan"))
FLAT = st.none() | st.dictionaries(st.sampled_from("abc"), SCALARS, max_size=3)
# a key holds dicts always or never: what the deep merge needs in order to be associative
DEEP = st.none() | st.fixed_dictionaries(
    {}, optional={"n": SCALARS, "d": st.dictionaries(st.sampled_from("ab"), SCALARS, max_size=2)}
)


def same(left, right):
    """Equality that also tells 1 from True, and finds NaN equal to itself."""
    return repr(left) == repr(right)


def outcome(reduce, *values):
    """The values reduced from the left, or the class of the exception."""
    try:
        result = values[0]
        for value in values[1:]:
            result = reduce(result, value)
    except StateConflictError:
        return StateConflictError
    return result


@pytest.mark.parametrize(
    ("reduce", "values"),
    [
        (append, WRITES),
        (append_unique, WRITES),
        (merge_dict, FLAT),
        (merge_dict(deep=True), DEEP),
        (counter, st.none() | st.integers()),
        (maximum, NUMBERS),
        (minimum, NUMBERS),
        (last, SCALARS),
        (first, SCALARS),
        (reject, st.none() | st.sampled_from(["", 0, "x", "y", 3])),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_writes_may_be_combined_in_any_grouping(reduce, values):
    @given(values, values, values)
    def check(a, b, c):
        one_by_one = outcome(reduce, a, b, c)
        try:
            combined = outcome(reduce, a, reduce(b, c))
        except StateConflictError:
            combined = StateConflictError
        assert same(one_by_one, combined)

    check()


@pytest.mark.parametrize("reduce", [append, append_unique, merge_dict, merge_dict(deep=True)])
@given(data=st.data())
def test_neither_the_value_nor_the_write_is_changed(reduce, data):
    values = LISTS if reduce in (append, append_unique) else DEEP.filter(bool)
    left, right = data.draw(values), data.draw(values)
    before = copy.deepcopy((left, right))
    result = reduce(left, right)
    assert (left, right) == before
    assert result is not left
    assert result is not right


@pytest.mark.parametrize(
    "reduce", [append, append_unique, merge_dict, counter, maximum, minimum, first, reject], ids=lambda r: r.__name__
)
def test_a_write_of_none_changes_nothing(reduce):
    values = {append: [1], append_unique: [1], merge_dict: {"a": 1}}
    value = values.get(reduce, 7)
    assert reduce(value, None) == value
    assert reduce(None, value) == value


@given(LISTS, LISTS)
def test_append_is_concatenation_of_lists(left, right):
    assert append(left, right) == left + right


def test_append_takes_one_item_or_a_list_of_items():
    assert append([1], 2) == [1, 2]
    assert append([1], [2, 3]) == [1, 2, 3]
    assert append([1], [[2, 3]]) == [1, [2, 3]]
    assert append([("user", "a")], ("user", "b")) == [("user", "a"), ("user", "b")]


@given(WRITES, WRITES)
def test_append_unique_keeps_the_first_of_equal_items_in_order(left, right):
    seen = []
    for item in append(left, right):
        if item not in seen:
            seen.append(item)
    assert append_unique(left, right) == seen


def test_append_unique_compares_hashable_and_unhashable_items():
    assert append_unique([{1}, "a"], [frozenset({1}), {"k": []}, {"k": []}, "a"]) == [{1}, "a", {"k": []}]


def test_merge_dict_replaces_dicts_within_unless_it_is_deep():
    old, new = {"a": {"x": 1}, "b": 1}, {"a": {"y": 2}}
    assert merge_dict(old, new) == {"a": {"y": 2}, "b": 1}
    assert merge_dict(old, new, deep=True) == {"a": {"x": 1, "y": 2}, "b": 1}
    assert merge_dict(deep=True)(old, new) == {"a": {"x": 1, "y": 2}, "b": 1}
    assert merge_dict()(old, new) == merge_dict(old, new)


def test_a_deep_merge_is_not_associative_where_a_key_changes_between_dict_and_value():
    deep = merge_dict(deep=True)
    a, b, c = {"k": {"x": 1}}, {"k": 5}, {"k": {"y": 2}}
    assert deep(deep(a, b), c) == {"k": {"y": 2}}
    assert deep(a, deep(b, c)) == {"k": {"x": 1, "y": 2}}


def test_extremes_keep_the_first_of_equal_values():
    assert same(maximum(1, 1.0), 1)
    assert same(minimum(1.0, 1), 1.0)
    assert maximum(float("nan"), -3) == -3


def test_counter_keeps_ints():
    assert same(counter(1, 2), 3)
    assert same(counter(None, None), 0)


def test_first_and_reject_take_an_empty_value_for_none_but_false_for_a_value():
    assert first("", "x") == "x"
    assert first(False, "x") is False
    assert reject(0, 3) == 3
    with pytest.raises(StateConflictError):
        reject(False, True)


def test_reject_allows_equal_values_and_its_error_shows_no_values():
    assert reject("secret-1", "secret-1") == "secret-1"
    with pytest.raises(StateConflictError, match=r"written twice.*str, then int") as caught:
        reject("secret-1", 2)
    assert "secret-1" not in str(caught.value)


class State(TypedDict, total=False):
    log: Annotated[list, append]
    seen: Annotated[list, append_unique]
    flat: Annotated[dict, merge_dict]
    deep: Annotated[dict, merge_dict(deep=True)]
    cost: Annotated[int, counter]
    best: Annotated[float | None, maximum]
    worst: Annotated[float | None, minimum]
    latest: Annotated[str, last]
    earliest: Annotated[str, first]
    owner: Annotated[str, reject]


def write(n):
    return {
        "log": f"n{n}",
        "seen": [n % 2],
        "flat": {"who": n},
        "deep": {"by": {str(n): n}},
        "cost": n,
        "best": -n,
        "worst": -n,
        "latest": f"n{n}",
        "earliest": f"n{n}",
        "owner": "me",
    }


def graph_of(node, checkpointer=None):
    graph = StateGraph(State)
    graph.add_node("work", node)
    graph.add_conditional_edges(START, lambda _: [Send("work", n) for n in (1, 2, 3)])
    graph.add_edge("work", END)
    return graph.compile(checkpointer=checkpointer)


EXPECTED = {
    "log": ["n1", "n2", "n3"],
    "seen": [1, 0],
    "flat": {"who": 3},
    "deep": {"by": {"1": 1, "2": 2, "3": 3}},
    "cost": 6,
    "best": -1,
    "worst": -3,
    "latest": "n3",
    "earliest": "n1",
    "owner": "me",
}


def test_parallel_writes_merge_in_call_order_in_a_graph():
    assert graph_of(write).invoke({}) == EXPECTED


async def test_parallel_writes_merge_in_call_order_in_an_async_graph():
    async def node(n):
        return write(n)

    assert await graph_of(node).ainvoke({}) == EXPECTED


def test_the_value_goes_on_from_the_checkpoint():
    graph = graph_of(write, InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    graph.invoke({}, config)
    assert graph.invoke({}, config) == EXPECTED | {"log": EXPECTED["log"] * 2, "cost": 12}


def test_a_conflict_in_a_graph_is_a_state_conflict_error():
    graph = graph_of(lambda n: {"owner": f"n{n}"})
    with pytest.raises(StateConflictError):
        graph.invoke({})


def test_the_public_names_are_exactly_these():
    names = ["append", "append_unique", "counter", "first", "last", "maximum", "merge_dict", "minimum", "reject"]
    assert reducers.__all__ == names
    assert all(callable(operator.attrgetter(name)(reducers)) for name in names)
