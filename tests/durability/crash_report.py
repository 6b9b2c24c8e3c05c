"""Kills processes with SIGKILL at random moments until their threads are done, and counts what went wrong.

    python tests/durability/crash_report.py --kills 240      # the long form: `make crash`
    python tests/durability/crash_report.py --kills 12 --quick

Ends with 1 if agentkit lost or repeated anything. Plain LangChain runs beside it, to compare.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from crash_world import CALLS, PLACES, ROUNDS, run, tables
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from agentkit.memory._embedded import EmbeddedServer

LONGEST = 60.0  # seconds that one process may run


@dataclass(kw_only=True)
class Tally:
    """What one scenario came to."""

    kills: int = 0
    processes: int = 0
    calls: int = 0
    started_twice: int = 0
    repeated: int = 0
    invalid: int = 0
    stuck: int = 0
    unknown: int = 0
    transfers: str = "-"
    transfers_wrong: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (self.started_twice or self.repeated or self.invalid or self.stuck or self.transfers_wrong)


def attempt(place: str, url: str, log: Path, thread: str, delay: float | None, **options: object) -> str:
    """Fork, run, and kill after `delay` seconds: "done", "killed" or "failed"."""
    begun, tell = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            random.seed()
            code = 0 if run(place, url, log, thread, lambda: os.close(tell), **options) else 4  # type: ignore[arg-type]
        except BaseException:
            with Path(f"{log}.errors").open("a", encoding="utf-8") as errors:
                traceback.print_exc(file=errors)
        finally:
            os._exit(code)
    os.close(tell)
    os.read(begun, 1)  # returns when the child has begun, or has ended
    os.close(begun)
    deadline = time.monotonic() + (LONGEST if delay is None else delay)
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return "done" if os.waitstatus_to_exitcode(status) == 0 else "failed"
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return "killed" if os.waitstatus_to_exitcode(status) == -signal.SIGKILL else "done"


def scenario(
    place: str, server: str, folder: Path, kills: int, *, is_async: bool, durability: str, ours: bool
) -> Tally:
    """Threads of one kind, killed until `kills` processes have died, each then run to its end."""
    tally = Tally()
    options = {"is_async": is_async, "durability": durability, "ours": ours}
    with database(server) as url, tables(url):
        if not ours:
            _prepare_plain(url)
        length = 0.3  # seconds; adapts, so that some runs end and most do not
        while tally.kills < kills:
            thread = uuid.uuid4().hex
            log = folder / thread
            for _ in range(60):
                killing = tally.kills < kills
                tally.processes += 1
                end = attempt(place, url, log, thread, random.uniform(0, length) if killing else None, **options)
                tally.kills += end == "killed"
                if end == "done":
                    length = max(0.05, 0.9 * length)
                    break
                length = min(length * 1.05, 4.0)
            else:
                tally.stuck += 1
            if not _is_done(place, url, log, thread, **options):
                tally.stuck += 1
                tally.notes.append(_errors(log))
            _count(tally, log)
        if ours:
            _count_transfers(tally, url, folder)
    return tally


def _is_done(place: str, url: str, log: Path, thread: str, **options: object) -> bool:
    return attempt(place, url, log, thread, None, **options) == "done"


def _errors(log: Path) -> str:
    path = Path(f"{log}.errors")
    return path.read_text(encoding="utf-8")[-1500:] if path.exists() else ""


def _count(tally: Tally, log: Path) -> None:
    starts: Counter[str] = Counter()
    given: set[str] = set()
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else []:
        kind, _, what = line.partition(" ")
        if kind == "S":
            starts[what] += 1
            tally.repeated += what in given
        elif kind in "AU":
            given.add(what)
            tally.unknown += kind == "U"
        elif kind == "I":
            tally.invalid += 1
            tally.notes.append(what)
    tally.calls += len(starts)
    tally.started_twice += sum(count > 1 for what, count in starts.items() if what.startswith("once "))


def _count_transfers(tally: Tally, url: str, folder: Path) -> None:
    """Each number stands for one call in each thread, so effects are counted against the calls that were given."""
    asked = sum(
        len({line for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("A transfer ")})
        for log in folder.iterdir()
        if "." not in log.name
    )
    with psycopg.connect(url) as conn:
        row = conn.execute("SELECT count(*) FROM transfers").fetchone()
    made = row[0] if row else 0
    tally.transfers = f"{made}/{asked}"
    tally.transfers_wrong = made != asked


def _prepare_plain(url: str) -> None:
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()


@contextmanager
def database(server: str) -> Iterator[str]:
    """The URL of a new database."""
    name = f"crash_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(f'CREATE DATABASE "{name}"')
    try:
        yield make_conninfo("", **{**conninfo_to_dict(server), "dbname": name})
    finally:
        with psycopg.connect(server, autocommit=True) as conn:
            conn.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@contextmanager
def postgres() -> Iterator[str]:
    """AGENTKIT_DATABASE_URL, or an embedded server of this run's own."""
    if given := os.environ.get("AGENTKIT_DATABASE_URL"):
        yield given
        return
    home = Path(tempfile.mkdtemp(prefix="agentkit-crash-"))
    try:
        # only clients are killed here, so the server needs no durable disk
        with EmbeddedServer(home=home, settings={"fsync": "off", "synchronous_commit": "off"}).use() as url:
            yield url
    finally:
        shutil.rmtree(home, ignore_errors=True)


HEAD = (
    "framework  place      mode   durability | kills  calls | once twice  repeated  invalid  stuck | unknown told"
    "  transfers"
)


def main() -> int:
    """Run all scenarios and print one table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=240, help="for agentkit, over all scenarios")
    parser.add_argument("--quick", action="store_true", help="one durability per place, and plain LangChain once")
    parser.add_argument("--only-ours", action="store_true", help="without plain LangChain beside it")
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    random.seed(given.seed)
    kinds = [(place, mode, level) for place in PLACES for mode in (False, True) for level in ("sync", "async")]
    if given.quick:
        kinds = [("agent", False, "async"), ("subgraph", True, "sync"), ("in a tool", True, "async")]
    each = -(-given.kills // len(kinds))
    compared = [("agent", False, "async")] if given.quick else [k for k in kinds if k[2] == "async"]
    if given.only_ours:
        compared = []
    print(HEAD, flush=True)
    wrong, total = 0, Tally()
    with postgres() as server:
        for ours, place, is_async, level in [(True, *k) for k in kinds] + [(False, *k) for k in compared]:
            folder = Path(tempfile.mkdtemp(prefix="agentkit-crash-log-"))
            try:
                tally = scenario(place, server, folder, each, is_async=is_async, durability=level, ours=ours)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            mode = "async" if is_async else "sync"
            print(
                f"{'agentkit' if ours else 'langchain':10} {place:10} {mode:6} {level:10} |"
                f" {tally.kills:5} {tally.calls:6} | {tally.started_twice:10} {tally.repeated:9} {tally.invalid:8}"
                f" {tally.stuck:6} | {tally.unknown:12}  {tally.transfers:>9}",
                flush=True,
            )
            if ours:
                total.kills += tally.kills
                if not tally.is_clean:
                    wrong += 1
                    print("\n".join(note for note in tally.notes[:3] if note), flush=True)
    print(f"agentkit: {total.kills} kills, {wrong} scenarios with something lost or repeated ({ROUNDS}x{CALLS} calls)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
