"""One tool call, from the open call to its outcome: the story of the tools node.

    refused? recorded? → its place in the batch → wrappers → body (time limit, retries) → outcome → gate → record

Everything here is written once; `_steps` runs it in sync and in async code.
"""

import asyncio
import contextvars
import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from langchain_core.messages import BaseMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp, GraphInterrupt, is_invalid_resume

from agentkit.errors import ArgumentsError, NotStorableError, PairingError
from agentkit.tools._attempt import Body, body_story, contained
from agentkit.tools._errors import ErrorRule, arguments_text, as_langgraph, error_rule
from agentkit.tools._headless import HeadlessTool
from agentkit.tools._langgraph import durability_of
from agentkit.tools._ledger import signature_of
from agentkit.tools._ledger_io import Ledger
from agentkit.tools._offered import gone, not_offered
from agentkit.tools._outcome import Gate, Outcome, error_outcome, outcome_of
from agentkit.tools._plan import Plan, plan_of
from agentkit.tools._policy import DEFAULT_POLICY, ToolPolicy, policy_of
from agentkit.tools._recovery import Entry
from agentkit.tools._request import AsyncToolCallWrapper, ToolCallRequest, ToolCallWrapper
from agentkit.tools._runtime import ToolRuntime
from agentkit.tools._steps import Story, adrive, drive
from agentkit.tools._storable import check_storable, serializer_of
from agentkit.tools._transaction import Transacted
from agentkit.tools._turn import Muster, Seat, Turn, Until, seat_for
from agentkit.tools._undurable import Undurable, refused

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """A tool and what was decided about it once."""

    tool: BaseTool
    plan: Plan
    policy: ToolPolicy
    errors: ErrorRule | None

    @classmethod
    def of(cls, tool: BaseTool) -> "Known":
        """Plan a tool."""
        policy = policy_of(tool)
        if isinstance(tool, HeadlessTool):
            # its limit is on the client's answer, not on this process, and asking once more does no harm
            policy = replace(policy, timeout=None, retries=0, on_crash="rerun")
        errors = None if policy.on_error is None else error_rule(policy.on_error)
        return cls(tool=tool, plan=plan_of(tool), policy=policy, errors=errors)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What a ToolNode decided once, for all of its calls."""

    known: Mapping[str, Known]
    tools: list[BaseTool]
    errors: ErrorRule
    gate: Gate
    wrap: ToolCallWrapper | None
    awrap: AsyncToolCallWrapper | None
    ordered: frozenset[str]  # names of tools whose calls wait for siblings
    undurable: Undurable = "warn"
    asked: bool = False  # whether toolsets were asked for tools
    unavailable: Exception | None = None  # what a toolset raised when it was asked


@dataclass(kw_only=True, eq=False, slots=True)
class Running:
    """One call while it runs."""

    call: ToolCall
    index: int
    state: Any
    messages: Sequence[BaseMessage]
    runtime: ToolRuntime[Any, Any]
    config: RunnableConfig
    turn: Turn
    offered: Collection[str] | None
    saver: Any = None
    siblings: Sequence[ToolCall] = ()
    message_id: str = ""
    resuming: bool = False  # whether an earlier run may have begun this step
    entry: Entry | None = None  # the call's place in the ledger
    tool: BaseTool | None = None  # the tool that ran, also one that a wrapper brought
    bubble: Exception | None = None  # an interrupt or a failed record on its way out, which wrappers must not swallow
    gated: tuple[Any, Outcome] | None = None  # what passed the gate last: the value handed to wrappers, and its outcome
    seat: Seat = field(default_factory=lambda: Seat(index=0))

    def seen(self) -> dict[str, Any]:
        """What the gate looks at of the state."""
        return {"history": self.messages, "listed": isinstance(self.state, list)}


def call_story(rules: Rules, run: Running) -> Story[Outcome]:
    """One call of a batch, as its siblings see it: it takes its place, and however it ends, it leaves it.

    Raises what the rules want raised, after the siblings that run have settled; interrupts at once.
    """
    known = rules.known.get(run.call["name"])
    policy = DEFAULT_POLICY if known is None else known.policy
    run.seat = seat_for(run.index, run.call["name"], policy, _twin_key(run.call) if policy.dedupe else None)
    turn, seat = run.turn, run.seat
    turn.enter(seat, resuming=run.resuming)
    try:
        outcome = yield from _answered(rules, run, known)
        turn.leave(seat, outcome)
    except GraphBubbleUp as bubble:
        yield from _left_open(run, bubble)
        turn.leave(seat, suspended=True)
        raise
    except Exception as error:
        yield from _left_open(run, error)
        turn.leave(seat)
        if not turn.settled_but(seat):
            yield Until(turn, lambda: turn.settled_but(seat))
        raise
    except asyncio.CancelledError as cancelled:
        yield from _left_open(run, cancelled)
        raise
    finally:
        turn.leave(seat)
    if outcome.leaves and not turn.settled_but(seat):
        yield Until(turn, lambda: turn.settled_but(seat))
    if outcome.leaves and any(other.suspended for other in turn.seats):
        # it leaves with the whole batch, so not before the questions of its siblings are answered
        raise GraphInterrupt(())
    return outcome


def _answered(rules: Rules, run: Running, known: Known | None) -> Story[Outcome]:
    """The outcome of the call: recorded or decided by its past, else made now, and recorded before it is used."""
    policy = DEFAULT_POLICY if known is None else known.policy
    if run.turn.ledger is not None:
        run.entry = entry = _entry(rules, run, run.turn.ledger)
        if (yield from entry.read()):
            _recall_siblings(rules, run, run.turn.ledger)
        if (outcome := (yield from entry.recall(policy))) is not None:
            return outcome
    if run.offered is not None and run.call["name"] not in run.offered:
        outcome = not_offered(run.call, run.offered)
    else:
        yield from _own_turn(rules, run)
        twins = yield from _twins_outcome(run)
        outcome = twins or (yield from _settle(rules, run, known))
    return outcome if run.entry is None else (yield from run.entry.finish(outcome))


def _entry(rules: Rules, run: Running, ledger: Ledger) -> Entry:
    return Entry(
        ledger=ledger,
        key=(run.message_id, run.call["id"] or ""),
        call=run.call,
        signature=signature_of(run.call),
        resuming=run.resuming,
        gate=rules.gate,
        idempotency_key=run.runtime.idempotency_key,
        config=run.config,
    )


def _recall_siblings(rules: Rules, run: Running, ledger: Ledger) -> None:
    """Let the batch know of the calls that ended in an earlier run, which do not start in this one."""
    for index, call in enumerate(run.siblings):
        key = (run.message_id, call["id"] or "")
        if key in ledger.known and (record := ledger.record(key, signature_of(call))).finished:
            run.turn.recall(index, record.outcome(call, rules.gate.messages_key))


def _left_open(run: Running, error: BaseException) -> Story[None]:
    """Record how a call ended that has no outcome.

    What asked a question or raised may run again. A tool that returned what is no result has run. Of a call that is
    cancelled nothing is recorded: what it has done by now is unknown.
    """
    entry = run.entry
    if entry is None:
        return
    try:
        yield from entry.take_back(error)
        if entry.started and isinstance(error, PairingError):
            text = f"Error: {entry.call['name']} ran, but what it returned is no result"
            yield from entry.finish(error_outcome(entry.call, text))
        elif not isinstance(error, asyncio.CancelledError):
            yield from entry.suspend()
    except Exception:  # the call's own error goes first
        if isinstance(error, GraphBubbleUp):
            raise
        logger.exception("the end of call %r could not be recorded", entry.call["id"])


def _own_turn(rules: Rules, run: Running) -> Story[None]:
    """Wait until the order and the limits of the batch let the call begin."""
    turn, seat = run.turn, run.seat
    if rules.ordered and len(run.siblings) > 1:
        ahead = range(run.index) if seat.sequential else _ordered_ahead(rules, run)
        if missing := frozenset(ahead) - {other.index for other in turn.seats} - turn.finished.keys():
            yield Muster(turn, missing)
    if not turn.begin(seat):
        yield Until(turn, lambda: turn.begin(seat))


def _ordered_ahead(rules: Rules, run: Running) -> list[int]:
    return [index for index in range(run.index) if run.siblings[index]["name"] in rules.ordered]


def _twins_outcome(run: Running) -> Story[Outcome | None]:
    """The result of an identical earlier call, as this call's; None where there is none or it was suspended."""
    turn, seat = run.turn, run.seat
    if seat.twin is None:
        return None
    twin = turn.twin_of(seat)
    if twin is not None and not twin.settled:
        yield Until(turn, lambda: twin.settled)
    outcome = _earlier_twin(run) if twin is None else twin.outcome
    if outcome is None or outcome.result is None:
        return None
    result = outcome.result.model_copy(update={"tool_call_id": run.call["id"], "id": None})
    return Outcome(result=result, items=(result,))


