"""What is run and killed: agents whose tools write down everything they do, built from agentkit or from LangChain.

The log is a file that every process appends to; one line is one write, which the kernel keeps whatever becomes of the
process. Calls are known by a number that the scripted model gives them, so a call that is made again under another id
is noticed too.

S n   the body of call n starts          E n   it has had its effect
A n   its result was seen outside        U n   its result says that the outcome is unknown
I t   the model was given an invalid history
"""

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from agentkit.agents import as_tool, create_agent
from agentkit.errors import HistoryError
from agentkit.memory import aopen_memory, open_memory
from agentkit.testing import assert_valid
from agentkit.tools import ToolPolicy, ToolRuntime, tool

ROUNDS = 3
CALLS = 4
PLACES = ("agent", "subgraph", "in a tool")
SLEEP = (0.002, 0.02)


class Log:
    """The log file, opened for appending."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, kind: str, what: object) -> None:
        os.write(self._file, f"{kind} {what}\n".encode())


class Script(BaseChatModel):
    """A model whose answer depends on the history alone: ROUNDS rounds of calls, then a text."""

    log: Any
    names: list[str]
    base: int = 0

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        try:
            assert_valid(messages)
        except HistoryError as error:
            self.log.write("I", str(error).replace("\n", " ")[:300])
        done = sum(isinstance(message, AIMessage) for message in messages)
        calls = []
        if done < ROUNDS:
            for index in range(CALLS):
                number = self.base + done * CALLS + index
                name = self.names[index % len(self.names)]
                args = {"request": str(number)} if name == "delegate" else {"n": number}
                calls.append({"name": name, "args": args, "id": f"call_{number}", "type": "tool_call"})
        answer = AIMessage("" if calls else "done", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=answer)])


def tools_of(log: Log, url: str, *, is_async: bool, ours: bool) -> list[Any]:
    """`once` must not run twice, `again` may; `transfer` shares a transaction with its record (agentkit only)."""

    def body(name: str) -> Callable[..., Any]:
        def work(n: int) -> str:
            """Have an effect."""
            log.write("S", f"{name} {n}")
            time.sleep(random.uniform(*SLEEP))
            log.write("E", f"{name} {n}")
            return f"{name} {n}"

        async def awork(n: int) -> str:
            """Have an effect."""
            log.write("S", f"{name} {n}")
            await asyncio.sleep(random.uniform(*SLEEP))
            log.write("E", f"{name} {n}")
            return f"{name} {n}"

        return awork if is_async else work

    if not ours:
        from langchain_core.tools import tool as plain

        return [plain(name)(body(name)) for name in ("once", "again")]
    return [
        tool("once")(body("once")),
        tool("again", policy=ToolPolicy(on_crash="rerun"))(body("again")),
        _transfer(log, is_async=is_async),
    ]


def _transfer(log: Log, *, is_async: bool) -> Any:
    insert = "INSERT INTO transfers (n) VALUES (%s)"

    def work(n: int, runtime: ToolRuntime) -> str:
        """Move money, in the transaction of the record."""
        log.write("S", f"transfer {n}")
        with runtime.transaction() as conn:
            conn.execute(insert, (n,))
            time.sleep(random.uniform(*SLEEP))
        return f"transfer {n}"

    async def awork(n: int, runtime: ToolRuntime) -> str:
        """Move money, in the transaction of the record."""
        log.write("S", f"transfer {n}")
        async with runtime.transaction() as conn:
            await conn.execute(insert, (n,))
            await asyncio.sleep(random.uniform(*SLEEP))
        return f"transfer {n}"

    return tool("transfer", policy=ToolPolicy(transactional=True))(awork if is_async else work)


def graph_of(place: str, saver: BaseCheckpointSaver, log: Log, url: str, *, is_async: bool, ours: bool) -> Any:
    """The agent of one place."""
    tools = tools_of(log, url, is_async=is_async, ours=ours)
    names = ["once", "again", "once", "transfer" if ours else "again"]
    if ours:
        make = create_agent
    else:
        from langchain.agents import create_agent as make
    inner = make(Script(log=log, names=names), tools, name="worker", checkpointer=saver if place == "agent" else None)
    if place == "agent":
        return inner
    graph = StateGraph(MessagesState)
    if place == "subgraph":
        graph.add_node("worker", inner)
    else:
        graph.add_node("worker", _outer(make, log, names, tools, ours=ours, is_async=is_async))
    graph.add_edge(START, "worker")
    graph.add_edge("worker", END)
    return graph.compile(checkpointer=saver)


def _outer(make: Any, log: Log, names: list[str], tools: list[Any], *, ours: bool, is_async: bool) -> Any:
    """An agent whose calls are run by inner agents, several at a time."""

    def inner(number: int) -> Any:
        return make(Script(log=log, names=names, base=1000 * (number + 1)), tools, name="inner")

    if ours:

        class Numbered(Script):
            def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
                self = self.model_copy(update={"base": 1000 * (int(messages[0].content) + 1)})
                return Script._generate(self, messages, *args, **kwargs)

        delegate = as_tool(
            make(Numbered(log=log, names=names), tools, name="inner"), name="delegate", description="Delegate."
        )
    else:
        from langchain_core.tools import tool as plain

        def work(request: str) -> str:
            """Delegate."""
            return inner(int(request)).invoke({"messages": [("user", request)]})["messages"][-1].content

        async def awork(request: str) -> str:
            """Delegate."""
            return (await inner(int(request)).ainvoke({"messages": [("user", request)]}))["messages"][-1].content

        delegate = plain("delegate")(awork if is_async else work)
    outer = Script(log=log, names=["delegate", "again"])
    return make(outer, [delegate, *tools], name="outer")


def run(
    place: str,
    url: str,
    log_path: Path,
    thread: str,
    begun: Callable[[], None],
    *,
    is_async: bool,
    durability: str,
    ours: bool,
) -> bool:
    """Run the thread on from where it is; whether it has reached its end. `begun` is called when all is open."""
    log = Log(log_path)
    config = {"configurable": {"thread_id": thread}, "recursion_limit": 200}
    given = {"messages": [("user", "0")]}
    options = {"stream_mode": "updates", "subgraphs": True, "durability": durability}
    if is_async:

        async def main() -> bool:
            async with aopen_memory(url, min_size=1) if ours else AsyncPostgresSaver.from_conn_string(url) as opened:
                saver = opened.checkpointer if ours else opened
                graph = graph_of(place, saver, log, url, is_async=True, ours=ours)
                state = await graph.aget_state(config)
                if state.values and not state.next:
                    return True
                begun()
                async for _, update in graph.astream(None if state.values else given, config, **options):
                    _seen(log, update)
                return not (await graph.aget_state(config)).next

        return asyncio.run(main())
    with ExitStack() as stack:
        opened = stack.enter_context(open_memory(url, min_size=1) if ours else PostgresSaver.from_conn_string(url))
        saver = opened.checkpointer if ours else opened
        graph = graph_of(place, saver, log, url, is_async=False, ours=ours)
        state = graph.get_state(config)
        if state.values and not state.next:
            return True
        begun()
        for _, update in graph.stream(None if state.values else given, config, **options):
            _seen(log, update)
        return not graph.get_state(config).next


def _seen(log: Log, update: Any) -> None:
    """Results that reach whoever watches the run count as given: their calls must not run again."""
    for value in update.values():
        for part in value if isinstance(value, list) else [value]:
            for message in (part or {}).get("messages", []) if isinstance(part, dict) else []:
                if isinstance(message, ToolMessage):
                    number = message.tool_call_id.removeprefix("call_")
                    log.write("U" if "Outcome unknown" in str(message.content) else "A", f"{message.name} {number}")


@contextmanager
def tables(url: str) -> Iterator[None]:
    """What the transactional tool writes to."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("CREATE TABLE IF NOT EXISTS transfers (n int)")
    with open_memory(url):
        pass  # made, and closed again: nothing may be open when a process is forked
    yield
