"""Toolsets: tools that are asked for when they are needed, and the wrappers that change them."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from batches import Run, graph_of, paired, texts
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from agentkit.agents import AgentState, create_agent
from agentkit.errors import DefinitionError
from agentkit.testing import ScriptedModel, StrictModel
from agentkit.tools import ToolNode, ToolPolicy, ToolRuntime, policy_of, tool
from agentkit.tools.toolsets import (
    WrapperToolset,
    combined,
    filtered,
    for_roles,
    prefixed,
    renamed,
    roles_of,
    searchable,
    with_policies,
)


def call(name, call_id, **args):
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def ai(*calls, **fields):
    return AIMessage("", tool_calls=list(calls), **fields)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def delete_all(confirm: bool = True) -> str:
    """Delete everything."""
    return "gone"


@tool(return_direct=True)
def final(text: str) -> str:
    """Say the last word."""
    return f"last: {text}"


class Source:
    """A toolset that remembers when it was asked, and gives what a function of the runtime says."""

    def __init__(self, give, label="source"):
        self.give, self.label, self.asked = give, label, []

    def tools(self, runtime):
        self.asked.append(runtime)
        return self.give(runtime)


class AsyncSource(Source):
    async def tools(self, runtime):
        await asyncio.sleep(0)
        return super().tools(runtime)


def agent_of(turns, tools, **settings):
    model = ScriptedModel(list(turns))
    return create_agent(StrictModel(model), tools, **settings), model


def answers(state):
    return [m.content for m in state["messages"] if isinstance(m, ToolMessage)]


ASK = {"messages": [("user", "go")]}


# in an agent


def test_the_tools_of_a_toolset_are_offered_and_run(run: Run):
    source = Source(lambda runtime: [add])
    agent, model = agent_of([ai(call("add", "c1", a=1, b=2)), "3"], [final, source])
    state = run(agent, ASK)
    assert model.offered == [["final", "add"], ["final", "add"]]
    assert answers(state) == ["3"]


def test_an_async_toolset_serves_async_runs_and_says_so_in_sync_ones(run: Run):
    agent, _ = agent_of([ai(call("add", "c1", a=1, b=2)), "3"], [AsyncSource(lambda runtime: [add], "remote")])
    if run.is_async:
        assert answers(run(agent, ASK)) == ["3"]
    else:
        with pytest.raises(DefinitionError, match="remote is async and this run is not"):
            run(agent, ASK)


def test_what_is_offered_follows_the_state(run: Run):
    class Steps(AgentState):
        unlocked: bool

    @tool
    def unlock(runtime: ToolRuntime) -> Command:
        """Unlock more tools."""
        result = ToolMessage("unlocked", tool_call_id=runtime.tool_call_id)
        return Command(update={"unlocked": True, "messages": [result]})

    source = Source(lambda runtime: [delete_all] if runtime.state.get("unlocked") else [])
    agent, model = agent_of(
        [ai(call("delete_all", "c1")), ai(call("unlock", "c2")), ai(call("delete_all", "c3")), "done"],
        [unlock, source],
        state_schema=Steps,
    )
    state = run(agent, ASK)
    assert model.offered == [["unlock"], ["unlock"], ["unlock", "delete_all"], ["unlock", "delete_all"]]
    assert answers(state) == ["Error: delete_all is not a valid tool, try one of [unlock].", "unlocked", "gone"]


@dataclass
class Context:
    user_id: str = "nobody"
    roles: list[str] = field(default_factory=list)


def test_what_is_offered_follows_context_and_roles(run: Run):
    toolset = for_roles([add, delete_all], {"*": ["add"], "admin": ["delete_*"]})
    for roles, wanted in (([], ["add"]), (["admin"], ["add", "delete_all"]), (["guest"], ["add"])):
        agent, model = agent_of([ai(call("delete_all", "c1")), "done"], [toolset], context_schema=Context)
        state = run(agent, ASK, context=Context(roles=roles))
        assert model.offered[0] == wanted
        assert answers(state) == (
            ["gone"] if "admin" in roles else ["Error: delete_all is not a valid tool, try one of [add]."]
        )


def test_on_a_server_roles_come_from_the_authenticated_user_only():
    user = SimpleNamespace(identity="u", permissions=["reader"])
    server = SimpleNamespace(user=user)
    runtime: Any = SimpleNamespace(server_info=server, context={"roles": ["admin"]})
    assert roles_of(runtime) == {"reader"}
    runtime.server_info = SimpleNamespace(user=None)
    assert roles_of(runtime) == frozenset()
    runtime.server_info = None
    assert roles_of(runtime) == {"admin"}


def test_return_direct_of_a_discovered_tool_ends_the_run(run: Run):
    agent, model = agent_of([ai(call("final", "c1", text="bye"))], [Source(lambda runtime: [final])])
    state = run(agent, ASK)
    assert answers(state) == ["last: bye"]
    assert len(model.requests) == 1


def test_several_calls_of_toolsets_and_tools_run_in_one_batch_in_call_order(run: Run):
    agent, _ = agent_of(
        [ai(call("add", "c1", a=1, b=1), call("delete_all", "c2"), call("add", "c3", a=2, b=2)), "done"],
        [add, Source(lambda runtime: [delete_all])],
    )
    state = run(agent, ASK)
    assert answers(state) == ["2", "gone", "4"]
    assert paired(state["messages"])


def test_two_tools_of_one_name_are_an_error_that_names_both_sides(run: Run):
    agent, _ = agent_of(["never"], [add, Source(lambda runtime: [add], "maths")])
    with pytest.raises(DefinitionError, match=r"'add': one of the listed tools .* and one of toolset maths"):
        run(agent, ASK)
    agent, _ = agent_of(["never"], [Source(lambda runtime: [add], "one"), Source(lambda runtime: [add], "two")])
    with pytest.raises(DefinitionError, match=r"'add': one of toolset one and one of toolset two"):
        run(agent, ASK)


def test_what_is_no_tool_is_an_error_that_names_the_toolset(run: Run):
    agent, _ = agent_of(["never"], [Source(lambda runtime: ["not a tool"], "broken")])
    with pytest.raises(DefinitionError, match="toolset broken: 'not a tool' is no tool"):
        run(agent, ASK)


def test_a_discovered_tool_that_writes_a_plain_key_in_parallel_is_refused(run: Run):
    class Noted(AgentState):
        note: str

    @tool(policy=ToolPolicy(writes=("note",)))
    def write() -> str:
        """Write a note."""
        return "x"

    agent, _ = agent_of(["never"], [Source(lambda runtime: [write])], state_schema=Noted)
    with pytest.raises(DefinitionError, match="writes the state key 'note', which has no reducer"):
        run(agent, ASK)


def test_a_toolset_that_fails_when_its_call_is_to_run_gives_an_error_result(run: Run):
    def give(runtime):
        if len(source.asked) == 2:
            raise ConnectionError("the catalogue is down")
        return [add]

    source = Source(give)
    agent, _ = agent_of([ai(call("add", "c1", a=1, b=2), call("delete_all", "c2")), "sorry"], [delete_all, source])
    state = run(agent, ASK)
    assert "the catalogue is down" in answers(state)[0]
    assert answers(state)[1] == "gone"
    assert state["messages"][-1].content == "sorry"


def test_a_tool_that_was_offered_and_is_taken_away_says_so(run: Run):
    source = Source(lambda runtime: [add, delete_all] if len(source.asked) != 2 else [add])
    agent, _ = agent_of([ai(call("delete_all", "c1")), "sorry"], [source])
    assert answers(run(agent, ASK)) == ["Error: delete_all is no longer available to you; the others are [add]."]


@pytest.mark.parametrize("form", ["state", "send"])
def test_a_hand_written_graph_takes_toolsets_too(run: Run, form: str):
    node = ToolNode([delete_all, Source(lambda runtime: [add])])
    given = {"messages": [ai(call("add", "c1", a=1, b=2), call("delete_all", "c2"), call("nosuch", "c3"))]}
    output = run(graph_of(node, form=form), given)
    assert texts(output) == ["3", "gone", "Error: nosuch is not a valid tool, try one of [add, delete_all]."]


def test_policies_of_discovered_tools_hold_order_and_limits(run: Run):
    log = []

    @tool(policy=ToolPolicy(sequential=True))
    async def slow(n: int) -> str:
        """Work slowly."""
        log.append(f"start {n}")
        await asyncio.sleep(0)
        log.append(f"end {n}")
        return str(n)

    if not run.is_async:
        return
    agent, _ = agent_of([ai(*(call("slow", f"c{n}", n=n) for n in range(4))), "done"], [Source(lambda runtime: [slow])])
    run(agent, ASK)
    assert log == [f"{word} {n}" for n in range(4) for word in ("start", "end")]


def test_an_interrupted_call_of_a_toolset_resumes_in_another_agent_object(run: Run):
    saver = InMemorySaver()
    config = {"configurable": {"thread_id": "t"}}

    def build(turns):
        @tool
        def confirm(what: str) -> str:
            """Ask a person."""
            return f"{what}: {interrupt('sure?')}"

        source = Source(lambda runtime: [confirm])
        return create_agent(StrictModel(ScriptedModel(turns)), [source], checkpointer=saver), source

    first, _ = build([ai(call("confirm", "c1", what="delete"))])
    assert run(first, ASK, config)["__interrupt__"][0].value == "sure?"
    second, source = build(["done"])
    state = run(second, Command(resume="yes"), config)
    assert answers(state) == ["delete: yes"]
    assert source.asked  # found again there


def test_middleware_filters_what_toolsets_give_and_the_filter_is_enforced(run: Run):
    class NoDelete(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            return handler(request.override(tools=[t for t in request.tools if t.name != "delete_all"]))

        async def awrap_model_call(self, request, handler):
            return await handler(request.override(tools=[t for t in request.tools if t.name != "delete_all"]))

    agent, model = agent_of(
        [ai(call("delete_all", "c1")), "ok"], [Source(lambda runtime: [add, delete_all])], middleware=[NoDelete()]
    )
    state = run(agent, ASK)
    assert model.offered[0] == ["add"]
    assert answers(state) == ["Error: delete_all is not a valid tool, try one of [add]."]


def test_a_middleware_brings_a_toolset_and_needs_no_hook(run: Run):
    class Discovers(AgentMiddleware):
        tools = [Source(lambda runtime: [add])]

    agent, model = agent_of([ai(call("add", "c1", a=1, b=2)), "3"], [delete_all], middleware=[Discovers()])
    assert answers(run(agent, ASK)) == ["3"]
    assert sorted(model.offered[0]) == ["add", "delete_all"]


def test_the_same_tools_are_bound_once_for_many_model_calls():
    bound = []

    class Counting(ScriptedModel):
        def bind_tools(self, tools, **kwargs):
            bound.append([t.name for t in tools])
            return super().bind_tools(tools, **kwargs)

    toolset = prefixed(filtered([add, delete_all], lambda each, runtime: True), "x_")
    model = Counting([*(ai(call("x_add", f"c{n}", a=n, b=n), id=f"m{n}") for n in range(5)), "done"])
    create_agent(model, [toolset]).invoke(ASK)
    assert bound == [["x_add", "x_delete_all"]]


# wrappers


def names(toolset, runtime=None):
    sync = [t.name for t in toolset.tools(runtime)]
    assert [t.name for t in asyncio.run(toolset.atools(runtime))] == sync
    return sync


def test_wrappers_change_names_choice_and_policies_and_keep_objects():
    source = [add, delete_all]
    assert names(prefixed(source, "m_")) == ["m_add", "m_delete_all"]
    assert names(renamed(source, {"add": "plus"})) == ["plus", "delete_all"]
    assert names(filtered(source, lambda each, runtime: each.name == "add")) == ["add"]
    assert names(combined([add], prefixed([add], "b_"))) == ["add", "b_add"]
    toolset = with_policies(source, {"delete_*": {"timeout": 5}, "*": ToolPolicy(retries=1)})
    first = toolset.tools(None)
    assert [(policy_of(t).timeout, policy_of(t).retries) for t in first] == [(None, 1), (5, 0)]
    assert all(a is b for a, b in zip(first, toolset.tools(None), strict=True))
    assert policy_of(add).retries == 0


def test_a_prefixed_tool_still_does_what_it_did(run: Run):
    agent, _ = agent_of([ai(call("m_add", "c1", a=1, b=2)), "3"], [prefixed([add], "m_")])
    assert answers(run(agent, ASK)) == ["3"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: prefixed([add], "a b"), "'a_b'"),
        (lambda: prefixed([add], ""), "tool name ''"),
        (lambda: prefixed([add], "x" * 63).tools(None), "at most 64"),
        (lambda: renamed([add], {"add": "a.b"}), "'a_b'"),
        (lambda: renamed([add, delete_all], {"add": "x", "delete_all": "x"}), "two tools would get one name"),
        (lambda: renamed([add, delete_all], {"add": "delete_all"}).tools(None), "two tools are named 'delete_all'"),
        (lambda: with_policies([add], {"*": {"speed": 1}}), "there is no field 'speed'"),
        (lambda: for_roles([add], {"admin": "add"}), r"needs a list of tool names: write \['add'\]"),
        (lambda: searchable([add], limit=0), "limit=0 finds nothing"),
        (lambda: filtered("add", lambda t, r: True), "'add' is no toolset"),
        (lambda: combined([add], [add]).tools(None), "two tools are named 'add'"),
    ],
)
def test_what_cannot_work_is_refused_with_the_fix(make, message):
    with pytest.raises(DefinitionError, match=message):
        make()


def test_a_wrapper_of_ones_own_overrides_one_method():
    class Reversed(WrapperToolset):
        def change(self, tools, runtime):
            return tools[::-1]

    assert names(Reversed(combined([add], [delete_all]))) == ["delete_all", "add"]


async def test_opening_a_wrapper_opens_what_it_wraps_and_closes_it_also_after_a_failure():
    log = []

    class Opened(Source):
        async def __aenter__(self):
            log.append(f"open {self.label}")
            if self.label == "bad":
                raise OSError("no")
            return self

        async def __aexit__(self, *_):
            log.append(f"close {self.label}")

    async with prefixed(combined(Opened(lambda r: [], "a"), [add], Opened(lambda r: [], "b")), "x_"):
        pass
    assert log == ["open a", "open b", "close b", "close a"]
    log.clear()
    with pytest.raises(OSError, match="no"):
        async with combined(Opened(lambda r: [], "a"), Opened(lambda r: [], "bad")):
            pass
    assert log == ["open a", "open bad", "close a"]


# large catalogues


def catalogue(count):
    def make(n):
        @tool(f"record_{n}", description=f"Read record number {n} of the archive.")
        def read(n: int = n) -> str:
            return str(n)

        return read

    @tool
    def convert_currency(amount: float, source: str, target: str) -> str:
        """Convert an amount of money from one currency to another."""
        return f"{amount} {target}"

    @tool
    def createInvoice(customer: str) -> str:
        """Write a bill for a customer."""
        return f"invoice for {customer}"

    @tool("weather", description="도시의 현재 날씨를 알려준다")
    def weather(city: str) -> str:
        return "sunny"

    return [*(make(n) for n in range(count)), convert_currency, createInvoice, weather]


def test_a_searchable_catalogue_offers_one_tool_and_then_what_was_found(run: Run):
    agent, model = agent_of(
        [
            ai(call("convert_currency", "c0", amount=1, source="EUR", target="KRW")),
            ai(call("find_tools", "c1", query="converting currencies")),
            ai(call("convert_currency", "c2", amount=1, source="EUR", target="KRW")),
            "done",
        ],
        [searchable(catalogue(300), limit=3)],
    )
    state = run(agent, ASK)
    assert model.offered[:2] == [["find_tools"], ["find_tools"]]
    assert model.offered[2][:2] == ["find_tools", "convert_currency"]
    assert len(model.offered[2]) <= 4
    refused, found, done = answers(state)
    assert refused == "Error: convert_currency is not a valid tool, try one of [find_tools]."
    assert "- convert_currency: Convert an amount of money" in found
    assert done == "1.0 KRW"


def test_what_was_found_stays_found_in_the_thread_and_in_another_agent_object(run: Run):
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "t"}}
    first, _ = agent_of(
        [ai(call("find_tools", "c1", query="bill")), "ok"], [searchable(catalogue(20))], checkpointer=saver
    )
    run(first, ASK, config)
    second, model = agent_of(["hello"], [searchable(catalogue(20))], checkpointer=saver)
    run(second, ASK, config)
    assert model.offered == [["find_tools", "createInvoice"]]
    third, model = agent_of(["hello"], [searchable(catalogue(20))], checkpointer=saver)
    run(third, ASK, {"configurable": {"thread_id": "another"}})
    assert model.offered == [["find_tools"]]


def test_a_search_finds_only_what_the_caller_may_have(run: Run):
    toolset = searchable(for_roles([add, delete_all], {"*": ["add"], "admin": ["*"]}))
    agent, model = agent_of(
        [ai(call("find_tools", "c1", query="delete everything")), "ok"], [toolset], context_schema=Context
    )
    state = run(agent, ASK, context=Context(roles=[]))
    assert "None of the 1 tools fits" in answers(state)[0]
    assert model.offered[-1] == ["find_tools"]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("convert_currency", "convert_currency"),
        ("currencies", "convert_currency"),
        ("money exchange", "convert_currency"),
        ("create invoice", "createInvoice"),
        ("billing customers", "createInvoice"),
        ("날씨", "weather"),
        ("record 7", "record_7"),
    ],
)
def test_search_ranks_names_words_and_other_scripts(query, wanted):
    from agentkit.tools.toolsets._search import index_of

    assert index_of(catalogue(40)).search(query, 5)[0].name == wanted


def test_searching_for_nothing_finds_nothing():
    from agentkit.tools.toolsets._search import index_of

    assert index_of(catalogue(5)).search("the of ?!", 5) == []
    assert index_of([]).search("anything", 5) == []
