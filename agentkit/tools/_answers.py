"""Reading what a client sent as the answer to a headless call: whose is it, is it a failure, does it fit.

The wire is that of LangChain's JavaScript clients. An answer is `{call id: value}`, or the value alone; a value
`{"error": text}` says that the client failed, `{"declined": true | text}` that the user did not want it.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import ValidationError as ValidationErrorV1

from agentkit.errors import AnswerError, DefinitionError
from agentkit.tools._problems import Problem, jsonschema_problems, pydantic_problems

Check = Callable[[Any], Any]
"""Takes a client's value and gives the one to keep. Raises AnswerError."""

_SHOWN = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An answer that was understood: a value that fits, or the text of a failure."""

    value: Any = None
    failure: str | None = None


def read_answer(answer: Any, *, name: str, call_id: str | None, others: Collection[str], check: Check) -> Answer:
    """What `answer` says about the call `call_id` of the tool `name`.

    `others` are the ids of other calls of the conversation: an answer keyed by one of them is not this call's value.

    Raises:
        AnswerError: it is for another call, or does not fit.
    """
    value = answer
    if isinstance(answer, Mapping):
        if call_id in answer:
            value = answer[call_id]
        elif answer and call_id is not None and all(_names_a_call(key, call_id, others) for key in answer):
            named = ", ".join(map(repr, list(answer)[:_SHOWN]))
            raise AnswerError(
                f"the answer is for {named}, but the open call of {name} is {call_id!r}: "
                f"answer it with {{{call_id!r}: value}}"
            )
    if isinstance(value, Mapping) and len(value) == 1:
        if isinstance(error := value.get("error"), str):
            return Answer(failure=f"{name} failed on the client: {error}")
        if declined := value.get("declined"):
            reason = f": {declined}" if isinstance(declined, str) else ""
            return Answer(failure=f"the user declined {name}{reason}")
    try:
        return Answer(value=check(value))
    except AnswerError as error:
        raise AnswerError(
            f"the answer to {name} (call {call_id!r}) does not fit its result_schema:\n{error}"
        ) from error


def _names_a_call(key: object, own: str, others: Collection[str]) -> bool:
    """Whether a key is the id of another call: one that is known, or one made the way this call's is (`call_7f3`)."""
    if not isinstance(key, str):
        return False
    if key in others:
        return True
    made = _made_of(own)
    return made is not None and made == _made_of(key)


def _made_of(call_id: str) -> str | None:
    """How an id begins, where it is one of a kind: a word, a separator, and something with a digit."""
    match = re.match(r"([A-Za-z]+[_-])\w*\d\w*$", call_id)
    return match[1] if match else None


def check_of(tool: str, schema: Any) -> Check:
    """The check of a client's values against a JSON schema, a pydantic model or any type; None accepts everything.

    What is kept is JSON again, with what the schema's types and defaults made of it.

    Raises:
        DefinitionError: the schema is wrong.
    """
    if schema is None:
        return _as_it_is
    if isinstance(schema, dict):
        return _json_check(tool, schema)
    if isinstance(schema, type) and issubclass(schema, BaseModelV1):
        return _v1_check(schema)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(schema)
    except PydanticUserError as error:
        raise DefinitionError(f"tool {tool!r}: result_schema cannot be used: {str(error)[:200]}") from error

    def check(value: Any) -> Any:
        try:
            return adapter.dump_python(adapter.validate_python(value), mode="json", by_alias=True)
        except ValidationError as error:
            raise _refused(pydantic_problems(error.errors(include_url=False), value, frozenset(), {})) from error

    return check


def _as_it_is(value: Any) -> Any:
    return value


def _json_check(tool: str, schema: dict[str, Any]) -> Check:
    # jsonschema is loaded where the first JSON schema comes
    import referencing
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for
    from referencing.exceptions import Unresolvable

    cls = validator_for(schema, default=Draft202012Validator)
    try:
        cls.check_schema(schema)
        validator = cls(schema, registry=referencing.Registry())
        validator.is_valid({})
    except (SchemaError, Unresolvable) as error:
        raise DefinitionError(f"tool {tool!r}: result_schema is no valid JSON schema: {str(error)[:200]}") from error

    def check(value: Any) -> Any:
        if not validator.is_valid(value):
            raise _refused(jsonschema_problems(validator.iter_errors(value)))
        return value

    return check


def _v1_check(schema: type[BaseModelV1]) -> Check:
    def check(value: Any) -> Any:
        try:
            return schema.parse_obj(value).dict(by_alias=True)
        except ValidationErrorV1 as error:
            raise _refused(pydantic_problems(error.errors(), value, frozenset(), {})) from error

    return check


def _refused(problems: list[Problem]) -> AnswerError:
    lines = list(dict.fromkeys(f"- {problem}" for problem in problems))
    return AnswerError("\n".join(lines[:_SHOWN]))
