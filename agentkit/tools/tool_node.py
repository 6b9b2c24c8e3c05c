"""ToolNode: the node that runs tool calls, and holds the pairing law while it does.

How one batch goes through it:

    what is asked?   a Send with one call (create_agent, fan_out), calls given directly, or a whole state
    which calls?     the open ones of the last AI message, each with an id of its own
    run each         `_call.call_story`: refused? → place in the batch → wrappers → body → gate
    write            results and Commands in call order, shaped as langgraph shapes them

A batch that enters as one Send per call shares a `Turn`. A batch that enters as a whole state runs in this one node:
each call as a langgraph task where a checkpointer could resume it, so that every interrupt finds its own answer, else
directly.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.func import task

from agentkit.errors import DefinitionError
from agentkit.tools._batch import Batch, open_batch
from agentkit.tools._call import Known, Rules, Running, call_story
from agentkit.tools._errors import HandleToolErrors, OnToolError, error_rule, legacy_error_rule
from agentkit.tools._gather import as_tasks, caught, in_threads, outcome_shown, settled, shown
from agentkit.tools._kept import Kept
from agentkit.tools._langgraph import runtime_of
from agentkit.tools._outcome import Gate, Outcome, Pairing
from agentkit.tools._request import (
    AsyncToolCallHandler,
    AsyncToolCallWrapper,
    ToolCallHandler,
    ToolCallRequest,
    ToolCallWrapper,
)
from agentkit.tools._routing import fan_out, tools_condition
from agentkit.tools._runtime import InjectedState, InjectedStore, ToolRuntime
from agentkit.tools._sources import Sources, parted
from agentkit.tools._steps import Story, adrive, drive
from agentkit.tools._tool import check_unique
from agentkit.tools._undurable import Undurable, check_undurable
from agentkit.tools._write import Route, combined, exit_of, routed, stay_behind
from agentkit.tools.toolsets import Toolset

__all__ = [
    "AsyncToolCallHandler",
    "AsyncToolCallWrapper",
    "InjectedState",
    "InjectedStore",
    "ToolCallHandler",
    "ToolCallRequest",
    "ToolCallWrapper",
    "ToolNode",
    "ToolRuntime",
    "fan_out",
    "tools_condition",
]

_UNSET: Any = object()


class ToolNode(Runnable[Any, Any]):
    """Runs tool calls: each gets exactly one result, whatever its tool, a wrapper, a crash or a cancel does.

    Use it as a node of a StateGraph, after the node that calls the model. It takes

    - a state (dict, pydantic, dataclass) with a list of messages under `messages_key`, or a list of messages: runs the
      open calls of the last AI message, in parallel; calls that have a result are not run again;
    - `[{"type": "tool_call", "name": …, "args": …, "id": …}]`: runs these calls (`fan_out` sends one per task).

    It returns `{messages_key: [results]}` (a list for a list), or a list of Commands where tools returned some, in call
    order. Plain keys that several calls write take the last write in call order.

    Args:
        tools: tools, plain functions, or toolsets, which are asked when a call is not one of a tool given here. Names
            must be unique (DefinitionError).
        name: the node's name.
        tags: kept for langgraph's signature; the node itself is not traced.
        on_tool_error: what an exception of a tool becomes: "report" (default: type and message, shortened, without
            credentials), "hide" (a reference id; the traceback is logged under it), "raise", or a function
            `(error, call) -> text`.
            Arguments that do not fit are always reported to the model. A policy's `on_error` goes before.
        handle_tool_errors: LangGraph's setting, with its meaning; give one of the two.
        pairing: "strict" (default) raises PairingError, a ValueError, when what was returned does not answer its call
            exactly once, after the batch has settled; "repair" mends it, marks the result and logs.
        undurable: what to do with tools that must not run twice where a run with a checkpointer keeps no record before
            it ends (durability "exit"): "warn" (default: run, and log it once), "refuse" (an error result), "allow".
        messages_key: the state key of the messages.
        wrap_tool_call: `(request, handler) -> result`, around every call; sees the tool's exceptions first.
        awrap_tool_call: the same for async runs; without it, the sync one runs off the event loop.
        route: `(call, tool, result, goto) -> targets`, asked for each call that has ended; for graphs that
            have no edge out of this node. `goto` is what the tool's own Commands ask for.
        offered_only: refuse calls whose AI message has no record of offered tools in the state (`OFFERED_KEY`).

    Raises:
        DefinitionError: duplicate or bad tool names, unknown settings.
        PairingError: see `pairing`.
    """

    name: str

    def __init__(  # noqa: PLR0913 - langgraph's signature and ours
        self,
        tools: Sequence[BaseTool | Callable[..., Any] | Toolset],
        *,
        name: str = "tools",
        tags: list[str] | None = None,
        on_tool_error: OnToolError = _UNSET,
        handle_tool_errors: HandleToolErrors = _UNSET,
        pairing: Pairing = "strict",
        undurable: Undurable = "warn",
        messages_key: str = "messages",
        wrap_tool_call: ToolCallWrapper | None = None,
        awrap_tool_call: AsyncToolCallWrapper | None = None,
        route: Route | None = None,
        offered_only: bool = False,
    ) -> None:
        if on_tool_error is not _UNSET and handle_tool_errors is not _UNSET:
            raise DefinitionError("ToolNode: give on_tool_error or handle_tool_errors, not both")
        if pairing not in ("strict", "repair"):
            raise DefinitionError(f"ToolNode: pairing={pairing!r} is not known; use 'strict' or 'repair'")
        self.name = name
        self.tags = tags
        fixed, toolsets = parted(tools)
        self._tools = check_unique(fixed)
        self.sources = Sources(self._tools, toolsets)
        self._route = route
        self._offered_only = offered_only
        self._key = messages_key
        known = {tool_name: Known.of(tool) for tool_name, tool in self._tools.items()}
        self._with_found: Kept[dict[str, BaseTool], Rules] = Kept(self._rules_with, most=64)
        self._rules = Rules(
            known=known,
            tools=list(self._tools.values()),
            errors=(
                legacy_error_rule(handle_tool_errors)
                if handle_tool_errors is not _UNSET
                else error_rule("report" if on_tool_error is _UNSET else on_tool_error)
            ),
            gate=Gate(pairing=pairing, messages_key=messages_key),
            undurable=check_undurable(undurable),
            wrap=wrap_tool_call,
            awrap=awrap_tool_call,
            ordered=_ordered(known),
        )

    @property
    def tools_by_name(self) -> dict[str, BaseTool]:
        """The registered tools, by name."""
        return self._tools

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        """Run the calls; see the class for what comes in and goes out."""
        batch = self._open(input, config, kwargs)
        rules = drive(self._ruling(batch)) if self.sources else self._rules
        count = len(batch.calls)
        if count == 1:
            return self._write(batch, [drive(call_story(rules, _running(rules, batch, 0, batch.config)))])
        if as_tasks(batch):
            begin: Any = task(name=self.name)
            futures = [begin(partial(self._task, rules, batch, position))() for position in range(count)]
            ended = [caught(future.result) for future in futures]
            return self._write(batch, settled(ended, partial(outcome_shown, batch)))
        ended = in_threads([partial(_direct, rules, batch, position) for position in range(count)])
        return self._write(batch, settled(ended))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        """Run the calls; see the class for what comes in and goes out."""
        batch = self._open(input, config, kwargs)
        rules = await adrive(self._ruling(batch)) if self.sources else self._rules
        count = len(batch.calls)
        if count == 1:
            return self._write(batch, [await adrive(call_story(rules, _running(rules, batch, 0, batch.config)))])
        if as_tasks(batch):
            begin: Any = task(name=self.name)
            futures = [begin(partial(self._atask, rules, batch, position))() for position in range(count)]
            ended = await asyncio.gather(*futures, return_exceptions=True)
            return self._write(batch, settled(ended, partial(outcome_shown, batch)))
        ended = await asyncio.gather(*(_adirect(rules, batch, p) for p in range(count)), return_exceptions=True)
        return self._write(batch, settled(ended))

    def _open(self, given: Any, config: RunnableConfig | None, kwargs: Mapping[str, Any]) -> Batch:
        config = ensure_config(config) if config is None else config
        runtime = kwargs.get("runtime") or runtime_of(config)
        if "store" in kwargs:
            runtime = runtime.override(store=kwargs["store"])
        return open_batch(given, config, runtime, self._key, offered_only=self._offered_only)

    def _ruling(self, batch: Batch) -> Story[Rules]:
        """The rules for this batch: with the toolsets' tools, where it has calls that no tool given here answers."""
        if all(call["name"] in self._rules.known for call in batch.calls):
            return self._rules
        try:
            found = yield from self.sources.ask(batch.state, batch.runtime, batch.config)
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001 - becomes the result of the calls that need it, as the rules say
            return replace(self._rules, asked=True, unavailable=error)
        return self._with_found(found)

    def _rules_with(self, found: dict[str, BaseTool]) -> Rules:
        known = {**self._rules.known, **{name: Known.of(tool) for name, tool in found.items()}}
        tools = [*self._rules.tools, *found.values()]
        return replace(self._rules, known=known, tools=tools, ordered=_ordered(known), asked=True)

    def _task(self, rules: Rules, batch: Batch, position: int) -> dict[str, Any]:
        return shown(drive(call_story(rules, _running(rules, batch, position, get_config()))), self._key)

    async def _atask(self, rules: Rules, batch: Batch, position: int) -> dict[str, Any]:
        return shown(await adrive(call_story(rules, _running(rules, batch, position, get_config()))), self._key)

    def _write(self, batch: Batch, outcomes: Sequence[Outcome]) -> Any:
        exit_ = exit_of(batch, outcomes)
        if exit_ is not None:
            return [exit_]
        if batch.shared:
            outcomes = [stay_behind(outcome, self._key) if outcome.leaves else outcome for outcome in outcomes]
        if self._route is not None:
            return routed(batch, outcomes, self._route)
        return combined(batch, outcomes)


def _running(rules: Rules, batch: Batch, position: int, config: RunnableConfig) -> Running:
    return batch.running(position, config, rules.tools)


def _direct(rules: Rules, batch: Batch, position: int) -> Outcome:
    return drive(call_story(rules, _running(rules, batch, position, batch.config)))


async def _adirect(rules: Rules, batch: Batch, position: int) -> Outcome:
    return await adrive(call_story(rules, _running(rules, batch, position, batch.config)))


def _ordered(known: Mapping[str, Known]) -> frozenset[str]:
    """The names of the tools whose calls wait for siblings."""
    return frozenset(name for name, each in known.items() if each.policy.sequential or each.policy.limit is not None)
