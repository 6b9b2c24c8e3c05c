"""Structured answers: the strategies of `response_format`, and the errors of answers that do not fit.

    response_format=Weather                  the best way this model has (AutoStrategy)
    response_format=ToolStrategy(Weather)    the model calls a tool named Weather with the answer
    response_format=ProviderStrategy(Weather)  the provider's own structured output

A schema is a pydantic model, a dataclass, a TypedDict or a JSON schema; for tools also a union of these. Answers are
validated against it, JSON schemas included.
"""

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass
from types import UnionType
from typing import Any, Generic, Literal, Self, TypeVar, Union, get_args, get_origin
from uuid import uuid4

from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticUserError
from typing_extensions import is_typeddict

from agentkit.errors import DefinitionError, StructuredOutputError

__all__ = [
    "AutoStrategy",
    "HandleErrors",
    "MultipleStructuredOutputsError",
    "OutputToolBinding",
    "ProviderStrategy",
    "ProviderStrategyBinding",
    "ResponseFormat",
    "SchemaSpec",
    "StructuredOutputError",
    "StructuredOutputValidationError",
    "ToolStrategy",
]

log = logging.getLogger("agentkit.agents")

SchemaT = TypeVar("SchemaT")
SchemaKind = Literal["pydantic", "dataclass", "typeddict", "json_schema"]
HandleErrors = bool | str | type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], str]


class MultipleStructuredOutputsError(StructuredOutputError):
    """The model gave several structured answers in one message where one was asked for."""

    def __init__(self, tool_names: list[str], ai_message: AIMessage) -> None:
        self.tool_names = tool_names
        self.ai_message = ai_message
        Exception.__init__(
            self,
            f"Model incorrectly returned multiple structured responses ({', '.join(tool_names)}) "
            "when only one is expected.",
        )


class StructuredOutputValidationError(StructuredOutputError):
    """The model's answer does not fit the schema, or there is none; `source` says what is wrong with it."""

    def __init__(self, tool_name: str, source: Exception, ai_message: AIMessage) -> None:
        self.tool_name = tool_name
        self.source = source
        self.ai_message = ai_message
        Exception.__init__(self, f"Failed to parse structured output for tool '{tool_name}': {source}.")


class SchemaSpec(Generic[SchemaT]):
    """One schema, with its name, description and JSON form.

    Raises:
        DefinitionError: The schema is of no supported kind.
    """

    def __init__(
        self,
        schema: type[SchemaT] | dict[str, Any],
        *,
        name: str | None = None,
        description: str | None = None,
        strict: bool | None = None,
    ) -> None:
        self.schema = schema
        self.strict = strict
        self.schema_kind, self.json_schema = _kind(schema)
        if isinstance(schema, dict):
            known_name, known_text = schema.get("title"), schema.get("description")
        else:
            known_name, known_text = getattr(schema, "__name__", None), schema.__doc__
        self.name: str = str(name or known_name or f"response_format_{uuid4().hex[:4]}")
        self.description: str = description or known_text or ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SchemaSpec) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # compared by value, and the schema may be a dict


def _kind(schema: Any) -> tuple[SchemaKind, dict[str, Any]]:
    if isinstance(schema, dict):
        return "json_schema", schema
    try:
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            return "pydantic", schema.model_json_schema()
        if is_dataclass(schema):
            return "dataclass", TypeAdapter(schema).json_schema()
        if is_typeddict(schema):
            return "typeddict", TypeAdapter(schema).json_schema()
    except PydanticUserError as error:
        raise DefinitionError(f"the response schema {schema!r} has no JSON schema: {error.message}") from error
    raise DefinitionError(
        f"Unsupported schema type: {type(schema)}. "
        "A response schema is a pydantic model, a dataclass, a TypedDict or a JSON schema dict."
    )


class ToolStrategy(Generic[SchemaT]):
    """The model answers by calling a tool that takes the schema's fields; of a union, one tool for each member.

    Args:
        schema: The schema, or a union of schemas (a JSON schema with `oneOf` is one too).
        tool_message_content: The text of the result that answers the model's call.
        handle_errors: What to do with an answer that does not fit. True: tell the model, which tries again. A str: tell
            it that. Exception types: only for these. A function: tell it what `f(error)` returns. False: raise. However
            it is set, the model gets a bounded number of attempts (`Limits.retries`), then the error is raised.
    """

    def __init__(
        self,
        schema: type[SchemaT] | UnionType | dict[str, Any],
        *,
        tool_message_content: str | None = None,
        handle_errors: HandleErrors = True,
    ) -> None:
        self.schema = schema
        self.tool_message_content = tool_message_content
        self.handle_errors = handle_errors
        self.schema_specs: list[SchemaSpec[Any]] = [SchemaSpec(variant) for variant in _variants(schema)]


