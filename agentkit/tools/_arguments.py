"""From the arguments a model gave to the arguments a body takes: validated, completed with defaults, or refused.

A checker is made once per tool. It sees what the model gave and nothing else; where a schema itself names an injected
field, that field is replaced by one that takes any value as it is, so that injected values are neither validated nor
copied and a schema that forbids extra fields does not mind them.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from pydantic import AliasChoices, AliasPath, BaseModel, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import ValidationError as ValidationErrorV1
from pydantic.v1 import create_model as create_model_v1

from agentkit.errors import DefinitionError
from agentkit.tools._problems import arguments_error, jsonschema_problems, pydantic_problems, unknown_names

Schema: TypeAlias = type[BaseModel] | type[BaseModelV1] | dict[str, Any]
Arguments: TypeAlias = dict[str, Any]
Checker: TypeAlias = Callable[[Arguments], Arguments]
"""Takes a model's arguments and gives new ones for the body. Raises ArgumentsError; never changes what it was given."""

_VARIADIC = ("args", "kwargs")


def checker_of(
    tool: str, schema: Schema | None, hidden: frozenset[str], *, takes_extra: bool, needed: frozenset[str]
) -> Checker:
    """The checker for one body.

    Args:
        tool: the tool's name, for error texts.
        schema: what the model's arguments are checked against; None for no check.
        hidden: names of injected parameters; the schema's fields of these names ask nothing of the model.
        takes_extra: whether the body has `**kwargs`, so that arguments unknown to the schema have somewhere to go.
        needed: parameters of the body without a default of their own, which a JSON schema's `default` can fill.
    """
    if schema is None:
        return dict
    if isinstance(schema, dict):
        return _json_checker(tool, schema, hidden, takes_extra=takes_extra, needed=needed)
    if issubclass(schema, BaseModelV1):
        return _v1_checker(tool, schema, hidden, takes_extra=takes_extra)
    return _pydantic_checker(tool, schema, hidden, takes_extra=takes_extra)


def _pydantic_checker(tool: str, schema: type[BaseModel], hidden: frozenset[str], *, takes_extra: bool) -> Checker:
    model = _without_hidden(schema, hidden)
    fields = model.model_fields
    known = _accepted_names(model, hidden)
    extra = model.model_config.get("extra")
    # A validator that sees the raw input may rename what it finds: then the schema alone can tell what is unknown.
    raw = any(v.info.mode in ("before", "wrap") for v in model.__pydantic_decorators__.model_validators.values())
    is_open = takes_extra or raw or extra in ("allow", "forbid")
    keeps_extra = extra == "allow"
    variadic = tuple(name for name in _VARIADIC if name in fields)
    names = tuple(name for name in fields if name not in variadic and name not in hidden)
    validate = model.__pydantic_validator__.validate_python

    def check(args: Arguments) -> Arguments:
        unknown = args.keys() - known
        if unknown and not is_open:
            raise arguments_error(tool, unknown_names(sorted(unknown), args, visible))
        if unknown and takes_extra and "kwargs" in variadic:
            args = _gathered(args, unknown)
        try:
            result = validate(args)
        except ValidationError as error:
            problems = pydantic_problems(error.errors(include_url=False), args, hidden, _json_schema(model))
            raise arguments_error(tool, problems) from error
        values = {name: getattr(result, name) for name in names}
        if unknown and keeps_extra:
            values |= result.__pydantic_extra__ or {}
        elif unknown and takes_extra and not variadic:
            values |= {name: args[name] for name in unknown}
        for name in variadic:
            if name in result.model_fields_set:
                values |= getattr(result, name) if name == "kwargs" and takes_extra else {name: getattr(result, name)}
        return values

    visible = [name for name in fields if name not in hidden and name not in variadic]
    return check


def _gathered(args: Arguments, unknown: set[str]) -> Arguments:
    """Arguments for `**kwargs` moved to where an inferred schema validates them."""
    rest = {name: value for name, value in args.items() if name not in unknown}
    extra = {name: args[name] for name in args if name in unknown}
    given = rest.get("kwargs")
    rest["kwargs"] = {**given, **extra} if isinstance(given, dict) else extra
    return rest


def _without_hidden(schema: type[BaseModel], hidden: frozenset[str]) -> type[BaseModel]:
    if not schema.__pydantic_complete__:
        try:
            schema.model_rebuild()
        except (PydanticUserError, NameError) as error:
            raise DefinitionError(f"args_schema {schema.__name__}: {error}") from error
    replaced: dict[str, Any] = {name: (Any, None) for name in schema.model_fields if name in hidden}
    return create_model(schema.__name__, __base__=schema, **replaced) if replaced else schema


