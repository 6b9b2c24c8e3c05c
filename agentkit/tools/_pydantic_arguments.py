"""Checking a model's arguments against a pydantic model, v2 or v1."""

from collections.abc import Mapping
from typing import Any

from pydantic import AliasChoices, AliasPath, BaseModel, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import ValidationError as ValidationErrorV1
from pydantic.v1 import create_model as create_model_v1

from agentkit.errors import DefinitionError
from agentkit.tools._problems import arguments_error, pydantic_problems, unknown_names
from agentkit.tools._takes import Takes

Arguments = dict[str, Any]


class PydanticCheck:
    """The check against a v2 model. Injected fields of the model are replaced by ones that ask for nothing."""

    def __init__(self, tool: str, schema: type[BaseModel], hidden: frozenset[str], takes: Takes) -> None:
        model = _without_hidden(schema, hidden)
        fields = model.model_fields
        inferred = {name for name in (takes.args, takes.kwargs) if takes.is_function and _is_optional(fields, name)}
        if takes.args is not None and (takes.args in inferred or not takes.anything):
            hidden |= {takes.args}  # nothing can be given to *args by name
        self.tool = tool
        self.model = model
        self.hidden = hidden
        self.validate = model.__pydantic_validator__.validate_python
        self.known = _accepted_names(model, hidden)
        self.gathered = takes.kwargs if takes.kwargs in inferred else None
        self.names = tuple(name for name in fields if name not in hidden and name != self.gathered)
        self.extra = model.model_config.get("extra")
        # A validator that sees the raw input may rename what it finds: then only the model knows what is unknown.
        validators = model.__pydantic_decorators__.model_validators.values()
        reads_raw = any(each.info.mode in ("before", "wrap") for each in validators)
        self.is_open = takes.anything or reads_raw or self.extra == "forbid"
        self.takes = takes

    def __call__(self, args: Arguments) -> Arguments:
        """The arguments for the body. Raises ArgumentsError."""
        unknown = args.keys() - self.known
        refused = self._refused(unknown) if unknown else unknown
        if unknown and self.gathered:
            args = _gathered(args, unknown, self.gathered)
        try:
            result = self.validate(args)
        except ValidationError as error:
            found = error.errors(include_url=False)
            problems = pydantic_problems(found, args, self.hidden, _json_schema(self.model))
            extra = unknown_names(refused, args, self.names)
            raise arguments_error(self.tool, [*extra, *problems]) from error
        if refused:
            raise arguments_error(self.tool, unknown_names(refused, args, self.names))
        values = {name: getattr(result, name) for name in self.names}
        if unknown or self.gathered:
            self._add_extra(values, result, args, unknown)
        return values

    def _refused(self, unknown: set[str]) -> set[str]:
        """The unknown names that nothing allows. A schema can allow only what the body takes."""
        if self.is_open:
            return set()
        return unknown - self.takes.names if self.extra == "allow" else unknown

    def _add_extra(self, values: Arguments, result: BaseModel, args: Arguments, unknown: set[str]) -> None:
        if self.gathered:
            values |= getattr(result, self.gathered) or {}
        elif self.extra == "allow":
            values |= result.__pydantic_extra__ or {}
        elif self.takes.anything:
            values |= {name: args[name] for name in unknown}


def _is_optional(fields: Mapping[str, FieldInfo], name: str | None) -> bool:
    return name is not None and name in fields and not fields[name].is_required() and fields[name].default is None


def _gathered(args: Arguments, unknown: set[str], field: str) -> Arguments:
    """Arguments for `**kwargs` moved to where an inferred schema validates them."""
    given = args.get(field)
    extra = {name: value for name, value in args.items() if name in unknown}
    known = {name: value for name, value in args.items() if name not in unknown}
    return {**known, field: {**given, **extra} if isinstance(given, dict) else extra}


def _without_hidden(schema: type[BaseModel], hidden: frozenset[str]) -> type[BaseModel]:
    if not schema.__pydantic_complete__:
        try:
            schema.model_rebuild()
        except (PydanticUserError, NameError) as error:
            raise DefinitionError(f"args_schema {schema.__name__} is not complete: {error}") from error
    replaced: dict[str, Any] = {name: (Any, None) for name in schema.model_fields if name in hidden}
    return create_model(schema.__name__, __base__=schema, **replaced) if replaced else schema


def _accepted_names(model: type[BaseModel], hidden: frozenset[str]) -> frozenset[str]:
    """The names under which a model's fields can be given."""
    config = model.model_config
    by_name = config.get("populate_by_name") or config.get("validate_by_name")
    names: set[str] = set()
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        if name in hidden:
            continue
        if alias is None or by_name:
            names.add(name)
        for choice in alias.choices if isinstance(alias, AliasChoices) else [alias]:
            if choice is not None:
                names.add(str(choice.path[0]) if isinstance(choice, AliasPath) else choice)
    return frozenset(names)


def _json_schema(model: type[BaseModel] | type[BaseModelV1]) -> Mapping[str, Any]:
    """For error texts only: a schema that holds an arbitrary type has no JSON form, and then there is less to say."""
    try:
        return model.model_json_schema() if issubclass(model, BaseModel) else model.schema()
    except Exception:  # noqa: BLE001 - whatever a stranger's types raise
        return {}


class PydanticV1Check:
    """The check against a v1 model, to the same rules."""

    def __init__(self, tool: str, schema: type[BaseModelV1], hidden: frozenset[str], takes: Takes) -> None:
        replaced: dict[str, Any] = {name: (Any, None) for name in schema.__fields__ if name in hidden}
        model = create_model_v1(schema.__name__, __base__=schema, **replaced) if replaced else schema
        config = model.__config__
        self.tool = tool
        self.model = model
        self.hidden = hidden
        self.names = tuple(name for name in model.__fields__ if name not in hidden)
        known = {field.alias for name, field in model.__fields__.items() if name not in hidden}
        self.known = known | set(self.names) if config.allow_population_by_field_name else known
        extra = str(getattr(config.extra, "value", config.extra))
        self.keeps_extra = takes.anything or extra == "allow"
        self.is_open = takes.anything or extra == "forbid" or bool(model.__pre_root_validators__)
        self.allowed = takes.names if extra == "allow" else frozenset()

    def __call__(self, args: Arguments) -> Arguments:
        """The arguments for the body. Raises ArgumentsError."""
        unknown = args.keys() - self.known
        extra = [] if self.is_open else unknown_names(unknown - self.allowed, args, self.names)
        try:
            result = self.model.parse_obj(args)
        except ValidationErrorV1 as error:
            problems = pydantic_problems(error.errors(), args, self.hidden, _json_schema(self.model))
            raise arguments_error(self.tool, [*extra, *problems]) from error
        if extra:
            raise arguments_error(self.tool, extra)
        values = {name: getattr(result, name) for name in self.names}
        if unknown and self.keeps_extra:
            values |= {name: args[name] for name in unknown}
        return values
