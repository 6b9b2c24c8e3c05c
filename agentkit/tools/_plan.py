"""What a tool needs to be called, found out once per tool object and used for each of its calls."""

import inspect
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, Tool
from pydantic import BaseModel
from pydantic.v1 import BaseModel as BaseModelV1

from agentkit.errors import ArgumentsError, DefinitionError
from agentkit.tools._arguments import Arguments, Checker, Schema, checker_of
from agentkit.tools._injection import MANAGERS, OMIT, RESERVED, Getter, Injection, getter_of, injection_of
from agentkit.tools._runtime import ToolRuntime
from agentkit.tools._schema import inferred_schema
from agentkit.tools._signature import EMPTY, Parameter, parameters_of

Runtime = ToolRuntime[Any, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """One way to run a tool. `function` takes keyword arguments; where it is None, the tool's own method does."""

    function: Callable[..., Any] | None
    method: str
    is_async: bool
    check: Checker
    hidden: frozenset[str]
    getters: tuple[tuple[str, Getter], ...]
    managers: tuple[str, ...]
    needs_manager: bool

    def bind(self, args: Arguments, runtime: Runtime) -> Arguments:
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
        """The callable to give the arguments to."""
        return self.function if self.function is not None else getattr(tool, self.method)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How one tool is called. Get it with `plan_of`.

    injected: names that the run fills; hidden from the model, and stripped from what it gives.
    is_own: whether the tool's class runs tools in a way of its own, which must be kept.
    """

    name: str
    injected: frozenset[str]
    injections: tuple[Injection, ...]
    sync: Body | None
    asynchronous: Body | None
    is_own: bool
    schema: Schema | None

    @property
    def has_sync(self) -> bool:
        """Whether the tool can run without an event loop."""
        return self.sync is not None

    @property
    def has_async(self) -> bool:
        """Whether the tool has an asynchronous body."""
        return self.asynchronous is not None

    @property
    def is_async_only(self) -> bool:
        """Whether the tool can run in an event loop only."""
        return self.sync is None and self.asynchronous is not None

    @property
    def needs_state(self) -> bool:
        """Whether a body asks for the graph's state, or for the runtime that holds it."""
        return any(each.kind in ("state", "runtime") for each in self.injections)

    @property
    def needs_runtime(self) -> bool:
        """Whether a body asks for the ToolRuntime."""
        return any(each.kind == "runtime" for each in self.injections)

    @property
    def needs_store(self) -> bool:
        """Whether a body asks for the store by itself."""
        return any(each.kind == "store" for each in self.injections)

    def bind(self, args: Arguments, runtime: Runtime) -> Arguments:
        """Keyword arguments of the body, from the model's arguments and the run.

        Neither is changed, and what is injected is neither validated nor copied. Values that the model gives for
        injected parameters are dropped.

        Raises:
            ArgumentsError: the model's arguments do not fit; the text is for the model.
            InjectionError: the run lacks what the tool asks for; the text is for developers.
        """
        body = self.sync or self.asynchronous
        if body is None:
            raise DefinitionError(f"tool {self.name!r} has no body to bind arguments for")
        return body.bind(args, runtime)

    def strip(self, args: Arguments) -> Arguments:
        """The arguments without values for injected parameters; the same object where there are none."""
        if self.injected.isdisjoint(args):
            return args
        return {name: value for name, value in args.items() if name not in self.injected}


_plans: dict[int, tuple[weakref.ref[BaseTool], tuple[Any, ...], Plan]] = {}


def plan_of(tool: BaseTool) -> Plan:
    """The plan of a tool; made at its first use and kept as long as the tool lives.

    Raises DefinitionError where the tool cannot be called at all.
    """
    # Tools are not hashable, hence the ids. The parts are compared because tools are not frozen: one whose function or
    # schema was replaced needs a new plan.
    key = id(tool)
    kept = _plans.get(key)
    parts = (tool.name, tool.args_schema, getattr(tool, "func", None), getattr(tool, "coroutine", None))
    if kept is not None and kept[0]() is tool and all(map(_is, kept[1], parts)):
        return kept[2]
    plan = make_plan(tool)

    def forget(reference: weakref.ref[BaseTool]) -> None:
        if key in _plans and _plans[key][0] is reference:
            del _plans[key]

    _plans[key] = (weakref.ref(tool, forget), parts, plan)
    return plan


def _is(left: object, right: object) -> bool:
    return left is right


def make_plan(tool: BaseTool) -> Plan:
    """A new plan, from the tool as it is now."""
    sync, asynchronous = _callables(tool)
    found = [_injections(each, tool) for each in (sync, asynchronous) if each is not None]
    declared = _declared(tool.args_schema)
    injections = {**declared, **{name: each for part in found for name, each in part.items()}}
    hidden = frozenset(injections)
    schema = _schema_of(tool, injections)
    bodies = [
        None if each is None else _body(tool, each, {**declared, **_injections(each, tool)}, hidden, schema, is_async)
        for each, is_async in ((sync, False), (asynchronous, True))
    ]
    return Plan(
        name=tool.name,
        injected=hidden,
        injections=tuple(injections.values()),
        sync=bodies[0],
        asynchronous=bodies[1],
        is_own=runs_its_own_way(type(tool)),
        schema=schema,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Callable:
    function: Callable[..., Any] | None
    method: str
    parameters: dict[str, Parameter]
    single: bool = False


def _callables(tool: BaseTool) -> tuple[_Callable | None, _Callable | None]:
    """The tool's sync and async bodies: its functions, or the methods its class defines."""
    cls = type(tool)
    single = isinstance(tool, Tool)
    if keeps(cls, "_run"):
        sync = _from_function(getattr(tool, "func", None), single=single)
    else:
        sync = _from_method(tool, "_run")
    if keeps(cls, "_arun"):
        asynchronous = _from_function(getattr(tool, "coroutine", None), single=single)
    else:
        asynchronous = _from_method(tool, "_arun")
    return sync, asynchronous


def _from_function(function: Callable[..., Any] | None, *, single: bool) -> _Callable | None:
    if function is None:
        return None
    parameters = parameters_of(function)
    if single:
        parameters = {name: each for name, each in parameters.items() if injection_of(each)}
        return _Callable(function=_with_one_argument(function), method="", parameters=parameters, single=True)
    return _Callable(function=function, method="", parameters=parameters)


def _with_one_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*, tool_input: Any, **injected: Any) -> Any:
        return function(tool_input, **injected)

    return call


def _from_method(tool: BaseTool, name: str) -> _Callable:
    return _Callable(function=None, method=name, parameters=parameters_of(getattr(tool, name)))


# Which implementations are LangChain's own, method by method. A class with another one runs tools its own way.
_KEPT: dict[str, set[Any]] = {
    "_run": {StructuredTool._run, Tool._run},
    "_arun": {BaseTool._arun, StructuredTool._arun, Tool._arun},
    "invoke": {BaseTool.invoke},
    "ainvoke": {BaseTool.ainvoke, StructuredTool.ainvoke, Tool.ainvoke},
    "run": {BaseTool.run},
    "arun": {BaseTool.arun},
    "_parse_input": {BaseTool._parse_input},
    "_to_args_and_kwargs": {BaseTool._to_args_and_kwargs, Tool._to_args_and_kwargs},
}


def keep(cls: type[BaseTool]) -> type[BaseTool]:
    """Class decorator: what this class overrides does what LangChain's does, and may be passed by."""
    for name, implementations in _KEPT.items():
        implementations.add(getattr(cls, name))
    return cls


def keeps(cls: type[BaseTool], method: str) -> bool:
    """Whether a class has this method from LangChain."""
    return getattr(cls, method) in _KEPT[method]


def runs_its_own_way(cls: type[BaseTool]) -> bool:
    """Whether a class overrides how its tools are invoked, not only what they do."""
    return not all(keeps(cls, method) for method in _KEPT if method not in ("_run", "_arun"))


def _injections(body: _Callable, tool: BaseTool) -> dict[str, Injection]:
    found = {}
    fields = field_names(tool.args_schema)
    for parameter in body.parameters.values():
        injection = injection_of(parameter)
        if injection is None and parameter.name in RESERVED and parameter.name not in fields:
            injection = _by_name(parameter)
        if injection is not None:
            found[parameter.name] = injection
    return found


def _by_name(parameter: Parameter) -> Injection | None:
    """A `runtime` or `config` without a type, that no schema asks the model for, can mean only one thing."""
    if parameter.annotation is not EMPTY and parameter.annotation is not Any:
        return None
    return Injection(
        parameter=parameter.name,
        kind="runtime" if parameter.name == "runtime" else "config",
        default=EMPTY if parameter.default is EMPTY else OMIT,
    )


def field_names(schema: Schema | None) -> frozenset[str]:
    if schema is None:
        return frozenset()
    if isinstance(schema, dict):
        return frozenset(schema.get("properties", ()))
    return frozenset(schema.__fields__ if issubclass(schema, BaseModelV1) else schema.model_fields)


def _declared(schema: Schema | None) -> dict[str, Injection]:
    """Injections that an args_schema declares on its fields."""
    if schema is None or isinstance(schema, dict):
        return {}
    found = {}
    for parameter in _as_parameters(schema):
        injection = injection_of(parameter)
        if injection is not None:
            found[parameter.name] = injection
    return found


def _as_parameters(schema: type[BaseModel] | type[BaseModelV1]) -> Iterable[Parameter]:
    from typing import Annotated, get_type_hints

    if issubclass(schema, BaseModelV1):
        hints = get_type_hints(schema, include_extras=True)
        for name, field in schema.__fields__.items():
            yield _field_parameter(name, hints.get(name, EMPTY), EMPTY if field.required else field.default)
        return
    for name, info in schema.model_fields.items():
        annotation = Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
        default = EMPTY if info.is_required() else info.get_default(call_default_factory=False)
        yield _field_parameter(name, annotation, default)


def _field_parameter(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name=name, annotation=annotation, default=default, kind=inspect.Parameter.KEYWORD_ONLY)


def _schema_of(tool: BaseTool, injections: dict[str, Injection]) -> Schema | None:
    """What the model's arguments are checked against: the tool's schema, or the one its `_run` implies."""
    if tool.args_schema is not None:
        return tool.args_schema
    if isinstance(tool, Tool):
        return None
    parameters = parameters_of(tool._run)
    try:
        return inferred_schema(tool.name, None, parameters.values(), injections)
    except Exception:  # noqa: BLE001 - a stranger's types; LangChain checks nothing here
        return None


def _body(
    tool: BaseTool,
    found: _Callable,
    injections: dict[str, Injection],
    hidden: frozenset[str],
    schema: Schema | None,
    is_async: bool,
) -> Body:
    takes_extra = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in found.parameters.values())
    needed = frozenset(name for name, each in found.parameters.items() if each.default is EMPTY)
    check = checker_of(tool.name, schema, hidden, takes_extra=takes_extra, needed=needed)
    managers = tuple(name for name in MANAGERS if name in injections)
    return Body(
        function=found.function,
        method=found.method,
        is_async=is_async,
        check=_as_one_argument(tool.name, check) if found.single else check,
        hidden=hidden,
        getters=tuple(
            (name, getter_of(each, tool.name))
            for name, each in injections.items()
            if each.kind != "manager" and (takes_extra or found.single or name in found.parameters)
        ),
        managers=managers,
        needs_manager=any(found.parameters[name].default is EMPTY for name in managers),
    )


def _as_one_argument(tool: str, check: Checker) -> Checker:
    """LangChain's `Tool` takes one text, whatever the model calls it."""

    def one(args: Arguments) -> Arguments:
        values = list(check(args).values())
        if len(values) != 1:
            raise ArgumentsError(f"the arguments do not fit tool {tool!r}:\n- it takes one argument; got {len(values)}")
        return {"tool_input": values[0]}

    return one
