"""Finding things: words in several languages without any model, vectors where there is one, lifetimes."""

import asyncio
import threading
import time

import psycopg
import pytest
from langchain_core.embeddings import Embeddings
from memory.recall import Cached, fill, recall, table

from agentkit.errors import DatabaseError, DefinitionError
from agentkit.memory import InMemoryStore, aopen_memory, open_memory

NS = ("notes", "ann")


def texts(items):
    return [item.value["text"] for item in items]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("hiking", "We hiked to the cafés of the valley."),
        ("cafe", "We hiked to the cafés of the valley."),
        ("VALLEYS", "We hiked to the cafés of the valley."),
        ("녹차", "사용자는 녹차를 좋아한다"),
        ("녹차가 좋아", "사용자는 녹차를 좋아한다"),
        ("喜欢绿茶", "他最喜欢绿茶和咖啡"),
        ("啡", "他最喜欢绿茶和咖啡"),
        ("緑茶はどこ", "緑茶を買いました"),
        ("iPhone15", "My iPhone15는 검은색"),
        ("검은색", "My iPhone15는 검은색"),
        ("１２３", "Room 123"),  # noqa: RUF001  full-width on purpose
    ],
)
def test_words_are_found_in_every_language_without_a_model(store, query, expected):
    for n, text in enumerate(
        [
            "We hiked to the cafés of the valley.",
            "사용자는 녹차를 좋아한다",
            "他最喜欢绿茶和咖啡",
            "緑茶を買いました",
            "My iPhone15는 검은색",
            "Room 123",
            "nothing of interest",
        ]
    ):
        store.put(NS, str(n), {"text": text, "n": n})
    assert texts(store.search(NS, query=query))[:1] == [expected]


def test_the_rarer_word_decides_and_what_fits_in_no_word_is_not_found(store):
    for n in range(5):
        store.put(NS, f"tea{n}", {"text": f"tea number {n}"})
    store.put(NS, "rex", {"text": "Rex drinks tea"})
    assert texts(store.search(NS, query="does Rex like tea?"))[0] == "Rex drinks tea"
    assert store.search(NS, query="volcano") == []
    assert store.search(NS, query="?!") == []
    assert len(store.search(NS, query="")) == 6


def test_a_search_minds_filter_namespace_window_and_index(store):
    for n in range(6):
        store.put(NS, str(n), {"text": "tea", "n": n})
    store.put(("notes", "bob"), "x", {"text": "tea"})
    store.put(NS, "hidden", {"text": "tea"}, index=False)
    store.put(NS, "other", {"text": "coffee", "note": "tea"}, index=["note"])
    assert [item.key for item in store.search(NS, query="tea", filter={"n": {"$gte": 4}})] == ["5", "4"]
    assert len(store.search(NS, query="tea", limit=50)) == 7
    assert len(store.search(("notes",), query="tea", limit=50)) == 8
    assert [item.key for item in store.search(NS, query="tea", filter={"n": {"$exists": True}}, limit=2, offset=2)] == [
        "3",
        "2",
    ]
    store.put(NS, "5", {"text": "water", "n": 5})
    assert [item.key for item in store.search(NS, query="tea", filter={"n": 5})] == []


def test_both_stores_rank_alike(memory):
    in_memory = fill(InMemoryStore())
    fill(memory.store)
    for query in ("green tea in the morning", "개와 고양이 이름", "用户的猫叫什么", "Berlin night train", "2019"):
        first = [(item.key, pytest.approx(item.score)) for item in in_memory.search(NS, query=query)]
        assert [(item.key, item.score) for item in memory.store.search(NS, query=query)] == first


class Counting(Embeddings):
    """Letters as vectors, counted."""

    def __init__(self):
        self.texts = []

    def embed_documents(self, given):
        self.texts += given
        return [self.vector(text) for text in given]

    def embed_query(self, text):
        return self.vector(text)

    def vector(self, text):
        return [float(text.lower().count(letter)) for letter in "abcdefgh"]


@pytest.fixture(params=["in-memory", "postgres"])
def vectors(request, postgres_server, monkeypatch):
    from conftest import fresh_database

    counting = Counting()
    if request.param == "in-memory":
        yield InMemoryStore(embeddings=counting, fields=["text"]), counting
        return
    with fresh_database(postgres_server) as url, open_memory(url, embeddings=counting, fields=["text"]) as memory:
        yield memory.store, counting


def test_only_changed_texts_are_embedded_and_each_once(vectors):
    store, counting = vectors
    counting.texts.clear()
    store.put(NS, "a", {"text": "bed", "n": 1})
    store.put(NS, "a", {"text": "bed", "n": 2})
    store.update(NS, "a", lambda old: {**old, "n": 3})
    assert counting.texts == ["bed"]
    store.put(NS, "a", {"text": "cab"})
    store.put(NS, "b", {"text": "cab"})
    assert counting.texts[:2] == ["bed", "cab"]
    assert [item.key for item in store.find(NS, "bed", by="vector", limit=1)] in (["a"], ["b"])
    store.delete(NS, "a")
    store.delete(NS, "b")
    assert store.find(NS, "bed", by="vector") == []


def test_a_text_that_is_gone_is_not_found_by_its_old_vector(vectors):
    store, _ = vectors
    store.put(NS, "a", {"text": "bbb"})
    store.put(NS, "a", {"other": "x"})
    assert store.find(NS, "bbb", by="vector") == []


