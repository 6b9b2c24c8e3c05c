"""What a tool's parameters get that the model must neither see nor give."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.callbacks import BaseCallbackManager, BaseRunManager
from langchain_core.runnables import RunnableConfig

from agentkit.errors import DefinitionError, InjectionError
from agentkit.tools._runtime import (
    InjectedState,
    InjectedStore,
    InjectedToolArg,
    InjectedToolCallId,
    LangGraphToolRuntime,
    ToolRuntime,
)
from agentkit.tools._signature import EMPTY, Parameter, is_optional, is_type, markers, members

Kind = Literal["runtime", "config", "state", "store", "call_id", "manager", "custom"]
Getter = Callable[[ToolRuntime[Any, Any]], Any]

OMIT: Any = object()
"""What a getter answers where the parameter's own default is to be used."""

MANAGERS = ("run_manager", "callbacks")
RESERVED = ("runtime", "config")


@dataclass(frozen=True, kw_only=True, slots=True)
class Injection:
    """Where the value of one parameter comes from.

    `field` is the state key, or None for the whole state. `default` is what stands in for a value that the run does not
    have: EMPTY for nothing, OMIT to leave it to the parameter's own default.
    """

    parameter: str
    kind: Kind
    field: str | None = None
    optional: bool = False
    default: Any = EMPTY


def injection_of(parameter: Parameter) -> Injection | None:
    """How the run fills a parameter; None for one that the model fills. Raises DefinitionError for two ways at once."""
    kind, field = _kind(parameter)
    if kind is None:
        return None
    return Injection(
        parameter=parameter.name,
        kind=kind,
        field=field,
        optional=is_optional(parameter.hint),
        default=EMPTY if parameter.default is EMPTY else OMIT,
    )


def _kind(parameter: Parameter) -> tuple[Kind | None, str | None]:
    hint = parameter.hint
    if parameter.is_extra:
        return None, None
    by_name = parameter.name == "runtime" and (hint is EMPTY or hint is Any)  # which LangChain's tools may rely on
    if by_name or is_type(hint, LangGraphToolRuntime):
        return "runtime", None
    if is_type(hint, RunnableConfig):
        return "config", None
    if parameter.name in MANAGERS and _is_manager(hint):
        return "manager", None
    found = [(kind, marker) for marker in markers(hint) if (kind := _marked(marker))]
    special = [pair for pair in found if pair[0] != "custom"]
    if len(special) > 1:
        ways = " and ".join(repr(marker) for _, marker in special)
        raise DefinitionError(f"parameter {parameter.name!r} is to be injected in two ways: {ways}; keep one")
    if found:
        kind, marker = (special or found)[0]
        return kind, marker.field if isinstance(marker, InjectedState) else None
    return None, None


def _marked(marker: Any) -> Kind | None:
    cls = marker if isinstance(marker, type) else type(marker)
    for wanted, kind in _MARKERS:
        if issubclass(cls, wanted):
            return kind
    return None


_MARKERS: tuple[tuple[type, Kind], ...] = (
    (InjectedState, "state"),
    (InjectedStore, "store"),
    (InjectedToolCallId, "call_id"),
    (LangGraphToolRuntime, "runtime"),
    (InjectedToolArg, "custom"),
)


def _is_manager(hint: Any) -> bool:
    """Whether the parameter is LangChain's own; without a hint the name says it."""
    if hint is EMPTY or hint is Any:
        return True
    return any(
        isinstance(each, type) and issubclass(each, BaseCallbackManager | BaseRunManager) for each in members(hint)
    )


def getter_of(injection: Injection, tool: str) -> Getter:
    """The function that takes the value out of the call's runtime. It never copies and never validates.

    It raises InjectionError, naming tool, parameter and fix, where the run does not have the value and the parameter
    can do without neither by default nor by None.
    """
    if injection.kind == "state":
        return _whole_state if injection.field is None else _state_field(injection, injection.field, tool)
    if injection.kind in _SIMPLE:
        return _SIMPLE[injection.kind]
    get, why = _ABSENT[injection.kind]
    return _or_absent(injection, get, tool, why)


def _itself(runtime: ToolRuntime[Any, Any]) -> Any:
    return runtime


def _whole_state(runtime: ToolRuntime[Any, Any]) -> Any:
    # a tool that asks for "the state" was promised a mapping, also where the graph's state is a bare list of messages
    state = runtime.state
    return {"messages": state} if isinstance(state, list) else state


def _omit(_runtime: ToolRuntime[Any, Any]) -> Any:
    return OMIT


def _none(_runtime: ToolRuntime[Any, Any]) -> Any:
    return None


_SIMPLE: dict[Kind, Getter] = {"runtime": _itself, "config": operator.attrgetter("config"), "manager": _omit}
_ABSENT: dict[Kind, tuple[Getter, str]] = {
    "call_id": (operator.attrgetter("tool_call_id"), "the call has no id"),
    "store": (operator.attrgetter("store"), "the graph has no store; compile it with store="),
    "custom": (_none, "InjectedToolArg is filled by whoever calls the tool by hand, and nobody does"),
}


def _absent(injection: Injection, tool: str, why: str) -> Any:
    if injection.default is not EMPTY:
        return injection.default
    if injection.optional:
        return None
    raise InjectionError(f"tool {tool!r}: parameter {injection.parameter!r} cannot be injected: {why}")


def _or_absent(injection: Injection, get: Callable[[Any], Any], tool: str, why: str) -> Getter:
    def getter(runtime: ToolRuntime[Any, Any]) -> Any:
        value = get(runtime)
        return _absent(injection, tool, why) if value is None else value

    return getter


def _state_field(injection: Injection, field: str, tool: str) -> Getter:
    def getter(runtime: ToolRuntime[Any, Any]) -> Any:
        state = runtime.state
        if isinstance(state, dict):
            if field in state:
                return state[field]
        elif isinstance(state, list):
            if field == "messages":
                return state
        elif hasattr(state, field):
            return getattr(state, field)
        why = f"the state has no {field!r}; give the run that key, or allow None or a default"
        return _absent(injection, tool, why)

    return getter
