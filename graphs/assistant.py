"""An assistant with real tools and no web: arithmetic, time, units, a to-do list, memory across conversations.

`graph` is what `langgraph dev` serves: without checkpointer and store, since the server brings its own. Elsewhere
`build` makes the same agent with a memory:

    with open_memory() as memory:
        agent = build("openai:gpt-5.5", checkpointer=memory.checkpointer, store=memory.store)

Without a model it takes AGENTKIT_MODEL, and without that the rehearsal model, which is no LLM: it matches patterns.
"""

import asyncio
import os
import time as clock
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Command

from agentkit.agents import AgentState, create_agent
from agentkit.memory import memory_tools
from agentkit.reducers import merge_dict
from agentkit.testing.rehearsal import RehearsalModel
from agentkit.tools import BaseTool, ToolPolicy, ToolRuntime, tool, with_policy
from graphs._arithmetic import calculate_text
from graphs._dates import day_of, shown, time_of_day
from graphs._units import convert
from graphs._zones import zone_of

PROMPT = (
    "You are a helpful assistant. Use your tools for arithmetic, times, dates, units and the to-do list, several at "
    "once where the question has several parts. Remember what the user tells you about themselves, and look it up "
    "where it matters. Answer briefly, in the user's language."
)

LONGEST_WAIT = 600.0  # seconds
Todos = dict[str, Literal["open", "done"]]

HARMLESS = ToolPolicy(on_crash="rerun")  # it may run twice: nothing outside of the conversation changes
LISTING = ToolPolicy(on_crash="rerun", writes=("todos",))


class AssistantState(AgentState[Any]):
    """The conversation, and beside it the to-do list of this thread."""

    todos: NotRequired[Annotated[Todos, merge_dict]]


class Context(TypedDict, total=False):
    """Who is talking; on a server with authentication its user counts instead."""

    user_id: str


Runtime = ToolRuntime[Context, AssistantState]


@tool(policy=HARMLESS)
def calculate(expression: str) -> str:
    """Work out an arithmetic expression.

    Args:
        expression: Such as "12*7", "15% of 80", "sqrt(2)+1" or "2**10".
    """
    return calculate_text(expression)


@tool(policy=HARMLESS)
def current_time(place: str = "here") -> str:
    """The date and time now.

    Args:
        place: A city, an IANA zone such as "Asia/Seoul", an offset such as "UTC+9", or "here".
    """
    return shown(datetime.now(zone_of(place)))


@tool(policy=HARMLESS)
def convert_time(time: str, from_place: str, to_place: str) -> str:
    """What a time of day in one place is in another, today.

    Args:
        time: Such as "9:30", "21:00" or "9 am".
        from_place: Where that is the time: a city, a zone or an offset.
        to_place: Where to tell it for.
    """
    hour, minute = time_of_day(time)
    there = datetime.now(zone_of(from_place)).replace(hour=hour, minute=minute, second=0, microsecond=0)
    return f"{shown(there)} in {from_place} = {shown(there.astimezone(zone_of(to_place)))} in {to_place}"


@tool(policy=HARMLESS)
def days_between(start: str, end: str) -> str:
    """The number of days from one date to another.

    Args:
        start: A date such as "2026-12-25", "12-25" for the next one, or "today".
        end: As `start`.
    """
    first, last = day_of(start), day_of(end)
    days = (last - first).days
    return f"{days} day{'' if abs(days) == 1 else 's'} from {first} to {last}"


@tool(policy=HARMLESS)
def convert_units(value: float, from_unit: str, to_unit: str) -> str:
    """Convert a measure: length, mass, volume, area, time, speed, data, energy or temperature.

    Args:
        value: How many of `from_unit`.
        from_unit: Such as "km", "pounds", "°F" or "평".
        to_unit: A unit of the same kind.
    """
    result, source, target = convert(value, from_unit, to_unit)
    return f"{value:g} {source} = {result:.6g} {target}"


@tool(policy=LISTING)
def add_todo(item: str, runtime: Runtime) -> Command[Any]:
    """Put one item on the to-do list of this conversation. For several items call it several times at once.

    Args:
        item: What is to be done, in a few words.
    """
    item = " ".join(item.split())
    if not item:
        raise ValueError("the item is empty; say what is to be done")
    return _noted({item: "open"}, f"added: {item}", runtime)


@tool(policy=LISTING)
def finish_todo(item: str, runtime: Runtime) -> Command[Any]:
    """Mark one item of the to-do list as done.

    Args:
        item: The item, or a part of it that no other item has.
    """
    todos = runtime.state.get("todos", {})
    found = [name for name in todos if name.casefold() == item.casefold()]
    found = found or [name for name in todos if item.casefold() in name.casefold()]
    if len(found) != 1:
        known = ", ".join(found or todos) or "nothing yet"
        raise ValueError(f"{item!r} fits {len(found)} items; on the list: {known}")
    return _noted({found[0]: "done"}, f"done: {found[0]}", runtime)


@tool(policy=HARMLESS)
def show_todos(runtime: Runtime) -> str:
    """The to-do list of this conversation."""
    todos = runtime.state.get("todos", {})
    return "\n".join(f"[{'x' if mark == 'done' else ' '}] {item}" for item, mark in todos.items()) or "nothing to do"


class Timer(BaseTool):
    """A tool that takes its time, and says how far it is."""

    name: str = "timer"
    description: str = f"Wait for some seconds (at most {LONGEST_WAIT:g}), then report."

    def _run(self, seconds: float, runtime: Runtime) -> str:
        for pause in _ticks(seconds, runtime):
            clock.sleep(pause)
        return f"{seconds:g} s have passed"

    async def _arun(self, seconds: float, runtime: Runtime) -> str:
        for pause in _ticks(seconds, runtime):
            await asyncio.sleep(pause)
        return f"{seconds:g} s have passed"


TOOLS: list[BaseTool] = [
    calculate,
    current_time,
    convert_time,
    days_between,
    convert_units,
    add_todo,
    finish_todo,
    show_todos,
    with_policy(Timer(), HARMLESS),
    *memory_tools(),
]


def build(
    model: str | BaseChatModel | None = None,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The assistant, with the memory it is given."""
    return create_agent(
        model or os.environ.get("AGENTKIT_MODEL") or RehearsalModel(pause=0.01),
        TOOLS,
        system_prompt=PROMPT,
        state_schema=AssistantState,
        context_schema=Context,
        checkpointer=checkpointer,
        store=store,
        name="assistant",
    )


def _noted(todos: Todos, said: str, runtime: Runtime) -> Command[Any]:
    return Command(update={"todos": todos, "messages": [ToolMessage(said, tool_call_id=runtime.tool_call_id)]})


def _ticks(seconds: float, runtime: Runtime) -> Iterator[float]:
    """The pauses of a wait, telling the progress at each."""
    if not 0 <= seconds <= LONGEST_WAIT:
        raise ValueError(f"{seconds:g} seconds is out of range; the timer waits 0 to {LONGEST_WAIT:g} seconds")
    end = clock.monotonic() + seconds
    while (left := end - clock.monotonic()) > 0:
        runtime.progress(round(seconds - left, 1), seconds, "seconds")
        yield min(left, 0.5)


graph = build()
