"""Middleware hooks: when each is called, with what, and what their answers do."""

import asyncio
import threading

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import Command

from agentkit.agents import AgentState, create_agent
from agentkit.agents.middleware import (
    AgentMiddleware,
    ExtendedModelResponse,
    ModelResponse,
    after_agent,
    after_model,
    before_agent,
    before_model,
    dynamic_prompt,
    hook_config,
    wrap_model_call,
    wrap_tool_call,
)
from agentkit.errors import DefinitionError
from agentkit.testing import ScriptedModel, StrictModel, calls
from agentkit.tools import tool

HI = {"messages": [("user", "hi")]}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def aadd(a: int, b: int) -> int:
    """Add two numbers, async."""
    return a + b


def scripted(*responses):
    return StrictModel(ScriptedModel(responses))


def tracer(tag, log):
    class Tracer(AgentMiddleware):
        name = tag

        def before_agent(self, state, runtime):
            log.append(f"{tag}.before_agent")

        def before_model(self, state, runtime):
            log.append(f"{tag}.before_model")

        def after_model(self, state, runtime):
            log.append(f"{tag}.after_model")

        def after_agent(self, state, runtime):
            log.append(f"{tag}.after_agent")

        def wrap_model_call(self, request, handler):
            log.append(f"{tag}.model>")
            response = handler(request)
            log.append(f"{tag}.model<")
            return response

        def wrap_tool_call(self, request, handler):
            log.append(f"{tag}.tool>")
            result = handler(request)
            log.append(f"{tag}.tool<")
            return result

    return Tracer()


async def test_hooks_are_called_in_the_order_langchain_calls_them(run):
    log = []
    agent = create_agent(
        scripted(calls(("add", {"a": 1, "b": 2})), "3"), [add], middleware=[tracer("A", log), tracer("B", log)]
    )
    await run.invoke(agent, HI)
    round_ = [
        "A.before_model",
        "B.before_model",
        "A.model>",
        "B.model>",
        "B.model<",
        "A.model<",
        "B.after_model",
        "A.after_model",
    ]
    tools = ["A.tool>", "B.tool>", "B.tool<", "A.tool<"]
    start, end = ["A.before_agent", "B.before_agent"], ["B.after_agent", "A.after_agent"]
    assert log == [*start, *round_, *tools, *round_, *end]
    assert {"A.before_model", "B.after_agent", "model", "tools"} <= set(agent.nodes)


async def test_decorated_functions_are_middleware(run):
    log = []

    @before_agent
    def first(state, runtime):
        log.append("before_agent")

    @before_model(name="Renamed")
    def second(state, runtime):
        log.append("before_model")

    @after_model
    def third(state, runtime):
        log.append("after_model")

    @after_agent
    def fourth(state, runtime):
        log.append("after_agent")

    @dynamic_prompt
    def prompt(request):
        return f"{len(request.messages)} messages"

    model = ScriptedModel(["hello"])
    agent = create_agent(StrictModel(model), middleware=[first, second, third, fourth, prompt])
    await run.invoke(agent, HI)
    assert log == ["before_agent", "before_model", "after_model", "after_agent"]
    assert "Renamed.before_model" in agent.nodes
    assert model.calls[0][0].text == "1 messages"


async def test_async_decorated_functions_are_awaited():
    log = []

    @before_model
    async def first(state, runtime):
        await asyncio.sleep(0)
        log.append("before_model")

    @wrap_model_call
    async def second(request, handler):
        log.append("wrap_model_call")
        return await handler(request)

    @wrap_tool_call
    async def third(request, handler):
        log.append("wrap_tool_call")
        return await handler(request)

    agent = create_agent(scripted(calls(("add", {"a": 1, "b": 2})), "3"), [add], middleware=[first, second, third])
    await agent.ainvoke(HI)
    assert log == ["before_model", "wrap_model_call", "wrap_tool_call", "before_model", "wrap_model_call"]


@pytest.mark.parametrize("hook", ["before_agent", "before_model", "after_model", "after_agent"])
async def test_a_hook_that_is_only_async_is_named_in_a_sync_run(hook):
    async def nothing(self, state, runtime):
        return None

    only_async = type("OnlyAsync", (AgentMiddleware,), {f"a{hook}": nothing})()
    agent = create_agent(scripted("hello", "hello"), middleware=[only_async])
    with pytest.raises(TypeError, match=f"OnlyAsync.{hook}"):
        agent.invoke(HI)
    await agent.ainvoke(HI)