def _earlier_twin(run: Running) -> Outcome | None:
    """The outcome of an identical call of the batch that ended in an earlier run."""
    for index, outcome in run.turn.finished.items():
        if index < run.index and _twin_key(run.siblings[index]) == run.seat.twin:
            return outcome
    return None


def _settle(rules: Rules, run: Running, known: Known | None) -> Story[Outcome]:
    """Run the call through the wrappers and the gate; exceptions become results where the rules say so."""
    call = run.call
    run.tool = None if known is None else known.tool
    request = ToolCallRequest(tool_call=call, tool=run.tool, state=run.state, runtime=run.runtime)
    try:
        if rules.wrap is None and rules.awrap is None:
            yield from _attempt(rules, run, request)
            outcome = cast("tuple[Any, Outcome]", run.gated)[1]
        else:
            value = yield _Wrapped(rules, run, request)
            if run.bubble is not None:
                raise run.bubble  # noqa: TRY301 - on its way out already; a wrapper caught it
            if run.gated is not None and run.gated[0] is value:
                outcome = run.gated[1]
            else:
                outcome = outcome_of(value, call, rules.gate, source="wrapper", **run.seen())
        if run.saver is not None:
            _check_storable(outcome, run, rules.gate.messages_key)
    except GraphBubbleUp:
        raise
    except Exception as error:
        if run.bubble is not None:
            raise run.bubble from (None if run.bubble is error else error)
        errors = known.errors if known is not None and known.errors is not None else rules.errors
        if is_invalid_resume(error) or (text := errors.text(error, call)) is None:
            error.add_note(f"in tool {call['name']!r}, call {call['id']!r}")
            raise
        if run.entry is not None:
            yield from run.entry.take_back(error)
        outcome = error_outcome(call, text)
    return outcome


