"""What a tool needs to be called, found out once per tool object and used for each of its calls."""

import weakref
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_core.tools import BaseTool, Tool

from agentkit.errors import DefinitionError
from agentkit.tools._arguments import Arguments, Schema
from agentkit.tools._bodies import Body, bodies_of, injections_of, planned
from agentkit.tools._classes import has_own_way
from agentkit.tools._fields import declared_injections
from agentkit.tools._injection import Injection
from agentkit.tools._runtime import ToolRuntime
from agentkit.tools._schema import inferred_schema
from agentkit.tools._signature import parameters_of

Runtime: TypeAlias = ToolRuntime[Any, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How one tool is called. Get it with `plan_of`.

    injected: names that the run fills; hidden from the model, and stripped from what it gives.
    sync, asynchronous: the bodies, None where the tool has none.
    has_own_way: whether the tool's class runs tools in a way of its own, which is kept.
    schema: what the model's arguments are checked against; None for no check.
    """

    name: str
    injected: frozenset[str]
    injections: tuple[Injection, ...]
    sync: Body | None
    asynchronous: Body | None
    has_own_way: bool
    schema: Schema | None

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
    # Tools are not hashable, hence the ids. The parts are compared because tools are not frozen either: one whose
    # function or schema was replaced needs a new plan.
    key = id(tool)
    kept = _plans.get(key)
    parts = (tool.name, tool.args_schema, getattr(tool, "func", None), getattr(tool, "coroutine", None))
    if kept is not None and kept[0]() is tool and all(map(_is, kept[1], parts)):
        return kept[2]
    plan = make_plan(tool)
    _plans[key] = (weakref.ref(tool, _forget(key)), parts, plan)
    return plan


def _is(left: object, right: object) -> bool:
    return left is right


def _forget(key: int) -> Any:
    def forget(reference: weakref.ref[BaseTool]) -> None:
        kept = _plans.get(key)
        if kept is not None and kept[0] is reference:  # not that of a later tool at the same address
            del _plans[key]

    return forget


def make_plan(tool: BaseTool) -> Plan:
    """A new plan, from the tool as it is now."""
    bodies = bodies_of(tool)
    declared = declared_injections(tool.args_schema)
    by_body = [{**declared, **injections_of(each, tool.args_schema)} if each else {} for each in bodies]
    injections = {**by_body[1], **by_body[0], **(declared if not any(bodies) else {})}
    hidden = frozenset(injections)
    schema = _schema_of(tool, injections)
    sync, asynchronous = (
        planned(tool, each, own, hidden, schema) if each else None for each, own in zip(bodies, by_body, strict=True)
    )
    return Plan(
        name=tool.name,
        injected=hidden,
        injections=tuple(injections.values()),
        sync=sync,
        asynchronous=asynchronous,
        has_own_way=has_own_way(type(tool)),
        schema=schema,
    )


def _schema_of(tool: BaseTool, injections: dict[str, Injection]) -> Schema | None:
    """What the model's arguments are checked against: the tool's schema, or the one its `_run` implies."""
    if tool.args_schema is not None:
        return tool.args_schema
    if isinstance(tool, Tool):
        return None
    parameters = parameters_of(tool._run)  # noqa: SLF001 - LangChain infers the schema from it, and shows that to models
    try:
        return inferred_schema(tool.name, None, parameters.values(), injections)
    except Exception:  # noqa: BLE001 - a stranger's types; LangChain checks nothing here
        return None
