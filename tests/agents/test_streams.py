"""Streams of our agent beside LangChain's create_agent with the same script: event by event, in every stream mode.

Only these are evened out before the events are compared:

- ids and times, which are made up per run: each is replaced by its number, in order of appearance, so that what has one
  id in one stream must have one id in the other;
- the order between parallel calls, which depends on which finishes first. Events of one call keep their order. With
  `max_concurrency=1` nothing is parallel, and the order must be the same as it stands.

The wanted differences (see docs/langchain-differences.md, "Streams") are taken out by `without_wanted_differences`.
"""

import itertools
import json
import re
from dataclasses import dataclass
from typing import Any

import langchain.agents
import langchain.agents.middleware
import langchain.tools
import pytest
from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel

import agentkit.agents
import agentkit.agents.middleware
import agentkit.tools
from agentkit.testing import ScriptedModel, calls

HI = {"messages": [("user", "hi")]}
MODES = ["values", "updates", "messages", "custom", "tasks", "checkpoints", "debug", "tools"]
LISTS = [["updates", "custom"], ["messages", "updates", "values"], MODES]


@dataclass(frozen=True, kw_only=True)
class Kit:
    """Where an agent and its tools come from."""

    agents: Any
    tools: Any
    middleware: Any


OURS = Kit(agents=agentkit.agents, tools=agentkit.tools, middleware=agentkit.agents.middleware)
THEIRS = Kit(agents=langchain.agents, tools=langchain.tools, middleware=langchain.agents.middleware)


def three_calls(kit, is_async):
    """One batch of three calls: a model inside a tool, custom events, an agent inside a tool."""
    tool, runtime_class = kit.tools.tool, kit.tools.ToolRuntime
    inner = ScriptedModel(lambda _messages: "inner words")

    @tool
    def ping() -> str:
        """Ping."""
        return "pong"

    child = kit.agents.create_agent(ScriptedModel([calls(("ping", {})), "child done"]), [ping], name="child")

    def think(about: str) -> str:
        """Think."""
        return inner.invoke(about).text

    async def athink(about: str) -> str:
        """Think."""
        return (await inner.ainvoke(about)).text

    def tell(runtime: runtime_class) -> str:
        """Tell."""
        runtime.stream_writer({"told": 1})
        runtime.stream_writer({"told": 2})
        return "told"

    async def atell(runtime: runtime_class) -> str:
        """Tell."""
        runtime.stream_writer({"told": 1})
        runtime.stream_writer({"told": 2})
        return "told"

    def delegate(what: str) -> str:
        """Delegate."""
        return child.invoke({"messages": [("user", what)]})["messages"][-1].text

    async def adelegate(what: str) -> str:
        """Delegate."""
        return (await child.ainvoke({"messages": [("user", what)]}))["messages"][-1].text

    bodies = {"think": (think, athink), "tell": (tell, atell), "delegate": (delegate, adelegate)}
    tools = [tool(name)(body[is_async]) for name, body in bodies.items()]
    batch = calls(("think", {"about": "x"}, "call_0"), ("tell", {}, "call_1"), ("delegate", {"what": "y"}, "call_2"))
    script = [batch.model_copy(update={"content": "calling three"}), "all done"]
    return kit.agents.create_agent(ScriptedModel(script), tools, name="parent", checkpointer=InMemorySaver())


def a_question(kit, is_async):
    """One batch of three calls, of which the second asks a person."""

    @kit.tools.tool
    def note(text: str) -> str:
        """Note."""
        return f"noted {text}"

    @kit.tools.tool
    def ask() -> str:
        """Ask."""
        return interrupt("may I?")

    script = [
        calls(("note", {"text": "a"}, "call_0"), ("ask", {}, "call_1"), ("note", {"text": "b"}, "call_2")),
        "done",
    ]
    return kit.agents.create_agent(ScriptedModel(script), [note, ask], checkpointer=InMemorySaver())


