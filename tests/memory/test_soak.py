"""Everything at once, for minutes: conversations, searches, prunes and killed connections.

`AGENTKIT_SOAK_SECONDS` says how long; three minutes if it is not set.
"""

import os
import random
import threading
import time
from collections import Counter

import psycopg
import pytest
from conftest import fresh_database
from langchain_core.messages import HumanMessage
from memory.growth import ours, speech
from psycopg_pool import PoolTimeout

from agentkit.errors import ThreadBusyError
from agentkit.memory import open_memory

SECONDS = float(os.environ.get("AGENTKIT_SOAK_SECONDS", "180"))
THREADS, KEEP = 12, 3
LOST = (psycopg.OperationalError, PoolTimeout)  # what a killed connection may cost


class Soak:
    """Workers on one memory, and what they have seen."""

    def __init__(self, memory):
        self.memory = memory
        self.app = ours(memory.checkpointer)
        self.over = threading.Event()
        self.seen = Counter()
        self.said = {f"t{n}": [] for n in range(THREADS)}
        self.notes = {}
        self.failures = []

    def repeat(self, work, *args):
        def run():
            chance = random.Random(repr(args))
            while not self.over.is_set():
                try:
                    work(chance, *args)
                except LOST:
                    self.seen["lost connections met"] += 1
                except Exception as error:
                    self.failures.append(error)
                    self.over.set()

        return threading.Thread(target=run, name=f"{work.__name__}{args}")

    def talk(self, chance, thread):
        text = f"{thread} says {len(self.said[thread])}: {speech(chance.randrange(1000), 10)}"
        config = {"configurable": {"thread_id": thread, "user_id": thread}}
        try:
            answer = self.app.invoke({"messages": [HumanMessage(text)]}, config)
        except LOST:
            # it may or may not have been stored: the thread itself says
            self.said[thread] = self.stored(thread)
            raise
        except ThreadBusyError:  # the run that met a killed connection still had something under way
            self.said[thread] = self.stored(thread)
            self.seen["refused"] += 1
            return
        self.said[thread].append(text)
        self.seen["turns"] += 1
        heard = [message.text for message in answer["messages"] if message.type == "human"]
        assert heard == self.said[thread], (thread, heard[-3:], self.said[thread][-3:])

    def stored(self, thread):
        while True:
            try:
                state = self.app.get_state({"configurable": {"thread_id": thread}}).values
                return [message.text for message in state.get("messages", []) if message.type == "human"]
            except LOST:
                self.seen["lost connections met"] += 1

    def remember(self, chance, user):
        key = str(chance.randrange(40))
        count = (self.memory.store.update(("notes", user), key, lambda old: note(old, chance)) or {})["n"]
        self.notes[(user, key)] = max(count, self.notes.get((user, key), 0))
        self.seen["updates"] += 1
        for item in self.memory.store.search(("notes", user), query=speech(chance.randrange(1000), 4)):
            assert item.namespace == ("notes", user)
        self.seen["searches"] += 1

    def prune(self, _chance):
        self.seen["checkpoints pruned"] += self.memory.retain(keep_last=KEEP).checkpoints
        self.over.wait(1)

    def kill(self, _chance):
        self.over.wait(2)
        with psycopg.connect(self.memory.url, autocommit=True) as conn:
            self.seen["connections killed"] += len(
                conn.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND pid <> pg_backend_pid() AND application_name = 'agentkit' ORDER BY random() LIMIT 2"
                ).fetchall()
            )


def note(old, chance):
    return {"n": (old or {"n": 0})["n"] + 1, "text": speech(chance.randrange(1000), 8)}


def bytes_of(url):
    with psycopg.connect(url, autocommit=True) as conn:
        return {
            table: conn.execute(f"SELECT coalesce(sum(pg_column_size(t.*)), 0) FROM {table} t").fetchone()[0]
            for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "store")
        }


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 600)
def test_everything_at_once_for_minutes_leaves_a_consistent_database_of_bounded_size(postgres_server):
    with fresh_database(postgres_server) as url, open_memory(url, max_size=8) as memory:
        soak = Soak(memory)
        workers = [soak.repeat(soak.talk, f"t{n}") for n in range(THREADS)]
        workers += [soak.repeat(soak.remember, f"u{n % 4}") for n in range(6)]
        workers += [soak.repeat(soak.prune), soak.repeat(soak.kill)]
        start = time.monotonic()
        for worker in workers:
            worker.start()
        soak.over.wait(SECONDS)
        soak.over.set()
        for worker in workers:
            worker.join(120)
        took = time.monotonic() - start
        assert soak.failures == []
        assert not any(worker.is_alive() for worker in workers)
        for thread, said in soak.said.items():
            assert soak.stored(thread) == said
        for (user, key), count in soak.notes.items():
            assert memory.store.get(("notes", user), key).value["n"] >= count
        memory.retain(keep_last=1)
        sizes, texts = bytes_of(url), sum(len(text) for said in soak.said.values() for text in said)
        with psycopg.connect(url) as conn:
            orphans = conn.execute(
                "SELECT count(*) FROM checkpoint_blobs b WHERE NOT EXISTS (SELECT 1 FROM checkpoints c WHERE "
                "c.thread_id = b.thread_id AND c.checkpoint_ns = b.checkpoint_ns "
                "AND c.checkpoint -> 'channel_versions' ->> b.channel = b.version)"
            ).fetchone()[0]
        print(f"\n{took:.0f} s: {dict(sorted(soak.seen.items()))}")
        print(f"{texts / 1e6:.2f} MB said by people; stored after pruning: { ({k: int(v) for k, v in sizes.items()}) }")
        assert soak.seen["turns"] > 0
        assert orphans == 0
        # a turn is about 1.4 kB of text, of which people say 70; each thread also keeps one chain of recent steps
        assert sum(sizes.values()) < 40 * texts + THREADS * 1_000_000
