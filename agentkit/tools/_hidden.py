"""Keeping injected parameters out of what the model is shown."""

from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.tools import BaseTool, InjectedToolArg
from pydantic import create_model
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import create_model as create_model_v1

from agentkit.errors import DefinitionError
from agentkit.tools._arguments import Schema
from agentkit.tools._fields import field_names, fields_of
from agentkit.tools._plan import plan_of
from agentkit.tools._signature import EMPTY


def hide_injected(tool: BaseTool) -> BaseTool:
    """The tool, or a copy of it with a mended schema where a model would be shown an injected parameter.

    Raises DefinitionError where the schema has no form that a model can be shown.
    """
    injected = plan_of(tool).injected
    if not injected:
        return tool
    try:
        shown = field_names(tool.tool_call_schema)
    except Exception as error:
        raise DefinitionError(f"tool {tool.name!r}: its arguments cannot be described to a model: {error}") from error
    if injected.isdisjoint(shown):
        return tool
    schema = plan_of(tool).schema if tool.args_schema is None else without_injected(tool.args_schema, injected)
    return tool.model_copy(update={"args_schema": schema})


def without_injected(schema: Schema, injected: frozenset[str]) -> Schema:
    """The schema with its injected fields marked for LangChain to hide; the very same object where it does already."""
    if isinstance(schema, dict):
        return visible_json_schema(schema, injected)
    leaks = injected & _shown_names(schema)
    if not leaks:
        return schema
    marked: dict[str, Any] = {
        field.name: (Annotated[field.annotation, InjectedToolArg()], ... if field.default is EMPTY else field.default)
        for field in fields_of(schema)
        if field.name in leaks
    }
    if issubclass(schema, BaseModelV1):
        made: type[BaseModelV1] = create_model_v1(
            schema.__name__, __base__=schema, __module__=schema.__module__, **marked
        )
        return made
    return create_model(
        schema.__name__, __base__=schema, __doc__=schema.__doc__, __module__=schema.__module__, **marked
    )


def _shown_names(schema: Schema) -> frozenset[str]:
    """The fields of a schema that LangChain shows to a model."""
    return field_names(_Probe(name="probe", description="probe", args_schema=schema).tool_call_schema)


class _Probe(BaseTool):
    def _run(self) -> None: ...


def visible_json_schema(schema: dict[str, Any], hidden: frozenset[str]) -> dict[str, Any]:
    """The schema without its properties of these names; the very same object where it has none of them."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or hidden.isdisjoint(properties):
        return schema
    shown = {**schema, "properties": {name: node for name, node in properties.items() if name not in hidden}}
    if isinstance(schema.get("required"), list):
        shown["required"] = [name for name in schema["required"] if name not in hidden]
    return shown