def test_vectors_find_what_words_do_not_and_both_find_either(vectors):
    store, _ = vectors
    store.put(NS, "vector", {"text": "abba abba"})
    store.put(NS, "word", {"text": "zebra"})
    assert [item.key for item in store.find(NS, "baab", by="vector", limit=1)] == ["vector"]
    assert store.find(NS, "baab", by="text") == []
    assert {item.key for item in store.search(NS, query="zebra", limit=2)} == {"vector", "word"}
    assert [item.key for item in store.search(NS, query="zebra", limit=1)] == ["word"]


async def test_an_async_store_embeds_and_finds(postgres_server):
    from conftest import fresh_database

    counting = Counting()
    with fresh_database(postgres_server) as url:
        async with aopen_memory(url, embeddings=counting, fields=["text"]) as memory:
            await asyncio.gather(*(memory.store.aput(NS, str(n), {"text": "abc"[: n % 3 + 1]}) for n in range(9)))
            assert len(await memory.store.afind(NS, "abc", by="both", limit=50)) == 9
            with pytest.raises(DefinitionError, match="'text', 'vector' or 'both'"):
                await memory.store.afind(NS, "abc", by="magic")
        with pytest.raises(DatabaseError, match="8 dimensions, the embeddings 3"):
            async with aopen_memory(url, embeddings=lambda given: [[1.0, 2.0, 3.0] for _ in given]):
                pass


def test_without_embeddings_there_is_no_search_by_vector(store):
    with pytest.raises(DefinitionError, match="open_memory"):
        store.find(NS, "x", by="vector")


@pytest.mark.timeout(300)
def test_the_labelled_questions_find_their_notes(memory):
    """Text on Postgres; vectors and both with the offline model. Prints the table that docs/memory.md shows."""
    assert recall(fill(memory.store), "text") >= 0.35
    store = fill(InMemoryStore(embeddings=Cached()))
    print("\n".join(table(store)))
    text, vector, both = (recall(store, by) for by in ("text", "vector", "both"))
    assert text == recall(memory.store, "text")
    assert vector >= 0.85
    assert both >= vector - 0.02
    assert all(recall(store, "both", language) >= 0.8 for language in ("en", "ko", "zh"))


def expire(store, *keys):
    """Lets items be past their lifetime, without waiting for it."""
    if isinstance(store, InMemoryStore):
        from dataclasses import replace
        from datetime import UTC, datetime

        for key in keys:
            store._entries[(NS, key)] = replace(store._entries[(NS, key)], expires=datetime(2020, 1, 1, tzinfo=UTC))
        return
    with store._pool.connection() as conn:
        conn.execute("UPDATE store SET expires_at = now() - interval '1 second' WHERE key = ANY(%s)", (list(keys),))


def test_an_item_past_its_lifetime_is_returned_on_no_path(store):
    store.put(NS, "old", {"text": "tea"}, ttl=5)
    store.put(NS, "new", {"text": "tea"}, ttl=5)
    expire(store, "old")
    assert store.get(NS, "old") is None
    assert [item.key for item in store.search(NS)] == ["new"]
    assert [item.key for item in store.search(NS, query="tea")] == ["new"]
    assert [item.key for item in store.page(NS).items] == ["new"]
    assert store.update(NS, "old", lambda old: {"was": old}) == {"was": None}
    store.put(("gone", "x"), "only", {}, ttl=0.001)
    expire_all = ("only",)
    if isinstance(store, InMemoryStore):
        store._entries.pop((("gone", "x"), "only"))
    else:
        expire(store, *expire_all)
    assert store.list_namespaces(prefix=("gone",)) == []


def test_reading_renews_a_lifetime_unless_told_not_to(store):
    def left(key):
        if isinstance(store, InMemoryStore):
            return store._entries[(NS, key)].expires
        with store._pool.connection() as conn:
            return conn.execute("SELECT expires_at AS e FROM store WHERE key = %s", (key,)).fetchone()["e"]

    store.put(NS, "k", {"text": "tea"}, ttl=0.5)
    before = left("k")
    store.get(NS, "k", refresh_ttl=False)
    assert left("k") == before
    for read in (lambda: store.get(NS, "k"), lambda: store.search(NS), lambda: store.search(NS, query="tea")):
        earlier = left("k")
        read()
        assert left("k") > earlier
    assert (left("k") - before).total_seconds() < 30


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), True, "5"])
def test_a_lifetime_that_is_none_is_refused(store, ttl):
    with pytest.raises(DefinitionError, match="ttl"):
        store.put(NS, "k", {}, ttl=ttl)


def gone(url, seconds=20):
    deadline = time.monotonic() + seconds
    with psycopg.connect(url, autocommit=True) as conn:
        while conn.execute("SELECT count(*) FROM store").fetchone()[0]:
            assert time.monotonic() < deadline, "nobody swept"
            threading.Event().wait(0.02)


def test_expired_items_are_swept_by_themselves(fresh_postgres_url):
    with open_memory(fresh_postgres_url, ttl={"default_ttl": 5, "sweep_interval_minutes": 0.001}) as memory:
        memory.store.put(NS, "old", {})
        expire(memory.store, "old")
        gone(fresh_postgres_url)


async def test_expired_items_are_swept_by_themselves_in_a_loop_too(fresh_postgres_url):
    async with aopen_memory(fresh_postgres_url, ttl={"sweep_interval_minutes": 0.001}) as memory:
        await memory.store.aput(NS, "old", {}, ttl=5)
        async with memory.store._pool.connection() as conn:
            await conn.execute("UPDATE store SET expires_at = now() - interval '1 second'")
        await asyncio.to_thread(gone, fresh_postgres_url)