def _accepted_names(model: type[BaseModel], hidden: frozenset[str]) -> frozenset[str]:
    names: set[str] = set()
    by_name = model.model_config.get("populate_by_name") or model.model_config.get("validate_by_name")
    for name, field in model.model_fields.items():
        if name in hidden:
            continue
        alias = field.validation_alias
        if alias is None or by_name:
            names.add(name)
        for choice in alias.choices if isinstance(alias, AliasChoices) else [alias]:
            if isinstance(choice, AliasPath):
                names.add(str(choice.path[0]))
            elif choice is not None:
                names.add(choice)
    return frozenset(names)


def _json_schema(model: type[BaseModel] | type[BaseModelV1]) -> Mapping[str, Any]:
    """For error texts only: a schema that holds an arbitrary type has no JSON form, and then there is less to say."""
    try:
        return model.model_json_schema() if issubclass(model, BaseModel) else model.schema()
    except Exception:  # noqa: BLE001 - whatever a stranger's types raise
        return {}


def _v1_checker(tool: str, schema: type[BaseModelV1], hidden: frozenset[str], *, takes_extra: bool) -> Checker:
    replaced: dict[str, Any] = {name: (Any, None) for name in schema.__fields__ if name in hidden}
    model = create_model_v1(schema.__name__, __base__=schema, **replaced) if replaced else schema
    names = tuple(name for name in model.__fields__ if name not in hidden)
    by_name = model.__config__.allow_population_by_field_name
    known = {field.alias for name, field in model.__fields__.items() if name not in hidden}
    known |= set(names) if by_name else set()
    extra = getattr(model.__config__.extra, "value", model.__config__.extra)
    is_open = takes_extra or extra in ("allow", "forbid") or bool(model.__pre_root_validators__)

    def check(args: Arguments) -> Arguments:
        unknown = args.keys() - known
        if unknown and not is_open:
            raise arguments_error(tool, unknown_names(sorted(unknown), args, names))
        try:
            result = model.parse_obj(args)
        except ValidationErrorV1 as error:
            problems = pydantic_problems(error.errors(), args, hidden, _json_schema(model))
            raise arguments_error(tool, problems) from error
        values = {name: getattr(result, name) for name in names}
        if unknown and (takes_extra or extra == "allow"):
            values |= {name: args[name] for name in unknown}
        return values

    return check


_COMBINING = ("anyOf", "allOf", "oneOf", "$ref", "$dynamicRef", "if", "patternProperties", "dependentSchemas")


def _json_checker(
    tool: str, schema: dict[str, Any], hidden: frozenset[str], *, takes_extra: bool, needed: frozenset[str]
) -> Checker:
    # Imported where the first JSON schema comes: it takes longer than the rest of this package together.
    import referencing
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    schema = visible_json_schema(schema, hidden)
    cls = validator_for(schema, default=Draft202012Validator)
    try:
        cls.check_schema(schema)
    except SchemaError as error:
        where = "/".join(map(str, error.absolute_path))
        raise DefinitionError(
            f"tool {tool!r}: args_schema is no valid JSON schema: {error.message} (at {where!r})"
        ) from error
    # a registry of its own: a schema that comes from a server must not make us fetch what it refers to
    validator = cls(schema, registry=referencing.Registry())
    properties = schema.get("properties", {})
    known = frozenset(properties)
    # JSON Schema allows extra properties by default. A body that cannot take them, or a schema that does not say where
    # its properties are, decides.
    is_open = takes_extra or "additionalProperties" in schema or any(word in schema for word in _COMBINING)
    defaults = {
        name: node["default"]
        for name, node in properties.items()
        if name in needed and isinstance(node, Mapping) and "default" in node
    }

    def check(args: Arguments) -> Arguments:
        unknown = args.keys() - known
        if unknown and not is_open:
            raise arguments_error(tool, unknown_names(sorted(unknown), args, list(properties)))
        values = {**defaults, **args}
        if not validator.is_valid(values):
            raise arguments_error(tool, jsonschema_problems(validator.iter_errors(values)))
        return values

    return check


def visible_json_schema(schema: dict[str, Any], hidden: frozenset[str]) -> dict[str, Any]:
    """The schema without its properties of these names; the very same object where it has none of them."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or hidden.isdisjoint(properties):
        return schema
    shown = {**schema, "properties": {name: node for name, node in properties.items() if name not in hidden}}
    if isinstance(schema.get("required"), list):
        shown["required"] = [name for name in schema["required"] if name not in hidden]
    return shown
