"""LangChain's own middleware, unchanged, in our agent."""

import subprocess
import sys

import pytest
from langchain.agents.middleware import AgentMiddleware as LangChainsMiddleware
from langchain.agents.middleware import (
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.middleware.types import ModelRequest as LangChainsRequest
from langchain.agents.middleware.types import ModelResponse as LangChainsResponse
from langchain.agents.structured_output import StructuredOutputValidationError as LangChainsError
from langchain.agents.structured_output import ToolStrategy as LangChainsStrategy
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

from agentkit.agents import create_agent
from agentkit.agents.middleware import AgentMiddleware
from agentkit.testing import ScriptedModel, StrictModel, assert_valid, calls
from agentkit.tools import tool

HI = {"messages": [("user", "hi")]}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def scripted(*responses):
    return StrictModel(ScriptedModel(responses))


async def test_pii_is_redacted_before_the_model_and_in_results(run):
    @tool
    def contact() -> str:
        """Look up the contact."""
        return "write to ann@example.com"

    pii = PIIMiddleware("email", strategy="redact", apply_to_input=True, apply_to_tool_results=True)
    model = ScriptedModel([calls(("contact", {})), "ok"])
    agent = create_agent(StrictModel(model), [contact], middleware=[pii])
    state = await run.invoke(agent, {"messages": [("user", "I am bob@example.com")]})
    told = [m.text for m in model.calls[-1]]
    assert told == ["I am [REDACTED_EMAIL]", "", "write to [REDACTED_EMAIL]"]
    assert_valid(state["messages"])


async def test_a_todo_list_is_kept_in_state(run):
    todos = [{"content": "add", "status": "in_progress"}]
    model = ScriptedModel([calls(("write_todos", {"todos": todos}), ("add", {"a": 1, "b": 1})), "done"])
    agent = create_agent(StrictModel(model), [add], middleware=[TodoListMiddleware()])
    state = await run.invoke(agent, HI)
    assert state["todos"] == todos
    assert sorted(model.offered[0]) == ["add", "write_todos"]
    assert "write_todos" in model.calls[0][0].text


async def test_a_summary_leaves_a_valid_history(run, thread):
    history = [
        HumanMessage("start"),
        calls(("add", {"a": 1, "b": 1}, "k1")),
        calls(("add", {"a": 2, "b": 2}, "k2")),
        ToolMessage("2", tool_call_id="k1", name="add"),
        ToolMessage("4", tool_call_id="k2", name="add"),
        HumanMessage("more"),
    ]
    for keep in range(1, 6):
        summary = SummarizationMiddleware(ScriptedModel(["SUMMARY"]), trigger=("messages", 4), keep=("messages", keep))
        agent = create_agent(scripted("ok"), [add], middleware=[summary], checkpointer=InMemorySaver())
        state = await run.invoke(agent, {"messages": history}, thread)
        assert "SUMMARY" in state["messages"][0].text
        assert_valid(state["messages"])


@pytest.mark.parametrize("mode", ["batched", "per_call"])
async def test_a_person_approves_edits_and_rejects(run, thread, mode):
    ran = []

    @tool
    def act(n: int) -> str:
        """Act."""
        ran.append(n)
        return f"acted {n}"

    approval = HumanInTheLoopMiddleware({"act": True}, interrupt_mode=mode)
    model = scripted(calls(*[("act", {"n": n}) for n in range(3)]), "done")
    agent = create_agent(model, [act], middleware=[approval], checkpointer=InMemorySaver())
    asked = (await run.invoke(agent, HI, thread))["__interrupt__"]
    edit = {"type": "edit", "edited_action": {"name": "act", "args": {"n": 10}}}
    decisions = [{"type": "approve"}, edit, {"type": "reject"}]
    by_id = {i.id: decisions[i.value["args"]["n"]] for i in asked} if mode == "per_call" else {}
    answer = by_id or {"decisions": decisions}
    state = await run.invoke(agent, Command(resume=answer), thread)
    assert sorted(ran) == [0, 10]
    assert [m.status for m in state["messages"] if m.type == "tool"] == ["success", "success", "error"]
    assert_valid(state["messages"])


async def test_a_model_selects_the_tools_and_only_those_run(run):
    @tool
    def other() -> str:
        """Something else."""
        return "other"

    class Selecting(ScriptedModel):
        def with_structured_output(self, schema, **kwargs):
            from langchain_core.runnables import RunnableLambda

            return RunnableLambda(lambda _: {"tools": ["add"]})

    model = ScriptedModel([calls(("add", {"a": 1, "b": 1}), ("other", {})), "done"])
    agent = create_agent(
        StrictModel(model), [add, other], middleware=[LLMToolSelectorMiddleware(model=Selecting([]), max_tools=1)]
    )
    state = await run.invoke(agent, HI)
    assert model.offered[0] == ["add"]
    assert [m.status for m in state["messages"] if m.type == "tool"] == ["success", "error"]


async def test_another_model_steps_in_with_the_same_tools(run):
    fallback = ScriptedModel([calls(("add", {"a": 1, "b": 2})), "done"])
    broken = ScriptedModel([RuntimeError("down"), RuntimeError("down")])
    agent = create_agent(StrictModel(broken), [add], middleware=[ModelFallbackMiddleware(StrictModel(fallback))])
    state = await run.invoke(agent, HI)
    assert [m.text for m in state["messages"]] == ["hi", "", "3", "done"]
    assert fallback.offered[0] == ["add"]


async def test_a_failing_model_is_tried_again(run):
    agent = create_agent(
        scripted(RuntimeError("down"), "up"),
        middleware=[ModelRetryMiddleware(max_retries=1, initial_delay=0.0, jitter=False)],
    )
    assert (await run.invoke(agent, HI))["messages"][-1].text == "up"


async def test_model_calls_are_limited_and_the_end_is_said(run):
    model = ScriptedModel(lambda messages: calls(("add", {"a": 1, "b": 1})))
    agent = create_agent(StrictModel(model), [add], middleware=[ModelCallLimitMiddleware(run_limit=2)])
    state = await run.invoke(agent, HI)
    assert len(model.requests) == 2
    assert "limit" in state["messages"][-1].text


@pytest.mark.parametrize("behaviour", ["continue", "end"])
async def test_tool_calls_are_limited(run, behaviour):
    model = ScriptedModel(
        lambda m: calls(("add", {"a": 1, "b": 1})) if sum(x.type == "tool" for x in m) < 3 else "enough"
    )
    limit = ToolCallLimitMiddleware(run_limit=1, exit_behavior=behaviour)
    state = await run.invoke(create_agent(StrictModel(model), [add], middleware=[limit]), HI)
    assert_valid(state["messages"])
    assert sum(m.type == "tool" and m.status == "success" for m in state["messages"]) == 1


async def test_a_failing_tool_is_tried_again(run):
    tries = []

    @tool
    def flaky() -> str:
        """Fail once."""
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("once")
        return "fine"

    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)
    state = await run.invoke(create_agent(scripted(calls(("flaky", {})), "ok"), [flaky], middleware=[retry]), HI)
    assert [m.text for m in state["messages"] if m.type == "tool"] == ["fine"]


