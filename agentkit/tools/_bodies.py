"""Finding what a tool runs, sync and async, and what it wants to be filled in."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.tools import BaseTool, Tool

from agentkit.errors import ArgumentsError
from agentkit.tools._arguments import Arguments, Checker, Schema, checker_of
from agentkit.tools._classes import has_own_body
from agentkit.tools._fields import field_names
from agentkit.tools._injection import MANAGERS, OMIT, RESERVED, Getter, Injection, getter_of, injection_of
from agentkit.tools._runtime import ToolRuntime
from agentkit.tools._signature import EMPTY, Parameter, parameters_of
from agentkit.tools._takes import Takes


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """One way to run a tool. `function` takes keyword arguments; where it is None, the tool's own method does.

    It holds no reference to the tool, so that a plan does not keep its tool alive.
    """

    function: Callable[..., Any] | None
    method: str
    is_async: bool
    check: Checker
    hidden: frozenset[str]
    getters: tuple[tuple[str, Getter], ...]
    managers: tuple[str, ...]
    needs_manager: bool

    def bind(self, args: Arguments, runtime: ToolRuntime[Any, Any]) -> Arguments:
        """Keyword arguments for the body: the model's, validated, and what the run injects."""
        if not self.hidden.isdisjoint(args):  # the model made up a value for what it must not give
            args = {name: value for name, value in args.items() if name not in self.hidden}
        values = self.check(args)
        for name, get in self.getters:
            value = get(runtime)
            if value is not OMIT:
                values[name] = value
        return values

    def of(self, tool: BaseTool) -> Callable[..., Any]:
        """The callable that takes the arguments."""
        if self.function is not None:
            return self.function
        method: Callable[..., Any] = getattr(tool, self.method)
        return method


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A body before it is planned: a function, or the name of a method, and the parameters to fill."""

    function: Callable[..., Any] | None
    method: str
    is_async: bool
    parameters: dict[str, Parameter]
    takes_one_text: bool = False


def bodies_of(tool: BaseTool) -> tuple[Found | None, Found | None]:
    """The tool's sync and async body: its functions, or the methods that its class defines."""
    return _found(tool, "_run", "func", is_async=False), _found(tool, "_arun", "coroutine", is_async=True)


def _found(tool: BaseTool, method: str, attribute: str, *, is_async: bool) -> Found | None:
    if has_own_body(type(tool), method):
        parameters = parameters_of(getattr(tool, method))
        return Found(function=None, method=method, is_async=is_async, parameters=parameters)
    function = getattr(tool, attribute, None)
    if function is None:
        return None
    parameters = parameters_of(function)
    if not isinstance(tool, Tool):
        return Found(function=function, method="", is_async=is_async, parameters=parameters)
    injected = {name: each for name, each in parameters.items() if injection_of(each)}
    one = _given_one_text(function)
    return Found(function=one, method="", is_async=is_async, parameters=injected, takes_one_text=True)


def _given_one_text(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*, tool_input: Any, **injected: Any) -> Any:
        return function(tool_input, **injected)

    return call


def injections_of(found: Found, schema: Schema | None) -> dict[str, Injection]:
    """The parameters that the run fills, by the signature."""
    fields = field_names(schema)
    injections = {}
    for name, parameter in found.parameters.items():
        injection = injection_of(parameter)
        if injection is None and name in RESERVED and name not in fields:
            injection = _by_name(parameter)
        if injection is not None:
            injections[name] = injection
    return injections


def _by_name(parameter: Parameter) -> Injection | None:
    """A `runtime` or `config` without a type that no schema asks the model for can mean only one thing."""
    if parameter.annotation is not EMPTY and parameter.annotation is not Any:
        return None
    return Injection(
        parameter=parameter.name,
        kind="runtime" if parameter.name == "runtime" else "config",
        default=EMPTY if parameter.default is EMPTY else OMIT,
    )


def planned(
    tool: BaseTool, found: Found, injections: dict[str, Injection], hidden: frozenset[str], schema: Schema | None
) -> Body:
    """The body, ready to be called: with the check of the model's arguments and a getter for each injection."""
    takes = _takes_of(found, may_be_inferred=found.function is not None or tool.args_schema is None)
    needed = frozenset(name for name, each in found.parameters.items() if each.default is EMPTY)
    check = checker_of(tool.name, schema, hidden, takes, needed)
    accepts = [name for name in injections if takes.anything or name in found.parameters]
    managers = tuple(name for name in MANAGERS if name in injections and name in found.parameters)
    return Body(
        function=found.function,
        method=found.method,
        is_async=found.is_async,
        check=_as_one_text(tool.name, check) if found.takes_one_text else check,
        hidden=hidden,
        getters=tuple(
            (name, getter_of(injections[name], tool.name)) for name in accepts if injections[name].kind != "manager"
        ),
        managers=managers,
        needs_manager=any(found.parameters[name].default is EMPTY for name in managers),
    )


def _takes_of(found: Found, *, may_be_inferred: bool) -> Takes:
    kinds = {each.kind: each.name for each in found.parameters.values()}
    return Takes(
        names=frozenset(name for name, each in found.parameters.items() if not each.is_extra),
        args=kinds.get(inspect.Parameter.VAR_POSITIONAL),
        kwargs=kinds.get(inspect.Parameter.VAR_KEYWORD),
        is_function=may_be_inferred,
    )


def _as_one_text(tool: str, check: Checker) -> Checker:
    """LangChain's `Tool` takes one text, whatever the model calls it."""

    def one(args: Arguments) -> Arguments:
        values = list(check(args).values())
        if len(values) != 1:
            raise ArgumentsError(f"the arguments do not fit tool {tool!r}:\n- it takes one argument; got {len(values)}")
        return {"tool_input": values[0]}

    return one
