"""What becomes of an exception from a call: an error result for the model, or an exception for the developer.

LangGraph's `handle_tool_errors` is turned into the same rule at the door.
"""

import inspect
import logging
import types
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from langchain_core.messages import ToolCall
from langgraph.prebuilt.tool_node import ToolInvocationError
from pydantic import ValidationError

from agentkit.errors import (
    AgentkitError,
    ArgumentsError,
    DefinitionError,
    InjectionError,
    NotStorableError,
    PairingError,
)
from agentkit.tools._redact import redact, shorten

logger = logging.getLogger(__name__)

DEVELOPERS = (InjectionError, PairingError)
"""Mistakes in a tool's code or in how the graph is set up: raised, since the model can do nothing about them."""

OnToolError = Literal["report", "hide", "raise"] | Callable[[Exception, ToolCall], str]
HandleToolErrors = bool | str | Callable[..., str] | type[Exception] | tuple[type[Exception], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorRule:
    """How exceptions of calls are answered.

    `text(error, call)` gives the text of the error result, or None where the exception is to be raised. `early` rules
    apply before wrappers see the exception (as LangGraph's `handle_tool_errors` does), others after.
    """

    text: Callable[[Exception, ToolCall], str | None]
    early: bool = False


def error_rule(on_tool_error: OnToolError) -> ErrorRule:
    """The rule for an `on_tool_error` setting.

    Raises:
        DefinitionError: the setting is none of "report", "hide", "raise" or a function of (error, call).
    """
    if callable(on_tool_error):
        return ErrorRule(text=_custom(on_tool_error))
    if on_tool_error not in _RULES:
        raise DefinitionError(
            f"on_tool_error={on_tool_error!r} is not known; use 'report', 'hide', 'raise' or (error, call) -> str"
        )
    return ErrorRule(text=_RULES[on_tool_error])


def legacy_error_rule(setting: HandleToolErrors) -> ErrorRule:
    """The rule for LangGraph's `handle_tool_errors`, with its meaning."""
    if setting is False:
        return ErrorRule(text=lambda _error, _call: None, early=True)
    if isinstance(setting, str):
        return ErrorRule(text=lambda error, _call: setting if _is_handled(error, (Exception,)) else None, early=True)
    if setting is True:
        handled: tuple[type[Exception], ...] = (Exception,)
    elif isinstance(setting, tuple):
        handled = setting
    elif isinstance(setting, type):
        handled = (setting,)
    elif callable(setting):
        handler, handled = setting, _handled_by(setting)
        return ErrorRule(text=lambda error, _call: handler(error) if _is_handled(error, handled) else None, early=True)
    else:
        raise DefinitionError(
            f"handle_tool_errors={setting!r} is not known; use a bool, a text, exception types or a function"
        )
    return ErrorRule(text=lambda error, _call: _repr(error) if _is_handled(error, handled) else None, early=True)


def describe(error: BaseException, limit: int = 500) -> str:
    """Type and message of an exception in one text without credentials, at most `limit` characters long."""
    message = redact(str(error)).strip()
    if isinstance(error, AgentkitError):
        return shorten(message, limit)
    return shorten(f"{type(error).__name__}: {message}" if message else type(error).__name__, limit)


def arguments_text(error: ArgumentsError) -> str:
    """What the model reads when its arguments do not fit."""
    return f"Error: {redact(str(error))}"


def as_langgraph(error: ArgumentsError, call: ToolCall) -> Exception:
    """The exception that langgraph's ToolNode raises for wrong arguments with `handle_tool_errors=False`."""
    cause = error.__cause__
    if not isinstance(cause, ValidationError):
        return error
    return ToolInvocationError(call["name"], cause, call["args"], cause.errors())


def _report(error: Exception, _call: ToolCall) -> str | None:
    return None if isinstance(error, DEVELOPERS) else f"Error: {describe(error)}"


def _hide(error: Exception, call: ToolCall) -> str | None:
    if isinstance(error, DEVELOPERS):
        return None
    reference = uuid.uuid4().hex[:12]
    logger.error("tool %r (call %r) failed, reference %s", call["name"], call["id"], reference, exc_info=error)
    return f"Error: the tool failed. Reference: {reference}"


def _raise(error: Exception, _call: ToolCall) -> str | None:
    return f"Error: {describe(error)}" if isinstance(error, NotStorableError) else None


_RULES: dict[str, Callable[[Exception, ToolCall], str | None]] = {"report": _report, "hide": _hide, "raise": _raise}


def _custom(function: Callable[[Exception, ToolCall], str]) -> Callable[[Exception, ToolCall], str | None]:
    return lambda error, call: None if isinstance(error, DEVELOPERS) else function(error, call)


def _is_handled(error: Exception, handled: tuple[type[Exception], ...]) -> bool:
    return isinstance(error, handled) and not isinstance(error, InjectionError)


def _repr(error: Exception) -> str:
    return f"Error: {redact(repr(error))}\n Please fix your mistakes."


def _handled_by(handler: Callable[..., str]) -> tuple[type[Exception], ...]:
    """The exception types in the annotation of a handler's parameter; all where there is none."""
    parameters = list(inspect.signature(handler).parameters.values())
    if not parameters:
        return (Exception,)
    hint: Any = get_type_hints(handler if not _is_object(handler) else type(handler).__call__).get(parameters[0].name)
    if hint is None:
        return (Exception,)
    types_ = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in types_):
        raise DefinitionError(
            f"handle_tool_errors={handler!r} takes {hint!r}; annotate its parameter with the Exception types it handles"
        )
    return tuple(types_)


def _is_object(handler: Callable[..., str]) -> bool:
    return not inspect.isroutine(handler)
