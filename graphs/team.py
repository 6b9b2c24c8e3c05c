"""A team: a supervisor with two specialists as tools, and a planner that it hands the conversation over to.

    supervisor ── calculator, clock     agents as tools: each call is a conversation of its own
        │  ▲
        ▼  │   handoffs: the whole conversation moves, with every call answered
      planner

`graph` is what the server serves, without checkpointer and store. `build` makes the same team with memory and model.
Without a model it takes AGENTKIT_MODEL, and without that the rehearsal model, which is no LLM: it matches patterns.
"""

import os
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from agentkit.agents import as_tool, create_agent, handoff
from agentkit.testing.rehearsal import RehearsalModel
from graphs.assistant import (
    AssistantState,
    Context,
    add_todo,
    calculate,
    convert_time,
    convert_units,
    current_time,
    days_between,
    finish_todo,
    show_todos,
)

Graph: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]


def build(
    model: str | BaseChatModel | None = None,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
) -> Graph:
    """The team, with the memory it is given."""
    model = model or os.environ.get("AGENTKIT_MODEL") or RehearsalModel(pause=0.01)
    calculator = as_tool(
        create_agent(
            model, [calculate, convert_units], system_prompt="Answer with the result alone.", name="calculator"
        ),
        description="Works out arithmetic and converts units.",
    )
    clock = as_tool(
        create_agent(model, [current_time, convert_time, days_between], system_prompt="Be brief.", name="clock"),
        description="Knows dates, times and time zones, and remembers what it was asked before.",
        memory="thread",
    )
    supervisor = create_agent(
        model,
        [calculator, clock, handoff("planner", description="Hand over to the planner, who keeps the to-do list.")],
        system_prompt="You lead a team. Give each part of a question to who knows best, several at once.",
        state_schema=AssistantState,
        context_schema=Context,
        name="supervisor",
    )
    planner = create_agent(
        model,
        [add_todo, finish_todo, show_todos, handoff("supervisor", description="Hand back to the supervisor.")],
        system_prompt="You keep the user's to-do list.",
        state_schema=AssistantState,
        context_schema=Context,
        name="planner",
    )
    graph: Any = StateGraph(AssistantState, context_schema=Context)
    graph.add_node("supervisor", supervisor, destinations=("planner",))
    graph.add_node("planner", planner, destinations=("supervisor",))
    graph.add_conditional_edges(START, _who_has_the_floor, ["supervisor", "planner"])
    graph.add_edge("supervisor", END)
    graph.add_edge("planner", END)
    compiled: CompiledStateGraph[Any, Any, Any, Any] = graph.compile(
        checkpointer=checkpointer, store=store, name="team"
    )
    return compiled


def _who_has_the_floor(state: AssistantState) -> str:
    """Who spoke last goes on; a new conversation begins with the supervisor."""
    for message in reversed(state["messages"]):
        if isinstance(message, AIMessage) and message.name in ("supervisor", "planner"):
            return message.name
    return "supervisor"


graph = build()
