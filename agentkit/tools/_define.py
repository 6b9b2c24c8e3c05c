"""From a function to a tool, with every mistake that can be seen in its signature refused."""

import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as langchain_tool
from pydantic import BaseModel
from pydantic.v1 import BaseModel as BaseModelV1

from agentkit.errors import DefinitionError
from agentkit.tools._arguments import Schema, checker_of
from agentkit.tools._fields import field_names
from agentkit.tools._function_tool import FunctionTool
from agentkit.tools._hidden import without_injected
from agentkit.tools._injection import MANAGERS, Injection, injection_of
from agentkit.tools._names import check_name
from agentkit.tools._schema import inferred_schema
from agentkit.tools._signature import EMPTY, Parameter, is_async, is_resolved, parameters_of, plain_function
from agentkit.tools._takes import Takes

Function = Callable[..., Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What `tool()` was told besides the function. The names and meanings are LangChain's."""

    description: str | None = None
    return_direct: bool = False
    args_schema: Schema | None = None
    infer_schema: bool = True
    response_format: Literal["content", "content_and_artifact"] = "content"
    parse_docstring: bool = False
    error_on_invalid_docstring: bool = True
    extras: dict[str, Any] | None = None


def define(name: str | None, body: Function | Runnable[Any, Any], options: Options) -> BaseTool:
    """The tool. Raises DefinitionError naming tool, parameter and fix."""
    if isinstance(body, BaseTool):
        raise DefinitionError(f"{body.name!r} is a tool already; with_policy() gives it another policy")
    if isinstance(body, Runnable):
        return _from_runnable(name or body.get_name(), body, options)
    if not callable(body):
        raise DefinitionError(f"a tool is made of a function or a Runnable, not of {type(body).__name__}")
    name = check_name(name if name is not None else _name_of(body))
    try:
        return _from_function(name, body, options)
    except DefinitionError as error:
        where = f"tool {name!r}: "
        raise DefinitionError(where + str(error).removeprefix(where)) from error.__cause__
    except Exception as error:
        raise DefinitionError(f"tool {name!r} cannot be made: {error}") from error


def _name_of(function: Function) -> str:
    name = getattr(function, "__name__", None) or getattr(plain_function(function), "__name__", None)
    return type(function).__name__ if name in (None, "__call__") else str(name)


def _from_runnable(name: str, runnable: Runnable[Any, Any], options: Options) -> BaseTool:
    check_name(name)
    try:
        return langchain_tool(
            name,
            runnable,
            description=options.description,
            return_direct=options.return_direct,
            args_schema=options.args_schema,
            infer_schema=options.infer_schema,
            response_format=options.response_format,
            extras=options.extras,
        )
    except Exception as error:
        raise DefinitionError(f"tool {name!r} cannot be made of this Runnable: {error}") from error


def _from_function(name: str, function: Function, options: Options) -> BaseTool:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DefinitionError(
            "a generator returns nothing a model can read; return the whole, and stream with runtime.stream_writer"
        )
    parameters = parameters_of(function)
    _refuse_unreachable(parameters)
    _refuse_reserved(parameters)
    injections = {name: found for name, each in parameters.items() if (found := injection_of(each))}
    if options.args_schema is None and not options.infer_schema:
        return _of_one_text(name, function, options)
    schema = options.args_schema
    if schema is None:
        _refuse_unclear(plain_function(function), parameters, injections)
        schema = inferred_schema(
            name,
            _doc_of(function),
            parameters.values(),
            injections,
            parse_docstring=options.parse_docstring,
            error_on_invalid_docstring=options.error_on_invalid_docstring,
        )
        _refuse_lost(schema, parameters, injections)
    else:
        _refuse_misfit(name, schema, parameters, injections)
        schema = without_injected(schema, frozenset(injections))
    return FunctionTool(
        name=name,
        func=None if is_async(function) else function,
        coroutine=function if is_async(function) else None,
        args_schema=schema,
        description=_description(function, schema, options),
        return_direct=options.return_direct,
        response_format=options.response_format,
        extras=options.extras,
    )


def _of_one_text(name: str, function: Function, options: Options) -> BaseTool:
    make = langchain_tool(
        name,
        description=options.description,
        return_direct=options.return_direct,
        infer_schema=False,
        response_format=options.response_format,
        extras=options.extras,
    )
    return make(function)


def _doc_of(function: Function) -> str | None:
    doc = plain_function(function).__doc__
    if not inspect.isroutine(function) and not isinstance(function, functools.partial):
        doc = doc or type(function).__doc__  # a callable object: its class describes it, if its __call__ does not
    return textwrap.dedent(doc).strip() if doc and doc.strip() else None


def _description(function: Function, schema: Schema, options: Options) -> str:
    if options.description is not None:
        return options.description.strip()
    # with parse_docstring, the schema carries the part of the docstring that describes the function
    text = None if options.parse_docstring else _doc_of(function)
    if text is None:
        text = schema.get("description") if isinstance(schema, dict) else schema.__dict__.get("__doc__")
    if not text or not str(text).strip():
        raise DefinitionError("it has no description; write a docstring, or give description=")
    return textwrap.dedent(str(text)).strip()


def _refuse_unreachable(parameters: Mapping[str, Parameter]) -> None:
    for name, parameter in parameters.items():
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise DefinitionError(f"a model gives arguments by name; remove the '/' after {name!r}")


def _refuse_reserved(parameters: Mapping[str, Parameter]) -> None:
    for name, wanted in (("runtime", "ToolRuntime"), ("config", "RunnableConfig")):
        parameter = parameters.get(name)
        if parameter is None or parameter.is_extra:
            continue
        found = injection_of(parameter)
        if found is None or found.kind != name or parameter.hint is EMPTY or parameter.hint is Any:
            raise DefinitionError(
                f"a parameter named {name!r} is reserved for the run: write `{name}: {wanted}`, or give it another name"
            )
    for name in MANAGERS:
        parameter = parameters.get(name)
        if parameter is not None and not parameter.is_extra and injection_of(parameter) is None:
            raise DefinitionError(
                f"a parameter named {name!r} is reserved for LangChain's callbacks; give it another name"
            )


def _refuse_unclear(plain: Function, parameters: Mapping[str, Parameter], injections: Mapping[str, Injection]) -> None:
    """Refuse what no schema can be inferred from."""
    first = next(iter(parameters), None)
    if first in ("self", "cls") and parameters[first].annotation is EMPTY and "." in plain.__qualname__:
        raise DefinitionError(
            f"nothing fills {first!r}: make the tool of the bound method, tool(object.{plain.__name__})"
        )
    for name, parameter in parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            raise DefinitionError(f"a model cannot fill *{name}; take a list, or give args_schema=")
        if name in injections or parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if parameter.annotation is EMPTY:
            raise DefinitionError(
                f"parameter {name!r} has no type hint, so the model cannot know what to give; "
                f"write `{name}: str` (or what it is), or give args_schema="
            )
        if not is_resolved(parameter.annotation):
            raise DefinitionError(
                f"the type {parameter.annotation!r} of parameter {name!r} cannot be found at run time; "
                "import it outside TYPE_CHECKING, or give args_schema="
            )


def _refuse_no_schema(schema: object) -> None:
    if not isinstance(schema, dict) and not (isinstance(schema, type) and issubclass(schema, BaseModel | BaseModelV1)):
        raise DefinitionError(f"args_schema must be a pydantic model class or a JSON schema dict, not {schema!r:.100}")


def _refuse_misfit(
    tool: str, schema: Schema, parameters: Mapping[str, Parameter], injections: Mapping[str, Injection]
) -> None:
    """Refuse an args_schema that gives what the function does not take, or does not give what it needs."""
    _refuse_no_schema(schema)
    checker_of(tool, schema, frozenset(injections), Takes())  # refuses a schema that is wrong by itself
    fields = field_names(schema)
    takes_extra = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    if not takes_extra and (extra := sorted(fields - set(parameters))):
        raise DefinitionError(
            f"args_schema has {extra[0]!r}, which the function does not take; add the parameter, or **kwargs"
        )
    for name in _unfilled(schema, parameters, injections):
        if parameters[name].default is EMPTY:
            raise DefinitionError(
                f"the function needs {name!r}, but args_schema does not have it; add the field, or a default"
            )


def _refuse_lost(schema: Schema, parameters: Mapping[str, Parameter], injections: Mapping[str, Injection]) -> None:
    """Refuse parameters that pydantic cannot make fields of; one that starts with "_" may keep to its default."""
    for name in _unfilled(schema, parameters, injections):
        if parameters[name].default is EMPTY or not name.startswith("_"):
            raise DefinitionError(f"a schema cannot have a field named {name!r}; give the parameter another name")


def _unfilled(
    schema: Schema, parameters: Mapping[str, Parameter], injections: Mapping[str, Injection]
) -> Iterator[str]:
    """Parameters that neither the model nor the run fills."""
    fields = field_names(schema)
    for name, parameter in parameters.items():
        if not parameter.is_extra and name not in injections and name not in fields:
            yield name
