"""Checking a model's arguments against a JSON schema."""

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # it ships no types
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from agentkit.errors import DefinitionError
from agentkit.tools._hidden import visible_json_schema
from agentkit.tools._problems import arguments_error, jsonschema_problems, unknown_names
from agentkit.tools._takes import Takes

Arguments = dict[str, Any]

# where a schema has one of these, its properties may be elsewhere than in `properties`
_COMBINING = ("anyOf", "allOf", "oneOf", "$ref", "$dynamicRef", "if", "patternProperties", "dependentSchemas")


class JsonCheck:
    """The check against a JSON schema, whose validator is made once.

    Defaults of the schema fill only parameters that the body needs (`needed`): a body with defaults of its own, or one
    that hands the arguments on to a server, gets what the model gave.
    """

    def __init__(
        self, tool: str, schema: dict[str, Any], hidden: frozenset[str], takes: Takes, needed: frozenset[str]
    ) -> None:
        schema = visible_json_schema(schema, hidden)
        properties = schema.get("properties", {})
        self.tool = tool
        self.validator = _validator(tool, schema)
        self.known = frozenset(properties)
        # JSON Schema allows extra properties unless told otherwise; here a body that cannot take them tells otherwise.
        self.is_open = takes.anything or schema.get("additionalProperties") is False
        says_more = "additionalProperties" in schema or any(word in schema for word in _COMBINING)
        self.allowed = self.known | takes.names if says_more else self.known
        self.defaults = {
            name: node["default"]
            for name, node in properties.items()
            if name in needed and isinstance(node, Mapping) and "default" in node
        }

    def __call__(self, args: Arguments) -> Arguments:
        """The arguments for the body. Raises ArgumentsError."""
        unknown = [] if self.is_open else [name for name in args if name not in self.allowed]
        values = {**self.defaults, **args}
        if unknown or not self.validator.is_valid(values):
            extra = unknown_names(unknown, args, sorted(self.known))
            raise arguments_error(self.tool, [*extra, *jsonschema_problems(self.validator.iter_errors(values))])
        return values


def _validator(tool: str, schema: dict[str, Any]) -> Any:
    cls = validator_for(schema, default=Draft202012Validator)
    try:
        cls.check_schema(schema)
        _look_up_references(schema)
    except SchemaError as error:
        where = "/".join(map(str, error.absolute_path))
        raise DefinitionError(
            f"tool {tool!r}: args_schema is no valid JSON schema: {error.message[:200]} (at {where!r})"
        ) from error
    except Unresolvable as error:
        raise DefinitionError(f"tool {tool!r}: args_schema refers to what it does not hold: {error}") from error
    # a registry that holds the standard schemas and fetches nothing, whatever a server's schema refers to
    return cls(schema, registry=REGISTRY)


def _look_up_references(schema: dict[str, Any]) -> None:
    """Raises Unresolvable for a reference to what the schema does not hold."""
    if len(list(_values_of("$id", schema))) > ("$id" in schema):
        return  # parts with names of their own: what a reference means depends on where it stands
    resource = DRAFT202012.create_resource(schema)
    resolver = REGISTRY.with_resource(schema.get("$id", ""), resource).resolver(schema.get("$id", ""))
    for reference in _values_of("$ref", schema):
        resolver.lookup(reference)


def _values_of(key: str, node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if isinstance(node.get(key), str):
            yield node[key]
        for name, value in node.items():
            if name not in ("const", "enum", "default", "examples"):
                yield from _values_of(key, value)
    elif isinstance(node, list):
        for value in node:
            yield from _values_of(key, value)
