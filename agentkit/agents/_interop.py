"""LangChain's objects in our agent, without importing LangChain.

Middleware, requests, responses and output strategies are recognised by shape. Where code of LangChain's may ask for its
own classes (an isinstance check, an `except`), the classes are taken from modules that this process has loaded already:
an object of LangChain's cannot be here unless its module is.
"""

import sys
from collections.abc import Iterable
from typing import Any, TypeVar

from agentkit.agents._subagents import SubagentTransformer
from agentkit.agents.middleware.types import AgentMiddleware, ModelRequest, ModelResponse

__all__ = ["also_theirs", "is_base", "request_classes", "subagent_transformer"]

_TYPES = "langchain.agents.middleware.types"
_STRUCTURED = "langchain.agents.structured_output"
_SUBAGENTS = "langchain.agents._subagent_transformer"


def is_base(cls: type) -> bool:
    """Whether `cls` is a middleware base class: its hooks do nothing and count as not overridden."""
    return cls is AgentMiddleware or (cls.__module__, cls.__name__) == (_TYPES, "AgentMiddleware")


def request_classes(middleware: Iterable[Any]) -> tuple[type[Any], type[Any]]:
    """The request and response classes to use: LangChain's if some middleware was written for them, else ours."""
    theirs = sys.modules.get(_TYPES)
    if theirs is not None:
        base = theirs.AgentMiddleware
        if any(isinstance(m, base) for m in middleware):
            return theirs.ModelRequest, theirs.ModelResponse
    return ModelRequest, ModelResponse


def subagent_transformer() -> type[Any]:
    """What makes `run.subagents`: LangChain's where it is loaded, so that handles are of the class its users know."""
    theirs: type[Any] = getattr(sys.modules.get(_SUBAGENTS), "SubagentTransformer", SubagentTransformer)
    return theirs


_Error = TypeVar("_Error", bound=Exception)
_made: dict[type[Exception], Any] = {}


def also_theirs(error: type[_Error]) -> type[_Error]:
    """`error`, or where LangChain's module is loaded a subclass of it and of their class of that name."""
    theirs = getattr(sys.modules.get(_STRUCTURED), error.__name__, None)
    if theirs is None:
        return error
    if error not in _made:
        _made[error] = type(
            error.__name__, (error, theirs), {"__module__": error.__module__, "__init__": error.__init__}
        )
    return _made[error]  # type: ignore[no-any-return]  # made two lines above