def hooks_and_an_answer(kit, is_async):
    """Every hook, wrappers, a tool that writes state, and a structured answer."""

    class State(kit.agents.AgentState):
        seen: int

    class Hooks(kit.middleware.AgentMiddleware):
        state_schema = State

        def before_agent(self, state, runtime):
            return {"seen": 1}

        def before_model(self, state, runtime):
            return None

        def after_model(self, state, runtime):
            return {"seen": state["seen"] + 1}

        def after_agent(self, state, runtime):
            return None

        def wrap_model_call(self, request, handler):
            return handler(request)

        async def awrap_model_call(self, request, handler):
            return await handler(request)

        def wrap_tool_call(self, request, handler):
            return handler(request)

        async def awrap_tool_call(self, request, handler):
            return await handler(request)

    @kit.tools.tool
    def mark(runtime: kit.tools.ToolRuntime) -> Command:
        """Mark."""
        return Command(update={"seen": 10, "messages": [ToolMessage("marked", tool_call_id=runtime.tool_call_id)]})

    class Answer(BaseModel):
        """The answer."""

        text: str

    script = [calls(("mark", {}, "call_0")), calls(("Answer", {"text": "so it is"}, "call_1"))]
    return kit.agents.create_agent(
        ScriptedModel(script), [mark], middleware=[Hooks()], response_format=Answer, checkpointer=InMemorySaver()
    )


async def streams(run, scenario, given, config=None, **how):
    """The events of both agents, ours first, as they were when they came."""
    found = []
    for kit in (OURS, THEIRS):
        agent = scenario(kit, run.is_async)
        config = {"configurable": {"thread_id": "t"}, **(config or {})}
        events = []
        for one in given:
            if run.is_async:
                events += [plain(event) async for event in agent.astream(one, config, **how)]
            else:
                events += [plain(event) for event in agent.stream(one, config, **how)]
        found.append(events)
    return found


