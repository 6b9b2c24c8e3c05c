"""What a store means, the same on Postgres and in memory, sync and async."""

import asyncio
import threading
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, PutOp, SearchOp

from agentkit.errors import DefinitionError, NotStorableError
from agentkit.memory import InMemoryStore

NS = ("notes", "ann")

VALUES = {
    "two": {"n": 2, "name": "b", "tags": ["x"], "in": {"deep": 1}},
    "ten": {"n": 10, "name": "a", "tags": ["x", "y"], "in": {"deep": None}},
    "half": {"n": 0.5, "name": "é", "tags": []},
    "text": {"n": "10", "name": "B"},
    "true": {"n": True, "name": "가"},
    "none": {"n": None},
    "gone": {"a.b": 7},
}


@pytest.fixture
def filled(store):
    for key, value in VALUES.items():
        store.put(NS, key, value)
    return store


def keys(items):
    return sorted(item.key for item in items)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"n": 2}, ["two"]),
        ({"n": 2.0}, ["two"]),
        ({"n": True}, ["true"]),
        ({"n": None}, ["none"]),
        ({"n": "10"}, ["text"]),
        ({"n": {"$eq": 10}}, ["ten"]),
        ({"n": {"$ne": 10}}, ["gone", "half", "none", "text", "true", "two"]),
        ({"n": {"$gt": 9}}, ["ten"]),
        ({"n": {"$gte": 2, "$lt": 10}}, ["two"]),
        ({"n": {"$lte": 0.5}}, ["half"]),
        ({"n": {"$gt": "0"}}, ["text"]),
        ({"name": {"$gt": "a"}}, ["half", "true", "two"]),
        ({"name": {"$gte": "B", "$lte": "b"}}, ["ten", "text", "two"]),
        ({"n": {"$in": [2, "10", None]}}, ["none", "text", "two"]),
        ({"n": {"$in": []}}, []),
        ({"n": {"$nin": [2, "10", None]}}, ["gone", "half", "ten", "true"]),
        ({"n": {"$exists": False}}, ["gone"]),
        ({"in.deep": {"$exists": True}}, ["ten", "two"]),
        ({"in": {"deep": 1}}, ["two"]),
        ({"in": {"deep": {"$gt": 0}}}, ["two"]),
        ({"in": {"$eq": {"deep": 1}}}, ["two"]),
        ({"tags": ["x"]}, ["two"]),
        ({"tags": []}, ["half"]),
        ({"tags.1": "y"}, ["ten"]),
        ({"tags.0": {"$exists": True}}, ["ten", "two"]),
        ({"a\\.b": 7}, ["gone"]),
        ({"a.b": 7}, []),
        ({"$or": [{"n": 2}, {"n": 10}]}, ["ten", "two"]),
        ({"$and": [{"n": {"$gt": 1}}, {"name": "a"}]}, ["ten"]),
        ({"$or": [{"$and": [{"n": 2}, {"name": "b"}]}, {"name": "B"}]}, ["text", "two"]),
        ({"n": {"$gt": 1}, "name": "b"}, ["two"]),
        ({}, sorted(VALUES)),
    ],
)
def test_a_filter_finds_the_same_items_in_every_store(filled, condition, expected):
    assert keys(filled.search(NS, filter=condition, limit=50)) == expected


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ({"n": {"$near": 1}}, r"at n: unknown operator '\$near'"),
        ({"in": {"deep": {"$like": 1}}}, r"at in\.deep: unknown operator"),
        ({"$not": [{"n": 1}]}, r"\$not is unknown here"),
        ({"n": {"$gt": 1, "x": 2}}, "at n mixes operators and keys"),
        ({"n": {"$gt": [1]}}, "compares numbers and strings"),
        ({"n": {"$gt": True}}, "compares numbers and strings"),
        ({"n": {"$in": "abc"}}, "takes a list"),
        ({"n": {"$exists": 1}}, "takes True or False"),
        ({"$or": []}, "takes a list of filters"),
        ({"$or": [1]}, "must be a dict"),
        ({"n": float("nan")}, "nan"),
        ({"n": {"$eq": {1, 2}}}, "set"),
        ({"n": "a\x00"}, "NUL"),
        ([("n", 1)], "must be a dict"),
    ],
)
def test_a_filter_that_means_nothing_is_an_error_that_names_the_place(filled, condition, says):
    with pytest.raises(DefinitionError, match=says):
        filled.search(NS, filter=condition)


