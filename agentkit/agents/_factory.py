"""create_agent: puts the parts together. What each part does is in its own module.

_state        schemas and how they merge        _hooks       nodes around before_* / after_* hooks
_model_call   the model node                    _wrappers    wrap_model_call and wrap_tool_call chains
_binding      offering tools to the model       _structured  structured output
_routes       where a run goes next             _tools_node  the tools node
_limits       limits of a run                   _outside     routing after update_state
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.cache.base import BaseCache
from langgraph.constants import END, START
from langgraph.graph.state import CompiledStateGraph, StateGraph
from langgraph.prebuilt import ToolCallTransformer
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

from agentkit.agents._binding import Binder, tool_name
from agentkit.agents._hooks import Hook, HookNode, find_hooks, has_edge
from agentkit.agents._interop import request_classes, subagent_transformer
from agentkit.agents._limits import LimitKeeper, Limits
from agentkit.agents._model_call import ModelNode, Setup
from agentkit.agents._outside import add_edge, decide_outside
from agentkit.agents._quiet import quiet
from agentkit.agents._routes import Routes
from agentkit.agents._state import AgentState, Schemas, merge_schemas, reducers_of
from agentkit.agents._structured import Strategies
from agentkit.agents._tools_node import AgentToolNode
from agentkit.agents._toolsets import Offer
from agentkit.agents._tracing import node_policy
from agentkit.agents._wrappers import ModelChain, tool_chains
from agentkit.errors import DefinitionError, MissingExtraError
from agentkit.tools import policy_of
from agentkit.tools.toolsets import Toolset

__all__ = ["create_agent"]


class _DuplicateMiddlewareError(DefinitionError, AssertionError):
    """Two middleware share a name. Also an AssertionError, as in LangChain."""


class _Hooks:
    """The node hooks of an agent's middleware, each list in the order in which they run."""

    def __init__(self, middleware: Sequence[Any]) -> None:
        self._order = {m.name: position for position, m in enumerate(middleware)}
        self.before_agent = find_hooks(middleware, "before_agent")
        self.before_model = find_hooks(middleware, "before_model")
        self.after_model = find_hooks(middleware, "after_model")[::-1]
        self.after_agent = find_hooks(middleware, "after_agent")[::-1]

    @property
    def all(self) -> list[Hook]:
        """Every hook."""
        return [*self.before_agent, *self.before_model, *self.after_model, *self.after_agent]

    def routes(self, *, tools: bool) -> Routes:
        """The fixed points of the graph these hooks make."""
        loop_entry = self.before_model[0].node if self.before_model else "model"
        return Routes(
            entry=self.before_agent[0].node if self.before_agent else loop_entry,
            loop_entry=loop_entry,
            loop_exit=self.after_model[-1].node if self.after_model else "model",
            exit=self.after_agent[0].node if self.after_agent else END,
            tools="tools" if tools else None,
            nodes=frozenset({"model", "tools"} | {hook.node for hook in self.all}),
        )

    def with_default(self, routes: Routes) -> list[tuple[Hook, str | None]]:
        """Every hook with the node after it, by middleware; None where what comes next depends on the open calls."""
        chains = (
            (self.before_agent, routes.loop_entry),
            (self.before_model, "model"),
            (self.after_model, None),
            (self.after_agent, END),
        )
        found: list[tuple[Hook, str | None]] = []
        for hooks, then in chains:
            followers = [*(hook.node for hook in hooks[1:]), then]
            found += zip(hooks, followers, strict=False)
        return sorted(found, key=lambda pair: self._order[pair[0].middleware.name])


