"""Agents that are tools of other agents: histories, questions, cancelling, streams and crashes."""

import asyncio
from typing import Any

import pytest
from batches import Run, paired, results, texts
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from agentkit.agents import as_tool, create_agent
from agentkit.errors import DefinitionError
from agentkit.testing import ScriptedModel, StrictModel, calls
from agentkit.tools import ToolPolicy, policy_of, tool

THREAD = {"configurable": {"thread_id": "t"}}
GO = {"messages": [("user", "go")]}


def echo(messages: list[AnyMessage]) -> str:
    """Answers with all requests of its history."""
    return " + ".join(str(m.content) for m in messages if isinstance(m, HumanMessage))


def expert(model: Any = echo, tools: Any = (), **settings: Any) -> Any:
    inner = create_agent(StrictModel(ScriptedModel(model)), list(tools), name="expert")
    return as_tool(inner, description="Knows things.", **settings)


def boss(*responses: Any, tools: Any, saver: Any = None) -> Any:
    return create_agent(StrictModel(ScriptedModel([*responses, "done"])), list(tools), checkpointer=saver, name="boss")


TWO = calls(("expert", {"request": "one"}, "c1"), ("expert", {"request": "two"}, "c2"))


@pytest.mark.parametrize("saver", [True, False])
def test_an_agent_answers_like_a_tool(run: Run, saver: bool) -> None:
    agent = boss(TWO, tools=[expert()], saver=InMemorySaver() if saver else None)
    output = run(agent, GO, THREAD)
    assert texts(output) == ["one", "two"]
    assert paired(output["messages"])


def test_parallel_calls_keep_separate_histories_that_can_be_read(run: Run) -> None:
    saver, made = InMemorySaver(), expert()
    run(boss(TWO, TWO, tools=[made], saver=saver), GO, THREAD)
    for call_id, said in (("c1", "one"), ("c2", "two")):
        state = made.get_state(saver, THREAD, call_id)
        assert [m.content for m in state.values["messages"]] == [said, said]
        assert state.next == ()
    with pytest.raises(LookupError, match="nothing of a call 'c9'"):
        made.get_state(saver, THREAD, "c9")


async def test_a_history_can_be_read_from_postgres(acheckpointer: Any) -> None:
    made = expert()
    await boss(TWO, tools=[made], saver=acheckpointer).ainvoke(GO, THREAD)
    state = await made.aget_state(acheckpointer, THREAD, "c2")
    assert [m.content for m in state.values["messages"]] == ["two", "two"]


def test_with_memory_of_the_thread_a_subagent_remembers_in_call_order(run: Run) -> None:
    saver, made = InMemorySaver(), expert(memory="thread")
    agent = boss(TWO, calls(("expert", {"request": "three"}, "c1")), "done", TWO, tools=[made], saver=saver)
    output = run(agent, GO, THREAD)
    assert texts(output) == ["one", "one + two", "one + two + three"]
    output = run(agent, GO, THREAD)
    assert texts(output)[3:] == ["one + two + three + one", "one + two + three + one + two"]
    other = run(boss(TWO, tools=[made], saver=saver), GO, {"configurable": {"thread_id": "other"}})
    assert texts(other) == ["one", "one + two"], "another thread is another history"
    assert paired(made.get_state(saver, THREAD, "c2").values["messages"])


async def test_memory_of_the_thread_on_postgres(acheckpointer: Any) -> None:
    agent = boss(TWO, "done", TWO, tools=[expert(memory="thread")], saver=acheckpointer)
    await agent.ainvoke(GO, THREAD)
    output = await agent.ainvoke(GO, THREAD)
    assert texts(output) == ["one", "one + two", "one + two + one", "one + two + one + two"]


def test_two_subagents_with_memory_do_not_share_it(run: Run) -> None:
    inner = create_agent(ScriptedModel(echo))
    tools = [as_tool(inner, name=name, description="Knows.", memory="thread") for name in ("left", "right")]
    ask = calls(("left", {"request": "l"}), ("right", {"request": "r"}))
    output = run(boss(ask, ask, tools=tools, saver=InMemorySaver()), GO, THREAD)
    assert texts(output) == ["l", "r", "l + l", "r + r"]