plain = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2, width=16) | st.sampled_from(["", "a", "가"])
json_values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)
orders = st.fixed_dictionaries(
    {}, optional={op: st.integers(-5, 5) | st.sampled_from(["a", "가"]) for op in ("$gt", "$lt", "$gte", "$lte")}
)
tests = st.one_of(
    json_values,
    orders.filter(bool),
    st.fixed_dictionaries({"$ne": json_values}),
    st.fixed_dictionaries({"$eq": json_values}),
    st.fixed_dictionaries({"$in": st.lists(json_values, max_size=2)}),
    st.fixed_dictionaries({"$nin": st.lists(json_values, max_size=2)}),
    st.fixed_dictionaries({"$exists": st.booleans()}),
)
conditions = st.recursive(
    st.dictionaries(st.sampled_from(["a", "b", "a.b", "a.0"]), tests, max_size=2),
    lambda inner: st.fixed_dictionaries(
        {}, optional={"$or": st.lists(inner, min_size=1, max_size=2), "$and": st.lists(inner, min_size=1, max_size=2)}
    ),
    max_leaves=4,
)


@given(
    values=st.lists(st.dictionaries(st.sampled_from("ab"), json_values, max_size=2), min_size=1, max_size=5),
    condition=conditions,
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_postgres_and_memory_agree_on_any_filter(memory, values, condition):
    in_memory = InMemoryStore()
    at = ("any", str(datetime.now(UTC).timestamp()).replace(".", "-"))
    for store in (memory.store, in_memory):
        store.batch([PutOp(at, str(n), value) for n, value in enumerate(values)])
    answers = []
    for store in (memory.store, in_memory):
        try:
            answers.append(keys(store.search(at, filter=condition)))
        except DefinitionError as error:
            answers.append(str(error))
    assert answers[0] == answers[1]


async def test_the_async_side_means_the_same(astore):
    await astore.abatch([PutOp(NS, key, value) for key, value in VALUES.items()])
    assert keys(await astore.asearch(NS, filter={"n": {"$gt": 9}})) == ["ten"]
    assert (await astore.aget(NS, "two")).value == VALUES["two"]
    assert await astore.alist_namespaces() == [NS]
    await astore.adelete(NS, "two")
    assert await astore.aget(NS, "two") is None


def test_what_was_written_last_is_found_first(store):
    for key in ("a", "b", "c"):
        store.put(NS, key, {})
    store.put(NS, "a", {"again": True})
    assert [item.key for item in store.search(NS)] == ["a", "c", "b"]
    assert [item.key for item in store.search(NS, limit=1, offset=1)] == ["c"]


def test_a_value_comes_back_as_it_was_and_is_nobody_elses(store):
    value = {"text": "é가🙂\n\"'\\", "n": [1, 2.5, 10**30, True, None, {"x": {}}]}
    given = dict(value)
    store.put(NS, "k", given)
    given["text"] = "changed"
    store.get(NS, "k").value["n"].append("changed")
    assert store.get(NS, "k").value == value


def test_writing_again_keeps_the_day_it_was_made(store):
    store.put(NS, "k", {"v": 1})
    first = store.get(NS, "k")
    store.put(NS, "k", {"v": 2})
    second = store.get(NS, "k")
    assert (second.value, second.created_at) == ({"v": 2}, first.created_at)
    assert second.updated_at > first.updated_at


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"a": ["x", {"b": "y\x00"}]}, r"value\['a'\]\[1\]\['b'\] contains a NUL"),
        ({"a": "\ud800"}, "half a character"),
        ({"a\x00": 1}, "a key of value contains a NUL"),
        ({"a": float("nan")}, r"value\['a'\] is nan"),
        ({"a": {"b": float("inf")}}, r"value\['a'\]\['b'\] is inf"),
        ({1: "x"}, "has the key 1, a int"),
        ({"a": datetime(2026, 1, 1, tzinfo=UTC)}, r"value\['a'\] is a datetime"),
        ({"a": {1, 2}}, r"value\['a'\] is a set"),
        (["x"], "the value is a list"),
    ],
)
def test_a_value_that_is_no_json_is_refused_with_its_path(store, value, says):
    store.put(NS, "k", {"v": 1})
    with pytest.raises(NotStorableError, match=says):
        store.put(NS, "k", value)
    assert store.get(NS, "k").value == {"v": 1}