def _variants(schema: Any) -> Iterator[Any]:
    if get_origin(schema) in {UnionType, Union}:
        parts = get_args(schema)
    elif isinstance(schema, dict) and "oneOf" in schema:
        parts = tuple(schema["oneOf"])
    else:
        yield schema
        return
    for part in parts:
        yield from _variants(part)


class ProviderStrategy(Generic[SchemaT]):
    """The provider's own structured output. `strict` asks the provider to enforce the schema."""

    def __init__(self, schema: type[SchemaT] | dict[str, Any], *, strict: bool | None = None) -> None:
        self.schema = schema
        self.schema_spec: SchemaSpec[SchemaT] = SchemaSpec(schema, strict=strict)

    def to_model_kwargs(self) -> dict[str, Any]:
        """What to bind to the model, in the form providers' clients share."""
        form: dict[str, Any] = {"name": self.schema_spec.name, "schema": self.schema_spec.json_schema}
        if self.schema_spec.strict:
            form["strict"] = True
        return {"response_format": {"type": "json_schema", "json_schema": form}}


class AutoStrategy(Generic[SchemaT]):
    """ProviderStrategy if the model's profile says it has structured output, else ToolStrategy."""

    def __init__(self, schema: type[SchemaT] | dict[str, Any]) -> None:
        self.schema = schema


ResponseFormat = ToolStrategy[SchemaT] | ProviderStrategy[SchemaT] | AutoStrategy[SchemaT]


@dataclass(frozen=True)
class OutputToolBinding(Generic[SchemaT]):
    """The tool that stands for a schema: shown to the model, never run."""

    schema: type[SchemaT] | dict[str, Any]
    schema_kind: SchemaKind
    tool: BaseTool

    @classmethod
    def from_schema_spec(cls, schema_spec: SchemaSpec[SchemaT]) -> Self:
        """The binding for one schema."""
        tool = StructuredTool(
            name=schema_spec.name, description=schema_spec.description, args_schema=schema_spec.json_schema
        )
        return cls(schema=schema_spec.schema, schema_kind=schema_spec.schema_kind, tool=tool)

    def parse(self, tool_args: dict[str, Any]) -> Any:
        """The answer, as the schema's type.

        Raises:
            ValueError: The arguments do not fit the schema.
        """
        return _parsed(self.schema, self.schema_kind, tool_args)


@dataclass(frozen=True)
class ProviderStrategyBinding(Generic[SchemaT]):
    """Reads the answer out of an AI message's text."""

    schema: type[SchemaT] | dict[str, Any]
    schema_kind: SchemaKind

    @classmethod
    def from_schema_spec(cls, schema_spec: SchemaSpec[SchemaT]) -> Self:
        """The binding for one schema."""
        return cls(schema=schema_spec.schema, schema_kind=schema_spec.schema_kind)

    def parse(self, response: AIMessage) -> Any:
        """The answer, as the schema's type.

        Raises:
            ValueError: The text is no JSON, or does not fit the schema.
        """
        try:
            data = json.loads(_text(response))
        except ValueError as error:
            name = getattr(self.schema, "__name__", "response_format")
            raise ValueError(f"the answer for {name} is not valid JSON: {error}") from error
        return _parsed(self.schema, self.schema_kind, data)


def _text(message: AIMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    parts = []
    for block in message.content:
        if isinstance(block, str):
            parts.append(block)
        elif block.get("type") == "text":
            parts.append(str(block.get("text", "")))
        elif isinstance(block.get("content"), str):
            parts.append(block["content"])
    return "".join(parts)


def _parsed(schema: Any, kind: SchemaKind, data: Any) -> Any:
    name = schema.get("title", "the schema") if isinstance(schema, dict) else getattr(schema, "__name__", str(schema))
    try:
        return _checked_json(schema, data) if kind == "json_schema" else TypeAdapter(schema).validate_python(data)
    except Exception as error:
        raise ValueError(f"Failed to parse data to {name}: {error}") from error


def _checked_json(schema: dict[str, Any], data: Any) -> Any:
    # Imported where the first JSON schema comes: it takes longer than the rest of this package together.
    try:
        import referencing
        from jsonschema.exceptions import best_match
        from jsonschema.validators import validator_for
    except ImportError:  # an installation without its dependencies: like LangChain, take the answer as it is
        log.warning("jsonschema is not installed: structured answers for JSON schemas are not checked")
        return data

    # A registry of its own: a schema must not make us fetch what it refers to.
    error = best_match(validator_for(schema)(schema, registry=referencing.Registry()).iter_errors(data))
    if error is not None:
        raise ValueError(f"{error.json_path}: {error.message}")
    return data
