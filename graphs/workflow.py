"""A graph written by hand: a clerk who books expenses, and an agent that checks them when they are many.

    clerk ──► tools ──► clerk … ──► END, or the auditor where the total is over the limit

It has its own state, agentkit's reducers and ToolNode, and an agent as subgraph. Calls of one message run in parallel
(`fan_out`), and their updates meet in the reducers: no expense is lost, and the total is right.

`graph` is what the server serves, without checkpointer and store. `build` makes the same with memory and model.
Without a model it takes AGENTKIT_MODEL, and without that the rehearsal model, which is no LLM: it matches patterns.
"""

import os
from typing import Annotated, Any, TypeAlias, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Command, Send

from agentkit.agents import create_agent
from agentkit.messages import add_history, ensure_call_ids, repair_history
from agentkit.reducers import append, counter
from agentkit.testing.rehearsal import RehearsalModel
from agentkit.tools import ToolNode, ToolRuntime, fan_out, tool

LIMIT = 1000.0
"""From which total on the auditor looks at the expenses, in euros."""


class Expenses(TypedDict, total=False):
    """The conversation, and what was booked in it."""

    messages: Annotated[list[AnyMessage], add_history]
    expenses: Annotated[list[str], append]
    total: Annotated[float, counter]


class Context(TypedDict, total=False):
    """Who is talking; on a server with authentication its user counts instead."""

    user_id: str


Runtime = ToolRuntime[Context, Expenses]


@tool
def book_expense(what: str, euros: float, runtime: Runtime) -> Command[Any]:
    """Book one expense. For several call it several times at once.

    Args:
        what: What the money was spent on.
        euros: How much.
    """
    if not 0 < euros < 1_000_000:  # noqa: PLR2004 - a bound for typing errors
        raise ValueError(f"{euros:g} euros is no expense that can be booked")
    said = ToolMessage(f"booked {euros:.2f} for {what}", tool_call_id=runtime.tool_call_id)
    return Command(update={"expenses": [f"{what}: {euros:.2f}"], "total": euros, "messages": [said]})


@tool
def show_expenses(runtime: Runtime) -> str:
    """What was booked in this conversation, with the total."""
    lines = runtime.state.get("expenses", [])
    return "\n".join([*lines, f"total: {runtime.state.get('total', 0.0):.2f}"])


Graph: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]


def build(
    model: str | BaseChatModel | None = None,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
) -> Graph:
    """The workflow, with the memory it is given."""
    chat = _chat_model(model or os.environ.get("AGENTKIT_MODEL") or RehearsalModel(pause=0.01))
    tools = [book_expense, show_expenses]
    asking = chat.bind_tools(tools)

    def clerk(state: Expenses) -> Expenses:
        # A run that was cut short leaves open calls behind: they are closed before the model sees them.
        history, faults = repair_history(state["messages"])
        answer = asking.invoke([SystemMessage("You book expenses. Be brief."), *history])
        return {"messages": [*(history if faults else []), ensure_call_ids(answer)]}

    auditor = create_agent(chat, [show_expenses], system_prompt="Say in one sentence what stands out.", name="auditor")

    graph: Any = StateGraph(Expenses, context_schema=Context)
    graph.add_node("clerk", clerk)
    graph.add_node("tools", ToolNode(tools))
    graph.add_node("auditor", auditor)
    graph.add_edge(START, "clerk")
    graph.add_conditional_edges("clerk", _after_clerk, ["tools", "auditor", END])
    graph.add_edge("tools", "clerk")
    graph.add_edge("auditor", END)
    compiled: CompiledStateGraph[Any, Any, Any, Any] = graph.compile(
        checkpointer=checkpointer, store=store, name="workflow"
    )
    return compiled


def _after_clerk(state: Expenses) -> list[Send] | str:
    calls = _to_tools(state)
    if calls != END:
        return calls
    return "auditor" if _booked_now(state) and state.get("total", 0.0) > LIMIT else END


def _booked_now(state: Expenses) -> bool:
    """Whether something was booked since the user spoke."""
    for message in reversed(state["messages"]):
        if isinstance(message, HumanMessage):
            return False
        if isinstance(message, ToolMessage) and message.name == book_expense.name and message.status == "success":
            return True
    return False


_to_tools = fan_out()


def _chat_model(model: str | BaseChatModel) -> BaseChatModel:
    if not isinstance(model, str):
        return model
    from langchain.chat_models import init_chat_model  # the extra `models`

    return init_chat_model(model)


graph = build()