@pytest.mark.parametrize(
    "namespace", [(), ("a", ""), ("a.b",), ("a", 1), "ab", ["a"], ("langgraph", "x"), ("a\x00",), ("\ud800",)]
)
def test_a_wrong_namespace_is_refused_on_every_path_that_writes(store, namespace):
    for write in (
        lambda: store.put(namespace, "k", {}),
        lambda: store.batch([PutOp(namespace, "k", {})]),
        lambda: store.batch([PutOp(namespace, "k", None)]),
        lambda: store.delete(namespace, "k"),
        lambda: store.update(namespace, "k", lambda _: {}),
    ):
        with pytest.raises(InvalidNamespaceError):
            write()
    assert store.list_namespaces() == []


@pytest.mark.parametrize("namespace", [("a", ""), ("a.b",), ("a", 1), "ab", ["a"], ("a\x00",)])
def test_a_wrong_namespace_is_refused_on_every_path_that_reads(store, namespace):
    for read in (
        lambda: store.get(namespace, "k"),
        lambda: store.batch([GetOp(namespace, "k")]),
        lambda: store.search(namespace),
        lambda: store.batch([SearchOp(namespace)]),
        lambda: store.page(namespace),
        lambda: store.find(namespace, "x"),
    ):
        with pytest.raises(InvalidNamespaceError):
            read()


@pytest.mark.parametrize("key", ["a\x00", "\ud800", "k" * 3000, 7, None])
def test_a_wrong_key_is_refused(store, key):
    with pytest.raises(NotStorableError):
        store.batch([PutOp(NS, key, {})])
    with pytest.raises(NotStorableError):
        store.batch([GetOp(NS, key)])


def test_a_name_that_looks_like_a_pattern_is_only_a_name(store):
    for name in ("user_1", "userX1", "50%", "50x", "a\\b", "-", "user_1x"):
        store.put((name,), "k", {"name": name})
    for name in ("user_1", "50%", "a\\b", "-"):
        assert [item.value["name"] for item in store.search((name,))] == [name]
        assert store.list_namespaces(prefix=(name,)) == [(name,)]


def test_namespaces_are_listed_in_one_order_with_wildcards_and_depth(store):
    for namespace in [("a", "b"), ("a-b",), ("a", "b", "c"), ("a", "c"), ("B",), ("x", "b")]:
        store.put(namespace, "k", {})
    assert store.list_namespaces() == [("B",), ("a", "b"), ("a", "b", "c"), ("a", "c"), ("a-b",), ("x", "b")]
    assert store.list_namespaces(max_depth=1) == [("B",), ("a",), ("a-b",), ("x",)]
    assert store.list_namespaces(prefix=("a", "*"), max_depth=2) == [("a", "b"), ("a", "c")]
    assert store.list_namespaces(suffix=("b",)) == [("a", "b"), ("x", "b")]
    assert store.list_namespaces(suffix=("*", "c")) == [("a", "b", "c"), ("a", "c")]
    assert store.list_namespaces(limit=2, offset=1) == [("a", "b"), ("a", "b", "c")]


