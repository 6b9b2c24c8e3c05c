"""Threads that stay small: the same 200 turns, here and with LangChain's agent on the official saver."""

import psycopg
import pytest
from memory.growth import measure, ours, talk

from agentkit.memory import open_memory


@pytest.mark.timeout(400)
def test_two_hundred_turns_store_a_twenty_fifth_of_what_langchains_agent_stores(postgres_server):
    (_, theirs), (_, mine) = measure(postgres_server, 200)
    print(f"200 turns: LangChain {theirs / 1e6:.2f} MB, agentkit {mine / 1e6:.2f} MB, {theirs / mine:.1f} : 1")
    assert mine * 25 <= theirs


def test_what_a_turn_writes_does_not_grow_with_the_thread(memory):
    """A late turn stores as many rows and bytes as an early one; whole copies of the history come every so often."""

    def rows():
        with psycopg.connect(memory.url) as conn:
            sizes = [
                conn.execute(f"SELECT count(*), sum(pg_column_size(t.*)) FROM {table} t {where}").fetchone()
                for table, where in (
                    ("checkpoints", ""),
                    ("checkpoint_writes", ""),
                    ("checkpoint_blobs", "WHERE channel NOT IN ('messages', 'agentkit_offered')"),
                )
            ]
        return [sum(column) for column in zip(*sizes, strict=True)]

    app, counts = ours(memory.checkpointer), []
    for first, turns in ((0, 20), (20, 2), (22, 40), (62, 2)):
        before = rows() if first else None
        talk(app, turns, first)
        if turns == 2:
            counts.append([after - earlier for after, earlier in zip(rows(), before, strict=True)])
    (early_rows, early_bytes), (late_rows, late_bytes) = counts
    assert late_rows == early_rows
    assert late_bytes == pytest.approx(early_bytes, rel=0.15)


def test_an_old_state_is_rebuilt_after_the_whole_copies_were_thinned_out(postgres_url):
    with open_memory(postgres_url) as memory:
        memory.checkpointer.delete_thread("old")
        app = ours(memory.checkpointer)
        talk(app, 60, thread="old")
        config = {"configurable": {"thread_id": "old"}}
        newest = [message.id for message in app.get_state(config).values["messages"]]
        for state in list(app.get_state_history(config))[::23]:
            ids = [message.id for message in state.values.get("messages", [])]
            assert ids == newest[: len(ids)]
        memory.retain(keep_last=120, thread_ids=["old"])
        states = list(app.get_state_history(config))
        assert len(states) >= 120
        for state in states[:120:17]:
            ids = [message.id for message in state.values.get("messages", [])]
            assert (len(ids) > 0, ids) == (True, newest[: len(ids)])
