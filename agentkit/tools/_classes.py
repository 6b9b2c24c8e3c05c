"""Which tool classes run their tools as LangChain does, so that the way there may be shortened."""

from typing import Any, TypeVar

from langchain_core.tools import BaseTool, StructuredTool, Tool

ClassT = TypeVar("ClassT", bound=type[BaseTool])

# ruff: noqa: SLF001 - these are the methods that LangChain documents for subclasses, private by name only

_BODIES: dict[str, set[Any]] = {
    "_run": {StructuredTool._run, Tool._run},
    "_arun": {BaseTool._arun, StructuredTool._arun, Tool._arun},
}
_WAYS: dict[str, set[Any]] = {
    "invoke": {BaseTool.invoke},
    "ainvoke": {BaseTool.ainvoke, StructuredTool.ainvoke, Tool.ainvoke},
    "run": {BaseTool.run},
    "arun": {BaseTool.arun},
    "_parse_input": {BaseTool._parse_input},
    "_to_args_and_kwargs": {BaseTool._to_args_and_kwargs, Tool._to_args_and_kwargs},
}


def runs_as_langchain(cls: ClassT) -> ClassT:
    """Class decorator: what this class overrides does what LangChain's does, and may be passed by."""
    for methods in (_BODIES, _WAYS):
        for name, implementations in methods.items():
            implementations.add(getattr(cls, name))
    return cls


def has_own_body(cls: type[BaseTool], method: str) -> bool:
    """Whether the class says itself what a call does; otherwise it calls the tool's function."""
    return getattr(cls, method) not in _BODIES[method]


def has_own_way(cls: type[BaseTool]) -> bool:
    """Whether the class says itself how a tool is invoked, which must be kept."""
    return any(getattr(cls, method) not in implementations for method, implementations in _WAYS.items())
