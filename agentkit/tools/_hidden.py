"""Keeping injected parameters out of what the model is shown."""

from typing import Annotated, Any, cast

from langchain_core.tools import BaseTool, InjectedToolArg
from pydantic import BaseModel, create_model
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import create_model as create_model_v1

from agentkit.tools._arguments import Schema, visible_json_schema
from agentkit.tools._plan import field_names, plan_of


def without_injected(schema: Schema, injected: frozenset[str]) -> Schema:
    """The schema with its injected fields marked so that LangChain hides them; the same object where it does already."""
    if isinstance(schema, dict):
        return visible_json_schema(schema, injected)
    leaks = injected & shown_names(schema)
    if not leaks:
        return schema
    marked: dict[str, Any] = dict.fromkeys(leaks, (Annotated[Any, InjectedToolArg()], None))
    if issubclass(schema, BaseModelV1):
        return cast("type[BaseModelV1]", create_model_v1(schema.__name__, __base__=schema, **marked))
    return create_model(
        schema.__name__, __base__=schema, __doc__=schema.__doc__, __module__=schema.__module__, **marked
    )


def shown_names(schema: Schema) -> frozenset[str]:
    """The fields of a schema that LangChain shows to a model."""
    if isinstance(schema, dict):
        return field_names(schema)
    probe = _Probe(name="probe", description="probe", args_schema=schema)
    return field_names(probe.tool_call_schema)


class _Probe(BaseTool):
    def _run(self) -> None: ...


def hide_injected(tool: BaseTool) -> BaseTool:
    """The tool, or a copy of it with a mended schema where a model would be shown an injected parameter."""
    plan = plan_of(tool)
    if not plan.injected:
        return tool
    shown = field_names(tool.tool_call_schema)
    if plan.injected.isdisjoint(shown):
        return tool
    schema = plan.schema if tool.args_schema is None else without_injected(tool.args_schema, plan.injected)
    return tool.model_copy(update={"args_schema": schema})