async def test_old_results_are_cleared_for_the_model(run):
    model = ScriptedModel([calls(("add", {"a": n, "b": n}, f"c{n}")) for n in range(5)] + ["done"])
    from langchain.agents.middleware import ClearToolUsesEdit

    edit = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=1)])
    state = await run.invoke(create_agent(StrictModel(model), [add], middleware=[edit]), HI)
    assert_valid(state["messages"])
    assert [m.text for m in model.calls[-1] if m.type == "tool"].count("[cleared]") >= 3


async def test_their_middleware_gets_their_classes_and_ours_works_beside_it(run):
    seen = []

    class Theirs(LangChainsMiddleware):
        def wrap_model_call(self, request, handler):
            response = handler(request)
            seen.append((isinstance(request, LangChainsRequest), isinstance(response, LangChainsResponse)))
            return response

        async def awrap_model_call(self, request, handler):
            response = await handler(request)
            seen.append((isinstance(request, LangChainsRequest), isinstance(response, LangChainsResponse)))
            return response

    class Ours(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            handler(request.override(system_prompt="changed"))
            return AIMessage("from ours")

    state = await run.invoke(create_agent(scripted("a"), middleware=[Theirs(), Ours()]), HI)
    assert seen == [(True, True)]
    assert state["messages"][-1].text == "from ours"


async def test_their_strategies_and_errors_are_taken(run):
    class Answer(BaseModel):
        text: str

    agent = create_agent(scripted(calls(("Answer", {"text": "x"}))), response_format=LangChainsStrategy(Answer))
    assert (await run.invoke(agent, HI))["structured_response"] == Answer(text="x")
    agent = create_agent(
        scripted(calls(("Answer", {}))), response_format=LangChainsStrategy(Answer, handle_errors=False)
    )
    with pytest.raises(LangChainsError):
        await run.invoke(agent, HI)


def test_their_middleware_can_be_imported_under_our_name():
    from agentkit.agents import middleware
    from agentkit.agents.middleware import TodoListMiddleware as SameClass

    assert SameClass is TodoListMiddleware
    assert not hasattr(middleware, "NoSuchMiddleware")
    assert middleware.AgentMiddleware is AgentMiddleware


def test_their_middleware_is_not_loaded_before_it_is_asked_for():
    script = (
        "import sys; import agentkit.agents.middleware as m; from agentkit.agents import create_agent; "
        "assert 'langchain' not in sys.modules; sys.modules['langchain'] = None\n"
        "try: m.PIIMiddleware\nexcept AttributeError as error: print(error)"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "agentkit[models]" in shown.stdout
