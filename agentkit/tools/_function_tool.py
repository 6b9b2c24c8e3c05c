"""The tool that `tool()` makes of a function."""

from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from typing_extensions import override

from agentkit.errors import ArgumentsError
from agentkit.tools._bodies import Body
from agentkit.tools._classes import runs_as_langchain
from agentkit.tools._observed import refuse_awaitable, settled
from agentkit.tools._plan import plan_of
from agentkit.tools._problems import as_validation_error


@runs_as_langchain
class FunctionTool(StructuredTool):
    """A StructuredTool whose injected parameters are found however they are written, also outside a ToolNode.

    Called by hand (`tool.invoke(tool_call)`), it validates what the model gave as a ToolNode does and raises pydantic's
    ValidationError; the caller supplies injected values among the arguments.
    """

    @property
    def _injected_args_keys(self) -> frozenset[str]:
        return plan_of(self).injected

    @override
    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[tuple[()], dict[str, Any]]:
        plan = plan_of(self)
        body = plan.sync or plan.asynchronous
        if isinstance(tool_input, str) or body is None:
            return super()._to_args_and_kwargs(tool_input, tool_call_id)  # type: ignore[return-value]
        given = {name: value for name, value in tool_input.items() if name in plan.injected}
        try:
            values = body.check(plan.strip(tool_input))
        except ArgumentsError as error:
            raise as_validation_error(error, self.name) from error
        for injection in plan.injections:
            if injection.kind == "call_id" and injection.parameter not in given and tool_call_id is not None:
                given[injection.parameter] = tool_call_id
        return (), values | given

    @override
    def _run(self, *args: Any, config: RunnableConfig, run_manager: Any = None, **kwargs: Any) -> Any:
        body = plan_of(self).sync
        if body is None:
            raise NotImplementedError(f"tool {self.name!r} is async only; call it with ainvoke")
        self._supply(body, kwargs, config, run_manager)
        return refuse_awaitable(self, body.of(self)(*args, **kwargs))

    @override
    async def _arun(self, *args: Any, config: RunnableConfig, run_manager: Any = None, **kwargs: Any) -> Any:
        body = plan_of(self).asynchronous
        if body is None:
            return await super()._arun(*args, config=config, run_manager=run_manager, **kwargs)
        self._supply(body, kwargs, config, run_manager)
        return await settled(body.of(self)(*args, **kwargs))

    def _supply(self, body: Body, values: dict[str, Any], config: RunnableConfig, run_manager: Any) -> None:
        for injection in plan_of(self).injections:
            if injection.kind == "config":
                values[injection.parameter] = config
        if run_manager is not None:
            for name in body.managers:
                values[name] = run_manager if name == "run_manager" else run_manager.get_child()
