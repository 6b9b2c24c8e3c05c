"""Functions whose annotations are strings, some of which nothing at run time can resolve."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated

from agentkit.tools import InjectedState

if TYPE_CHECKING:
    import elsewhere
    from langchain_core.runnables import RunnableConfig
    from nowhere import Context, Session, State

    from agentkit import tools
    from agentkit.tools import InjectedStore, ToolRuntime


def known_to_the_type_checker_only(x: int, runtime: ToolRuntime[Context]):
    """Answer with the runtime."""
    return x, runtime


def optional_to_the_type_checker_only(x: int, runtime: ToolRuntime | None = None):
    """Answer with the runtime."""
    return x, runtime


def with_an_unrelated_stranger(x: int, runtime: ToolRuntime, session: Annotated[Session, "marked below"] = None):
    """Answer with the runtime."""
    return x, runtime


def marked_with_a_stranger(
    x: int,
    state: Annotated[State, InjectedState],
    city: Annotated[elsewhere.City[int] | None, InjectedState("city")],
    config: RunnableConfig,
):
    """Answer with what is injected."""
    return x, state, city, config


def all_strangers(
    x: int,
    state: Annotated[elsewhere.State, tools.InjectedState],
    city: Annotated[elsewhere.City[int] | None, tools.InjectedState("city")],
    config: RunnableConfig | None = None,
    store: Annotated[elsewhere.Store | None, InjectedStore()] = None,
):
    """Answer with what is injected."""
    assert store is None
    return x, state, city, config


def imported_inside(define):
    """A tool of a function whose hint is imported where it is defined."""
    from agentkit.tools import ToolRuntime as Imported

    def imported_where_defined(x: int, runtime: Imported):
        """Answer with the runtime."""
        return x, runtime

    return define(imported_where_defined)


def imported_inside_by_its_name():
    """A function whose hint is imported where it is defined."""

    def imported_where_defined_by_its_name(x: int, runtime: ToolRuntime):
        """Answer with the runtime."""
        return x, runtime

    return imported_where_defined_by_its_name


def imported_inside_a_class(define):
    """A tool of a static method of a class that lives in a function."""
    from agentkit.tools import ToolRuntime as Imported

    class Tools:
        @define
        @staticmethod
        def imported_around_the_class(x: int, runtime: Imported):
            """Answer with the runtime."""
            return x, runtime

    return Tools.imported_around_the_class


def wrapped_twice(x: int, runtime: ToolRuntime):
    """Answer with the runtime."""
    return x, runtime


def outer(function):
    """A decorator that hides the signature behind its own."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


wrapped = outer(outer(wrapped_twice))
