"""Defining tools: `tool()` in all its forms."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, overload

from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from agentkit.errors import DefinitionError
from agentkit.tools._accepted import as_tool_object, check_unique
from agentkit.tools._arguments import Schema
from agentkit.tools._define import Function, Options, define
from agentkit.tools._headless import HeadlessTool, headless_tool
from agentkit.tools._names import check_name
from agentkit.tools._policy import ToolPolicy, attach_policy

__all__ = ["as_tool_object", "check_unique", "tool"]

Body: TypeAlias = Function | Runnable[Any, Any]
ResponseFormat: TypeAlias = Literal["content", "content_and_artifact"]


@overload
def tool(
    *,
    name: str,
    description: str,
    args_schema: Schema,
    result_schema: Schema | None = None,
    return_direct: bool = False,
    policy: ToolPolicy | None = None,
    extras: dict[str, Any] | None = None,
) -> HeadlessTool: ...
@overload
def tool(
    name_or_callable: str | None = None,
    *,
    description: str | None = None,
    return_direct: bool = False,
    args_schema: Schema | None = None,
    infer_schema: bool = True,
    response_format: ResponseFormat = "content",
    parse_docstring: bool = False,
    error_on_invalid_docstring: bool = True,
    extras: dict[str, Any] | None = None,
    policy: ToolPolicy | None = None,
) -> Callable[[Body], BaseTool]: ...
@overload
def tool(
    name_or_callable: Function,
    *,
    description: str | None = None,
    return_direct: bool = False,
    args_schema: Schema | None = None,
    infer_schema: bool = True,
    response_format: ResponseFormat = "content",
    parse_docstring: bool = False,
    error_on_invalid_docstring: bool = True,
    extras: dict[str, Any] | None = None,
    policy: ToolPolicy | None = None,
) -> BaseTool: ...
@overload
def tool(
    name_or_callable: str,
    runnable: Body,
    *,
    description: str | None = None,
    return_direct: bool = False,
    args_schema: Schema | None = None,
    infer_schema: bool = True,
    response_format: ResponseFormat = "content",
    parse_docstring: bool = False,
    error_on_invalid_docstring: bool = True,
    extras: dict[str, Any] | None = None,
    policy: ToolPolicy | None = None,
) -> BaseTool: ...
def tool(
    name_or_callable: str | Body | None = None,
    runnable: Body | None = None,
    *,
    name: str | None = None,
    result_schema: Schema | None = None,
    policy: ToolPolicy | None = None,
    **options: Any,
) -> BaseTool | Callable[[Body], BaseTool]:
    """Make a tool of a function or a Runnable, or a headless tool of a name, a description and a schema.

    Use it as `@tool`, `@tool("name")`, `@tool(return_direct=True)`, `tool(function)` or `tool("name", runnable)`; for a
    tool that the client runs, as `tool(name=…, description=…, args_schema=…)`. The docstring is the description, and
    the type hints are the schema, unless `description` and `args_schema` are given. All other arguments mean what they
    mean in LangChain's `tool`; `policy` says how the calls are run.

    A parameter annotated with `ToolRuntime`, `InjectedState`, `InjectedStore`, `InjectedToolCallId` or `RunnableConfig`
    is filled by the run: the model does not see it, and a value that the model gives for it is dropped.

    Raises:
        DefinitionError: the name, the signature or the schema cannot work; the message has the fix.

    Example:
        >>> @tool
        ... def add(a: int, b: int) -> int:
        ...     \"\"\"Add two numbers.\"\"\"
        ...     return a + b
        >>> add.invoke({"a": 1, "b": 2})
        3
    """
    if policy is not None and not isinstance(policy, ToolPolicy):
        raise DefinitionError(
            f"policy must be a ToolPolicy, not {type(policy).__name__}; write policy=ToolPolicy(timeout=30)"
        )
    if name is not None or result_schema is not None:
        if name_or_callable is not None or runnable is not None:
            raise DefinitionError(
                "name= and result_schema= make a headless tool; for a function write @tool('the_name')"
            )
        return _with(_headless(name, result_schema, options), policy)
    settings = _options(options)
    if runnable is not None:
        if not isinstance(name_or_callable, str):
            raise DefinitionError("tool(name, body) takes the name as a string first")
        return _with(define(name_or_callable, runnable, settings), policy)
    if name_or_callable is not None and not isinstance(name_or_callable, str):
        return _with(define(None, name_or_callable, settings), policy)
    given = None if name_or_callable is None else check_name(name_or_callable)

    def decorate(body: Body) -> BaseTool:
        return _with(define(given, body, settings), policy)

    return decorate


def _options(options: dict[str, Any]) -> Options:
    try:
        return Options(**options)
    except TypeError:
        known = ", ".join(Options.__dataclass_fields__)
        wrong = next(iter(options.keys() - Options.__dataclass_fields__.keys()))
        raise DefinitionError(f"tool() has no argument {wrong!r}; besides name and policy it takes {known}") from None


def _headless(name: str | None, result_schema: Schema | None, options: dict[str, Any]) -> HeadlessTool:
    settings = _options(options)
    if name is None or settings.description is None or settings.args_schema is None:
        raise DefinitionError(
            "a headless tool needs name=, description= and args_schema=; for a function write @tool('the_name')"
        )
    return headless_tool(
        check_name(name),
        description=settings.description,
        args_schema=settings.args_schema,
        result_schema=result_schema,
        return_direct=settings.return_direct,
        extras=settings.extras,
    )


def _with(made: BaseTool, policy: ToolPolicy | None) -> BaseTool:
    if policy is not None:
        attach_policy(made, policy)
    return made
