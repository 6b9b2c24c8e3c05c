"""A conversation with a graph: the thread it is on, and the commands that change or show it."""

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, ClassVar
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from agentkit.cli._failures import Stop
from agentkit.cli._questions import Questions
from agentkit.cli._turn import AnyGraph, keys, run_turn
from agentkit.cli._view import View, short
from agentkit.memory import AsyncMemory
from agentkit.tools import identity

__all__ = ["Session"]

_MOST = 20  # threads listed


class Session:
    """One user, one graph, one thread at a time. A line that starts with / is a command, any other a message."""

    def __init__(self, *, graph: AnyGraph, memory: AsyncMemory, view: View, user: str) -> None:
        self._graph, self._memory, self._view, self._user = graph, memory, view, user
        self.thread = _new_id()
        self._shown: set[str] = set()
        self._questions = Questions([])
        self.left = False

    @property
    def _config(self) -> RunnableConfig:
        return {"configurable": {"thread_id": self.thread, "user_id": self._user}}

    async def take(self, line: str) -> None:
        """Do what a line says."""
        if line.startswith("/"):
            name, _, rest = line[1:].partition(" ")
            command = self._commands.get(name)
            if command is None:
                self._view.say(f"there is no /{name}; /help lists the commands", "red")
            else:
                await command(self, rest.strip())
        elif self._questions:
            self._questions.answer(line)
            if self._questions:
                self._view.say(self._questions.text, "yellow")
            else:
                await self._run(Command(resume=self._questions.answers))
        else:
            await self._run({"messages": [HumanMessage(line)]})

    async def _run(self, given: dict[str, Any] | Command[Any]) -> None:
        self._questions = Questions([])  # a turn that fails or is stopped leaves nothing half answered
        self._ask(Questions(await run_turn(self._graph, given, self._config, self._view, self._shown)))

    def _ask(self, questions: Questions) -> None:
        self._questions = questions
        if questions:
            self._view.say(questions.text, "yellow")

    async def resume(self, wanted: str) -> None:
        """Go on with the thread whose id starts so, or with the last one of this user ("" or "last").

        Raises:
            Stop: there is no such thread, or there are several.
        """
        threads = await self._threads()
        if wanted in {"", "last"}:
            found = [thread for thread in threads if thread != self.thread][:1]
        else:
            found = [thread for thread in threads if thread.startswith(wanted)]
        if not found:
            raise Stop(f"{self._user} has no thread {wanted or 'yet'}; /threads lists them")
        if len(found) > 1:
            raise Stop(f"{len(found)} threads start with {wanted}; give more of the id")
        self.thread = found[0]
        messages = await self._messages(self.thread)
        self._shown = {key for message in messages for key in keys(message)}
        self._view.say(f"thread {self.thread}, {len(messages)} messages; /history shows them", "dim")
        state = await self._graph.aget_state(self._config)
        self._ask(Questions(list(state.interrupts)))

    async def _resumed(self, wanted: str) -> None:
        try:
            await self.resume(wanted)
        except Stop as error:  # typed in a conversation, which goes on
            self._view.say(str(error), "red")

    async def _new(self, _rest: str) -> None:
        self.thread, self._shown, self._questions = _new_id(), set(), Questions([])
        self._view.say(f"new thread {self.thread}", "dim")

    async def _list(self, _rest: str) -> None:
        rows = []
        for thread, moment in list((await self._threads()).items())[:_MOST]:
            asked = [message.text for message in await self._messages(thread) if isinstance(message, HumanMessage)]
            rows.append((f"{'*' if thread == self.thread else ' '} {thread}", moment, short(asked[0]) if asked else ""))
        if rows:
            self._view.table(("  thread", "last used", "began with"), rows)
        else:
            self._view.say("no threads yet", "dim")

    async def _remembered(self, _rest: str) -> None:
        namespace = identity(SimpleNamespace(context={"user_id": self._user})).namespace
        rows = [
            (item.key, f"{item.updated_at:%Y-%m-%d %H:%M}", short(str(item.value.get("text", item.value))))
            for place in await self._memory.store.alist_namespaces(suffix=namespace)
            for item in await self._memory.store.asearch(place, limit=100)
        ]
        if rows:
            self._view.table(("id", "since", f"what is remembered about {self._user}"), rows)
        else:
            self._view.say(f"nothing is remembered about {self._user}", "dim")

    async def _history(self, _rest: str) -> None:
        messages = await self._messages(self.thread)
        if messages:
            self._view.history(messages)
        else:
            self._view.say("nothing has been said in this thread yet", "dim")

    async def _help(self, _rest: str) -> None:
        self._view.say(HELP)

    async def _leave(self, _rest: str) -> None:
        self.left = True

    async def _skip(self, _rest: str) -> None:
        self._questions = Questions([])
        self._view.say("the question is left open; the next line is a message", "dim")

    async def _threads(self) -> dict[str, str]:
        """This user's threads, the last used first, with when that was."""
        threads = await self._memory.threads(user=self._user)
        threads.sort(key=lambda thread: thread.last_used, reverse=True)
        return {thread.thread_id: f"{thread.last_used.astimezone():%Y-%m-%d %H:%M}" for thread in threads}

    async def _messages(self, thread: str) -> list[BaseMessage]:
        state = await self._graph.aget_state({"configurable": {"thread_id": thread, "user_id": self._user}})
        return list(state.values.get("messages", ()))

    _commands: ClassVar[dict[str, Callable[["Session", str], Awaitable[None]]]] = {
        "threads": _list,
        "new": _new,
        "resume": _resumed,
        "memory": _remembered,
        "history": _history,
        "skip": _skip,
        "help": _help,
        "quit": _leave,
        "exit": _leave,
    }


HELP = """\
/threads      your conversations
/new          begin another one
/resume ID    go on with one (the start of its id is enough; without an id, with the last)
/history      what was said in this one
/memory       what is remembered about you, in all of them
/skip         leave an open question of the agent open
/quit         leave (or ctrl-D)
ctrl-C stops what is running; the conversation goes on with your next message."""


def _new_id() -> str:
    return uuid4().hex[:12]
