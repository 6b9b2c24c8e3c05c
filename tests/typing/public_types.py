"""What type checkers see of the public names. Checked by mypy in the lint step; nothing here is run."""

from dataclasses import dataclass
from typing import Annotated, Any, assert_type

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command, Send

from agentkit import AgentState, HeadlessTool, ToolNode, ToolPolicy, ToolRuntime, create_agent, open_memory, tool
from agentkit.messages import Fault, check_history, ensure_call_ids, open_calls, owner_of, repair_history
from agentkit.reducers import append, counter
from agentkit.testing import ScriptedModel, ai, assert_valid, calls
from agentkit.tools import fan_out, policy_of, with_policy


@dataclass
class Context:
    user_id: str


class Trip(AgentState[Any]):
    stops: Annotated[list[str], append]
    visits: Annotated[int, counter]


@tool
def plain(city: str) -> str:
    """Name a city."""
    return city


@tool("renamed", policy=ToolPolicy(timeout=1.5, retry_on=(ConnectionError,)))
def with_runtime(runtime: ToolRuntime[Context, Trip]) -> Command[Any]:
    """Use the run."""
    assert_type(runtime.context, Context)
    assert_type(runtime.state, Trip)
    assert_type(runtime.tool_call_id, str | None)
    assert_type(runtime.idempotency_key, str | None)
    runtime.progress(1, 2, "half")
    return Command(update={"stops": [runtime.context.user_id]})


headless = tool(name="locate", description="Where the user is.", args_schema={"type": "object", "properties": {}})


def check() -> None:
    """Every public function, called as people call it."""
    assert_type(headless, HeadlessTool)
    assert_type(with_policy(plain, timeout=2.0), BaseTool)
    assert_type(policy_of(with_runtime), ToolPolicy)
    messages: list[BaseMessage] = [calls(("plain", {"city": "Oslo"}))]
    assert_type(open_calls(messages), list[ToolCall])
    assert_type(owner_of(messages, "c1"), AIMessage | None)
    assert_type(check_history(messages), list[Fault])
    repaired, faults = repair_history(messages)
    assert_type(faults, list[Fault])
    assert_valid(repaired)
    assert_type(ensure_call_ids(ai("hello")), AIMessage)
    node = ToolNode([plain, with_runtime], on_tool_error=lambda error, call: f"{call['name']}: {error}")
    assert_type(node.tools_by_name, dict[str, BaseTool])
    assert_type(fan_out()({"messages": messages}), list[Send] | str)
    with open_memory() as memory:
        agent = create_agent(
            ScriptedModel(["done"]),
            [plain, with_runtime, headless],
            state_schema=Trip,
            context_schema=Context,
            checkpointer=memory.checkpointer,
            store=memory.store,
        )
        agent.invoke({"messages": [("user", "hi")]}, context=Context("ada"))


def wrapper_types(result: ToolMessage) -> str:
    """Content is read as text."""
    return str(result.content)