def _attempt(rules: Rules, run: Running, request: ToolCallRequest) -> Story[Any]:
    """What a wrapper's handler does: run the tool of this request once, and put what it returns through the gate."""
    call, tool = run.call, request.tool  # the result answers the call that was made, whatever a wrapper made of it
    try:
        value = yield from _body(rules, run, request)
    except GraphBubbleUp as bubble:
        run.bubble = bubble
        raise
    except ArgumentsError as error:
        text = rules.errors.text(error, call) if rules.errors.early else arguments_text(error)
        if text is None:
            raise as_langgraph(error, request.tool_call) from error
        value = error_outcome(call, text)
    except Exception as error:
        if not rules.errors.early or error is run.bubble or is_invalid_resume(error):
            raise
        if (text := rules.errors.text(error, call)) is None:
            raise
        value = error_outcome(call, text)
    if isinstance(value, Outcome):
        outcome = value
    else:
        policy = DEFAULT_POLICY if tool is None else policy_of(tool)
        try:
            outcome = outcome_of(value, call, rules.gate, max_output=policy.max_output, **run.seen())
        except Exception as error:
            if not rules.errors.early or (text := rules.errors.text(error, call)) is None:
                raise
            outcome = error_outcome(call, text)
    given: Any = outcome.items[0] if len(outcome.items) == 1 else list(outcome.items)
    run.gated = (given, outcome)
    return given