def test_a_wrapper_that_is_only_async_is_named_in_a_sync_run():
    class OnlyAsync(AgentMiddleware):
        async def awrap_model_call(self, request, handler):
            return await handler(request)

    with pytest.raises(NotImplementedError, match="awrap_model_call"):
        create_agent(scripted("hello"), middleware=[OnlyAsync()]).invoke(HI)


async def test_sync_hooks_of_an_async_run_leave_the_event_loop_free():
    loop_thread = threading.get_ident()
    threads = []

    class Sync(AgentMiddleware):
        def before_model(self, state, runtime):
            threads.append(threading.get_ident())

        def wrap_model_call(self, request, handler):
            threads.append(threading.get_ident())
            return handler(request)

        def wrap_tool_call(self, request, handler):
            threads.append(threading.get_ident())
            return handler(request)

    agent = create_agent(scripted(calls(("aadd", {"a": 1, "b": 2})), "3"), [aadd], middleware=[Sync()])
    await agent.ainvoke(HI)
    assert len(threads) == 5
    assert loop_thread not in threads


async def test_calls_stay_parallel_under_a_sync_wrapper_in_an_async_run():
    together = threading.Barrier(3, timeout=20)

    @wrap_tool_call
    def slow(request, handler):
        together.wait()  # passes only if all three calls are here at once
        return handler(request)

    model = scripted(calls(*[("aadd", {"a": n, "b": n}) for n in range(3)]), "ok")
    state = await create_agent(model, [aadd], middleware=[slow]).ainvoke(HI)
    assert [m.text for m in state["messages"][2:5]] == ["0", "2", "4"]


async def test_a_jump_ends_the_run_or_calls_the_model_again(run):
    class Once(AgentMiddleware):
        @hook_config(can_jump_to=["model"])
        def after_model(self, state, runtime):
            return {"jump_to": "model"} if len(state["messages"]) == 2 else None

    state = await run.invoke(create_agent(scripted("one", "two"), middleware=[Once()]), HI)
    assert [m.text for m in state["messages"]] == ["hi", "one", "two"]

    @before_model(can_jump_to=["end"])
    def stop(state, runtime):
        return {"jump_to": "end", "messages": [AIMessage("stopped")]}

    state = await run.invoke(create_agent(scripted(), middleware=[stop]), HI)
    assert [m.text for m in state["messages"]] == ["hi", "stopped"]


async def test_a_command_of_a_hook_updates_and_goes(run):
    @before_model
    def skip(state, runtime):
        return Command(update={"messages": [AIMessage("by command")]}, goto="__end__")

    state = await run.invoke(create_agent(scripted(), middleware=[skip]), HI)
    assert [m.text for m in state["messages"]] == ["hi", "by command"]


async def test_calls_that_a_hook_adds_may_use_the_agents_tools(run):
    @before_model(can_jump_to=["tools"])
    def plan(state, runtime):
        if len(state["messages"]) == 1:
            return {"messages": [calls(("add", {"a": 1, "b": 1}))], "jump_to": "tools"}
        return None

    state = await run.invoke(create_agent(scripted("two"), [add], middleware=[plan]), HI)
    assert [m.text for m in state["messages"]] == ["hi", "", "2", "two"]


async def test_calls_that_a_wrapper_makes_up_run_and_those_it_hides_do_not(run):
    @wrap_model_call
    def invent(request, handler):
        if len(request.messages) == 1:
            return calls(("add", {"a": 2, "b": 2}))
        return handler(request)

    if run.is_async:
        invent = None

        class Invent(AgentMiddleware):
            async def awrap_model_call(self, request, handler):
                if len(request.messages) == 1:
                    return calls(("add", {"a": 2, "b": 2}))
                return await handler(request)

        invent = Invent()
    state = await run.invoke(create_agent(scripted("four"), [add], middleware=[invent]), HI)
    assert [m.text for m in state["messages"]] == ["hi", "", "4", "four"]


