"""The fields of an args_schema, whatever kind of schema it is."""

import inspect
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel
from pydantic.v1 import BaseModel as BaseModelV1

from agentkit.tools._arguments import Schema
from agentkit.tools._injection import Injection, injection_of
from agentkit.tools._signature import EMPTY, Parameter, guess


def field_names(schema: Schema | None) -> frozenset[str]:
    """The names of a schema's fields."""
    if schema is None:
        return frozenset()
    if isinstance(schema, dict):
        return frozenset(schema.get("properties", ()))
    return frozenset(schema.__fields__ if issubclass(schema, BaseModelV1) else schema.model_fields)


def declared_injections(schema: Schema | None) -> dict[str, Injection]:
    """The fields that a schema itself marks as injected."""
    if schema is None or isinstance(schema, dict):
        return {}
    found = {}
    for field in fields_of(schema):
        injection = injection_of(field)
        if injection is not None:
            found[field.name] = replace(injection, default=field.default)  # the body need not have the default too
    return found


def fields_of(schema: type[BaseModel] | type[BaseModelV1]) -> Iterator[Parameter]:
    """The fields of a model, seen as parameters: with their full annotations, metadata and all."""
    return _v1_fields(schema) if issubclass(schema, BaseModelV1) else _v2_fields(schema)


def _v2_fields(schema: type[BaseModel]) -> Iterator[Parameter]:
    for name, info in schema.model_fields.items():
        annotation = Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
        yield _as_parameter(name, annotation, EMPTY if info.is_required() else info.get_default())


def _v1_fields(schema: type[BaseModelV1]) -> Iterator[Parameter]:
    try:
        hints = get_type_hints(schema, include_extras=True)
    except NameError:
        hints = {}
    for name, field in schema.__fields__.items():
        yield _as_parameter(name, hints.get(name, field.outer_type_), EMPTY if field.required else field.default)


def _as_parameter(name: str, annotation: Any, default: Any) -> Parameter:
    hint = guess(annotation, {})
    return Parameter(name=name, annotation=annotation, hint=hint, default=default, kind=inspect.Parameter.KEYWORD_ONLY)
