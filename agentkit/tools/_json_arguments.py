"""Checking a model's arguments against a JSON schema."""

from collections.abc import Mapping
from typing import Any

import referencing
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from referencing.exceptions import Unresolvable

from agentkit.errors import DefinitionError
from agentkit.tools._problems import arguments_error, jsonschema_problems, unknown_names

Arguments = dict[str, Any]

# where a schema has one of these, its properties may be elsewhere than in `properties`
_COMBINING = ("anyOf", "allOf", "oneOf", "$ref", "$dynamicRef", "if", "patternProperties", "dependentSchemas")


class JsonCheck:
    """The check against a JSON schema, whose validator is made once.

    Defaults of the schema fill only parameters that the body needs (`needed`): a body with defaults of its own, or one
    that hands the arguments on to a server, gets what the model gave.
    """

    def __init__(
        self, tool: str, schema: dict[str, Any], hidden: frozenset[str], *, is_open: bool, needed: frozenset[str]
    ) -> None:
        schema = visible_json_schema(schema, hidden)
        properties = schema.get("properties", {})
        self.tool = tool
        self.validator = _validator(tool, schema)
        self.known = frozenset(properties)
        # JSON Schema allows extra properties unless told otherwise; here a body that cannot take them tells otherwise.
        self.is_open = is_open or "additionalProperties" in schema or any(word in schema for word in _COMBINING)
        self.defaults = {
            name: node["default"]
            for name, node in properties.items()
            if name in needed and isinstance(node, Mapping) and "default" in node
        }

    def __call__(self, args: Arguments) -> Arguments:
        """The arguments for the body. Raises ArgumentsError."""
        unknown = [] if self.is_open else [name for name in args if name not in self.known]
        values = {**self.defaults, **args}
        if unknown or not self.validator.is_valid(values):
            extra = unknown_names(unknown, args, sorted(self.known))
            raise arguments_error(self.tool, [*extra, *jsonschema_problems(self.validator.iter_errors(values))])
        return values


def _validator(tool: str, schema: dict[str, Any]) -> Any:
    cls = validator_for(schema, default=Draft202012Validator)
    try:
        cls.check_schema(schema)
        # A registry of its own: what a server's schema refers to must not be fetched. One call finds what is missing.
        validator = cls(schema, registry=referencing.Registry())
        validator.is_valid({})
    except SchemaError as error:
        where = "/".join(map(str, error.absolute_path))
        raise DefinitionError(
            f"tool {tool!r}: args_schema is no valid JSON schema: {error.message[:200]} (at {where!r})"
        ) from error
    except Unresolvable as error:
        raise DefinitionError(f"tool {tool!r}: args_schema refers to what it does not hold: {error}") from error
    return validator


def visible_json_schema(schema: dict[str, Any], hidden: frozenset[str]) -> dict[str, Any]:
    """The schema without its properties of these names; the very same object where it has none of them."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or hidden.isdisjoint(properties):
        return schema
    shown = {**schema, "properties": {name: node for name, node in properties.items() if name not in hidden}}
    if isinstance(schema.get("required"), list):
        shown["required"] = [name for name in schema["required"] if name not in hidden]
    return shown
