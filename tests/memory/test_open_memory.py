"""Opening a memory, and what it is good for in the first place."""

from operator import add
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph

from agentkit.memory import aopen_memory, open_memory


class State(TypedDict):
    notes: Annotated[list[str], add]


def graph(checkpointer):
    builder = StateGraph(State)
    builder.add_node("note", lambda state: {"notes": [f"{len(state['notes'])} seen"]})
    builder.add_edge(START, "note")
    return builder.compile(checkpointer=checkpointer)


def test_a_thread_and_the_store_outlive_the_process_that_wrote_them(fresh_postgres_url):
    config = {"configurable": {"thread_id": "t"}}
    with open_memory(fresh_postgres_url) as memory:
        graph(memory.checkpointer).invoke({"notes": ["a"]}, config)
        memory.store.put(("user", "u"), "k", {"tea": "green"})
    with open_memory(fresh_postgres_url) as memory:
        assert graph(memory.checkpointer).get_state(config).values == {"notes": ["a", "1 seen"]}
        assert memory.store.get(("user", "u"), "k").value == {"tea": "green"}


async def test_a_thread_and_the_store_outlive_the_loop_that_wrote_them(fresh_postgres_url):
    config = {"configurable": {"thread_id": "t"}}
    async with aopen_memory(fresh_postgres_url) as memory:
        await graph(memory.checkpointer).ainvoke({"notes": ["a"]}, config)
        await memory.store.aput(("user", "u"), "k", {"tea": "green"})
    async with aopen_memory(fresh_postgres_url) as memory:
        assert (await graph(memory.checkpointer).aget_state(config)).values == {"notes": ["a", "1 seen"]}
        assert (await memory.store.aget(("user", "u"), "k")).value == {"tea": "green"}


def test_the_fixtures_work(checkpointer, store):
    graph(checkpointer).invoke({"notes": ["a"]}, {"configurable": {"thread_id": "t"}})
    store.put(("a",), "k", {"v": 1})
    assert [item.value for item in store.search(("a",))] == [{"v": 1}]


async def test_the_async_fixtures_work(acheckpointer, astore):
    await graph(acheckpointer).ainvoke({"notes": ["a"]}, {"configurable": {"thread_id": "t"}})
    await astore.aput(("a",), "k", {"v": 1})
    assert [item.value for item in await astore.asearch(("a",))] == [{"v": 1}]
