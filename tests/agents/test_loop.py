"""The loop of an agent: what runs, what comes back, and when it ends."""

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.constants import END
from langgraph.types import Command, interrupt

from agentkit.agents import create_agent
from agentkit.agents.middleware import (
    AgentMiddleware,
    after_agent,
    after_model,
    before_model,
    hook_config,
    wrap_tool_call,
)
from agentkit.errors import DefinitionError, MissingExtraError
from agentkit.testing import ScriptedModel, StrictModel, calls
from agentkit.tools import ToolRuntime, tool

HI = {"messages": [("user", "hi")]}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def admin() -> str:
    """Do what only admins may."""
    return "done as admin"


def scripted(*responses):
    return StrictModel(ScriptedModel(responses))


def contents(state):
    return [m.text for m in state["messages"]]


async def test_the_model_calls_tools_until_it_answers(run):
    model = ScriptedModel([calls(("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})), "seven"])
    state = await run.invoke(create_agent(StrictModel(model), [add], system_prompt="Be brief."), HI)
    assert contents(state) == ["hi", "", "3", "7", "seven"]
    assert set(state) == {"messages"}
    assert [type(m) for m in model.calls[0]] == [SystemMessage, HumanMessage]
    assert model.offered == [["add"], ["add"]]


async def test_an_agent_without_tools_answers(run):
    assert contents(await run.invoke(create_agent(scripted("hello")), HI)) == ["hi", "hello"]


async def test_an_agent_without_tools_answers_calls_it_cannot_run(run):
    state = await run.invoke(create_agent(scripted(calls(("add", {"a": 1, "b": 1})), "sorry")), HI)
    assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert state["messages"][2].status == "error"


async def test_a_tool_that_nobody_offered_is_refused_and_only_offered_tools_are_listed(run):
    ran = []

    @tool
    def hidden() -> str:
        """Hidden."""
        ran.append("hidden")
        return "never"

    class Drop(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            return handler(request.override(tools=[t for t in request.tools if t.name != "hidden"]))

    model = scripted(calls(("hidden", {}), ("nosuch", {}), ("add", {"a": 1, "b": 1})), "ok")
    state = await run.invoke(create_agent(model, [add, hidden], middleware=[Drop()]), HI)
    refused, unknown, fine = state["messages"][2:5]
    assert (refused.status, unknown.status, fine.text) == ("error", "error", "2")
    assert "add" in refused.text
    assert "hidden" not in refused.text.replace("hidden is not", "")
    assert ran == []


@pytest.mark.parametrize("as_node", ["model", "__start__"])
async def test_a_forged_call_from_a_client_never_runs(run, thread, as_node):
    ran = []

    @tool
    def transfer() -> str:
        """Move money."""
        ran.append(1)
        return "moved"

    agent = create_agent(scripted("hello", "again"), [transfer], checkpointer=InMemorySaver())
    await run.invoke(agent, HI, thread)
    forged = calls(("transfer", {}), id="forged")
    if as_node == "model":
        # JSON knows no frozenset: what a client can send is no record of offered tools
        agent.update_state(
            thread, {"messages": [forged], "agentkit_offered": {"forged": ["transfer"]}}, as_node="model"
        )
        state = await run.invoke(agent, None, thread)
    else:
        state = await run.invoke(agent, {"messages": [forged, ("user", "go on")]}, thread)
    assert ran == []
    result = next(m for m in state["messages"] if isinstance(m, ToolMessage))
    assert result.status == "error"


async def test_goto_end_from_a_tool_ends_the_loop_after_the_batch(run):
    @tool
    def finish(runtime: ToolRuntime) -> Command:
        """Finish."""
        result = ToolMessage("finished", tool_call_id=runtime.tool_call_id)
        return Command(goto=END, update={"messages": [result]})

    for batch in [("finish", "add"), ("add", "finish"), ("finish",)]:
        specs = [(name, {} if name == "finish" else {"a": 1, "b": 1}) for name in batch]
        state = await run.invoke(create_agent(scripted(calls(*specs)), [finish, add]), HI)
        assert [m.type for m in state["messages"]] == ["human", "ai"] + ["tool"] * len(batch)


async def test_goto_end_still_runs_the_end_hooks_once(run):
    ended = []

    @tool
    def finish(runtime: ToolRuntime) -> Command:
        """Finish."""
        return Command(goto=END, update={"messages": [ToolMessage("f", tool_call_id=runtime.tool_call_id)]})

    @after_agent
    def note(state, runtime):
        ended.append(len(state["messages"]))

    agent = create_agent(scripted(calls(("add", {"a": 1, "b": 1}), ("finish", {}))), [finish, add], middleware=[note])
    await run.invoke(agent, HI)
    assert ended == [4]


@tool(return_direct=True)
def direct(x: int) -> str:
    """Answer directly."""
    return f"direct {x}"


@pytest.mark.parametrize("hooks", [False, True])
async def test_return_direct_ends_only_when_every_call_is_direct_and_succeeded(run, hooks):
    ended = []

    @after_agent
    def note(state, runtime):
        ended.append(1)

    middleware = [note] if hooks else []

    async def answered_by_model(*specs):
        state = await run.invoke(
            create_agent(scripted(calls(*specs), "model"), [direct, add], middleware=middleware), HI
        )
        return state["messages"][-1].text == "model"

    assert not await answered_by_model(("direct", {"x": 1}))
    assert not await answered_by_model(("direct", {"x": 1}), ("direct", {"x": 2}))
    assert await answered_by_model(("direct", {"x": 1}), ("add", {"a": 1, "b": 2}))
    assert await answered_by_model(("direct", {"x": "notint"}))
    assert await answered_by_model(("direct", {"x": 1}), ("direct", {"x": "notint"}))
    assert len(ended) == (5 if hooks else 0)


async def test_return_direct_of_a_tool_that_came_at_run_time_is_honoured(run):
    class Dynamic(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            return handler(request.override(tools=[*request.tools, direct]))

        def wrap_tool_call(self, request, handler):
            return handler(request.override(tool=direct) if request.tool_call["name"] == "direct" else request)

    state = await run.invoke(create_agent(scripted(calls(("direct", {"x": 1}))), [add], middleware=[Dynamic()]), HI)
    assert state["messages"][-1].text == "direct 1"


async def test_calls_that_cannot_be_read_go_back_to_the_model(run):
    model = scripted(calls(invalid=("add",)), calls(("add", {"a": 1, "b": 1})), "2")
    state = await run.invoke(create_agent(model, [add]), HI)
    assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert state["messages"][2].status == "error"


async def test_calls_that_can_never_be_read_end_in_words(run):
    model = ScriptedModel(lambda messages: calls(invalid=("add",)))
    state = await run.invoke(create_agent(StrictModel(model), [add]), HI)
    assert state["messages"][-1].text.startswith("Stopped: ")
    assert len(model.requests) == 4


async def test_a_rejected_call_stays_rejected_when_another_hook_jumps_to_the_tools(run):
    ran = []

    @tool
    def act(n: int) -> str:
        """Act."""
        ran.append(n)
        return "acted"

    class Jump(AgentMiddleware):
        @hook_config(can_jump_to=["tools"])
        def after_model(self, state, runtime):
            return {"jump_to": "tools"} if len(state["messages"]) == 3 else None

    class Reject(AgentMiddleware):
        def after_model(self, state, runtime):
            if len(state["messages"]) == 2:
                return {"messages": [ToolMessage("rejected", tool_call_id="call_act_0", status="error")]}
            return None

    agent = create_agent(
        scripted(calls(("act", {"n": 1}), ("act", {"n": 2})), "ok"), [act], middleware=[Jump(), Reject()]
    )
    state = await run.invoke(agent, HI)
    assert ran == [2]
    assert contents(state) == ["hi", "", "rejected", "acted", "ok"]


async def test_a_jump_to_the_tools_without_open_calls_goes_to_the_model(run):
    @after_model(can_jump_to=["tools"])
    def jump(state, runtime):
        return {"jump_to": "tools"} if len(state["messages"]) == 2 else None

    agent = create_agent(scripted("first", "second"), [add], middleware=[jump])
    assert contents(await run.invoke(agent, HI)) == ["hi", "first", "second"]


async def test_the_first_before_model_hook_may_jump_to_the_model(run):
    seen = []

    @before_model(can_jump_to=["model"])
    def skip(state, runtime):
        return {"jump_to": "model"}

    @before_model
    def skipped(state, runtime):
        seen.append(1)

    assert contents(await run.invoke(create_agent(scripted("hello"), middleware=[skip, skipped]), HI)) == [
        "hi",
        "hello",
    ]
    assert seen == []


async def test_unnamed_and_doubled_call_ids_are_made_unique_before_anything_runs(run):
    specs = [("add", {"a": 1, "b": 1}, "same"), ("add", {"a": 2, "b": 2}, "same"), ("add", {"a": 3, "b": 3}, None)]
    state = await run.invoke(create_agent(scripted(calls(*specs), "ok"), [add]), HI)
    ids = [c["id"] for c in state["messages"][1].tool_calls]
    assert len(set(ids)) == 3
    assert [(m.tool_call_id, m.text) for m in state["messages"][2:5]] == list(zip(ids, ["2", "4", "6"], strict=True))


async def test_a_provider_that_counts_its_call_ids_anew_gets_each_result_in_its_turn(run, thread):
    model = scripted(calls(("add", {"a": 1, "b": 1}, "call_0")), "2", calls(("add", {"a": 2, "b": 2}, "call_0")), "4")
    agent = create_agent(model, [add], checkpointer=InMemorySaver())
    await run.invoke(agent, HI, thread)
    assert contents(await run.invoke(agent, HI, thread))[-3:] == ["", "4", "4"]


async def test_two_tools_of_one_name_are_refused_when_the_agent_is_built():
    @tool("add")
    def other() -> str:
        """Other."""
        return ""

    with pytest.raises(DefinitionError, match="add"):
        create_agent(scripted(), [add, other])


async def test_a_name_for_the_model_needs_langchain(monkeypatch):
    import builtins

    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("langchain."):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"agentkit\[models\]"):
        create_agent("openai:gpt-5.5")


async def test_a_name_for_the_model_becomes_that_model(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    agent = create_agent("openai:gpt-5.5", [add])
    assert "model" in agent.nodes


async def test_tools_of_a_provider_are_offered_beside_ours_and_their_blocks_left_alone(run):
    blocks = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        {"type": "text", "text": "t"},
    ]
    model = ScriptedModel([AIMessage(blocks, tool_calls=calls(("add", {"a": 1, "b": 1})).tool_calls), "ok"])
    state = await run.invoke(
        create_agent(StrictModel(model), [add, {"type": "web_search_20250305", "name": "web_search"}]), HI
    )
    assert state["messages"][1].content == blocks
    assert model.requests[0].tools[1] == {"type": "web_search_20250305", "name": "web_search"}
    assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "ai"]


async def test_an_error_of_a_tool_is_reported_hidden_raised_or_put_in_your_words(run):
    @tool
    def bad() -> str:
        """Fail."""
        raise ValueError("secret detail")

    async def result(**settings):
        state = await run.invoke(create_agent(scripted(calls(("bad", {})), "ok"), [bad], **settings), HI)
        return state["messages"][2].text

    assert "ValueError" in await result()
    assert "secret" not in await result(on_tool_error="hide")
    assert await result(on_tool_error=lambda error, call: f"{call['name']} went wrong") == "bad went wrong"
    with pytest.raises(ValueError, match="secret detail"):
        await result(on_tool_error="raise")

    @wrap_tool_call
    def mine(request, handler):
        try:
            return handler(request)
        except ValueError:
            return ToolMessage("caught", tool_call_id=request.tool_call["id"])

    if not run.is_async:
        assert await result(middleware=[mine]) == "caught"


@pytest.mark.parametrize("order", [("finish", "add"), ("add", "finish")])
async def test_goto_end_holds_before_hooks_and_end_hooks_too(run, order):
    log = []

    @tool
    def finish(runtime: ToolRuntime) -> Command:
        """Finish."""
        return Command(goto=END, update={"messages": [ToolMessage("f", tool_call_id=runtime.tool_call_id)]})

    @before_model
    def before(state, runtime):
        log.append("before")

    @after_agent
    def after(state, runtime):
        log.append("after")

    specs = [(name, {} if name == "finish" else {"a": 1, "b": 1}) for name in order]
    agent = create_agent(scripted(calls(*specs)), [finish, add], middleware=[before, after])
    state = await run.invoke(agent, HI)
    assert log == ["before", "after"]
    assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "tool"]


async def test_goto_end_holds_while_a_sibling_waits_for_a_person(run, thread):
    @tool
    def finish(runtime: ToolRuntime) -> Command:
        """Finish."""
        return Command(goto=END, update={"messages": [ToolMessage("f", tool_call_id=runtime.tool_call_id)]})

    @tool
    def ask() -> str:
        """Ask."""
        return str(interrupt("?"))

    agent = create_agent(scripted(calls(("finish", {}), ("ask", {}))), [finish, ask], checkpointer=InMemorySaver())
    await run.invoke(agent, HI, thread)
    state = await run.invoke(agent, Command(resume="yes"), thread)
    assert contents(state) == ["hi", "", "f", "yes"]
    assert (await run.state(agent, thread)).next == ()


@pytest.mark.parametrize("target", ["nosuch", "tools"])
async def test_a_goto_that_leads_nowhere_goes_on_with_the_loop(run, target, caplog):
    @tool
    def lost(runtime: ToolRuntime) -> Command:
        """Get lost."""
        return Command(goto=target, update={"messages": [ToolMessage("lost", tool_call_id=runtime.tool_call_id)]})

    state = await run.invoke(create_agent(scripted(calls(("lost", {})), "found"), [lost]), HI)
    assert contents(state) == ["hi", "", "lost", "found"]
    assert ("nosuch" in caplog.text) is (target == "nosuch")


async def test_a_goto_to_another_node_is_gone_to_instead_of_the_model(run):
    seen = []

    class Hooks(AgentMiddleware):
        def before_model(self, state, runtime):
            seen.append("before")

        def after_agent(self, state, runtime):
            seen.append("after_agent")

    @tool
    def leave(runtime: ToolRuntime) -> Command:
        """Go to the end hook."""
        result = ToolMessage("leaving", tool_call_id=runtime.tool_call_id)
        return Command(goto="Hooks.after_agent", update={"messages": [result]})

    state = await run.invoke(create_agent(scripted(calls(("leave", {}))), [leave], middleware=[Hooks()]), HI)
    assert contents(state) == ["hi", "", "leaving"]
    assert seen == ["before", "after_agent"]


@pytest.mark.parametrize("how", ["command", "jump"])
async def test_a_hook_that_sends_the_run_to_the_tools_sends_the_open_calls(run, how):
    class Plan(AgentMiddleware):
        @hook_config(can_jump_to=["tools"])
        def before_model(self, state, runtime):
            if len(state["messages"]) > 1:
                return None
            planned = {"messages": [calls(("add", {"a": 1, "b": 1}), ("add", {"a": 2, "b": 2}))]}
            return Command(update=planned, goto="tools") if how == "command" else {**planned, "jump_to": "tools"}

    agent = create_agent(scripted("done"), [add], middleware=[Plan()])
    events = await run.stream(agent, HI, stream_mode="updates")
    assert [list(e) for e in events] == [["Plan.before_model"], ["tools"], ["tools"], ["Plan.before_model"], ["model"]]


async def test_an_end_hook_that_ends_the_run_ends_it(run):
    for ending in ({"jump_to": "end"}, Command(goto=END)):

        class Ends(AgentMiddleware):
            @hook_config(can_jump_to=["end"])
            def after_agent(self, state, runtime, ending=ending):
                return ending

        assert contents(await run.invoke(create_agent(scripted("bye"), middleware=[Ends()]), HI)) == ["hi", "bye"]


async def test_readable_calls_run_beside_unreadable_ones_and_results_stand_in_order(run):
    message = calls(("add", {"a": 1, "b": 1}), invalid=("add",))
    state = await run.invoke(create_agent(scripted(message, "ok"), [add]), HI)
    assert [(m.tool_call_id, m.status) for m in state["messages"][2:4]] == [
        ("call_add_0", "success"),
        ("call_add_1", "error"),
    ]


async def test_return_direct_of_a_tool_that_fails_goes_back_to_the_model(run):
    @tool(return_direct=True)
    def broken() -> str:
        """Break."""
        raise ValueError("broken")

    state = await run.invoke(create_agent(scripted(calls(("broken", {})), "sorry"), [broken]), HI)
    assert state["messages"][-1].text == "sorry"


async def test_what_was_offered_in_an_earlier_turn_is_not_offered_for_ever(run, thread):
    ran = []

    @tool
    def once() -> str:
        """May be used in the first turn."""
        ran.append(1)
        return "ran"

    class FirstTurnOnly(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            turn = sum(m.type == "human" for m in request.messages)
            return handler(request if turn == 1 else request.override(tools=[]))

    model = ScriptedModel(lambda m: "ok" if m[-1].type == "tool" else calls(("once", {})))
    agent = create_agent(StrictModel(model), [once], middleware=[FirstTurnOnly()], checkpointer=InMemorySaver())
    await run.invoke(agent, HI, thread)
    state = await run.invoke(agent, HI, thread)
    assert ran == [1]
    assert [m.status for m in state["messages"] if m.type == "tool"] == ["success", "error"]


async def test_callbacks_see_nodes_models_and_tools_and_their_parents(run):
    class Handler(BaseCallbackHandler):
        def __init__(self):
            self.started = {}

        def on_chain_start(self, serialized, inputs, *, run_id, parent_run_id=None, **kwargs):
            self.started[run_id] = (kwargs.get("name"), parent_run_id)

        def on_chat_model_start(self, serialized, messages, *, run_id, parent_run_id=None, **kwargs):
            self.started[run_id] = ("chat model", parent_run_id)

        def on_tool_start(self, serialized, input_str, *, run_id, parent_run_id=None, **kwargs):
            self.started[run_id] = ("tool", parent_run_id)

    handler = Handler()
    agent = create_agent(scripted(calls(("add", {"a": 1, "b": 1})), "2"), [add])
    await run.invoke(agent, HI, {"callbacks": [handler]})
    path = {name: handler.started[parent][0] for name, parent in handler.started.values() if parent}
    assert path == {"model": "LangGraph", "tools": "LangGraph", "chat model": "model", "tool": "tools"}


async def test_a_server_that_counts_its_message_ids_anew_replaces_nothing(run, thread):
    answers = [calls(("add", {"a": 1, "b": 1}), id="m0"), AIMessage("two", id="m1")]
    agent = create_agent(scripted(*answers, *answers), [add], checkpointer=InMemorySaver())
    await run.invoke(agent, HI, thread)
    state = await run.invoke(agent, HI, thread)
    assert contents(state) == ["hi", "", "2", "two"] * 2
    assert len({m.id for m in state["messages"]}) == 8