def test_a_bad_operation_fails_alone(store):
    with pytest.raises(NotStorableError, match="NUL") as raised:
        store.batch(
            [PutOp(NS, "a", {"v": 1}), PutOp(NS, "b", {"v": "\x00"}), PutOp(NS, "c", {"v": 3}), PutOp((), "d", {})]
        )
    assert any("operation 1 of a batch of 4; 2 others were done" in note for note in raised.value.__notes__)
    assert keys(store.search(NS)) == ["a", "c"]


async def test_a_bad_operation_spoils_nobody_elses_in_the_same_moment(astore):
    results = await asyncio.gather(
        *(astore.aput(NS, f"k{n}", {"v": n if n != 3 else "\x00"}) for n in range(8)), return_exceptions=True
    )
    assert [type(result) for result in results] == [type(None)] * 3 + [NotStorableError] + [type(None)] * 4
    assert len(await astore.asearch(NS)) == 7


def test_a_batch_is_done_in_its_order(store):
    results = store.batch(
        [
            PutOp(NS, "a", {"v": 1}),
            GetOp(NS, "a"),
            PutOp(NS, "a", {"v": 2}),
            PutOp(NS, "a", {"v": 3}),
            GetOp(NS, "a"),
            GetOp(NS, "b"),
            SearchOp(NS),
            PutOp(NS, "a", None),
            ListNamespacesOp(),
        ]
    )
    assert [results[1].value, results[4].value, results[5]] == [{"v": 1}, {"v": 3}, None]
    assert (len(results[6]), results[8]) == (1, [])


@pytest.mark.parametrize("limit", [-1, 1.5, True, None])
def test_a_window_that_is_none_is_refused(store, limit):
    with pytest.raises(DefinitionError, match="limit"):
        store.search(NS, limit=limit)


def test_updates_of_several_writers_all_count(store):
    def work():
        for _ in range(20):
            store.update(NS, "count", lambda old: {"n": (old or {"n": 0})["n"] + 1})

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert store.get(NS, "count").value == {"n": 80}


async def test_async_updates_of_several_writers_all_count(astore):
    async def bump(old):
        await asyncio.sleep(0)
        return {"n": (old or {"n": 0})["n"] + 1}

    async def work():
        for _ in range(20):
            await astore.aupdate(NS, "count", bump)

    await asyncio.gather(*(work() for _ in range(4)))
    assert (await astore.aget(NS, "count")).value == {"n": 80}


def test_an_update_can_delete_and_a_failing_one_changes_nothing(store):
    store.put(NS, "k", {"v": 1})
    with pytest.raises(RuntimeError, match="no"):
        store.update(NS, "k", lambda _: (_ for _ in ()).throw(RuntimeError("no")))
    with pytest.raises(NotStorableError):
        store.update(NS, "k", lambda _: {"v": "\x00"})
    assert store.get(NS, "k").value == {"v": 1}
    assert store.update(NS, "k", lambda _: None) is None
    assert store.get(NS, "k") is None


def test_pages_give_each_item_once_whatever_is_written_meanwhile(store):
    store.batch([PutOp(("p", f"{n % 3}"), f"{n:03}", {"n": n}) for n in range(25)])
    seen, cursor = [], None
    while True:
        page = store.page(("p",), limit=7, cursor=cursor)
        seen += [(item.namespace, item.key) for item in page.items]
        store.put(("p", "1"), "010", {"n": "touched"})
        store.put(("p", "0"), f"new{len(seen)}", {"n": "new"})
        cursor = page.cursor
        if cursor is None:
            break
    assert len(seen) == len(set(seen))
    assert {(("p", f"{n % 3}"), f"{n:03}") for n in range(25)} <= set(seen)
    assert len(store.page(("p",), filter={"n": {"$gte": 20}}).items) == 5


@pytest.mark.parametrize("cursor", ["", "x", "bm8=", 5])
def test_what_is_no_cursor_is_refused(store, cursor):
    with pytest.raises(DefinitionError, match="cursor"):
        store.page(NS, cursor=cursor)
