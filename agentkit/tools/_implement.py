"""Headless tools whose client is a Python program: a notebook, a script, a test."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.pregel import Pregel
from langgraph.types import Command, Interrupt

from agentkit.errors import AnswerError, DefinitionError
from agentkit.tools._headless import HeadlessRequest, HeadlessTool
from agentkit.tools._plan import plan_of

Agent = Pregel[Any, Any, Any, Any]


@dataclass(frozen=True, kw_only=True)
class Implementation:
    """A headless tool and the function that does its work here. Made by `implement`."""

    tool: HeadlessTool
    function: Callable[..., Any]

    def arguments(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The function's keyword arguments: validated by the tool's schema, with its types and defaults."""
        body = plan_of(self.tool).sync
        return dict(args) if body is None else body.check(dict(args))


def implement(tool: HeadlessTool, function: Callable[..., Any]) -> Implementation:
    """Give a headless tool a body, for `run_headless` and `arun_headless`.

    The function gets the call's arguments by name and returns what the client would answer: JSON that fits the tool's
    `result_schema`. What it raises is what the client failed with. It may be async for `arun_headless`.

    Raises:
        DefinitionError: the tool is not headless, or the function is none.
    """
    if not isinstance(tool, HeadlessTool):
        raise DefinitionError(
            f"implement: {getattr(tool, 'name', tool)!r} is not headless; "
            "make it with tool(name=…, description=…, args_schema=…)"
        )
    if not callable(function):
        raise DefinitionError(f"implement: the body of {tool.name!r} is a {type(function).__name__}, not a function")
    return Implementation(tool=tool, function=function)


def run_headless(
    agent: Agent,
    input: Any,  # noqa: A002 - as in `invoke`
    implementations: Iterable[Implementation],
    config: RunnableConfig | None = None,
    **kwargs: Any,
) -> Any:
    """`agent.invoke(input, config, **kwargs)`, with headless calls answered by `implementations` until none is open.

    All calls that are open at once are answered together. An agent that was made without a checkpointer gets one in
    memory for this run; pass a `thread_id` in the config where it has its own.

    Returns:
        What the last `invoke` returned; its `__interrupt__` holds questions that are not ours to answer: approvals,
        and calls of headless tools that are not among the implementations.

    Raises:
        AnswerError: what a function returned does not fit the tool's `result_schema`; the interrupt stays open.
        DefinitionError: two implementations of one tool, or one that is async.
    """
    bodies = _by_name(implementations)
    agent, config = _resumable(agent, config)
    result = agent.invoke(input, config, **kwargs)
    while jobs := _jobs(result, bodies):
        answers = {job.interrupt_id: job.answer(_caught(job.run)) for job in jobs}
        result = agent.invoke(Command(resume=answers), config, **kwargs)
    return result


async def arun_headless(
    agent: Agent,
    input: Any,  # noqa: A002 - as in `ainvoke`
    implementations: Iterable[Implementation],
    config: RunnableConfig | None = None,
    **kwargs: Any,
) -> Any:
    """`run_headless` in an event loop: open calls are worked on at the same time, sync functions in threads."""
    bodies = _by_name(implementations)
    agent, config = _resumable(agent, config)
    result = await agent.ainvoke(input, config, **kwargs)
    while jobs := _jobs(result, bodies):
        ended = await asyncio.gather(*(_acaught(job.arun) for job in jobs))
        answers = {job.interrupt_id: job.answer(value) for job, value in zip(jobs, ended, strict=True)}
        result = await agent.ainvoke(Command(resume=answers), config, **kwargs)
    return result


@dataclass(frozen=True, kw_only=True)
class _Job:
    """One open call that somebody here can answer."""

    interrupt_id: str
    request: HeadlessRequest
    body: Implementation

    def run(self) -> Any:
        call = self.request["tool_call"]
        if inspect.iscoroutinefunction(self.body.function):
            raise DefinitionError(f"the implementation of {call['name']!r} is async: use arun_headless")
        return self.body.function(**self.body.arguments(call["args"]))

    async def arun(self) -> Any:
        values = self.body.arguments(self.request["tool_call"]["args"])
        if inspect.iscoroutinefunction(self.body.function):
            return await self.body.function(**values)
        return await asyncio.to_thread(self.body.function, **values)

    def answer(self, ended: Any) -> Any:
        """The resume value: what a client would send."""
        value = {"error": f"{type(ended).__name__}: {ended}"} if isinstance(ended, Exception) else ended
        call_id = self.request["tool_call"]["id"]
        return value if call_id is None else {call_id: value}


def _by_name(implementations: Iterable[Implementation]) -> dict[str, Implementation]:
    found: dict[str, Implementation] = {}
    for each in implementations:
        if each.tool.name in found:
            raise DefinitionError(f"two implementations of {each.tool.name!r}: give one")
        found[each.tool.name] = each
    return found


def _resumable(agent: Agent, config: RunnableConfig | None) -> tuple[Agent, RunnableConfig | None]:
    if agent.checkpointer is not None:
        return agent, config
    configurable = {"thread_id": "headless", **((config or {}).get("configurable") or {})}
    return agent.copy({"checkpointer": InMemorySaver()}), {**(config or {}), "configurable": configurable}


def _jobs(result: Any, bodies: Mapping[str, Implementation]) -> list[_Job]:
    """The open calls among the interrupts that somebody here can answer."""
    found = []
    for each in _interrupts(result):
        request = each.value
        if not isinstance(request, dict) or request.get("type") != "tool":
            continue
        call = request.get("tool_call")
        body = bodies.get(call["name"]) if isinstance(call, dict) else None
        if body is None:
            continue
        if error := request.get("error"):
            raise AnswerError(error)
        found.append(_Job(interrupt_id=each.id, request=request, body=body))  # type: ignore[arg-type]  # looked at
    return found


def _interrupts(result: Any) -> Iterable[Interrupt]:
    return result.get("__interrupt__", ()) if isinstance(result, dict) else getattr(result, "interrupts", ())


def _caught(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except DefinitionError:
        raise
    except Exception as error:  # noqa: BLE001 - the agent is told, as a client's failure
        return error


async def _acaught(work: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await work()
    except Exception as error:  # noqa: BLE001 - the agent is told, as a client's failure
        return error
