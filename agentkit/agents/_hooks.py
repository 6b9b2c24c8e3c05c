"""Where hooks are called: finding a middleware's hooks, and the node around each before_* / after_* hook."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import Command, Send

from agentkit.agents._interop import is_base
from agentkit.agents._routes import Goto, Routes
from agentkit.errors import DefinitionError
from agentkit.messages import history
from agentkit.tools import OFFERED_KEY
from agentkit.tools._langgraph import runtime_of

log = logging.getLogger("agentkit.agents")

__all__ = ["Hook", "HookNode", "find_hooks", "has_edge", "overrides"]

_INJECTED: dict[str, Callable[[Any, RunnableConfig], Any]] = {
    "runtime": lambda runtime, _config: runtime,
    "config": lambda _runtime, config: config,
    "store": lambda runtime, _config: runtime.store,
    "writer": lambda runtime, _config: runtime.stream_writer,
}


@dataclass(frozen=True, kw_only=True)
class Hook:
    """One hook of one middleware, in the forms it exists in."""

    node: str
    middleware: Any
    run: Callable[..., Any] | None
    arun: Callable[..., Awaitable[Any]] | None
    jumps: tuple[str, ...]


def overrides(middleware: Any, hook: str) -> Callable[..., Any] | None:
    """The bound method of `middleware` for `hook`, or None where only the base class has it."""
    for cls in type(middleware).__mro__:
        if hook in vars(cls):
            return None if is_base(cls) else getattr(middleware, hook)
    return None


def find_hooks(middleware: Sequence[Any], hook: str) -> list[Hook]:
    """The `hook` (like "before_model") of each middleware that has it, in the order of the list."""
    found = []
    for m in middleware:
        run, arun = overrides(m, hook), overrides(m, f"a{hook}")
        if run is not None or arun is not None:
            jumps = getattr(run, "__can_jump_to__", None) or getattr(arun, "__can_jump_to__", None) or ()
            found.append(Hook(node=f"{m.name}.{hook}", middleware=m, run=run, arun=arun, jumps=tuple(jumps)))
    return found


def has_edge(hook: Hook, default: str | None) -> bool:
    """Whether what comes after `hook` never changes, so that the graph has a plain edge there."""
    return default is not None and not hook.jumps


class HookNode(Runnable[dict[str, Any], Any]):
    """The graph node that calls one hook and routes by what it returns.

    AI messages with calls that a hook adds come from the developer's code, not from a model, so they may use every tool
    the agent was built with: the node records that.
    """

    def __init__(self, hook: Hook, routes: Routes, *, default: str | None, static_names: frozenset[str]) -> None:
        self.name = hook.node
        self._hook = hook
        self._routes = routes
        self._default = default
        self._edge = has_edge(hook, default)
        self._static_names = static_names
        self._sync = None if hook.run is None else _injecting(hook.run)
        self._async = None if hook.arun is None else _injecting(hook.arun)

    def invoke(self, input: dict[str, Any], config: RunnableConfig | None = None, **_kwargs: Any) -> Any:  # noqa: A002 - langchain-core's name
        """Call the hook in this thread."""
        if self._routes.finished(input, self._hook.node):
            return Command()
        if self._sync is None:
            raise TypeError(
                f"No synchronous function provided to {self._hook.node!r}: it exists only async. "
                "Use ainvoke or astream, or implement the sync hook too."
            )
        return self._settle(input, self._sync(input, runtime_of(config or {}), config or {}))

    async def ainvoke(self, input: dict[str, Any], config: RunnableConfig | None = None, **_kwargs: Any) -> Any:  # noqa: A002 - langchain-core's name
        """Await the hook; one that is only sync runs in a thread, where it cannot hold up the loop."""
        if self._routes.finished(input, self._hook.node):
            return Command()
        if self._async is not None:
            result = await self._async(input, runtime_of(config or {}), config or {})
        else:
            assert self._sync is not None  # noqa: S101 - a hook has at least one form
            result = await asyncio.to_thread(self._sync, input, runtime_of(config or {}), config or {})
        return self._settle(input, result)

    def _settle(self, state: dict[str, Any], result: Any) -> Any:
        """The hook's update, with where the run goes next."""
        if isinstance(result, Command):
            if result.graph is not None:
                return result
            update, goto = result.update or {}, result.goto
            if not isinstance(update, Mapping):
                update = dict(result._update_as_tuples())  # noqa: SLF001 - Command's own reading of its forms
        elif result is None:
            update, goto = {}, ()
        elif isinstance(result, Mapping):
            update, goto = result, ()
        else:
            raise DefinitionError(
                f"{self._hook.node} returned {type(result).__name__}: a hook returns a dict, a Command or None"
            )
        update = dict(update)
        if "messages" in update and self._static_names:
            self._record_calls(state, update)
        if goto:
            targets = [goto] if isinstance(goto, (str, Send)) else goto
            to = self._routes.go(targets, _messages(state, update), source=self._hook.node)
        elif self._edge:
            return update or None
        else:
            to = self._next(state, update)
        return Command(update=update or None, goto=to)

    def _record_calls(self, state: dict[str, Any], update: dict[str, Any]) -> None:
        """Record the tools for calls that the hook itself makes; their messages get the ids to record them under."""
        given = update["messages"]
        messages = [_identified(m) for m in (given if isinstance(given, (list, tuple)) else [given])]
        calling = {m.id for m in messages if isinstance(m, AIMessage) and m.tool_calls}
        if calling:
            # A message that replaces one of the model's keeps the record of what that model was offered.
            known = {message.id for message in state["messages"]}
            update["messages"] = messages
            update[OFFERED_KEY] = dict.fromkeys(calling - known, self._static_names)

    def _next(self, state: dict[str, Any], update: Mapping[str, Any]) -> Goto:
        if (target := update.get("jump_to")) and self._may_jump(target):
            return self._routes.jump(target, _messages(state, update), hook=self._hook.node)
        if self._default is not None:
            return self._default
        structured = update.get("structured_response", state.get("structured_response"))
        return self._routes.after_model(_messages(state, update), structured)

    def _may_jump(self, target: str) -> bool:
        """Whether the hook declared this jump. At the end of a round every jump is possible, as in LangChain."""
        if target in self._hook.jumps or (self._default is None and self._routes.tools is not None):
            return True
        log.warning(
            "%s returned jump_to=%r without declaring it, so it is ignored: add @hook_config(can_jump_to=[%r])",
            self._hook.node,
            target,
            target,
        )
        return False


def _messages(state: dict[str, Any], update: Mapping[str, Any]) -> Sequence[BaseMessage]:
    """The history as it will be once `update` is applied."""
    messages: Sequence[BaseMessage] = state["messages"]
    return history(messages, [update["messages"]]) if "messages" in update else messages


def _identified(message: Any) -> Any:
    if isinstance(message, AIMessage) and message.tool_calls and not message.id:
        return message.model_copy(update={"id": str(uuid4())})
    return message


def _injecting(function: Callable[..., Any]) -> Callable[[Any, Any, RunnableConfig], Any]:
    """`function(state, …)` as `(state, runtime, config)`, giving it what its signature asks for; decided once."""
    names = [name for name in inspect.signature(function).parameters if name in _INJECTED]
    if names == ["runtime"]:
        return lambda state, runtime, _config: function(state, runtime=runtime)
    getters = [(name, _INJECTED[name]) for name in names]
    return lambda state, runtime, config: function(state, **{name: get(runtime, config) for name, get in getters})
