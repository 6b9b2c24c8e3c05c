"""Calling a tool's body: directly where nobody listens, through LangChain's callbacks where somebody does.

`run_body` and `arun_body` return what the body returned, before anything is made of it, and raise what it raised. Who
listens changes what handlers see, never what comes back.
"""

import asyncio
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from typing import Any

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool, ToolException
from langgraph.errors import is_invalid_resume
from pydantic import ValidationError
from pydantic.v1 import ValidationError as ValidationErrorV1

from agentkit.errors import ArgumentsError
from agentkit.tools._bodies import Body
from agentkit.tools._foreign import afrom_foreign, from_foreign
from agentkit.tools._listening import is_heard
from agentkit.tools._observed import Observed, refuse_awaitable, settled
from agentkit.tools._outcome import Artifact
from agentkit.tools._plan import Plan, Runtime
from agentkit.tools._problems import as_validation_error


def run_body(plan: Plan, tool: BaseTool, call: ToolCall, runtime: Runtime, config: RunnableConfig) -> Any:
    """Run one call's body in this thread, in a copy of this context.

    Returns:
        What the body returned; an `Artifact` from a tool with `response_format="content_and_artifact"`; an error
        ToolMessage where the tool itself handles its errors (`handle_tool_error`, `handle_validation_error`).

    Raises:
        ArgumentsError: the model's arguments do not fit.
        InjectionError: the run lacks what the tool asks for.
        NotImplementedError: the tool is async only.
        Exception: whatever the body raises.
    """
    if plan.has_own_way:
        return from_foreign(plan, tool, call, runtime, config)
    body = plan.sync
    if body is None:
        raise NotImplementedError(f"tool {tool.name!r} is async only; run it in an event loop: ainvoke, astream")
    if is_heard(tool, config, any_handler=bool(body.managers)) or body.needs_manager:
        observed = Observed.of(tool, body, runtime)
        return _seen(tool, observed, observed.invoke(_shown(plan, call), config))
    try:
        values = body.bind(call["args"], runtime)
        context = copy_context()
        context.run(var_child_runnable_config.set, config)
        returned = refuse_awaitable(tool, context.run(body.of(tool), **values))
    except _HANDLED as error:
        return _handled(tool, call, error)
    return _tagged(tool, returned)


async def arun_body(plan: Plan, tool: BaseTool, call: ToolCall, runtime: Runtime, config: RunnableConfig) -> Any:
    """Run one call's body without blocking the event loop: a sync body runs in the loop's executor.

    Returns and raises as `run_body` does.
    """
    if plan.has_own_way:
        return await afrom_foreign(plan, tool, call, runtime, config)
    body = plan.asynchronous or plan.sync
    if body is None:
        raise NotImplementedError(f"tool {tool.name!r} has no body")
    if is_heard(tool, config, any_handler=bool(body.managers)) or body.needs_manager:
        observed = Observed.of(tool, body, runtime)
        return _seen(tool, observed, await observed.ainvoke(_shown(plan, call), config))
    try:
        values = body.bind(call["args"], runtime)
        returned = await _acalled(body, tool, values, config)
    except _HANDLED as error:
        return _handled(tool, call, error)
    return _tagged(tool, returned)


_HANDLED = (ToolException, ArgumentsError, ValidationError, ValidationErrorV1)


async def _acalled(body: Body, tool: BaseTool, values: dict[str, Any], config: RunnableConfig) -> Any:
    function = body.of(tool)
    token = var_child_runnable_config.set(config)
    try:
        if body.is_async:
            return await settled(function(**values))
        call = partial(_no_stop_iteration, copy_context(), function, values)
        return await settled(await asyncio.get_running_loop().run_in_executor(None, call))
    finally:
        # a coroutine that is thrown away is closed in another context, where the token means nothing
        with suppress(ValueError):
            var_child_runnable_config.reset(token)


def _no_stop_iteration(context: Context, function: Any, values: dict[str, Any]) -> Any:
    try:
        return context.run(function, **values)
    except StopIteration as error:  # a future cannot hold it: it would never be done
        raise RuntimeError("the body raised StopIteration") from error


def _shown(plan: Plan, call: ToolCall) -> ToolCall:
    return {"name": call["name"], "args": plan.strip(call["args"]), "id": call["id"], "type": "tool_call"}


def _seen(tool: BaseTool, observed: Observed, output: Any) -> Any:
    """What the body returned; where it did not return, what LangChain made of its error."""
    return _tagged(tool, observed.returned) if observed.has_returned else output


def _tagged(tool: BaseTool, returned: Any) -> Any:
    if tool.response_format != "content_and_artifact":
        return returned
    if not isinstance(returned, tuple) or len(returned) != 2:  # noqa: PLR2004 - content and artifact
        raise ValueError(
            f"tool {tool.name!r} has response_format='content_and_artifact', so it must return a tuple of the two; "
            f"it returned {type(returned).__name__}"
        )
    return Artifact(*returned)


def _handled(tool: BaseTool, call: ToolCall, error: Exception) -> Any:
    """The error result that a tool's own error settings make; raises the error where it has none for it."""
    if isinstance(error, ToolException):
        if not tool.handle_tool_error:
            raise error
        content = _made(tool.handle_tool_error, error, error.args[0] if error.args else "Tool execution error")
    else:
        # a wrong answer to an interrupt is not the model's mistake: the interrupt stays open
        if not tool.handle_validation_error or is_invalid_resume(error):
            raise error
        reported = as_validation_error(error, tool.name) if isinstance(error, ArgumentsError) else error
        content = _made(tool.handle_validation_error, reported, "Tool input validation error")
    return ToolMessage(content, name=tool.name, tool_call_id=call["id"] or "", status="error")


def _made(setting: Any, error: Exception, text: Any) -> Any:
    if setting is True:
        return text
    return setting if isinstance(setting, str) else setting(error)
