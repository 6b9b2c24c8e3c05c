"""Threads on Postgres: nothing lost between writers, everything a state can hold, small, pruned, copied."""

import asyncio
import dataclasses
import enum
import math
import operator
import threading
from datetime import timedelta
from typing import Annotated, Any, TypedDict

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

from agentkit.errors import DefinitionError, NotStorableError, ThreadBusyError
from agentkit.memory import open_memory
from agentkit.messages import history


class State(TypedDict, total=False):
    messages: Annotated[list[Any], DeltaChannel(history, snapshot_frequency=10)]
    notes: Annotated[list[str], operator.add]
    value: Any


def at(thread, **more):
    return {"configurable": {"thread_id": thread, **more}}


def builder(*nodes):
    graph = StateGraph(State)
    for node in nodes:
        graph.add_node(node.__name__, node)
        graph.add_edge(START, node.__name__)
    return graph


def answer(state):
    return {"messages": [AIMessage(f"answer {len(state['messages'])}")], "notes": ["answered"]}


def talk(app, thread, turns):
    for turn in range(turns):
        app.invoke({"messages": [HumanMessage(f"{thread} says {turn}")]}, at(thread))


def texts(app, thread):
    return [message.text for message in app.get_state(at(thread)).values["messages"]]


def test_of_three_runs_at_once_on_one_thread_none_loses_an_update_silently(memory):
    together = threading.Barrier(3)

    def note(state):
        return {"notes": [f"after {state['notes'][-1]}"]}

    app = builder(note).compile(checkpointer=memory.checkpointer)
    outcomes = {}

    def run(name):
        together.wait(30)
        try:
            outcomes[name] = app.invoke({"notes": [name]}, at("busy"))["notes"]
        except ThreadBusyError as error:
            outcomes[name] = error

    threads = [threading.Thread(target=run, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    kept = app.get_state(at("busy")).values["notes"]
    for name, outcome in outcomes.items():
        assert isinstance(outcome, ThreadBusyError) or name in kept, (outcomes, kept)
    assert sum(isinstance(outcome, list) for outcome in outcomes.values()) >= 1


async def test_a_second_writer_is_refused_and_may_try_again(amemory):
    reached, go = asyncio.Event(), asyncio.Event()

    async def note(state):
        if state["notes"][-1] == "slow":
            reached.set()
            await go.wait()
        return {"notes": [f"after {state['notes'][-1]}"]}

    app = builder(note).compile(checkpointer=amemory.checkpointer)
    slow = asyncio.create_task(app.ainvoke({"notes": ["slow"]}, at("t"), durability="sync"))
    await reached.wait()
    await app.ainvoke({"notes": ["quick"]}, at("t"))
    go.set()
    with pytest.raises(ThreadBusyError, match="'t' was written by another run"):
        await slow
    assert (await app.ainvoke({"notes": ["slow, again"]}, at("t")))["notes"][-1] == "after slow, again"


def test_time_travel_forks_and_edits_are_no_second_writers(memory):
    app = builder(answer).compile(checkpointer=memory.checkpointer)
    talk(app, "t", 3)
    past = list(app.get_state_history(at("t")))[-2].config
    app.invoke(None, past)
    app.update_state(at("t"), {"notes": ["edited"]}, as_node="answer")
    app.update_state(past, {"notes": ["edited the past"]}, as_node="answer")
    app.invoke({"messages": [HumanMessage("on")]}, at("t"))
    talk(app, "t", 1)
    assert app.get_state(at("t")).values["notes"][-1] == "answered"


def test_sixty_four_conversations_at_once_on_eight_connections_keep_to_themselves(fresh_postgres_url):
    with open_memory(fresh_postgres_url, max_size=8) as memory:
        app = builder(answer).compile(checkpointer=memory.checkpointer)
        threads = [threading.Thread(target=talk, args=(app, f"t{n}", 4)) for n in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(100)
        for n in range(64):
            expected = [text for turn in range(4) for text in (f"t{n} says {turn}", f"answer {2 * turn + 1}")]
            assert texts(app, f"t{n}") == expected


class Colour(enum.Enum):
    RED = "red"


class Mood(enum.StrEnum):
    GOOD = "good"


class Point(BaseModel):
    x: int
    colour: Colour


@dataclasses.dataclass
class Pair:
    left: Point
    right: list[Colour]


class Outer:
    class Nested(enum.Enum):
        A = 1

    class Inner(BaseModel):
        x: int


@pytest.mark.parametrize(
    "value",
    [
        "a\x00b",
        "가 é 🙂",
        math.inf,
        2**60,
        b"\x00\xff",
        {"a": ["\x00", {"b": math.inf}]},
        Colour.RED,
        Mood.GOOD,
        Point(x=1, colour=Colour.RED),
        Pair(Point(x=1, colour=Colour.RED), [Colour.RED]),
        {"deep": [(Point(x=2, colour=Colour.RED), Mood.GOOD)]},
    ],
    ids=repr,
)
def test_a_value_in_state_comes_back_with_its_type(memory, value):
    def keep(_state):
        return {"value": value}

    app = builder(keep).compile(checkpointer=memory.checkpointer)
    app.invoke({"notes": []}, at("t"))
    back = app.get_state(at("t")).values["value"]
    assert type(back) is type(value)
    assert repr(back).replace("(", "[").replace(")", "]") == repr(value).replace("(", "[").replace(")", "]")


@pytest.mark.parametrize("value", [Outer.Nested.A, {"deep": [Outer.Inner(x=1)]}], ids=["enum", "model"])
def test_an_object_that_could_not_be_found_again_is_refused_when_it_is_written(memory, value):
    def keep(_state):
        return {"value": value}

    app = builder(keep).compile(checkpointer=memory.checkpointer)
    with pytest.raises(NotStorableError, match=r"Outer.*top level"):
        app.invoke({"notes": []}, at("t"))
    app = builder(answer).compile(checkpointer=memory.checkpointer)
    talk(app, "t", 1)


def test_half_a_character_does_not_end_a_thread(memory):
    def keep(_state):
        return {"value": "half \ud800", "messages": [AIMessage("half \udc00")]}

    app = builder(keep).compile(checkpointer=memory.checkpointer)
    app.invoke({"messages": [HumanMessage("hi")]}, at("t"))
    assert (app.get_state(at("t")).values["value"], texts(app, "t")) == ("half ?", ["hi", "half ?"])


def test_a_number_too_big_for_the_serializer_is_refused_when_it_is_written(memory):
    def keep(_state):
        return {"value": 2**80}

    app = builder(keep).compile(checkpointer=memory.checkpointer)
    with pytest.raises(NotStorableError, match="64-bit"):
        app.invoke({"notes": []}, at("t"))


@pytest.mark.parametrize("thread", ["a\x00b", "\ud800"])
def test_a_thread_id_that_postgres_cannot_hold_is_refused(memory, thread):
    app = builder(answer).compile(checkpointer=memory.checkpointer)
    with pytest.raises(NotStorableError, match="thread_id"):
        talk(app, thread, 1)


def test_metadata_with_characters_postgres_cannot_hold_is_cleaned(memory):
    app = builder(answer).compile(checkpointer=memory.checkpointer)
    config = {**at("t"), "metadata": {"note": "a\x00b", "half": "\ud800", "size": math.nan}}
    app.invoke({"messages": [HumanMessage("hi")]}, config)
    assert app.get_state(at("t")).metadata["note"] == "ab"


def stored_bytes(url, thread):
    with psycopg.connect(url) as conn:
        return sum(
            conn.execute(
                f"SELECT coalesce(sum(pg_column_size(t.*)), 0) FROM {table} t WHERE thread_id = %s", (thread,)
            ).fetchone()[0]
            for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
        )


def test_a_thread_grows_with_its_text_and_not_with_its_square(memory):
    def long_answer(_state):
        return {"messages": [AIMessage("".join(chr(33 + (i * i + 7 * i) % 90) for i in range(2000)))]}

    app = builder(long_answer).compile(checkpointer=memory.checkpointer)
    sizes = []
    for turns in (30, 30):
        talk(app, "t", turns)
        sizes.append(stored_bytes(memory.url, "t"))
    assert sizes[1] < 2.6 * sizes[0], sizes
    assert len(texts(app, "t")) == 120


def test_pruning_keeps_what_the_newest_state_is_rebuilt_from(memory):
    app = builder(answer).compile(checkpointer=memory.checkpointer)
    talk(app, "t", 23)
    before, size = texts(app, "t"), stored_bytes(memory.url, "t")
    memory.checkpointer.prune(["t"])
    assert texts(app, "t") == before
    assert stored_bytes(memory.url, "t") < size / 2
    talk(app, "t", 1)
    assert texts(app, "t")[: len(before)] == before


@pytest.mark.parametrize("turns", [1, 5, 11, 16])
async def test_retention_keeps_the_last_states_at_any_point_of_the_snapshots(amemory, turns):
    app = builder(answer).compile(checkpointer=amemory.checkpointer)
    for turn in range(turns):
        await app.ainvoke({"messages": [HumanMessage(f"says {turn}")]}, at("t"))
    states = [state.values async for state in app.aget_state_history(at("t"), limit=3)]
    removed = await amemory.retain(keep_last=3)
    assert [state.values async for state in app.aget_state_history(at("t"), limit=3)] == states
    assert removed.checkpoints == 0 or turns > 3
    assert (await amemory.retain(keep_last=3)).checkpoints == 0


def test_idle_threads_go_but_those_that_wait_for_an_answer_stay(memory):
    def ask(state):
        if state["notes"] == ["ask"]:
            return {"notes": [interrupt("really?")]}
        return {}

    app = builder(ask).compile(checkpointer=memory.checkpointer)
    app.invoke({"notes": ["ask"]}, at("waiting"))
    app.invoke({"notes": ["tell"]}, at("idle"))
    with psycopg.connect(memory.url, autocommit=True) as conn:
        conn.execute(
            "UPDATE checkpoints SET checkpoint = jsonb_set(checkpoint, '{ts}', '\"2020-01-01T00:00:00+00:00\"')"
        )
    app.invoke({"notes": ["tell"]}, at("fresh"))
    assert {thread.thread_id: thread.interrupted for thread in memory.threads()} == {
        "waiting": True,
        "idle": False,
        "fresh": False,
    }
    removed = memory.retain(older_than=timedelta(days=30))
    assert (removed.threads, {thread.thread_id for thread in memory.threads()}) == (1, {"waiting", "fresh"})
    assert app.invoke(Command(resume="yes"), at("waiting"))["notes"] == ["ask", "yes"]
    assert memory.retain(older_than=timedelta(0), keep_interrupted=False).threads == 2
    assert memory.threads() == []


@pytest.mark.parametrize("wrong", [{}, {"keep_last": 0}])
def test_a_retention_that_says_nothing_is_refused(memory, wrong):
    with pytest.raises(DefinitionError):
        memory.retain(**wrong)


def test_sizes_name_the_biggest_thread_first(memory):
    app = builder(answer).compile(checkpointer=memory.checkpointer)
    talk(app, "small", 1)
    talk(app, "big", 6)
    big, small = memory.threads()
    assert (big.thread_id, small.thread_id) == ("big", "small")
    assert big.bytes == pytest.approx(stored_bytes(memory.url, "big"), rel=0.01)
    assert big.checkpoints > small.checkpoints


def test_a_copy_of_a_thread_lives_on_by_itself(memory):
    app = builder(answer).compile(checkpointer=memory.checkpointer)
    talk(app, "t", 13)
    memory.checkpointer.copy_thread("t", "copy")
    before = texts(app, "t")
    assert texts(app, "copy") == before
    talk(app, "copy", 1)
    memory.checkpointer.delete_thread("copy")
    assert texts(app, "t") == before
    assert app.get_state(at("copy")).values == {}


def test_deleting_a_run_leaves_the_states_of_other_runs_whole(memory):
    app = builder(answer).compile(checkpointer=memory.checkpointer)
    for run in ("r1", "r2", "r3"):
        app.invoke({"messages": [HumanMessage(run)]}, {**at("t"), "metadata": {"run_id": run}})
    before = texts(app, "t")
    memory.checkpointer.delete_for_runs(["r2"])
    assert texts(app, "t") == before
    memory.checkpointer.delete_for_runs(["r3"])
    assert texts(app, "t") == before[:4]


def test_subgraph_calls_go_with_the_checkpoint_they_were_started_from(memory):
    inner = builder(answer).compile()
    outer = StateGraph(State)
    outer.add_node("inner", inner)
    outer.add_edge(START, "inner")
    app = outer.compile(checkpointer=memory.checkpointer)
    talk(app, "t", 12)
    before = texts(app, "t")
    memory.retain(keep_last=1)
    with psycopg.connect(memory.url) as conn:
        spaces = conn.execute("SELECT count(DISTINCT checkpoint_ns) FROM checkpoints WHERE thread_id = 't'").fetchone()[
            0
        ]
    assert (texts(app, "t"), spaces <= 2) == (before, True)


def test_parallel_branches_are_stored_and_replayed_in_their_order(memory):
    def fan(_state):
        return [Send("branch", {"value": n}) for n in range(5)]

    def branch(state):
        return {"messages": [AIMessage(f"branch {state['value']}")]}

    graph = StateGraph(State)
    graph.add_node("branch", branch)
    graph.add_conditional_edges(START, fan)
    app = graph.compile(checkpointer=memory.checkpointer)
    app.invoke({"messages": [HumanMessage("go")]}, at("t"))
    assert texts(app, "t") == ["go", *(f"branch {n}" for n in range(5))]


def test_what_threads_hold_can_be_encrypted(fresh_postgres_url, monkeypatch):
    pytest.importorskip("cryptography")
    key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
    monkeypatch.setenv("AGENTKIT_ENCRYPTION_KEY", key)
    with open_memory(fresh_postgres_url) as memory:
        app = builder(answer).compile(checkpointer=memory.checkpointer)
        app.invoke({"messages": [HumanMessage("my secret")], "value": "a secret too"}, at("t"))
        talk(app, "t", 12)
        assert app.get_state(at("t")).values["value"] == "a secret too"
    with psycopg.connect(fresh_postgres_url) as conn:
        for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
            rows = conn.execute(f"SELECT t::text, convert_to(t::text, 'UTF8') FROM {table} t").fetchall()
            assert not any("secret" in text or b"secret".hex() in text for text, _ in rows), table
    monkeypatch.setenv("AGENTKIT_ENCRYPTION_KEY", key.replace("MDEy", "MDEz"))
    with open_memory(fresh_postgres_url) as memory:
        app = builder(answer).compile(checkpointer=memory.checkpointer)
        with pytest.raises(NotStorableError, match="AGENTKIT_ENCRYPTION_KEY is not the key"):
            app.get_state(at("t"))
    monkeypatch.setenv("AGENTKIT_ENCRYPTION_KEY", "too short")
    with pytest.raises(DefinitionError, match="16, 24 or 32 bytes"), open_memory(fresh_postgres_url):
        pass


async def test_a_sync_saver_serves_an_async_run(memory):
    app = builder(answer).compile(checkpointer=memory.checkpointer)
    await app.ainvoke({"messages": [HumanMessage("hi")]}, at("t"))
    assert len((await app.aget_state(at("t"))).values["messages"]) == 2


async def test_an_async_saver_says_so_in_a_sync_run(amemory):
    app = builder(answer).compile(checkpointer=amemory.checkpointer)
    with pytest.raises(asyncio.InvalidStateError, match="async"):
        app.invoke({"messages": [HumanMessage("hi")]}, at("t"))


def test_threads_written_without_deltas_still_load(memory):
    class Old(TypedDict):
        messages: Annotated[list[Any], lambda old, new: history(old, [new])]

    def old_answer(state):
        return {"messages": [AIMessage(f"answer {len(state['messages'])}")]}

    graph = StateGraph(Old)
    graph.add_node("answer", old_answer)
    graph.add_edge(START, "answer")
    talk(graph.compile(checkpointer=memory.checkpointer), "t", 2)
    app = builder(answer).compile(checkpointer=memory.checkpointer)
    talk(app, "t", 1)
    assert texts(app, "t") == ["t says 0", "answer 1", "t says 1", "answer 3", "t says 0", "answer 5"]