async def test_wrappers_update_state_inner_first_and_only_the_last_attempt_counts(run):
    class State(AgentState):
        notes: list[str]

    def noting(tag, attempts=1):
        class Note(AgentMiddleware):
            name = tag
            state_schema = State

            def wrap_model_call(self, request, handler):
                for _ in range(attempts):
                    response = handler(request)
                return ExtendedModelResponse(
                    model_response=ModelResponse(result=response.result), command=Command(update={"notes": [tag]})
                )

        return Note()

    state = await run.invoke(create_agent(scripted("a", "b"), middleware=[noting("outer", 2), noting("inner")]), HI)
    assert state["notes"] == ["outer"]
    assert [m.text for m in state["messages"]] == ["hi", "b"]


async def test_a_wrapper_may_not_route(run):
    @wrap_model_call
    def route(request, handler):
        return ExtendedModelResponse(model_response=handler(request), command=Command(goto="tools"))

    with pytest.raises(NotImplementedError, match="goto"):
        await run.invoke(create_agent(scripted("a"), middleware=[route]), HI)


async def test_what_a_hook_or_wrapper_may_not_return_is_named(run):
    @before_model
    def wrong(state, runtime):
        return "text"

    with pytest.raises(DefinitionError, match=r"wrong\.before_model returned str"):
        await run.invoke(create_agent(scripted("a"), middleware=[wrong]), HI)

    @wrap_model_call
    def nothing(request, handler):
        handler(request)

    with pytest.raises(DefinitionError, match="wrap_model_call hook returned NoneType"):
        await run.invoke(create_agent(scripted("a"), middleware=[nothing]), HI)


def test_two_middleware_of_one_name_are_refused():
    class Twin(AgentMiddleware):
        pass

    with pytest.raises(DefinitionError, match="Twin"):
        create_agent(scripted(), middleware=[Twin(), Twin()])
    with pytest.raises(AssertionError):  # what LangChain raises
        create_agent(scripted(), middleware=[Twin(), Twin()])


async def test_anything_with_hooks_is_middleware(run):
    class NoBase:
        name = "NoBase"

        def before_model(self, state, runtime):
            return {"messages": [ToolMessage("orphans are dropped", tool_call_id="none")]}

    state = await run.invoke(create_agent(scripted("hello"), middleware=[NoBase()]), HI)
    assert state["messages"][-1].text == "hello"


async def test_what_the_tools_of_a_middleware_bring_is_offered(run):
    class WithTool(AgentMiddleware):
        tools = [add]

    model = ScriptedModel([calls(("add", {"a": 1, "b": 2})), "3"])
    state = await run.invoke(create_agent(StrictModel(model), middleware=[WithTool()]), HI)
    assert model.offered[0] == ["add"]
    assert state["messages"][2].text == "3"


def test_a_request_is_changed_by_override_only():
    seen = {}

    @wrap_model_call
    def look(request, handler):
        changed = request.override(system_prompt="new", model_settings={"stop": ["x"]})
        seen.update(old=request.system_prompt, new=changed.system_prompt)
        with pytest.warns(DeprecationWarning, match="override"):
            request.tool_choice = "none"
        with pytest.raises(ValueError, match="system_prompt"):
            request.override(system_prompt="a", system_message=changed.system_message)
        return handler(changed)

    model = ScriptedModel(["a"])
    create_agent(StrictModel(model), system_prompt="old", middleware=[look]).invoke(HI)
    assert seen == {"old": "old", "new": "new"}
    assert model.requests[0].options == {"stop": ["x"]}


async def test_a_bound_model_is_kept_for_each_set_of_tools():
    bound = []

    class Counting(ScriptedModel):
        def bind_tools(self, tools, **kwargs):
            bound.append([t.name for t in tools])
            return super().bind_tools(tools, **kwargs)

    @wrap_model_call
    def alternate(request, handler):
        return handler(request.override(tools=request.tools[: 1 + len(request.messages) % 2]))

    model = Counting([calls(("add", {"a": 1, "b": 2})), calls(("add", {"a": 1, "b": 2})), "3"])
    agent = create_agent(StrictModel(model), [add, aadd], middleware=[alternate])
    agent.invoke(HI)
    assert bound in ([["add", "aadd"]], [["add"], ["add", "aadd"]], [["add", "aadd"], ["add"]])
