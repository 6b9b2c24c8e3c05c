"""What a toolset is, how it is asked, and the base of those that change what another one has."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, ExitStack
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

from langchain_core.tools import BaseTool
from typing_extensions import TypeIs

from agentkit.errors import DefinitionError
from agentkit.tools._accepted import as_tool_object
from agentkit.tools._kept import Kept
from agentkit.tools._runtime import ToolRuntime

Tools: TypeAlias = Sequence[BaseTool | Callable[..., Any]]
Runtime: TypeAlias = ToolRuntime[Any, Any]
Accept: TypeAlias = Kept[Any, BaseTool]


class Toolset(Protocol):
    """A source of tools that is asked whenever tools are offered or run.

    Any object with a method `tools(runtime)` is one. `create_agent(tools=[…])` and `ToolNode([…])` take toolsets beside
    tools. They are asked before each model call, and again where a call of theirs is to run: what they give may follow
    `runtime.state`, `runtime.context`, `runtime.store`, and who is asking (`agentkit.tools.identity(runtime)`,
    `runtime.server_info`). `runtime.tool_call_id` is None and `runtime.tools` holds the other tools.

    Give the same tool objects again where nothing has changed: they are planned and bound once per object. `tools` may
    be async, or a toolset may have an `atools` for async runs beside a sync `tools`; a sync `tools` alone runs off the
    event loop there. A toolset that holds something open is a context manager too (`with`, `async with`): whoever makes
    it opens and closes it.
    """

    def tools(self, runtime: Runtime) -> Tools | Awaitable[Tools]:
        """The tools there are for this run, now. Names must be unique."""
        ...


def is_toolset(thing: object) -> TypeIs[Toolset]:
    """Whether a thing is a toolset: an object, no tool, with a method `tools`."""
    return not isinstance(thing, BaseTool | type | dict) and callable(getattr(thing, "tools", None))


def label_of(toolset: Toolset) -> str:
    """What a toolset is called in messages: its `label`, else its class."""
    label = getattr(toolset, "label", None)
    return label if isinstance(label, str) and label else type(toolset).__name__


def ask(toolset: Toolset, runtime: Runtime, accept: Accept) -> list[BaseTool]:
    """The tools of a toolset, in sync code.

    Raises:
        DefinitionError: it can be asked in async code only, or gives something that is no tool.
    """
    found = toolset.tools(runtime)
    if inspect.isawaitable(found):
        if inspect.iscoroutine(found):
            found.close()
        raise DefinitionError(
            f"toolset {label_of(toolset)} is async and this run is not: use ainvoke or astream, or give it a sync tools"
        )
    return _accepted(toolset, found, accept)


async def aask(toolset: Toolset, runtime: Runtime, accept: Accept) -> list[BaseTool]:
    """The tools of a toolset, without blocking the event loop."""
    method = getattr(toolset, "atools", None) or toolset.tools
    if inspect.iscoroutinefunction(method):
        found = await method(runtime)
    else:
        found = await asyncio.to_thread(method, runtime)
        if inspect.isawaitable(found):
            found = await found
    return _accepted(toolset, found, accept)


def _accepted(toolset: Toolset, found: Iterable[Any], accept: Accept) -> list[BaseTool]:
    try:
        return [accept(each) for each in found]
    except (DefinitionError, TypeError) as error:
        raise DefinitionError(f"toolset {label_of(toolset)}: {error}") from error


class OpensOthers:
    """The lifecycle of a toolset made of others: opened, it opens those that can be opened; closed, it closes them."""

    _parts: tuple[Toolset, ...] = ()
    _stack: AsyncExitStack | ExitStack | None = None

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for part in self._parts:
                if hasattr(type(part), "__aenter__"):
                    await stack.enter_async_context(part)  # type: ignore[arg-type]
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack, self._stack = self._stack, None
        if isinstance(stack, AsyncExitStack):
            await stack.__aexit__(kind, error, trace)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for part in self._parts:
                if hasattr(type(part), "__enter__"):
                    stack.enter_context(part)  # type: ignore[arg-type]
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack, self._stack = self._stack, None
        if isinstance(stack, ExitStack):
            stack.__exit__(kind, error, trace)


class WrapperToolset(OpensOthers):
    """A toolset that changes what another one gives. A subclass overrides `change`.

    Args:
        source: a toolset, or a list of tools.
    """

    def __init__(self, source: Toolset | Tools) -> None:
        self.source = as_toolset(source)
        self._parts = (self.source,)
        self._accept: Accept = Kept(as_tool_object)

    @property
    def label(self) -> str:
        """What it is called in messages."""
        return f"{type(self).__name__}({label_of(self.source)})"

    def change(self, tools: list[BaseTool], runtime: Runtime) -> list[BaseTool]:
        """What becomes of the source's tools. The same objects for the same tools."""
        raise NotImplementedError

    def tools(self, runtime: Runtime) -> list[BaseTool]:
        """The source's tools, changed."""
        return self.change(ask(self.source, runtime, self._accept), runtime)

    async def atools(self, runtime: Runtime) -> list[BaseTool]:
        """The source's tools, changed."""
        return self.change(await aask(self.source, runtime, self._accept), runtime)


class ListedTools:
    """A fixed list of tools as a toolset."""

    label = "a list of tools"

    def __init__(self, tools: Tools) -> None:
        self._tools = [as_tool_object(each) for each in tools]

    def tools(self, _runtime: Runtime) -> list[BaseTool]:
        """The tools."""
        return self._tools

    async def atools(self, _runtime: Runtime) -> list[BaseTool]:
        """The tools."""
        return self._tools


def as_toolset(source: object) -> Toolset:
    """A toolset as it is, a list of tools as a toolset.

    Raises:
        DefinitionError: it is neither.
    """
    if is_toolset(source):
        return source
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        return ListedTools(source)
    raise DefinitionError(f"{str(source)[:80]!r} is no toolset: give an object with tools(runtime), or a list of tools")
