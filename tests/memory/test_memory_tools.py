"""What an agent remembers of people: kept once, found again, and never somebody else's."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from agentkit.agents import create_agent
from agentkit.errors import DefinitionError, InjectionError
from agentkit.memory import InMemoryStore, MemoryMiddleware, memory_tools
from agentkit.testing import ScriptedModel, StrictModel
from agentkit.tools import identity


def call(name, call_id="c1", **args):
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def agent(store, *calls, tools=None, **options):
    script = [AIMessage("", tool_calls=list(calls)), AIMessage("done")] if calls else [AIMessage("hello")]
    model = StrictModel(ScriptedModel(script))
    return create_agent(
        model, memory_tools() if tools is None else tools, store=store, checkpointer=InMemorySaver(), **options
    )


def results(answer):
    return [(message.status, message.content) for message in answer["messages"] if message.type == "tool"]


def say(store, *calls, user="ann", thread="t", **options):
    config = {"configurable": {"thread_id": thread, **({"user_id": user} if user else {})}}
    return results(agent(store, *calls, **options).invoke({"messages": [HumanMessage("hi")]}, config))


def test_what_one_thread_was_told_another_one_of_the_same_user_recalls(store):
    ((status, text),) = say(store, call("remember", text="The user likes green tea."), thread="a")
    assert (status, text[:12]) == ("success", "remembered a")
    ((_, recalled),) = say(store, call("recall", query="which tea?"), thread="b")
    assert (recalled[0], recalled[-25:]) == ("[", "The user likes green tea.")
    assert say(store, call("recall", query="tea"), user="bob", thread="b") == [("success", "nothing is known yet")]


async def test_the_tools_do_the_same_in_an_async_run(astore):
    config = {"configurable": {"thread_id": "t", "user_id": "ann"}}
    for step, expected in [
        (call("remember", text="The user likes green tea."), "remembered as ["),
        (call("remember", text="the user likes GREEN tea"), "known already as ["),
        (call("recall", query="tea"), "the user likes GREEN tea"),
    ]:
        answer = await agent(astore, step).ainvoke({"messages": [HumanMessage("hi")]}, config)
        assert expected in results(answer)[0][1]


def test_a_fact_is_kept_once_and_forgotten_by_the_id_the_model_sees(store):
    say(store, call("remember", text="Likes tea."))
    ((_, again),) = say(store, call("remember", text="likes  TEA"))
    key = again.split("[")[1].split("]")[0]
    assert again.startswith("known already")
    assert say(store, call("forget", memory_id=f"[{key}]")) == [("success", f"forgot [{key}] likes TEA")]
    ((status, text),) = say(store, call("forget", memory_id=key))
    assert (status, "there is no memory" in text) == ("error", True)


def test_several_facts_of_one_batch_are_all_kept(store):
    facts = [call("remember", f"c{n}", text=f"fact number {n}") for n in range(5)]
    assert len(say(store, *facts)) == 5
    ((_, text),) = say(store, call("recall"))
    assert len(text.splitlines()) == 5


def test_limits_are_told_to_the_model(store):
    tools = memory_tools(max_length=10, max_items=2)
    (long,) = say(store, call("remember", text="x" * 11), tools=tools)
    say(store, call("remember", text="one"), tools=tools)
    say(store, call("remember", text="two"), tools=tools)
    (full,) = say(store, call("remember", text="three"), tools=tools)
    (renewed,) = say(store, call("remember", text="One!"), tools=tools)
    (empty,) = say(store, call("remember", text=" … "), tools=tools)
    assert (long[0], "10 are allowed" in long[1]) == ("error", True)
    assert (full[0], "forget some first" in full[1]) == ("error", True)
    assert (renewed[0], renewed[1][:13]) == ("success", "known already")
    assert (empty[0], "empty" in empty[1]) == ("error", True)


def test_only_what_is_allowed_is_shared_between_users(store):
    tools = memory_tools(shared=["team"])
    say(store, call("remember", text="The printer is on floor 3.", space="team"), tools=tools, user="ann")
    say(store, call("remember", text="I owe Bob a coffee."), tools=tools, user="ann")
    ((_, text),) = say(store, call("recall"), tools=tools, user="bob")
    assert (text.endswith("(team) The printer is on floor 3."), "coffee" in text) == (True, False)
    ((status, _),) = say(store, call("remember", text="mine now", space="user"), tools=tools, user="bob")
    assert status == "error"


@pytest.mark.parametrize("forged", ["user", "namespace", "user_id", "space"])
def test_the_model_cannot_name_whose_memory_it_is(store, forged):
    say(store, call("remember", text="secret of ann"), user="ann")
    answers = say(store, call("recall", **{forged: "ann"}), user="bob")
    assert "secret" not in str(answers)


def test_a_conversation_can_have_a_memory_of_its_own(store):
    tools = memory_tools(scope="thread")
    say(store, call("remember", text="We speak French here."), tools=tools, thread="a")
    assert "French" in str(say(store, call("recall"), tools=tools, thread="a"))
    assert "French" not in str(say(store, call("recall"), tools=tools, thread="b"))
    assert "French" not in str(say(store, call("recall"), thread="a"))


def test_without_a_known_user_each_thread_is_for_itself(store):
    say(store, call("remember", text="I am nobody."), user=None, thread="a")
    assert "nobody" in str(say(store, call("recall"), user=None, thread="a"))
    assert "nobody" not in str(say(store, call("recall"), user=None, thread="b"))
    assert "nobody" not in str(say(store, call("recall"), user="a", thread="a"))


def test_without_a_store_the_developer_is_told():
    with pytest.raises(InjectionError, match=r"store=memory\.store"):
        say(None, call("recall"))


@pytest.mark.parametrize(
    "wrong",
    [{"scope": "world"}, {"shared": "team"}, {"shared": ["me"]}, {"shared": ["a.b"]}, {"max_length": 0}, {"kind": ""}],
)
def test_tools_that_could_not_work_are_refused_when_they_are_made(wrong):
    with pytest.raises(DefinitionError, match="memory_tools"):
        memory_tools(**wrong)


@dataclass
class Ctx:
    user_id: Any = None


class Model(BaseModel):
    user_id: str = "pat"


class OnlyAttributes:
    __slots__ = ("identity",)

    def __init__(self, name):
        self.identity = name


class Unauthenticated:
    is_authenticated = False

    @property
    def identity(self):
        raise NotImplementedError


def runtime(*, user="no server", context=None, thread="t", **configurable):
    server = None if user == "no server" else SimpleNamespace(assistant_id="a", graph_id="g", user=user)
    info = SimpleNamespace(thread_id=thread)
    return SimpleNamespace(
        server_info=server, context=context, execution_info=info, config={"configurable": configurable}
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (runtime(user=OnlyAttributes("ann"), context=Ctx("eve"), user_id="eve"), ("user", "ann")),
        (runtime(user={"identity": "ann"}), ("user", "ann")),
        (runtime(user=None, context=Ctx("eve"), user_id="eve"), ("anonymous", "t")),
        (runtime(user=Unauthenticated(), user_id="eve"), ("anonymous", "t")),
        (runtime(context=Ctx("ann"), user_id="bob"), ("user", "ann")),
        (runtime(context={"user_id": "ann"}), ("user", "ann")),
        (runtime(context=Model()), ("user", "pat")),
        (runtime(context=Ctx(7)), ("user", "7")),
        (runtime(context=Ctx(), user_id="bob"), ("user", "bob")),
        (runtime(), ("anonymous", "t")),
    ],
)
def test_the_authenticated_user_wins_and_on_a_server_nothing_else_counts(given, expected):
    found = identity(given)
    assert (found.kind, found.id) == expected


@pytest.mark.parametrize("given", [runtime(context=Ctx(["ann"])), runtime(context=Ctx(True)), runtime(thread=None)])
def test_an_identity_that_is_none_is_refused(given):
    with pytest.raises(InjectionError):
        identity(given)


def test_no_two_identities_share_a_place():
    names = ["a.b", "a%002Eb", "a", "*", "a" * 300, "a" * 301, "", "가.나", "t", "\ud800", "a\x00", "ann@example.org"]
    users = [identity(runtime(context=Ctx(name))).namespace for name in names if name]
    threads = [identity(runtime(user=None, thread=name)).namespace for name in names if name]
    assert len({*users, *threads}) == 2 * (len(names) - 1)
    store = InMemoryStore()
    for namespace in (*users, *threads):
        store.put(namespace, "k", {})


def talk(store, thread, *texts, user="ann", model=None):
    model = model or ScriptedModel([AIMessage("ok")] * len(texts))
    app = create_agent(
        StrictModel(model), [], store=store, checkpointer=InMemorySaver(), middleware=[MemoryMiddleware()]
    )
    config = {"configurable": {"thread_id": thread, "user_id": user}}
    return [app.invoke({"messages": [HumanMessage(text)]}, config)["messages"] for text in texts]


def test_the_middleware_adds_what_fits_once_and_changes_nothing_sent_before(store):
    say(store, call("remember", text="The user drinks green tea."))
    say(store, call("remember", text="The user's dog is called Rex."))
    first, second, third = talk(store, "m", "Shall I make tea?", "More tea?", "What is my dog called?")
    assert [message.type for message in first] == ["human", "human", "ai"]
    assert ("green tea" in first[1].text, "Rex" in first[1].text) == (True, False)
    assert [message.type for message in second[3:]] == ["human", "ai"]
    assert "Rex" in third[6].text
    for earlier, later in ((first, second), (second, third)):
        assert later[: len(earlier)] == earlier


def test_the_middleware_adds_nothing_of_another_user_or_that_does_not_fit(store):
    say(store, call("remember", text="The user drinks green tea."))
    assert [len(messages) for messages in talk(store, "m", "tea?", user="bob")] == [2]
    assert [len(messages) for messages in talk(store, "n", "weather?")] == [2]
