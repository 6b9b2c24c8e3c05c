"""What may stand in a list of tools, and what is refused while the list can still be mended."""

from collections.abc import Iterable

from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from agentkit.errors import DefinitionError
from agentkit.tools._define import Options, define
from agentkit.tools._hidden import hide_injected
from agentkit.tools._names import check_name
from agentkit.tools._signature import plain_function


def as_tool_object(thing: object) -> BaseTool:
    """What may stand in a list of tools, as a tool: a BaseTool, or a function to make one of.

    A tool that would show an injected parameter to the model is replaced by a copy that does not.

    Raises:
        DefinitionError: it is neither, its name is refused by providers, or it cannot be called.
    """
    if isinstance(thing, BaseTool):
        check_name(thing.name)
        return hide_injected(thing)
    if isinstance(thing, Runnable) or not callable(thing) or isinstance(thing, type):
        raise DefinitionError(
            f"{str(thing)[:80]!r} is no tool; give a function, a tool made by tool(), or tool('name', runnable)"
        )
    return define(None, thing, Options())


def check_unique(tools: Iterable[object]) -> dict[str, BaseTool]:
    """The tools by name, in order.

    Raises:
        DefinitionError: two of them have one name, or one is no tool.
    """
    found: dict[str, BaseTool] = {}
    for each in map(as_tool_object, tools):
        if each.name in found:
            first, second = _described(found[each.name]), _described(each)
            raise DefinitionError(f"two tools are named {each.name!r}: {first} and {second}; rename or drop one")
        found[each.name] = each
    return found


def _described(tool: BaseTool) -> str:
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    if function is None:
        return f"{type(tool).__module__}.{type(tool).__qualname__}"
    plain = plain_function(function)
    code = getattr(plain, "__code__", None)
    where = f" (line {code.co_firstlineno})" if code is not None else ""
    return f"{plain.__module__}.{getattr(plain, '__qualname__', '?')}{where}"
