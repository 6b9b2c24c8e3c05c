"""A callable's parameters with their types resolved, however the annotations are written.

`typing.get_type_hints` is all or nothing: one name that exists only while type checking hides the types of all other
parameters. Here each annotation is resolved by itself, and one that cannot be resolved stays what it was.
"""

import builtins
import functools
import inspect
import types
import typing
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ForwardRef, Literal, Union, cast, get_args, get_origin, get_type_hints

from langchain_core.callbacks import AsyncCallbackManagerForToolRun, CallbackManagerForToolRun, Callbacks
from langchain_core.runnables import RunnableConfig
from typing_extensions import TypeAliasType

from agentkit.tools._runtime import InjectedState, InjectedStore, InjectedToolArg, InjectedToolCallId, ToolRuntime

EMPTY = inspect.Parameter.empty
_UNIONS = (Union, types.UnionType)


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One parameter.

    `annotation` is resolved, or still has strings where it names what cannot be found; EMPTY if there is none. `hint`
    is what can be said of it all the same: names that mean injection are known, any other stands for `Unknown`.
    """

    name: str
    annotation: Any
    hint: Any
    default: Any
    kind: inspect._ParameterKind

    @property
    def is_extra(self) -> bool:
        """Whether it is `*args` or `**kwargs`."""
        return self.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def parameters_of(function: Callable[..., Any]) -> dict[str, Parameter]:
    """The parameters that a caller of this callable fills, in order.

    Works on functions, methods, partials, classes and callable objects, wrapped or not. Annotations may use what the
    function's module knows, what it encloses, and, while it is being defined, the locals of the defining function.
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # some builtins do not tell
        return {}
    owner = plain_function(function)
    annotations = _annotations(owner, signature)
    globalns = getattr(owner, "__globals__", {})
    # what a partial has fixed by name is still in its signature, as a default
    fixed = function.keywords if isinstance(function, functools.partial) else ()
    return {
        name: Parameter(
            name=name,
            annotation=annotations[name],
            hint=guess(annotations[name], globalns),
            default=each.default,
            kind=each.kind,
        )
        for name, each in signature.parameters.items()
        if name not in fixed
    }


# Annotations that only the frame of the defining function could resolve, for the time when that frame is gone.
_resolved_once: weakref.WeakKeyDictionary[Callable[..., Any], dict[str, Any]] = weakref.WeakKeyDictionary()


def _annotations(owner: Callable[..., Any], signature: inspect.Signature) -> dict[str, Any]:
    globalns = getattr(owner, "__globals__", {})
    localns = _closure(owner)
    found = {name: resolve(each.annotation, globalns, localns) for name, each in signature.parameters.items()}
    if all(map(is_resolved, found.values())):
        return found
    localns = {**_defining_locals(owner), **localns}
    earlier = _resolved_once.get(owner, {})
    for name, annotation in found.items():
        found[name] = earlier.get(name, resolve(annotation, globalns, localns))
    _resolved_once[owner] = {name: each for name, each in found.items() if is_resolved(each)}
    return found


def _defining_locals(function: Callable[..., Any]) -> dict[str, Any]:
    """The locals of the functions and classes around this one, as far as they are running right now.

    A name imported inside the defining function and used in a postponed annotation is in no closure: only that
    function's frame knows it, and while a decorator runs the frame is there.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    scopes = function.__qualname__.split(".")[:-1]
    wanted = {".".join(scopes[: end + 1]) for end, scope in enumerate(scopes) if scope != "<locals>"}
    found: dict[str, Any] = {}
    frame = inspect.currentframe()
    while frame is not None and wanted:
        if frame.f_code.co_qualname in wanted and frame.f_code.co_filename == code.co_filename:
            wanted.discard(frame.f_code.co_qualname)
            found = {**frame.f_locals, **found}  # inner scopes are met first and win
        frame = frame.f_back
    return found


def plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function at the bottom of partials, methods, wrappers and callable objects."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__") and not hasattr(function, "__signature__"):
            function = function.__wrapped__
        elif inspect.isroutine(function):
            return function
        elif inspect.isclass(function):
            return cast("Callable[..., Any]", function.__init__)
        else:
            function = type(function).__call__


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine."""
    if inspect.isroutine(function) or isinstance(function, functools.partial):
        return inspect.iscoroutinefunction(function)
    return inspect.iscoroutinefunction(type(function).__call__)