def _body(rules: Rules, run: Running, request: ToolCallRequest) -> Story[Any]:
    call, tool = request.tool_call, request.tool
    if tool is None:
        if rules.unavailable is not None:
            raise rules.unavailable
        offered = rules.known if run.offered is None else run.offered
        no_tool = gone if rules.asked and call["name"] in offered else not_offered
        return no_tool(run.call, offered)
    run.tool = tool
    known = rules.known.get(call["name"])
    if known is None or known.tool is not tool:
        known = Known.of(tool)
    body: Any = Body(
        plan=known.plan, tool=tool, call=call, runtime=request.runtime, config=run.config, timeout=known.policy.timeout
    )
    if run.saver is not None and not isinstance(tool, HeadlessTool):
        if (unrecorded := (yield from _recorded_start(rules, run, known.policy))) is not None:
            return unrecorded
        if run.entry is not None and known.policy.transactional:
            transaction = yield from run.entry.transact()
            request.runtime._transaction = transaction.opened  # noqa: SLF001 - ours
            body = Transacted(body, transaction)
    return (yield from body_story(body, known.policy))


def _recorded_start(rules: Rules, run: Running, policy: ToolPolicy) -> Story[Outcome | None]:
    """Record that the body starts now. Where nothing can be recorded, the error result if it must not run so."""
    if run.entry is None:
        unrecorded = policy.is_tracked and durability_of(run.config) == "exit"
        return refused(rules.undurable, run.call) if unrecorded else None
    try:
        yield from run.entry.begin(tracked=policy.is_tracked)
    except Exception as error:
        run.bubble = error
        raise
    return None


@dataclass(frozen=True, slots=True)
class _Wrapped:
    """The wrappers around one call. A sync wrapper in an async run goes off the loop; the tool's body stays on it."""

    rules: Rules
    run_: Running
    request: ToolCallRequest

    def run(self) -> Any:
        if self.rules.wrap is None:
            raise NotImplementedError(
                "the tool call wrapper is async only: use ainvoke or astream, or give a sync wrapper too"
            )
        with contained(self.run_.call):
            return self.rules.wrap(self.request, lambda request: drive(_attempt(self.rules, self.run_, request)))

    async def arun(self) -> Any:
        handler = partial(_aattempt, self.rules, self.run_)
        with contained(self.run_.call):
            if self.rules.awrap is not None:
                return await self.rules.awrap(self.request, handler)
            return await off_loop(cast("ToolCallWrapper", self.rules.wrap), self.request, handler)


async def _aattempt(rules: Rules, run: Running, request: ToolCallRequest) -> Any:
    return await adrive(_attempt(rules, run, request))


async def off_loop(
    wrap: Callable[[Any, Callable[[Any], Any]], Any], request: Any, handler: Callable[[Any], Any]
) -> Any:
    """Run a sync wrapper in a thread while the handler it calls runs on this event loop.

    The loop stays free whatever the wrapper does. Where the run is cancelled, so is the handler's call; the wrapper's
    thread ends when the wrapper returns.
    """
    loop = asyncio.get_running_loop()
    started: list[Any] = []

    def call(request: Any) -> Any:
        future = asyncio.run_coroutine_threadsafe(handler(request), loop)
        started.append(future)
        return future.result()

    context = contextvars.copy_context()
    try:
        return await loop.run_in_executor(None, context.run, wrap, request, call)
    except asyncio.CancelledError:
        for future in started:
            future.cancel()
        raise


def _check_storable(outcome: Outcome, run: Running, messages_key: str) -> None:
    """Refuse what the checkpointer could not keep, while it can still be told to the model."""
    serde = serializer_of(run.saver)
    try:
        for item in outcome.items:
            if not isinstance(item, BaseMessage) and isinstance(item.update, dict):
                for key, value in item.update.items():
                    check_storable(value, key if key != messages_key else "messages", serde)
            elif item is outcome.result and outcome.result.artifact is not None:
                check_storable(outcome.result.artifact, "artifact", serde)
    except NotStorableError as error:
        raise NotStorableError(
            f"{run.call['name']} ran, but what it returned cannot be stored: {error}. Nothing of it was kept"
        ) from error


def _twin_key(call: ToolCall) -> str:
    return f"{call['name']} {json.dumps(call['args'], sort_keys=True, default=repr)}"