class Asking:
    """An expert whose tool asks a person before it works."""

    def __init__(self, **settings: Any) -> None:
        self.ran: list[str] = []

        @tool
        def book(what: str) -> str:
            """Book."""
            answer = interrupt(f"book {what}?")
            self.ran.append(what)
            return f"{what}: {answer}"

        def model(messages: list[AnyMessage]) -> Any:
            last = messages[-1]
            if isinstance(last, HumanMessage):
                return calls(("book", {"what": str(last.content)}, f"b-{len(messages)}"))
            return f"{last.content} ({len(messages)})"

        self.tool = expert(model, [book], **settings)


def asked(output: Any) -> dict[str, str]:
    return {each.value: each.id for each in output.get("__interrupt__", ())}


def test_questions_of_subagents_are_asked_together_and_answered_apart(run: Run) -> None:
    asking = Asking()
    agent = boss(TWO, tools=[asking.tool], saver=InMemorySaver())
    open_ = asked(run(agent, GO, THREAD))
    assert sorted(open_) == ["book one?", "book two?"]
    output = run(agent, Command(resume={open_["book two?"]: "yes"}), THREAD)
    assert list(asked(output)) == ["book one?"]
    output = run(agent, Command(resume="no"), THREAD)
    assert texts(output) == ["one: no (3)", "two: yes (3)"]
    assert sorted(asking.ran) == ["one", "two"]
    assert paired(output["messages"])


def test_a_subagent_with_memory_is_not_disturbed_while_it_waits_for_an_answer(run: Run) -> None:
    asking = Asking(memory="thread")
    agent = boss(TWO, tools=[asking.tool], saver=InMemorySaver())
    assert list(asked(run(agent, GO, THREAD))) == ["book one?"]
    assert list(asked(run(agent, Command(resume="yes"), THREAD))) == ["book two?"]
    output = run(agent, Command(resume="no"), THREAD)
    assert texts(output) == ["one: yes (3)", "two: no (7)"]
    assert asking.ran == ["one", "two"]
    assert paired(output["messages"])


@pytest.mark.parametrize("memory", ["call", "thread"])
def test_a_new_message_instead_of_an_answer_leaves_both_agents_usable(run: Run, memory: Any) -> None:
    asking = Asking(memory=memory)
    agent = boss(TWO, "well", TWO, tools=[asking.tool], saver=InMemorySaver())
    run(agent, GO, THREAD)
    output = run(agent, GO, THREAD)
    assert output["messages"][-1].content == "well"
    assert [r.status for r in results(output)] == ["error", "error"]
    open_ = asked(run(agent, GO, THREAD))
    while open_:
        output = run(agent, Command(resume=dict.fromkeys(open_.values(), "yes")), THREAD)
        open_ = asked(output)
    assert [r.status for r in results(output)] == ["error", "error", "success", "success"]
    assert sorted(asking.ran) == ["one", "two"]
    assert paired(output["messages"])


