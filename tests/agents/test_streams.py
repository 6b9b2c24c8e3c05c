"""Streams of our agent beside LangChain's create_agent, event by event, in every stream mode.

The wanted differences, which `comparable` takes out before comparing:
- ids that are made up per run (messages, tasks, runs, checkpoints, times);
- the order of events of parallel calls, which depends on which finishes first;
- `tasks` and `debug`: the node's result is a list of updates in both, and ours ends with the route;
- `checkpoints`: our private channels, and which channels a checkpoint stores.
"""

import pytest
from langchain.agents import create_agent as langchains
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver

from agentkit.agents import create_agent
from agentkit.testing import ScriptedModel, calls
from agentkit.tools import ToolRuntime, tool

HI = {"messages": [("user", "hi")]}
MODES = ["values", "updates", "messages", "custom", "tasks", "checkpoints", "debug"]


def build(make, is_async):
    """An agent whose batch has three calls: a model inside a tool, custom events, an agent inside a tool."""
    inner_model = ScriptedModel(lambda messages: "inner words")
    child = make(ScriptedModel([calls(("ping", {})), "child done"]), [ping], name="child")

    if is_async:

        @tool
        async def think(about: str) -> str:
            """Think."""
            return (await inner_model.ainvoke(about)).text

        @tool
        async def tell(runtime: ToolRuntime) -> str:
            """Tell."""
            runtime.stream_writer({"told": 1})
            runtime.stream_writer({"told": 2})
            return "told"

        @tool
        async def delegate(what: str) -> str:
            """Delegate."""
            return (await child.ainvoke({"messages": [("user", what)]}))["messages"][-1].text
    else:

        @tool
        def think(about: str) -> str:
            """Think."""
            return inner_model.invoke(about).text

        @tool
        def tell(runtime: ToolRuntime) -> str:
            """Tell."""
            runtime.stream_writer({"told": 1})
            runtime.stream_writer({"told": 2})
            return "told"

        @tool
        def delegate(what: str) -> str:
            """Delegate."""
            return child.invoke({"messages": [("user", what)]})["messages"][-1].text

    batch = calls(("think", {"about": "x"}), ("tell", {}), ("delegate", {"what": "y"}), text="calling three")
    return make(ScriptedModel([batch, "all done"]), [think, tell, delegate], checkpointer=InMemorySaver())


@tool
def ping() -> str:
    """Ping."""
    return "pong"


def plain(value):
    """`value` without what differs from run to run, comparable and sortable."""
    if isinstance(value, BaseMessage):
        found = [(c["name"], c["id"]) for c in getattr(value, "tool_calls", ())]
        return (
            value.type,
            value.text,
            value.name,
            found,
            getattr(value, "tool_call_id", None),
            getattr(value, "status", None),
        )
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def namespace(path):
    return tuple(part.split(":")[0] for part in path)


def comparable(mode, event):
    if mode == "messages":
        message, metadata = event
        kept = (
            "langgraph_step",
            "langgraph_node",
            "langgraph_triggers",
            "ls_integration",
            "lc_agent_name",
            "ls_provider",
        )
        return [plain(message), {k: metadata.get(k) for k in kept}]
    if mode in ("tasks", "debug", "checkpoints"):
        return skeleton(mode, event)
    return plain(event)


def skeleton(mode, event):
    """The kind of a task, checkpoint or debug event, and what it is about."""
    if mode == "debug":
        return [
            event["type"],
            event["step"],
            skeleton("tasks" if "task" in event["type"] else "checkpoints", event["payload"]),
        ]
    if mode == "tasks":
        said = plain(event["result"]) if "result" in event else None
        if isinstance(said, dict):
            said = {k: v for k, v in said.items() if not k.startswith("agentkit_")}
        kind = "result" if "result" in event else "start"
        return [
            kind,
            event["name"],
            said,
            event.get("error"),
            plain(event.get("interrupts", [])),
            event.get("triggers"),
        ]
    metadata = event["metadata"]
    values = {k: plain(v) for k, v in event["values"].items() if not k.startswith("agentkit_")}
    return [
        metadata["source"],
        metadata["step"],
        values,
        sorted(event["next"]),
        sorted(t["name"] for t in event["tasks"]),
    ]


def by_step(events):
    """Events with those of parallel tasks in a fixed order: within a namespace their order is kept."""
    streams = {}
    for path, mode, event in events:
        streams.setdefault((namespace(path), mode), []).append(comparable(mode, event))
    return {key: sorted(map(repr, found)) for key, found in streams.items()}


@pytest.mark.parametrize("subgraphs", [False, True])
@pytest.mark.parametrize("mode", MODES)
async def test_streams_are_those_of_langchains_agent(run, thread, mode, subgraphs):
    streams = []
    for make in (create_agent, langchains):
        agent = build(make, run.is_async)
        events = await run.stream(agent, HI, thread, stream_mode=[mode], subgraphs=subgraphs)
        streams.append(by_step([(e if subgraphs else ((), *e)) for e in events]))
    ours, theirs = streams
    assert ours == theirs


async def test_each_finished_call_is_one_update_as_it_finishes_and_nothing_comes_twice(run, thread):
    agent = build(create_agent, run.is_async)
    events = await run.stream(agent, HI, thread, stream_mode="updates")
    assert [list(e) for e in events] == [["model"], ["tools"], ["tools"], ["tools"], ["model"]]
    seen = [m.id for e in events for update in e.values() for m in update["messages"]]
    assert len(seen) == len(set(seen)) == 5


async def test_the_metadata_says_what_langchains_says(run):
    metadata = []
    for make in (create_agent, langchains):
        agent = make(ScriptedModel(["hi"]), [ping], name="me")
        assert agent.name == "me"
        events = await run.stream(agent, HI, stream_mode="messages")
        metadata.append(
            {
                k: v
                for k, v in events[-1][1].items()
                if k not in {"langgraph_checkpoint_ns", "checkpoint_ns", "langgraph_path"}
            }
        )
        assert events[-1][0].name in ("me", None)
    assert metadata[0] == metadata[1]


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
def test_a_subagent_is_seen_by_its_name():
    agent = build(create_agent, is_async=False)
    stream = agent.stream_events(HI, {"configurable": {"thread_id": "t"}}, version="v3")
    handles = []
    for handle in stream.subagents:
        handles.append((handle.name, handle.cause))
    assert handles == [("child", {"type": "toolCall", "tool_call_id": "call_delegate_2"})]
