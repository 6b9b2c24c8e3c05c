"""The schema of a function's arguments, inferred from its signature as LangChain infers it."""

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from langchain_core.tools import create_schema_from_function
from pydantic import BaseModel
from pydantic.v1 import BaseModel as BaseModelV1

from agentkit.tools._injection import Injection
from agentkit.tools._signature import Parameter, markers

# LangChain leaves a schema without them: they are found by the signature alone, and what they hold has no JSON form.
_LEFT_OUT = ("runtime", "config", "manager")


def inferred_schema(
    name: str,
    doc: str | None,
    parameters: Iterable[Parameter],
    injections: Mapping[str, Injection],
    *,
    parse_docstring: bool = False,
    error_on_invalid_docstring: bool = False,
) -> type[BaseModel] | type[BaseModelV1]:
    """The pydantic model of the arguments.

    The model's fields are what LangChain would make of the same signature, with its annotations resolved. Injected
    parameters are left out, or, where LangChain itself looks for them in the schema, take any value as it is.
    """
    shown = [_shown(parameter, injections.get(parameter.name)) for parameter in parameters]
    stand_in = _stand_in(name, doc, [parameter for parameter in shown if parameter is not None])
    return create_schema_from_function(
        name,
        stand_in,
        parse_docstring=parse_docstring,
        error_on_invalid_docstring=error_on_invalid_docstring,
    )


def _shown(parameter: Parameter, injection: Injection | None) -> inspect.Parameter | None:
    if injection is None:
        annotation = parameter.annotation
    elif injection.kind in _LEFT_OUT:
        return None
    else:
        annotation = Annotated[Any, *markers(parameter.hint)]
    kind = parameter.kind
    if kind is not inspect.Parameter.VAR_POSITIONAL and kind is not inspect.Parameter.VAR_KEYWORD:
        kind = inspect.Parameter.KEYWORD_ONLY  # the model names its arguments; the order of defaults says nothing
    return inspect.Parameter(parameter.name, kind, default=parameter.default, annotation=annotation)


def _stand_in(name: str, doc: str | None, parameters: list[inspect.Parameter]) -> Callable[..., Any]:
    def function() -> None: ...

    function.__name__ = function.__qualname__ = name
    function.__doc__ = textwrap.dedent(doc) if doc else None
    function.__annotations__ = {
        each.name: each.annotation for each in parameters if each.annotation is not inspect.Parameter.empty
    }
    function.__signature__ = inspect.Signature(sorted(parameters, key=lambda each: each.kind))  # type: ignore[attr-defined]
    return function
