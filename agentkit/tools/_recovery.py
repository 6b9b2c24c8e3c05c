"""What becomes of a call that has a past: the part of its story that the ledger tells.

recorded?    its outcome is taken from the record, nothing runs
in flight?   its process died: the tool's policy decides between "unknown", "rerun", a person and a probe
suspended?   it asked a question, or raised: it runs again
"""

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.types import interrupt

from agentkit.errors import NotStorableError
from agentkit.tools._errors import describe
from agentkit.tools._langgraph import answers_given
from agentkit.tools._ledger import Key, Record, event, packed
from agentkit.tools._ledger_io import Append, Ledger, Read, Stored
from agentkit.tools._outcome import Gate, Outcome, error_outcome, outcome_of, results_in
from agentkit.tools._policy import ToolPolicy
from agentkit.tools._steps import Story
from agentkit.tools._transaction import Commit, RecordedElsewhereError, Rollback, Transaction

logger = logging.getLogger(__name__)

RERUN: Final = "__agentkit_rerun__"
"""What a probe returns when it found that the call had no effect, so that it is run again."""

_ANSWERS = ["rerun", "skip", {"result": "what the call did"}]


@dataclass(kw_only=True, eq=False, slots=True)
class Entry:
    """One call and its place in the ledger, for one run of the call."""

    ledger: Ledger
    key: Key
    call: ToolCall
    signature: str
    resuming: bool
    gate: Gate
    idempotency_key: str | None
    config: RunnableConfig
    attempts: int = 0  # that are known of
    started: bool = False
    finished: bool = False
    transaction: Transaction | None = None

    def read(self) -> Story[bool]:
        """Read the ledger if that is due; whether it was."""
        if not self.ledger.must_read(resuming=self.resuming):
            return False
        yield Read(self.ledger)
        return True

    def recall(self, policy: ToolPolicy) -> Story[Outcome | None]:
        """The outcome that is recorded or that the policy decides on; None if the call is to be run.

        What is decided is recorded. Raises GraphInterrupt where a person is to decide.
        """
        record = self.ledger.record(self.key, self.signature)
        self.attempts = record.attempt
        if record.finished:
            self.finished = True
            return record.outcome(self.call, self.gate.messages_key)
        if record.in_flight:
            outcome = yield from self._decided(policy, record)
        else:
            if record.asks:  # the body's own questions come after ours, in every run
                self._ask(max(record.asks.items())[1])
            outcome = self._replayed() if policy.on_replay == "reuse" and not record.attempt else None
        return None if outcome is None else (yield from self.finish(outcome))

    def begin(self, *, tracked: bool) -> Story[None]:
        """The body starts now: record it where a crash must be noticed, and see that the call itself is stored.

        The record goes first: while it is written, the checkpoint arrives.
        """
        if tracked and not self.started:
            self.started = True
            self.attempts += 1
            yield Append(self.ledger, event("start", self.key, self.attempts, s=self.signature))
        if self.ledger.must_wait():
            yield Stored(self.ledger)

    def transact(self) -> Story[Transaction]:
        """The transaction of the call, empty: what an earlier run of the body left in it is taken back."""
        if self.transaction is None:
            self.transaction = Transaction(self.ledger, self.call["name"])
        elif self.transaction.is_open:
            yield Rollback(self.transaction, RecordedElsewhereError())
        return self.transaction

    def take_back(self, error: BaseException) -> Story[None]:
        """Take back what the call did in its transaction, if it has one; it gets no other in this run."""
        if self.transaction is not None:
            self.transaction.end()
            if self.transaction.is_open:
                yield Rollback(self.transaction, error)

    def suspend(self) -> Story[None]:
        """Record that the body has ended without a result: it asked a question or raised, and may run again."""
        if self.started and not self.finished:
            yield Append(self.ledger, event("suspend", self.key, self.attempts))

    def finish(self, outcome: Outcome) -> Story[Outcome]:
        """Record the outcome; gives the outcome that is recorded, an error result where this one cannot be stored."""
        if self.finished:
            return outcome
        try:
            yield from self._write(outcome)
        except RecordedElsewhereError:
            self.ledger.forget()
            yield Read(self.ledger)
            outcome = self.ledger.record(self.key, self.signature).outcome(self.call, self.gate.messages_key)
        except NotStorableError as error:
            name = self.call["name"]
            logger.warning("the result of tool %r (call %r) %s", name, self.call["id"], error)
            outcome = error_outcome(self.call, f"Error: {name} ran, but its result {error}. Nothing of it was kept")
            yield from self._write(outcome)
        self.finished = True
        if self.transaction is not None:
            self.transaction.end()
        return outcome

    def _write(self, outcome: Outcome) -> Story[None]:
        items = packed(outcome)
        aside = outcome.result if outcome.result not in results_in(outcome.items, self.gate.messages_key) else None
        finish = event("finish", self.key, self.attempts, s=self.signature, o=items)
        if aside is not None:
            finish["r"] = aside
        if self.transaction is not None and self.transaction.is_open:
            yield Commit(self.transaction, self.ledger, finish)
        else:
            yield Append(self.ledger, finish)

    # --- a call that was in flight -------------------------------------------------------------------------------

    def _decided(self, policy: ToolPolicy, record: Record) -> Story[Outcome | None]:
        decision: Any = policy.on_crash
        if decision == "ask":
            if record.attempt not in record.asks:
                asked = event("ask", self.key, record.attempt, n=answers_given(self.config))
                yield Append(self.ledger, asked)
                record = record.after(asked)
            decision = self._ask(record.asks[record.attempt])
        elif callable(decision):
            decision = yield _Probe(decision, self.call, self.idempotency_key)
        if decision in ("rerun", RERUN):
            return None
        if isinstance(decision, _Found):
            return outcome_of(decision.result, self.call, self.gate)
        return error_outcome(self.call, unknown_text(self.call["name"], decision))

    def _ask(self, position: int) -> Any:
        """The answer of a person, from this run or an earlier one.

        Questions of a task are told apart by their order, so ours keeps its place: after those that the body had asked.
        """
        payload = _payload(self.call)
        for _ in range(position):
            interrupt(payload)
        while True:
            answer = interrupt(payload)
            if answer in ("rerun", "skip"):
                return answer
            if isinstance(answer, dict) and answer.keys() == {"result"}:
                return _Found(answer["result"])
            payload = _payload(self.call, f"{str(answer)[:100]!r} is no answer to this")

    def _replayed(self) -> Outcome | None:
        """On a branch of the thread: what the other branch recorded of the very same call."""
        record = self.ledger.replayed.get(self.key)
        if record is None or not record.finished or record.signature != self.signature:
            return None
        return record.outcome(self.call, self.gate.messages_key)


