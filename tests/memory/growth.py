"""What 200 turns with a tool call each store, here and with LangChain's agent on the official saver.

Run it to see the table (an embedded server is started for it); the tests use its parts.
"""

import os
import sys
import tempfile
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

import psycopg
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.postgres import PostgresSaver as OfficialSaver
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from agentkit.agents import create_agent
from agentkit.memory import open_memory

TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
# words of everyday length and variety: a text made of few words would compress better than people's do
WORDS = [
    "green",
    "tea",
    "river",
    "bridge",
    "cello",
    "window",
    "train",
    "garden",
    "apple",
    "winter",
    "invoice",
    "printer",
    "orchestra",
    "volcano",
    "please",
    "tell",
    "about",
    "how",
    "many",
    "days",
    "until",
    "which",
    "street",
    "number",
    "does",
    "house",
    "have",
    "because",
    "the",
    "weather",
    "changes",
    "quickly",
    "near",
    "mountains",
    "while",
    "people",
    "prefer",
    "warm",
    "places",
    "around",
    "noon",
    "and",
    "nobody",
    "expected",
    "that",
    "result",
    "would",
    "arrive",
    "before",
    "Friday",
    "evening",
    "although",
    "every",
    "colleague",
    "had",
    "already",
    "written",
    "three",
    "reports",
    "concerning",
    "budget",
    "travel",
    "health",
    "music",
    "language",
    "history",
    "science",
    "cooking",
    "repair",
    "insurance",
    "holiday",
    "school",
    "kitchen",
    "bicycle",
    "doctor",
    "market",
    "station",
    "library",
    "museum",
    "harbour",
    "island",
    "forest",
]


def speech(turn, words):
    """A text of so many words, another one each turn."""
    return " ".join(WORDS[(turn * 31 + n * n * 7 + n * turn) % len(WORDS)] for n in range(words))


class OneToolEachTurn(BaseChatModel):
    """Calls the tool, then answers."""

    @property
    def _llm_type(self):
        return "one-tool-each-turn"

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **_):
        turn = len(messages)
        if isinstance(messages[-1], ToolMessage):
            message = AIMessage(f"answer: {speech(turn, 70)}")
        else:
            call = {"name": "look_up", "args": {"what": speech(turn, 6)}, "id": f"call_{turn}", "type": "tool_call"}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def look_up(what: str) -> str:
    """Look something up."""
    return f"found: {what} {speech(len(what) + sum(map(ord, what)), 120)}"


def ours(saver):
    return create_agent(OneToolEachTurn(), [look_up], checkpointer=saver)


def langchains(saver):
    from langchain.agents import create_agent as langchain_create_agent

    return langchain_create_agent(OneToolEachTurn(), [look_up], checkpointer=saver)


def stored(url):
    """Bytes of all rows of the threads."""
    with psycopg.connect(url) as conn:
        return sum(
            conn.execute(f"SELECT coalesce(sum(pg_column_size(t.*)), 0) FROM {table} t").fetchone()[0]
            for table in TABLES
        )


def talk(app, turns, first=0, thread="t"):
    """Milliseconds of each turn."""
    took = []
    for turn in range(first, first + turns):
        start = time.perf_counter()
        app.invoke({"messages": [HumanMessage(f"{turn}: {speech(turn, 12)}")]}, {"configurable": {"thread_id": thread}})
        took.append(1000 * (time.perf_counter() - start))
    return took


@contextmanager
def database(server):
    name = f"growth_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(f'CREATE DATABASE "{name}"')
        try:
            yield make_conninfo("", **{**conninfo_to_dict(server), "dbname": name})
        finally:
            conn.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def measure(server, turns):
    """(bytes, ms of each turn) for LangChain's agent and for ours, each on a database of its own."""
    with database(server) as url, OfficialSaver.from_conn_string(url) as saver:
        saver.setup()
        theirs = talk(langchains(saver), turns), stored(url)
    with database(server) as url, open_memory(url) as memory:
        mine = talk(ours(memory.checkpointer), turns), stored(url)
    return theirs, mine


def median(values):
    return sorted(values)[len(values) // 2]


def table(server, turns=200):
    (their_ms, their_bytes), (my_ms, my_bytes) = measure(server, turns)
    rows = (
        ("LangChain's `create_agent`, official saver", their_ms, their_bytes),
        ("agentkit's `create_agent`", my_ms, my_bytes),
    )
    lines = [
        f"| {turns} turns with a tool each | stored | ms a turn, first 20 | ms a turn, last 20 |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {size / 1e6:.2f} MB | {median(took[:20]):.1f} | {median(took[-20:]):.1f} |"
        for name, took, size in rows
    ]
    return [*lines, f"| ratio | {their_bytes / my_bytes:.0f} : 1 | | |"]


if __name__ == "__main__":
    from agentkit.memory._embedded import EmbeddedServer

    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    given = os.environ.get("AGENTKIT_DATABASE_URL")
    with tempfile.TemporaryDirectory(prefix="ak") as folder:
        server = EmbeddedServer(home=Path(folder) / "data", settings={"fsync": "off"})
        users = None if given else server.acquire()
        try:
            sys.stdout.write("\n".join(table(given or server.url(), turns)) + "\n")
        finally:
            if users is not None:
                server.release(users)