def _closure(function: Callable[..., Any]) -> dict[str, Any]:
    """Names of enclosing functions that the function itself uses."""
    if not inspect.isfunction(function):
        return {}
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def resolve(annotation: Any, globalns: dict[str, Any], localns: Mapping[str, Any]) -> Any:
    """The annotation with its strings replaced by what they name; unchanged where one of them cannot be found."""
    if annotation is EMPTY or (isinstance(annotation, type) and not get_args(annotation)):
        return annotation
    return _resolved(annotation, globalns, dict(localns))


def _resolved(annotation: Any, globalns: dict[str, Any], localns: dict[str, Any]) -> Any:
    def holder() -> None: ...

    holder.__annotations__ = {"value": annotation}
    try:
        return get_type_hints(holder, globalns, localns, include_extras=True)["value"]
    except Exception:  # noqa: BLE001 - whatever evaluating a stranger's annotation raises
        return annotation


class _UnknownMeta(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _KNOWN.get(name, Unknown)


class Unknown(metaclass=_UnknownMeta):
    """A type that cannot be found; so is everything in it, unless its name is one that means injection."""

    def __class_getitem__(cls, _parameters: Any) -> type["Unknown"]:
        return cls


_KNOWN: dict[str, Any] = {
    **{name: getattr(typing, name) for name in ("Annotated", "Any", "Optional", "Union")},
    **{
        each.__name__: each
        for each in (
            *(ToolRuntime, InjectedState, InjectedStore, InjectedToolArg, InjectedToolCallId),
            *(RunnableConfig, CallbackManagerForToolRun, AsyncCallbackManagerForToolRun),
        )
    },
    "Callbacks": Callbacks,
}


class _Lenient(dict[str, Any]):
    """A namespace that has every name."""

    def __init__(self, globalns: dict[str, Any]) -> None:
        super().__init__()
        self._globals = globalns

    def __missing__(self, name: str) -> Any:
        if name in self._globals:
            return self._globals[name]
        return getattr(builtins, name, None) or _KNOWN.get(name, Unknown)


def guess(annotation: Any, globalns: dict[str, Any]) -> Any:
    """The annotation, with `Unknown` for what cannot be found."""
    return annotation if is_resolved(annotation) else _resolved(annotation, globalns, _Lenient(globalns))


def is_resolved(annotation: Any) -> bool:
    """Whether no part of the annotation is still a string."""
    if isinstance(annotation, str | ForwardRef):
        return False
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return True
    return all(map(is_resolved, parts[:1] if origin is Annotated else parts))


def members(annotation: Any) -> Iterator[Any]:
    """The types that a value may have: unions and `Annotated` taken apart, generics as their origin."""
    annotation = _unaliased(annotation)
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from members(get_args(annotation)[0])
    elif origin in _UNIONS:
        for part in get_args(annotation):
            yield from members(part)
    else:
        yield annotation if origin is None or isinstance(annotation, str) else origin


def markers(annotation: Any) -> Iterator[Any]:
    """Everything that `Annotated` adds anywhere in the annotation's unions; a marker may also stand by itself."""
    annotation = _unaliased(annotation)
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *extra = get_args(annotation)
        yield from extra
        yield from markers(inner)
    elif origin in _UNIONS:
        for part in get_args(annotation):
            yield from markers(part)
    elif isinstance(annotation, InjectedToolArg) or InjectedToolArg in getattr(annotation, "__mro__", ()):
        yield annotation  # `state: InjectedState`, `city: InjectedState("city")`


def _unaliased(annotation: Any) -> Any:
    """What a `type` alias stands for."""
    while isinstance(annotation, TypeAliasType):
        annotation = annotation.__value__
    return annotation


def is_optional(annotation: Any) -> bool:
    """Whether None is a value of this type."""
    return any(member is type(None) or member is None for member in members(annotation))


def is_type(annotation: Any, wanted: type) -> bool:
    """Whether a value of this annotation may be of the wanted type."""
    # by the classes' own order, since a TypedDict cannot be asked for its subclasses
    return any(member is wanted or wanted in getattr(member, "__mro__", ()) for member in members(annotation))
