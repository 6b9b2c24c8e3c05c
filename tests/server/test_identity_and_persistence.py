"""Whose run it is, off the server and on servers of other kinds (case B85); one definition for both (case B84)."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, TypedDict
from uuid import UUID

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.runtime import ServerInfo
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel

from agentkit.agents import create_agent
from agentkit.errors import DefinitionError, InjectionError
from agentkit.memory import aopen_memory, open_memory
from agentkit.server import with_memory, without_memory
from agentkit.testing import ScriptedModel, calls
from agentkit.tools import ToolRuntime, identity, tool


@dataclass
class AsDataclass:
    user_id: Any = ""


class AsModel(BaseModel):
    user_id: Any = None


class AsDict(TypedDict, total=False):
    user_id: Any


def seen_by_a_tool(context: Any, *, server: Any = None, schema: Any = None, **configurable: Any) -> tuple[str, str]:
    """The identity that a tool finds in a run with this context and configurable."""
    found: list[Any] = []

    @tool
    def who(runtime: ToolRuntime[Any, Any]) -> str:
        """Who am I?"""
        told = replace(runtime, server_info=server) if server is not None else runtime
        found.append(identity(told))
        return "ok"

    model = ScriptedModel([calls(("who", {})), "done"])
    agent = create_agent(model, [who], context_schema=schema, checkpointer=InMemorySaver(), on_tool_error="raise")
    config = {"configurable": {"thread_id": "t1", **configurable}}
    agent.invoke({"messages": [("user", "x")]}, config, context=context)
    namespace: tuple[str, str] = found[0].namespace
    return namespace


@pytest.mark.parametrize("schema", [AsDataclass, AsModel, AsDict])
@pytest.mark.parametrize(("user", "label"), [("ann", "ann"), (7, "7"), (UUID(int=1), str(UUID(int=1)))])
def test_off_the_server_the_context_says_who_it_is(schema: Any, user: Any, label: str) -> None:
    assert seen_by_a_tool(schema(user_id=user), schema=schema, user_id="ben") == ("user", label)


@pytest.mark.parametrize("context", [None, AsDataclass(), AsModel(), {}])
def test_then_configurable_then_nobody(context: Any) -> None:
    assert seen_by_a_tool(context, user_id="ben") == ("user", "ben")
    assert seen_by_a_tool(context) == ("anonymous", "t1")


def test_what_is_no_user_id_is_refused() -> None:
    with pytest.raises(InjectionError, match=r"context\.user_id is a list"):
        seen_by_a_tool({"user_id": ["ann"]})


class AttributesOnly:
    """A user as some servers have it: no item access, no mapping."""

    __slots__ = ("identity", "is_authenticated")

    def __init__(self, identity: str, *, is_authenticated: bool = True) -> None:
        self.identity = identity
        self.is_authenticated = is_authenticated


def on_server(user: Any) -> ServerInfo:
    return ServerInfo(assistant_id="a", graph_id="g", user=user)


@pytest.mark.parametrize("user", [AttributesOnly("ann"), SimpleNamespace(identity="ann"), {"identity": "ann"}])
def test_on_a_server_its_user_wins_whatever_kind_of_object_that_is(user: Any) -> None:
    assert seen_by_a_tool({"user_id": "ben"}, server=on_server(user), user_id="ben") == ("user", "ann")


@pytest.mark.parametrize("user", [None, AttributesOnly("ann", is_authenticated=False)])
def test_on_a_server_that_knows_nobody_a_client_cannot_say_who_it_is(user: Any) -> None:
    forged = {"user_id": "ben", "langgraph_auth_user_id": "ben"}
    assert seen_by_a_tool({"user_id": "ben"}, server=on_server(user), **forged) == ("anonymous", "t1")


def counting(**settings: Any) -> Any:
    return create_agent(ScriptedModel(lambda messages: str(len(messages))), [], **settings)


def test_a_graph_gets_its_memory_where_it_runs(postgres_url: str) -> None:
    graph = counting()
    thread = {"configurable": {"thread_id": "one-definition"}}
    with open_memory(postgres_url) as memory:
        with_memory(graph, memory).invoke({"messages": [("user", "a")]}, thread)
        output = with_memory(graph, memory).invoke({"messages": [("user", "b")]}, thread)
    assert [m.content for m in output["messages"]] == ["a", "1", "b", "3"]
    assert (graph.checkpointer, graph.store) == (None, None), "it can still be served"


async def test_a_graph_gets_its_memory_where_it_runs_async(postgres_url: str) -> None:
    thread = {"configurable": {"thread_id": "one-definition-async"}}
    async with aopen_memory(postgres_url) as memory:
        graph = with_memory(counting(), memory)
        await graph.ainvoke({"messages": [("user", "a")]}, thread)
        output = await graph.ainvoke({"messages": [("user", "b")]}, thread)
    assert [m.content for m in output["messages"]] == ["a", "1", "b", "3"]


def test_a_graph_loses_its_own_memory_for_the_server() -> None:
    graph = counting(checkpointer=InMemorySaver(), store=InMemoryStore())
    served = without_memory(graph)
    assert (served.checkpointer, served.store) == (None, None)
    assert graph.checkpointer is not None
    assert without_memory(counting(checkpointer=False)).checkpointer is False
    with pytest.raises(DefinitionError, match=r"call \.compile"):
        without_memory(StateGraph(dict))  # type: ignore[type-var]
