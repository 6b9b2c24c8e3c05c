"""An agent's state: merged schemas, and what parallel calls write."""

import logging
import operator
import os
import subprocess
import sys
from typing import Annotated, NotRequired

import pytest
from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import add_messages
from langgraph.types import Command
from typing_extensions import TypedDict

from agentkit.agents import AgentState, create_agent
from agentkit.agents.middleware import AgentMiddleware, before_model
from agentkit.agents.middleware.types import OmitFromInput, OmitFromOutput, PrivateStateAttr
from agentkit.errors import DefinitionError
from agentkit.testing import ScriptedModel, StrictModel, calls
from agentkit.tools import ToolPolicy, ToolRuntime, tool, with_policy

HI = {"messages": [("user", "hi")]}


class Notes(AgentState):
    plain: NotRequired[str]
    added: Annotated[list[str], operator.add]


@tool
def note(text: str, runtime: ToolRuntime) -> Command:
    """Take a note."""
    result = ToolMessage("noted", tool_call_id=runtime.tool_call_id)
    return Command(update={"plain": text, "added": [text], "messages": [result]})


@pytest.mark.parametrize("texts", [["a", "b", "c"], ["same", "same", "same"]])
async def test_parallel_calls_write_in_call_order(run, caplog, texts):
    model = ScriptedModel([calls(*[("note", {"text": text}) for text in texts]), "done"])
    agent = create_agent(StrictModel(model), [note], state_schema=Notes)
    with caplog.at_level(logging.WARNING, "agentkit"):
        state = await run.invoke(agent, {**HI, "added": []})
    assert state["plain"] == texts[-1]
    assert state["added"] == texts
    assert "StateConflict" in caplog.text
    assert "'plain'" in caplog.text


def test_a_declared_write_to_a_plain_key_is_refused_when_the_agent_is_built():
    def build(*policies, schema=Notes):
        made = [with_policy(tool(f"note{n}", description="x")(lambda: "x"), p) for n, p in enumerate(policies)]
        return create_agent(ScriptedModel([]), made, state_schema=schema)

    with pytest.raises(DefinitionError, match="'note0' writes the state key 'plain'"):
        build(ToolPolicy(writes=("plain",)))
    with pytest.raises(DefinitionError, match="'note0', 'note1' write"):
        build(ToolPolicy(writes=("plain",), sequential=True), ToolPolicy(writes=("plain",), sequential=True))
    build(ToolPolicy(writes=("plain",), sequential=True))
    build(ToolPolicy(writes=("added",)), ToolPolicy(writes=("added",)))


async def test_schemas_of_middleware_and_user_become_one_and_the_users_wins(run):
    class Theirs(AgentState):
        mine: NotRequired[Annotated[list[str], operator.add]]
        count: NotRequired[Annotated[int, PrivateStateAttr]]
        only_out: NotRequired[Annotated[int, OmitFromInput]]
        only_in: NotRequired[Annotated[int, OmitFromOutput]]

    class Keeper(AgentMiddleware):
        state_schema = Theirs

        def before_model(self, state, runtime):
            return {"count": state.get("count", 0) + 1, "only_out": state.get("only_in", 0)}

    class Mine(AgentState):
        mine: NotRequired[str]

    agent = create_agent(StrictModel(ScriptedModel(["hello"])), middleware=[Keeper()], state_schema=Mine)
    state = await run.invoke(agent, {**HI, "only_in": 7, "only_out": 99, "mine": "text"})
    assert {key: value for key, value in state.items() if key != "messages"} == {"only_out": 7, "mine": "text"}


def test_messages_declared_with_add_messages_become_ours_and_another_reducer_stays():
    class Plain(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]

    class Own(TypedDict):
        messages: Annotated[list[AnyMessage], lambda left, right: [*left, *right]]

    assert isinstance(create_agent(ScriptedModel([]), state_schema=Plain).channels["messages"], DeltaChannel)
    assert not isinstance(create_agent(ScriptedModel([]), state_schema=Own).channels["messages"], DeltaChannel)


def test_the_delta_channel_can_be_turned_off():
    script = (
        "from agentkit.agents import create_agent; from agentkit.testing import ScriptedModel; "
        "print(type(create_agent(ScriptedModel([])).channels['messages']).__name__)"
    )
    env = {**os.environ, "AGENTKIT_DELTA_MESSAGES": "0"}
    shown = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "BinaryOperatorAggregate"


def test_a_history_grows_by_what_is_said_and_not_by_its_square(thread):
    saver = InMemorySaver()
    agent = create_agent(ScriptedModel(lambda m: "x" * 100), checkpointer=saver)
    for _ in range(10):
        agent.invoke(HI, thread)
    blobs = [key for key in saver.blobs if key[2] == "messages" and saver.blobs[key][0] != "empty"]
    assert len(blobs) <= 2
    assert len(agent.get_state(thread).values["messages"]) == 20


async def test_hooks_and_tools_see_no_private_keys(run):
    seen = []

    @before_model
    def look(state, runtime):
        seen.append(set(state))

    @tool
    def peek(runtime: ToolRuntime) -> str:
        """Look at the state."""
        seen.append(set(runtime.state))
        return "seen"

    model = ScriptedModel([calls(("peek", {})), "done"])
    await run.invoke(create_agent(StrictModel(model), [peek], middleware=[look]), HI)
    assert all(keys == {"messages"} for keys in seen)