async def test_a_cancelled_run_cancels_the_subagent_and_goes_on_from_its_checkpoints() -> None:
    started, cancelled, ran = asyncio.Event(), asyncio.Event(), []

    @tool
    async def first() -> str:
        """Done at once."""
        ran.append("first")
        return "first"

    @tool
    async def slow() -> str:
        """Hangs the first time."""
        if "slow" not in ran:
            ran.append("slow")
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
        return "slow"

    script = ScriptedModel([calls(("first", {}, "f")), calls(("slow", {}, "s")), "inner done", "inner done"])
    inner = as_tool(create_agent(script, [first, slow]), name="expert", description="Works.")
    agent = boss(calls(("expert", {"request": "x"}, "c1")), tools=[inner], saver=InMemorySaver())
    running = asyncio.create_task(agent.ainvoke(GO, THREAD))
    await asyncio.wait_for(started.wait(), 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.wait_for(cancelled.wait(), 10)
    output = await agent.ainvoke(None, THREAD)
    assert texts(output) == ["inner done"]
    assert ran == ["first", "slow"], "the call that had finished is not run again"
    assert paired(output["messages"])


def test_streamed_events_carry_the_call_of_the_parent(run: Run) -> None:
    for memory in ("call", "thread"):
        agent = boss(TWO, tools=[expert(memory=memory)], saver=InMemorySaver())
        seen = run.stream(agent, GO, THREAD, stream_mode="messages", subgraphs=True)
        of: dict[str, set[Any]] = {}
        for namespace, (chunk, metadata) in seen:
            if namespace and chunk.text:
                of.setdefault(metadata["tool_call_id"], set()).add((namespace, metadata["lc_agent_name"]))
        assert set(of) == {"c1", "c2"}, memory
        assert all(len(places) == 1 for places in of.values())
        assert {name for places in of.values() for _, name in places} == {"expert"}


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
async def test_a_subagent_appears_in_the_event_stream_with_its_cause() -> None:
    agent = boss(TWO, tools=[expert()], saver=InMemorySaver())
    stream = await agent.astream_events(GO, THREAD, version="v3")
    causes = [each.cause["tool_call_id"] async for each in stream.subagents]
    assert sorted(causes) == ["c1", "c2"]


def test_a_structured_answer_comes_as_json(run: Run) -> None:
    from pydantic import BaseModel

    class Fact(BaseModel):
        text: str

    script = ScriptedModel([calls(("Fact", {"text": "sky"}))])
    inner = create_agent(script, [], response_format=Fact)
    made = as_tool(inner, name="expert", description="Knows.")
    output = run(boss(calls(("expert", {"request": "x"})), tools=[made]), GO)
    assert texts(output) == ['{"text":"sky"}']


def test_context_and_store_reach_the_subagent(run: Run) -> None:
    from langgraph.store.memory import InMemoryStore

    from agentkit.tools import ToolRuntime

    seen: list[Any] = []

    @tool
    def look(runtime: ToolRuntime[Any, Any]) -> str:
        """Look around."""
        seen.append((runtime.context, runtime.store, runtime.execution_info.thread_id))
        return "ok"

    inner = create_agent(ScriptedModel([calls(("look", {})), "done"]), [look], context_schema=dict)
    made = as_tool(inner, name="expert", description="Knows.")
    store = InMemoryStore()
    model = ScriptedModel([calls(("expert", {"request": "x"})), "done"])
    agent = create_agent(model, [made], context_schema=dict, store=store, checkpointer=InMemorySaver())
    run(agent, GO, THREAD, context={"user_id": "ann"})
    ((context, found, thread),) = seen
    assert (context, thread) == ({"user_id": "ann"}, "t")
    assert found is store


def test_an_error_in_a_subagent_is_a_result_of_its_call(run: Run) -> None:
    made = expert([RuntimeError("model is down")])
    output = run(boss(TWO, tools=[made], saver=InMemorySaver()), GO, THREAD)
    assert [r.status for r in results(output)] == ["error", "error"]
    assert paired(output["messages"])


def test_its_calls_are_taken_up_again_after_a_crash() -> None:
    assert policy_of(expert()).on_crash == "rerun"
    assert policy_of(expert(policy=ToolPolicy(timeout=5))).timeout == 5


def test_what_cannot_be_a_tool_is_refused() -> None:
    with pytest.raises(DefinitionError, match="needs a name"):
        as_tool(create_agent(ScriptedModel([])), description="Knows.")
    with pytest.raises(DefinitionError, match="needs a description"):
        as_tool(create_agent(ScriptedModel([]), name="x"), description=" ")
    with pytest.raises(DefinitionError, match="of a compiled graph"):
        as_tool(ScriptedModel([]), name="x", description="Knows.")  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="memory='forever'"):
        expert(memory="forever")