def plain(value):
    """`value` as JSON has it; messages with all their fields."""
    if isinstance(value, BaseMessage):
        return {"class": type(value).__name__, **{key: plain(v) for key, v in vars(value).items()}}
    if isinstance(value, dict):
        return {str(key): plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else repr(value)


ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b|\b0x[0-9a-f]+")
TIME = re.compile(r"20\d\d-\d\d-\d\dT[\d:.]+(\+00:00|Z)?")


def numbered(events):
    """The events as lines of text, ids replaced by their number and times by nothing."""
    numbers = {}

    def number(found):
        return f"id{numbers.setdefault(found[0], len(numbers))}"

    return TIME.sub("time", ID.sub(number, json.dumps(events, indent=1))).splitlines()


def without_wanted_differences(mode, data):
    """Take out of one event what is meant to differ."""
    if mode == "tools" and data["event"] == "tool-finished" and isinstance(data["output"], dict):
        # LangChain's result gets its id when it is stored, after it was sent; ours is another object by then.
        data["output"].pop("id", None)
    if mode == "debug":
        mode, data = data["type"], data["payload"]
    if mode in {"checkpoints", "checkpoint"}:
        # The channel that stores messages as they come counts what it has to add up.
        data["metadata"].pop("counters_since_delta_snapshot", None)
    if mode in {"tasks", "task"} and isinstance(data.get("input"), dict):
        # What a node of ours reads beside the state.
        data["input"] = {key: value for key, value in data["input"].items() if not key.startswith("agentkit_")}


def whose(path, mode, data, tasks):
    """The position of the parallel call that an event belongs to; None if it belongs to no call."""
    if path:
        return 2  # the only call with a graph inside
    if mode == "messages":
        metadata = data[1]
        inside = metadata["langgraph_checkpoint_ns"].startswith("tools:")
        return metadata["langgraph_path"][1] if inside else None
    if mode == "custom":
        return 1
    if mode == "tools":
        return int(data["tool_call_id"][-1])
    if mode == "updates":
        if "__interrupt__" in data:
            return 1
        results = (data.get("tools") or {}).get("messages")
        return int(results[0]["tool_call_id"][-1]) if results else None
    task = data.get("payload") if mode == "debug" else data if mode == "tasks" else {}
    if task.get("name") != "tools":
        return None
    if "input" in task:
        tasks[task["id"]] = int(task["input"][0]["id"][-1])
    return tasks[task["id"]]


def in_call_order(events, parts):
    """The events, those between two steps sorted by call."""
    tasks = {}
    keys = [whose(*parts(event), tasks) for event in events]
    ordered = []
    for alone, group in itertools.groupby(zip(keys, events, strict=True), key=lambda pair: pair[0] is None):
        ordered += group if alone else sorted(group, key=lambda pair: pair[0])
    return [event for _, event in ordered]


def compare(ours, theirs, parts, *, parallel=True):
    found = []
    for events in (ours, theirs):
        for event in events:
            without_wanted_differences(*parts(event)[1:])
        found.append(numbered(in_call_order(events, parts) if parallel else events))
    assert found[0] == found[1]


def shape(modes, *, subgraphs):
    """How `(namespace, mode, data)` are got from an event of such a stream."""
    if isinstance(modes, str):
        return (lambda event: (event[0], modes, event[1])) if subgraphs else (lambda event: ([], modes, event))
    return (lambda event: event) if subgraphs else (lambda event: ([], *event))


SUBGRAPHS = pytest.mark.parametrize("subgraphs", [False, True], ids=["flat", "subgraphs"])


@SUBGRAPHS
@pytest.mark.parametrize(
    "modes", [*MODES, *LISTS], ids=lambda modes: modes if isinstance(modes, str) else "+".join(modes)
)
async def test_a_batch_of_three_calls_streams_what_langchains_agent_streams(run, modes, subgraphs):
    ours, theirs = await streams(run, three_calls, [HI], stream_mode=modes, subgraphs=subgraphs)
    assert len(ours) > 3 or modes == "custom"
    compare(ours, theirs, shape(modes, subgraphs=subgraphs))


async def test_where_nothing_is_parallel_the_order_is_the_same_as_it_stands(run):
    # langgraph waits for itself where a sync run may use one thread only and its stream needs one: no agent ends there
    modes = MODES if run.is_async else [mode for mode in MODES if mode not in {"messages", "custom"}]
    one = {"max_concurrency": 1}
    ours, theirs = await streams(run, three_calls, [HI], one, stream_mode=modes, subgraphs=run.is_async)
    compare(ours, theirs, shape(modes, subgraphs=run.is_async), parallel=False)


@SUBGRAPHS
async def test_the_second_form_of_streams_is_the_same(run, subgraphs):
    ours, theirs = await streams(run, three_calls, [HI], stream_mode=MODES, subgraphs=subgraphs, version="v2")
    compare(ours, theirs, lambda event: (event["ns"], event["type"], event["data"]))


@pytest.mark.parametrize("mode", MODES)
async def test_a_question_and_its_answer_stream_what_langchains_agent_streams(run, mode):
    given = [HI, Command(resume="you may")]
    ours, theirs = await streams(run, a_question, given, stream_mode=[mode])
    compare(ours, theirs, shape([mode], subgraphs=False))


@pytest.mark.parametrize("mode", MODES)
async def test_hooks_and_a_structured_answer_stream_what_langchains_agent_streams(run, mode):
    ours, theirs = await streams(run, hooks_and_an_answer, [HI], stream_mode=[mode])
    compare(ours, theirs, shape([mode], subgraphs=False))


async def test_a_result_that_a_command_holds_as_a_dict_is_streamed_as_a_message_with_the_name_of_its_tool(run, thread):
    @agentkit.tools.tool
    def mark(runtime: agentkit.tools.ToolRuntime) -> Command:
        """Mark."""
        result = {"role": "tool", "content": "marked", "tool_call_id": runtime.tool_call_id}
        return Command(update={"messages": [result]})

    agent = agentkit.agents.create_agent(ScriptedModel([calls(("mark", {}, "call_0")), "done"]), [mark])
    events = await run.stream(agent, HI, thread, stream_mode="updates")
    (result,) = events[1]["tools"]["messages"]
    assert (result.type, result.name, result.content) == ("tool", "mark", "marked")


async def test_each_finished_call_is_one_update_as_it_finishes_and_nothing_comes_twice(run, thread):
    events = await run.stream(three_calls(OURS, run.is_async), HI, thread, stream_mode="updates")
    assert [list(e) for e in events] == [["model"], ["tools"], ["tools"], ["tools"], ["model"]]
    seen = [m.id for e in events for update in e.values() for m in update["messages"]]
    assert len(seen) == len(set(seen)) == 5


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
def test_a_subagent_is_seen_by_its_name(thread):
    stream = three_calls(OURS, is_async=False).stream_events(HI, thread, version="v3")
    assert [(handle.name, handle.cause) for handle in stream.subagents] == [
        ("child", {"type": "toolCall", "tool_call_id": "call_2"})
    ]
