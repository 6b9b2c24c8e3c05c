"""A graph that was found, made and given a memory and a model."""

import inspect
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from langgraph.store.base import BaseStore

from agentkit.cli._failures import Stop, first_line
from agentkit.cli._find import BUILDER, Source, parameters
from agentkit.errors import AgentkitError

__all__ = ["open_graph"]


async def open_graph(
    source: Source,
    stack: AsyncExitStack,
    *,
    model: str | BaseChatModel | None,
    checkpointer: BaseCheckpointSaver[Any],
    store: BaseStore,
) -> Pregel[Any, Any, Any, Any]:
    """The graph, with this memory and, where it can be chosen, this model. What has to be closed is left to `stack`.

    Raises:
        Stop: the graph cannot be made, or the model cannot be chosen; the message says why.
    """
    if isinstance(model, str) and not source.takes_model:
        raise Stop(f"graph {source.name!r} chooses its own model; --model needs a function {BUILDER}(model, ...) there")
    offered: dict[str, Any] = {"model": model, "checkpointer": checkpointer, "store": store, "config": {}}
    try:
        made = await _made(source, offered, stack)
    except Stop:
        raise
    except Exception as error:
        kind = "" if isinstance(error, AgentkitError) else f"{type(error).__name__}: "
        chosen = (
            f" with model {model!r}; write provider:name, or no model to rehearse" if isinstance(model, str) else ""
        )
        raise Stop(f"graph {source.name!r} cannot be made{chosen}: {kind}{first_line(error)}") from error
    if isinstance(made, StateGraph):
        return made.compile(checkpointer=checkpointer, store=store)
    if isinstance(made, Pregel):
        own = isinstance(made.checkpointer, BaseCheckpointSaver)  # True and False are for subgraphs
        kept = {"checkpointer": made.checkpointer if own else checkpointer, "store": made.store or store}
        return made.copy(update=kept)
    raise Stop(
        f"{source.name!r} is of type {type(made).__name__}, no graph; name a compiled graph, or a function making one"
    )


async def _made(source: Source, offered: Mapping[str, Any], stack: AsyncExitStack) -> Any:
    """The object itself, or what its function makes: called, awaited or entered."""
    if isinstance(source.made_by, StateGraph | Pregel) or not callable(source.made_by):
        return source.made_by
    wanted = parameters(source.made_by)
    missing = [
        name for name, each in wanted.items() if each.default is each.empty and name not in offered and _needed(each)
    ]
    if missing:
        raise Stop(
            f"{source.name!r} takes {', '.join(missing)}, which the chat cannot give; name a graph, or a function of "
            f"{', '.join(offered)} at most"
        )
    made = source.made_by(**{name: value for name, value in offered.items() if name in wanted})
    if inspect.isawaitable(made):
        made = await made
    if hasattr(made, "__aenter__"):
        return await stack.enter_async_context(made)
    return stack.enter_context(made) if hasattr(made, "__enter__") else made


def _needed(parameter: inspect.Parameter) -> bool:
    return parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
