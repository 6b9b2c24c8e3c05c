"""The steps of the demonstration: each does something that breaks other agents, and says what must have held."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from agentkit.agents import AgentState, create_agent
from agentkit.cli._find import find_graph
from agentkit.cli._open import open_graph
from agentkit.cli._turn import AnyGraph, run_turn
from agentkit.cli._view import View
from agentkit.errors import HistoryError
from agentkit.memory import AsyncMemory
from agentkit.messages import check_history
from agentkit.reducers import merge_dict
from agentkit.testing import StrictModel, assert_valid
from agentkit.testing.rehearsal import RehearsalModel
from agentkit.tools import ToolRuntime, tool

__all__ = ["STEPS", "Scene", "Step"]

PATIENCE = 5.0  # seconds that one call waits for the other to be running too


@dataclass(kw_only=True)
class Scene:
    """What the steps share: the memory, the assistant on it, and somebody whom nobody has met before."""

    memory: AsyncMemory
    assistant: AnyGraph
    view: View
    user: str = field(default_factory=lambda: f"demo-{uuid4().hex[:6]}")
    threads: list[str] = field(default_factory=list)

    @classmethod
    async def set(cls, memory: AsyncMemory, view: View, stack: AsyncExitStack) -> "Scene":
        """The ready-made assistant, with a model that refuses every history a strict provider would refuse."""
        assistant = await open_graph(
            find_graph(None), stack, model=_strict(), checkpointer=memory.checkpointer, store=memory.store
        )
        return cls(memory=memory, assistant=assistant, view=view)

    def thread(self) -> RunnableConfig:
        """A new thread of the user."""
        self.threads.append(uuid4().hex[:12])
        return {"configurable": {"thread_id": self.threads[-1], "user_id": self.user}}

    async def ask(self, question: str, config: RunnableConfig, agent: AnyGraph | None = None) -> Mapping[str, Any]:
        """Put a question, show the turn, and give the state after it."""
        self.view.say(f"   > {question}", "bold")
        await run_turn(agent or self.assistant, {"messages": [HumanMessage(question)]}, config, self.view)
        return dict((await (agent or self.assistant).aget_state(config)).values)


Checks = list[tuple[str, bool]]


@dataclass(frozen=True, kw_only=True)
class Step:
    """A title, and what is done; it gives the claims that must hold, each with whether it did."""

    title: str
    act: Callable[[Scene], Awaitable[Checks]]


def _strict() -> StrictModel:
    return StrictModel(RehearsalModel())


class _ListState(AgentState[Any]):
    todos: NotRequired[Annotated[dict[str, str], merge_dict]]


async def _parallel(scene: Scene) -> Checks:
    both = asyncio.Barrier(2)

    @tool
    async def add_todo(item: str, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        """Put an item on the list; waits until the other call is running too."""
        async with asyncio.timeout(PATIENCE):
            await both.wait()
        done = ToolMessage(f"added {item}", tool_call_id=runtime.tool_call_id)
        return Command(update={"todos": {item: "open"}, "messages": [done]})

    agent = create_agent(_strict(), [add_todo], state_schema=_ListState, checkpointer=scene.memory.checkpointer)
    question = "add milk to my to-do list and add bread to my to-do list"
    state = await scene.ask(question, scene.thread(), agent)
    results = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    return [
        ("both calls were running at the same moment", [result.status for result in results] == ["success"] * 2),
        ("the reducer kept what both wrote to one field", state.get("todos") == {"milk": "open", "bread": "open"}),
    ]


async def _failing(scene: Scene) -> Checks:
    config = scene.thread()
    state = await scene.ask("what is 1/0 and the time in Seoul?", config)
    results = {m.name: m.status for m in state["messages"] if isinstance(m, ToolMessage)}
    after = await scene.ask("what is 12*7?", config)
    return [
        ("the failure became a result that the model can read", results.get("calculate") == "error"),
        ("the other call of the batch kept its result", results.get("current_time") == "success"),
        ("the conversation went on", "84" in after["messages"][-1].text),
    ]


async def _remembering(scene: Scene) -> Checks:
    first, second = scene.thread(), scene.thread()
    await scene.ask("remember that I like green tea", first)
    scene.view.say("   (another thread, the same user)", "dim")
    state = await scene.ask("what do you know about me?", second)
    scene.view.say("   (another user)", "dim")
    stranger = scene.thread()
    stranger["configurable"]["user_id"] = f"{scene.user}-somebody-else"
    other = await scene.ask("what do you know about me?", stranger)
    return [
        ("the second thread knows what the first one was told", "green tea" in state["messages"][-1].text),
        ("nobody else knows it", "green tea" not in _all_text(other["messages"])),
    ]


async def _repairing(scene: Scene) -> Checks:
    config = scene.thread()
    await scene.ask("what is 2+3?", config)
    lost = AIMessage("", tool_calls=[tool_call(name="calculate", args={"expression": "6*7"}, id="call_lost")])
    await scene.assistant.aupdate_state(config, {"messages": [lost]}, as_node="model")
    broken = (await scene.assistant.aget_state(config)).values["messages"]
    scene.view.say("   (a call without a result is written into the thread, as a crash would leave it)", "dim")
    for fault in check_history(broken):
        scene.view.say(f"   fault: {fault.detail}", "red")
    state = await scene.ask("what is 6*7?", config)
    return [
        ("a strict provider would have refused the history", _refused(broken)),
        ("the thread took the next message and answered it", "42" in state["messages"][-1].text),
        ("the stored history is valid again", not check_history(state["messages"])),
    ]


def _refused(messages: list[BaseMessage]) -> bool:
    try:
        assert_valid(messages)
    except HistoryError:
        return True
    return False


def _all_text(messages: list[BaseMessage]) -> str:
    return "\n".join(message.text for message in messages)


STEPS = (
    Step(title="Two tools run in parallel and write one field", act=_parallel),
    Step(title="A tool fails, and the conversation goes on", act=_failing),
    Step(title="What one thread is told, another one knows", act=_remembering),
    Step(title="A broken history is repaired", act=_repairing),
)
