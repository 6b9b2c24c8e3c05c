"""What is wrong with a model's arguments, in words that let it do better: field, problem, expected, got."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from agentkit.errors import ArgumentsError

if TYPE_CHECKING:  # loaded where the first JSON schema comes: see _arguments
    from jsonschema.exceptions import ValidationError as JsonSchemaError

_GOT = 100  # characters of a wrong value that are shown
_TEXT = 200  # characters of a foreign validator's message that are shown
_MANY = 20  # problems that are listed; the model cannot use more
_NOTHING: Any = object()
_NO_SUCH = "there is no such argument"
_UNKNOWN = ("extra_forbidden", "value_error.extra")
_MISSING = ("missing", "value_error.missing")


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing that is wrong with a call's arguments; `expected` and `got` are "" where there is nothing to say."""

    field: str
    problem: str
    expected: str = ""
    got: str = ""

    def __str__(self) -> str:
        parts = [f"{self.field}: {self.problem}" if self.field else self.problem]
        if self.expected:
            parts.append(f"expected {self.expected}")
        if self.got:
            parts.append(f"got {self.got}")
        return "; ".join(parts)


def arguments_error(tool: str, problems: Iterable[Problem]) -> ArgumentsError:
    """The error that tells the model, one line a problem."""
    found = list(dict.fromkeys(problems))
    lines = [f"- {problem}" for problem in found[:_MANY]]
    if len(found) > _MANY:
        lines.append(f"- and {len(found) - _MANY} more")
    return ArgumentsError("\n".join([f"the arguments do not fit tool {tool!r}:", *lines]))


def unknown_names(names: Iterable[str], args: Mapping[str, Any], known: Sequence[str]) -> list[Problem]:
    """Problems for arguments that the tool does not have."""
    expected = f"only {', '.join(known)}" if known else "no arguments"
    return [
        Problem(field=name, problem=_NO_SUCH, expected=expected, got=shortened(args[name])) for name in sorted(names)
    ]


def shortened(value: object, limit: int = _GOT) -> str:
    """A value for people and models to read: its repr, cut to a length."""
    if value is _NOTHING:
        return ""
    # a huge string is cut before its repr is made, not after
    if isinstance(value, str | bytes) and len(value) > limit:
        return f"{value[: limit - 3]!r}... ({len(value)} characters)"
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a stranger's __repr__ must not hide the problem
        text = f"a {type(value).__name__}"
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def pydantic_problems(
    errors: Iterable[Mapping[str, Any]], args: Mapping[str, Any], hidden: frozenset[str], schema: Mapping[str, Any]
) -> list[Problem]:
    """Problems from pydantic's errors (v1 or v2), without those of injected fields and without injected values."""
    problems = []
    for error in errors:
        loc = tuple(error["loc"])
        if loc and loc[0] in hidden:
            continue
        if error["type"] in _UNKNOWN:
            problems.append(Problem(field=_path(loc), problem=_NO_SUCH, got=shortened(error.get("input", _NOTHING))))
            continue
        missing = error["type"] in _MISSING
        # `got` comes from what the model gave: pydantic's own input may be a whole that holds injected values
        got = _NOTHING if missing or not loc or loc == ("__root__",) else _at(args, loc, error.get("input", _NOTHING))
        problems.append(
            Problem(
                field=_path(loc),
                problem="is missing" if missing else _decapitalised(str(error["msg"])),
                expected=expected_at(schema, loc),
                got=shortened(got),
            )
        )
    return problems


def jsonschema_problems(errors: "Iterable[JsonSchemaError]") -> list[Problem]:
    """Problems from jsonschema's errors, those of outer fields first."""
    problems = []
    for error in sorted(errors, key=lambda each: [str(part) for part in each.absolute_path]):
        loc = tuple(error.absolute_path)
        schema = error.schema if isinstance(error.schema, Mapping) else {}
        match error.validator:
            case "required":
                wanted = cast("list[str]", error.validator_value)
                properties = schema.get("properties", {})
                problems += [
                    Problem(field=_path((*loc, name)), problem="is missing", expected=described(properties.get(name)))
                    for name in wanted
                    if name not in cast("Mapping[str, Any]", error.instance)
                ]
                continue
            case "additionalProperties" | "unevaluatedProperties" if isinstance(error.instance, Mapping):
                known = list(schema.get("properties", {}))
                extra = [name for name in error.instance if name not in known]
                problems += unknown_names(extra, error.instance, known)
                continue
            case "type":
                problem = "has the wrong type"
            case "enum" | "const":
                problem = "is not an allowed value"
            case _:
                problem = shortened_text(error.message)
        expected = described(schema)
        problems.append(Problem(field=_path(loc), problem=problem, expected=expected, got=shortened(error.instance)))
    return problems


def shortened_text(text: str, limit: int = _TEXT) -> str:
    """A text cut to a length."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def as_validation_error(error: ArgumentsError, title: str) -> ValidationError:
    """The pydantic error that LangChain's `handle_validation_error` functions are promised."""
    if isinstance(error.__cause__, ValidationError):
        return error.__cause__
    detail = InitErrorDetails(type=PydanticCustomError("arguments", "{text}", {"text": str(error)}), loc=(), input=None)
    return ValidationError.from_exception_data(title, [detail])


def _path(loc: Sequence[object]) -> str:
    text = ""
    for part in loc:
        if part == "__root__":
            continue
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _at(args: Any, loc: Sequence[Any], fallback: Any) -> Any:
    """The value at a path; pydantic adds parts for union members to its paths, which the value does not have."""
    value = args
    for part in loc:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return fallback
    return value


def _decapitalised(text: str) -> str:
    return shortened_text(text[:1].lower() + text[1:])


def expected_at(schema: Mapping[str, Any], loc: Sequence[object]) -> str:
    """What a JSON schema wants at a path, as far as the path can be followed."""
    node: Any = schema
    for part in loc:
        node = _resolved(node, schema)
        if isinstance(part, int):
            following = node.get("items")
        else:
            following = node.get("properties", {}).get(part)
            if following is None:
                following = node.get("additionalProperties")
        if not isinstance(following, Mapping):
            break
        node = following
    return "" if node is schema else described(_resolved(node, schema), schema)


def _resolved(node: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    for _ in range(8):  # a chain of references, or a circle of them
        reference = node.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        target: Any = root
        for part in reference[2:].split("/"):
            target = target.get(part) if isinstance(target, Mapping) else None
        if not isinstance(target, Mapping):
            break
        node = target
    return node


def described(node: Any, root: Mapping[str, Any] | None = None) -> str:
    """A JSON schema in a few words."""
    if not isinstance(node, Mapping):
        return ""
    node = _resolved(node, root or {})
    if "enum" in node:
        return shortened_text("one of " + ", ".join(repr(value) for value in node["enum"]))
    if "const" in node:
        return repr(node["const"])
    for union in ("anyOf", "oneOf"):
        if isinstance(node.get(union), list):
            parts = dict.fromkeys(described(part, root) for part in node[union])
            return shortened_text(" or ".join(part for part in parts if part))
    kind = node.get("type", "")
    text = " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
    if text == "array" and (items := described(node.get("items"), root)):
        text = f"array of {items}"
    limits = [f"{word} {node[key]}" for key, word in _LIMITS.items() if key in node]
    return shortened_text(f"{text} ({', '.join(limits)})" if limits else text)


_LIMITS = {
    "format": "format",
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
    "minLength": "length at least",
    "maxLength": "length at most",
    "pattern": "matching",
    "minItems": "items at least",
    "maxItems": "items at most",
}
