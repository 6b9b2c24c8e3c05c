"""Tools without a body: the model calls them, and whoever talks to the graph runs them."""

from collections.abc import Callable
from typing import Annotated, Any, NoReturn

from langchain_core.tools import BaseTool
from pydantic import SkipValidation
from typing_extensions import override

from agentkit.errors import DefinitionError
from agentkit.tools._arguments import Schema


class HeadlessTool(BaseTool):
    """A tool that a client runs: a browser, a desktop app, the user's own machine.

    It has a name, a description and a schema for its arguments; `result_schema` (a pydantic model or a JSON schema), if
    given, is what the client's answer must fit. Inside a ToolNode a call of it interrupts the run and is answered when
    the run is resumed. By hand it cannot be run.
    """

    result_schema: Annotated[Schema | None, SkipValidation()] = None

    @override
    def _run(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"tool {self.name!r} is headless: it has no body here; put it in a ToolNode and answer its interrupt"
        )

    @override
    async def _arun(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._run()

    def __call__(self, _function: Callable[..., Any], /) -> NoReturn:
        """Raises DefinitionError: a headless tool is no decorator."""
        raise DefinitionError(
            f"tool(name={self.name!r}, ...) made a headless tool, which has no body; "
            f"to decorate a function, give the name first: @tool({self.name!r}, ...)"
        )
