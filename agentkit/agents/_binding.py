"""Where tools are bound to the model: what a request offers, and the model bound to exactly that.

Binding converts every tool to the provider's form, which costs more than the rest of a model call's overhead together,
so a bound model is kept for each set of offered tools.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from agentkit.agents._structured import Strategies, Strategy
from agentkit.errors import DefinitionError

__all__ = ["Binder", "Bound", "tool_name"]

_KEPT = 32  # bound models; an agent that filters its tools has a handful of sets


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """A model ready to be called: bound, with the names that may be called back and the structured answer wanted."""

    model: Runnable[Any, Any]
    offered: frozenset[str]
    strategy: Strategy | None
    kept: tuple[Any, ...]
    """What the cache key names by identity: kept alive, so that no other object can get the same identity."""


class Binder:
    """Binds models to tools for one agent.

    Args:
        strategies: The agent's structured output.
        dynamic: Whether a tool-call wrapper may run tools that the agent does not know.
    """

    def __init__(self, strategies: Strategies, *, dynamic: bool) -> None:
        self._strategies = strategies
        self._dynamic = dynamic
        self._bound: OrderedDict[Any, Bound] = OrderedDict()

    def bind(self, request: Any, known: frozenset[str]) -> Bound:
        """The model of `request`, bound to what it offers; `known` are the names of the tools the agent can run.

        Raises:
            DefinitionError: It offers a tool that nothing could run.
        """
        key = _key(request)
        if key is not None and (bound := self._bound.get(key)) is not None:
            return bound
        bound = self._make(request, known)
        if key is not None:
            self._bound[key] = bound
            while len(self._bound) > _KEPT:
                # Threads may evict at once; whoever comes second finds less to do.
                self._bound.popitem(last=False)
        return bound

    def _make(self, request: Any, known: frozenset[str]) -> Bound:
        tools = list(request.tools)
        if not self._dynamic:
            _check_known(tools, known)
        strategy = self._strategies.effective(request.response_format, request.model, tools)
        settings = dict(request.model_settings)
        choice = request.tool_choice
        if strategy is not None:
            tools += self._strategies.answer_tools(strategy)
            if strategy.provider is not None:
                settings = {**strategy.provider.to_model_kwargs(), **settings}
                if _is_openai_chat_completions(request.model):
                    settings["strict"] = True
                model = request.model.bind_tools(tools, **settings)
            else:
                model = request.model.bind_tools(tools, tool_choice="any", **settings)
        elif tools:
            model = request.model.bind_tools(tools, tool_choice=choice, **settings)
        else:
            model = request.model.bind(**settings) if settings else request.model
        offered = frozenset(name for tool in request.tools if (name := tool_name(tool)))
        kept = (request.model, request.tools[:], request.response_format)
        return Bound(model=model, offered=offered, strategy=strategy, kept=kept)


def tool_name(tool: Any) -> str | None:
    """The name under which a model can call `tool`; None for a provider's own tool, whose calls are not ours to run."""
    if not isinstance(tool, dict):
        name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
        return str(name) if name else None
    function = tool.get("function")
    if isinstance(function, dict):
        return function.get("name")
    return tool.get("name")


def _check_known(tools: Sequence[Any], known: frozenset[str]) -> None:
    unknown = [tool.name for tool in tools if isinstance(tool, BaseTool) and tool.name not in known]
    if unknown:
        raise DefinitionError(
            f"Middleware added tools that the agent doesn't know how to execute. Unknown tools: {unknown}. "
            f"Registered tools: {sorted(known)}. Give them to create_agent(tools=…), or run them in a "
            "wrap_tool_call hook with handler(request.override(tool=…))."
        )


def _key(request: Any) -> Any:
    """Equal for requests that bind alike; None where that cannot be told cheaply."""
    tools = []
    for tool in request.tools:
        if not isinstance(tool, BaseTool):
            return None  # a dict may be changed in place between two calls
        tools.append((id(tool), tool.name, tool.description, id(tool.args_schema)))
    settings = request.model_settings
    key = (
        id(request.model),
        tuple(tools),
        request.tool_choice,
        id(request.response_format),
        tuple(sorted(settings.items())) if settings else (),
    )
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _is_openai_chat_completions(model: Any) -> bool:
    """Whether every tool must be strict beside a response format; recognised without importing the client."""
    if getattr(model, "use_responses_api", False):
        return False
    return any(cls.__name__ == "BaseChatOpenAI" for cls in type(model).__mro__)