def unknown_text(name: str, decision: Any = "unknown") -> str:
    """What the model reads of a call whose process died while it ran."""
    why = f" ({decision.reason})" if isinstance(decision, _Lost) else ""
    told = " A person decided not to repeat it." if decision == "skip" else " It was not repeated."
    return (
        f"Outcome unknown: the process stopped while this call of {name} was running, so it may or may not have taken "
        f"effect{why}.{told} Check before you call it again."
    )


def _payload(call: ToolCall, problem: str | None = None) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "type": "unknown_outcome",
        "tool_call": {"id": call["id"], "name": call["name"], "args": call["args"]},
        "message": f"The process stopped while {call['name']} was running. It may or may not have taken effect.",
        "answers": _ANSWERS,
    }
    return payload if problem is None else {**payload, "error": problem}


@dataclass(frozen=True, slots=True)
class _Found:
    """What a person or a probe says that the call did."""

    result: Any


@dataclass(frozen=True, slots=True)
class _Lost:
    """A probe failed."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Probe:
    """The step that asks a tool's own function what became of a call."""

    function: Callable[..., Any]
    call: ToolCall
    idempotency_key: str | None

    def run(self) -> Any:
        try:
            answer = self.function(self.call, self.idempotency_key)
            return self._read(_awaited(answer) if inspect.isawaitable(answer) else answer)
        except Exception as error:  # noqa: BLE001 - whatever it was, the outcome is still unknown
            return self._lost(error)

    async def arun(self) -> Any:
        try:
            if inspect.iscoroutinefunction(self.function):
                return self._read(await self.function(self.call, self.idempotency_key))
            answer = await asyncio.to_thread(self.function, self.call, self.idempotency_key)
            return self._read(await answer if inspect.isawaitable(answer) else answer)
        except Exception as error:  # noqa: BLE001 - whatever it was, the outcome is still unknown
            return self._lost(error)

    def _read(self, answer: Any) -> Any:
        if answer is None:
            return "unknown"
        return RERUN if isinstance(answer, str) and answer == RERUN else _Found(answer)

    def _lost(self, error: Exception) -> _Lost:
        logger.warning("the probe of tool %r failed for call %r", self.call["name"], self.call["id"], exc_info=error)
        return _Lost(f"finding out failed: {describe(error, 200)}")


def _awaited(awaitable: Any) -> Any:
    """The value of an awaitable in sync code; in a thread of its own, since this one may have a loop."""
    done: Future[Any] = Future()

    async def wait() -> Any:
        return await awaitable

    def work() -> None:
        try:
            done.set_result(asyncio.run(wait()))
        except BaseException as error:  # noqa: BLE001 - handed to the waiting call
            done.set_exception(error)

    threading.Thread(target=work, name="agentkit-probe", daemon=True).start()
    return done.result()
