"""One call of a tool as LangChain's callbacks see it."""

import inspect
from collections.abc import Callable
from typing import Any

from langchain_core.runnables.config import run_in_executor
from langchain_core.tools import BaseTool
from langgraph.errors import is_invalid_resume
from typing_extensions import override

from agentkit.errors import ArgumentsError
from agentkit.tools._bodies import Body
from agentkit.tools._plan import Runtime
from agentkit.tools._problems import as_validation_error


async def settled(value: Any) -> Any:
    """The value, awaited where it is awaitable: a decorator can hide that a function is async."""
    return await value if inspect.isawaitable(value) else value


def refuse_awaitable(tool: BaseTool, value: Any) -> Any:
    """The value of a sync body; raises NotImplementedError where it turns out to be async."""
    if inspect.iscoroutine(value):
        value.close()
        raise NotImplementedError(f"tool {tool.name!r} is async; run it in an event loop: ainvoke, astream")
    return value


class Observed(BaseTool):
    """Stands in for a tool during one call: LangChain's own `run` and `arun` around our binding and the tool's body.

    Handlers, tracers and streams get what they would get from the tool itself, and its inputs are the model's arguments
    alone. `returned` keeps what the body returned, before LangChain makes a message of it.
    """

    original: BaseTool
    body: Body
    runtime: Any
    returned: Any = None
    has_returned: bool = False

    @classmethod
    def of(cls, tool: BaseTool, body: Body, runtime: Runtime) -> "Observed":
        """The stand-in for one call."""
        return cls.model_construct(
            name=tool.name,
            description=tool.description,
            args_schema=None,
            callbacks=tool.callbacks,
            tags=tool.tags,
            metadata=tool.metadata,
            verbose=tool.verbose,
            response_format=tool.response_format,
            handle_tool_error=tool.handle_tool_error,
            handle_validation_error=tool.handle_validation_error,
            original=tool,
            body=body,
            runtime=runtime,
        )

    @property
    def _injected_args_keys(self) -> frozenset[str]:
        return frozenset()

    @override
    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[tuple[()], dict[str, Any]]:
        try:
            return (), self.body.bind(tool_input, self.runtime)
        except ArgumentsError as error:
            if not self.handle_validation_error:
                raise
            raise as_validation_error(error, self.name) from error

    @override
    def _run(self, /, *, run_manager: Any = None, **values: Any) -> Any:
        function = self._prepared(values, run_manager)
        try:
            self.returned = refuse_awaitable(self.original, function(**values))
        except ValueError as error:
            self._let_pass(error)
            raise
        self.has_returned = True
        return self.returned

    @override
    async def _arun(self, /, *, run_manager: Any = None, **values: Any) -> Any:
        function = self._prepared(values, run_manager)
        try:
            if self.body.is_async:
                self.returned = await settled(function(**values))
            else:
                self.returned = await settled(await run_in_executor(None, function, **values))
        except ValueError as error:
            self._let_pass(error)
            raise
        self.has_returned = True
        return self.returned

    def _prepared(self, values: dict[str, Any], run_manager: Any) -> Callable[..., Any]:
        if run_manager is not None:
            of_kind = (
                run_manager if self.body.is_async or not hasattr(run_manager, "get_sync") else run_manager.get_sync()
            )
            for name in self.body.managers:
                values[name] = of_kind if name == "run_manager" else of_kind.get_child()
        return self.body.of(self.original)

    def _let_pass(self, error: ValueError) -> None:
        # A wrong answer to an interrupt is not the model's mistake: it fails the run, so that it can be answered again.
        if is_invalid_resume(error):
            self.handle_validation_error = False
