"""People's rights: everything of a person can be handed out, and deleted, and nothing of anybody else."""

import json
from dataclasses import dataclass

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from agentkit.agents import create_agent
from agentkit.errors import DefinitionError
from agentkit.memory import memory_tools
from agentkit.testing import ScriptedModel, StrictModel

TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "store", "store_vectors")


@dataclass
class Ctx:
    user_id: str


def agent(memory):
    remember = {"name": "remember", "args": {"text": "likes tea"}, "id": "c1", "type": "tool_call"}
    script = [AIMessage("", tool_calls=[remember]), AIMessage("noted")]
    model = StrictModel(ScriptedModel(script))
    return create_agent(model, memory_tools(), store=memory.store, checkpointer=memory.checkpointer, context_schema=Ctx)


def live(memory, user, **how):
    app = agent(memory)
    app.invoke(
        {"messages": [HumanMessage(f"I am {user}")]},
        {"configurable": {"thread_id": f"of {user}"}},
        context=Ctx(user),
        **how,
    )
    memory.store.put(("prefs", user.replace(".", "-")), "colour", {"is": f"{user}'s blue"})


def everything(url):
    with psycopg.connect(url) as conn:
        return "\n".join(
            str(row)
            for table in TABLES
            if conn.execute("SELECT to_regclass(%s)", (table,)).fetchone()[0]
            for row in conn.execute(f"SELECT t::text FROM {table} t").fetchall()
        )


def test_an_export_holds_all_of_a_person_and_nothing_of_another(memory):
    for user in ("ann", "ann.2", "bob"):
        live(memory, user)
    found = memory.export("ann", namespaces=[("prefs", "ann")])
    json.dumps(found)
    (thread,) = found["threads"]
    assert (found["user"], thread["thread_id"]) == ("ann", "of ann")
    assert thread["states"][""]["messages"][0]["content"] == "I am ann"
    assert len(thread["states"][""]["messages"]) == 4
    assert [item["value"] for item in found["items"]] == [{"text": "likes tea"}, {"is": "ann's blue"}]
    assert len(thread["checkpoints"]) > 2
    assert thread["ledger"]
    assert "bob" not in str(found)
    assert "ann.2" not in str(found)


def test_an_erased_person_is_in_no_table_any_more_and_the_others_are_untouched(memory):
    live(memory, "bob")
    before = everything(memory.url)
    live(memory, "ann.lee@example.org")
    erased = memory.erase("ann.lee@example.org", namespaces=[("prefs", "ann-lee@example-org")])
    assert (erased.threads, erased.items, erased.checkpoints > 2) == (1, 2, True)
    assert everything(memory.url) == before
    assert memory.erase("ann.lee@example.org").threads == 0


async def test_the_async_side_does_the_same(amemory):
    app = agent(amemory)
    await app.ainvoke(
        {"messages": [HumanMessage("I am ann")]}, {"configurable": {"thread_id": "t"}}, context=Ctx("ann")
    )
    found = await amemory.export("ann")
    assert (len(found["threads"]), len(found["items"])) == (1, 1)
    assert found["threads"][0]["states"][""]["messages"][0]["content"] == "I am ann"
    erased = await amemory.erase("ann")
    assert (erased.threads, erased.items) == (1, 1)
    assert everything(amemory.url) == ""


@pytest.mark.parametrize("user", ["%", "_nn", "a\\", "an", "nn", "ANN", "ann.%"])
def test_a_name_that_looks_like_a_pattern_erases_nobody_else(memory, user):
    live(memory, "ann")
    before = everything(memory.url)
    assert memory.erase(user).threads == 0
    assert everything(memory.url) == before


@pytest.mark.parametrize("user", ["", None, 7])
def test_nobody_cannot_be_erased(memory, user):
    with pytest.raises(DefinitionError):
        memory.erase(user)


def test_an_erasure_with_a_wrong_namespace_deletes_nothing(memory):
    live(memory, "ann")
    before = everything(memory.url)
    for namespaces in ([()], [("a.b",)], ["prefs"]):
        with pytest.raises(ValueError, match="namespace"):
            memory.erase("ann", namespaces=namespaces)
    assert everything(memory.url) == before