def create_agent(  # noqa: PLR0913 - LangChain's signature and ours
    model: str | BaseChatModel,
    tools: Sequence[BaseTool | Callable[..., Any] | dict[str, Any] | Toolset] | None = None,
    *,
    system_prompt: str | SystemMessage | None = None,
    middleware: Sequence[Any] = (),
    response_format: Any = None,
    state_schema: type | None = None,
    context_schema: type | None = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    interrupt_before: list[str] | None = None,
    interrupt_after: list[str] | None = None,
    debug: bool = False,
    name: str | None = None,
    cache: BaseCache[Any] | None = None,
    transformers: Sequence[Any] | None = None,
    on_tool_error: Any = "report",
    pairing: str = "strict",
    undurable: str = "warn",
    limits: Limits | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Make an agent: a graph in which a model calls tools until it answers.

    LangChain's `create_agent` with its arguments, node names, state and streams, under stricter rules: before the model
    is called every tool call has exactly one result; only tools that were offered in the very model call run; parallel
    results and state updates merge in call order; errors of tools become results.

    Args:
        model: A chat model, or a name like "openai:gpt-5.5" (needs the extra `models`).
        tools: Tools, plain functions, toolsets, which are asked before each model call, or dicts of a provider's own
            tools, which are offered and never run here.
        system_prompt: Put before the messages of every model call.
        middleware: Hooks into the loop; LangChain's middleware works too.
        response_format: A schema, or a strategy, for a structured answer in `structured_response`.
        state_schema: An `AgentState` subclass with state keys of your own.
        context_schema: The type of `runtime.context`.
        checkpointer: Keeps threads; needed for interrupts and for durability.
        store: Long-term memory, `runtime.store`.
        interrupt_before: Nodes to stop before.
        interrupt_after: Nodes to stop after.
        debug: Print what the graph does.
        name: The agent's name: of the graph, and on its AI messages.
        cache: A cache for nodes that have a cache policy.
        transformers: Stream transformer factories, after those of the middleware.
        on_tool_error: What the model sees of a tool's exception: "report", "hide" (a reference id), "raise" (fails the
            run), or a function.
        pairing: "strict" raises where a tool's Command lacks its result; "repair" makes one.
        undurable: What to do with tools that must not run twice under durability "exit", which keeps no record before
            the run ends: "warn", "refuse" (an error result) or "allow".
        limits: Limits of one run.

    Raises:
        DefinitionError: Something does not fit together: names, reducers, hooks, schemas. Never raised during a run
            for what could be known here.
        MissingExtraError: `model` is a name and LangChain is not installed.
    """
    limits = limits or Limits()
    middleware = [*([LimitKeeper(limits)] if limits.counted else ()), *middleware]
    _check_names(middleware)
    hooks = _Hooks(middleware)
    schemas = merge_schemas(
        [*(m.state_schema for m in middleware if hasattr(m, "state_schema")), state_schema or AgentState]
    )
    local = [
        *(t for m in middleware for t in getattr(m, "tools", ())),
        *(t for t in tools or () if not isinstance(t, dict)),
    ]
    wrap, awrap = tool_chains(middleware)
    routes = hooks.routes(tools=bool(local or wrap))
    tool_node = None
    if routes.tools is not None:
        tool_node = AgentToolNode(
            local,
            routes,
            structured=response_format is not None,
            wrap_tool_call=wrap,
            awrap_tool_call=awrap,
            on_tool_error=on_tool_error,
            pairing=pairing,
            undurable=undurable,
        )
        _check_writes(tool_node.tools_by_name, schemas)
        tool_node.sources.check = partial(_check_writes, schemas=schemas)
    offered = [
        *(tool_node.tools_by_name.values() if tool_node else ()),
        *(t for t in tools or () if isinstance(t, dict)),
    ]
    names = frozenset(found for tool in offered if (found := tool_name(tool)))
    strategies = Strategies.plan(response_format)
    request_class, response_class = request_classes(middleware)
    setup = Setup(
        model=_chat_model(model),
        offer=Offer(tools=offered, names=names),
        sources=tool_node.sources if tool_node is not None and tool_node.sources else None,
        system_message=SystemMessage(content=system_prompt) if isinstance(system_prompt, str) else system_prompt,
        name=name,
        strategies=strategies,
        binder=Binder(strategies, dynamic=wrap is not None),
        chain=ModelChain(middleware, response_class),
        routes=routes,
        limits=limits,
        round_steps=3 + len(hooks.before_model) + len(hooks.after_model) + len(hooks.after_agent),
        after_hooks=bool(hooks.after_model),
        request_class=request_class,
        response_class=response_class,
    )
    graph = _graph(setup, hooks, schemas, tool_node, context_schema)
    compiled = graph.compile(
        checkpointer=checkpointer,
        store=store,
        interrupt_before=interrupt_before,
        interrupt_after=interrupt_after,
        debug=debug,
        name=name,
        cache=cache,
        transformers=_once(
            [
                ToolCallTransformer,
                subagent_transformer(),
                *(t for m in middleware for t in getattr(m, "transformers", ())),
                *(transformers or ()),
            ]
        ),
    )
    _finish(compiled, setup, hooks)
    config: RunnableConfig = {"recursion_limit": 9_999, "metadata": {"ls_integration": "langchain_create_agent"}}
    if name:
        config["metadata"]["lc_agent_name"] = name
    return compiled.with_config(config)


def _graph(
    setup: Setup, hooks: _Hooks, schemas: Schemas, tool_node: AgentToolNode | None, context_schema: type | None
) -> StateGraph[Any, Any, Any, Any]:
    routes = setup.routes
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(
        state_schema=schemas.full,
        input_schema=schemas.input,
        output_schema=schemas.output,
        context_schema=context_schema,
    )
    model: Any = ModelNode(setup)  # for langgraph's types a node's state is a TypedDict known to the type checker
    graph.add_node("model", model, input_schema=schemas.model, destinations=_model_ends(setup, hooks))
    if tool_node is not None:
        graph.add_node("tools", tool_node, input_schema=schemas.tools, destinations=_tools_ends(setup, tool_node))
    for hook, default in hooks.with_default(routes):
        node: Any = HookNode(hook, routes, default=default, static_names=setup.offer.names)
        ends = _hook_ends(hook, default, setup)
        graph.add_node(
            hook.node, node, input_schema=schemas.hooks, destinations=ends, trace_policy=node_policy(hook.middleware)
        )
    graph.add_edge(START, routes.entry)
    if hooks.after_model:
        graph.add_edge("model", hooks.after_model[0].node)
    return graph


def _model_ends(setup: Setup, hooks: _Hooks) -> tuple[str, ...]:
    """The nodes that the drawing connects the model with."""
    return () if hooks.after_model else _drawn(_round_ends(setup))


def _round_ends(setup: Setup) -> list[str]:
    routes = setup.routes
    ends = [routes.tools] if routes.tools is not None else []
    ends.append(routes.exit)
    answered_early = setup.strategies.initial is not None or routes.loop_exit != "model" or bool(setup.chain)
    if setup.strategies.bindings or (answered_early and routes.tools is not None):
        ends.append(routes.loop_entry)
    return ends


def _drawn(ends: Sequence[str]) -> tuple[str, ...]:
    """Each end once; none for a node that only ends the run, which langgraph draws by itself."""
    return () if set(ends) == {END} else tuple(dict.fromkeys(ends))


def _tools_ends(setup: Setup, tool_node: AgentToolNode) -> tuple[str, ...]:
    ends = [setup.routes.loop_entry]
    may_end = any(tool.return_direct for tool in tool_node.tools_by_name.values()) or setup.sources is not None
    if setup.strategies.bindings or may_end:
        ends.append(setup.routes.exit)
    return tuple(ends)


def _hook_ends(hook: Hook, default: str | None, setup: Setup) -> tuple[str, ...]:
    if has_edge(hook, default):
        return ()
    routes = setup.routes
    ends = _round_ends(setup) if default is None else [default]
    targets = {"end": routes.exit, "tools": routes.tools, "model": routes.loop_entry}
    for jump in hook.jumps:
        target = targets[jump]
        if target is not None and not (jump == "model" and hook.node == routes.loop_entry):
            ends.append(target)
    return _drawn(ends)


def _finish(compiled: CompiledStateGraph[Any, Any, Any, Any], setup: Setup, hooks: _Hooks) -> None:
    """Hide the private keys from streams and snapshots, route what `update_state` writes, shorten the way to nodes."""
    if isinstance(compiled.stream_channels, list):
        compiled.stream_channels = [key for key in compiled.stream_channels if not key.startswith("agentkit_")]
    routes = setup.routes

    def after_round(state: Mapping[str, Any]) -> Any:
        return routes.after_model(state.get("messages", []), state.get("structured_response"))

    def outside(node: str, decide: Callable[[Mapping[str, Any]], Any]) -> None:
        decide_outside(compiled.nodes[node], decide)

    if not hooks.after_model:
        outside("model", after_round)
    if routes.tools is not None:
        outside(routes.tools, lambda _state: routes.loop_entry)
    for hook, default in hooks.with_default(routes):
        if default is None:
            outside(hook.node, after_round)
        elif has_edge(hook, default):
            add_edge(compiled.nodes[hook.node], default)
        else:
            outside(hook.node, lambda _state, to=default: to)  # type: ignore[misc]
    for name in compiled.nodes.keys() - {START}:
        quiet(compiled.nodes[name])


def _check_names(middleware: Sequence[Any]) -> None:
    seen: set[str] = set()
    for m in middleware:
        if m.name in seen:
            raise _DuplicateMiddlewareError(
                f"Please remove duplicate middleware instances: two are named {m.name!r}; give one another name"
            )
        seen.add(m.name)


def _check_writes(tools: Mapping[str, BaseTool], schemas: Schemas) -> None:
    """Refuse tools that declare writes to a plain key which parallel calls would overwrite."""
    reducers = reducers_of(schemas.declared)
    writers: dict[str, list[str]] = {}
    for tool in tools.values():
        policy = policy_of(tool)
        for key in policy.writes:
            if not reducers.get(key, False):
                writers.setdefault(key, []).append(tool.name)
                if not policy.sequential:
                    raise DefinitionError(
                        f"tool {tool.name!r} writes the state key {key!r}, which has no reducer, and its calls may run "
                        "in parallel: give the key a reducer in the state schema, or the tool policy sequential=True"
                    )
    for key, names in writers.items():
        if len(names) > 1:
            raise DefinitionError(
                f"tools {', '.join(map(repr, names))} write the state key {key!r}, which has no reducer: "
                "give the key a reducer in the state schema"
            )


def _chat_model(model: str | BaseChatModel) -> Any:
    if not isinstance(model, str):
        return model
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise MissingExtraError(
            f"the model name {model!r} needs LangChain: pip install 'agentkit[models]', or give a chat model object"
        ) from error
    return init_chat_model(model)


def _once(factories: Sequence[Any]) -> list[Any]:
    """The factories without repeats, by identity: they need not be hashable."""
    seen: set[int] = set()
    return [f for f in factories if not (id(f) in seen or seen.add(id(f)))]  # type: ignore[func-returns-value]
