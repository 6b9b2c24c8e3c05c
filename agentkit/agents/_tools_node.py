"""The tools node of an agent: a ToolNode, and what its finished calls mean for the loop."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.constants import END
from langgraph.types import Command, Send

from agentkit.agents._routes import Goto, Routes
from agentkit.agents._state import END_KEY, LOOP_KEY, PRIVATE_KEYS
from agentkit.tools import ToolNode
from agentkit.tools._batch import Batch
from agentkit.tools._outcome import Outcome

__all__ = ["AgentToolNode"]


class _EndsLoop(tuple[Any, ...]):
    """The goto of a call whose tool asked for the end."""

    __slots__ = ()


class _Loops(tuple[Any, ...]):
    """The goto of a call that wants the model."""

    __slots__ = ()


class AgentToolNode(ToolNode):
    """Runs one call per task and says where the run goes after it.

    The gotos of a step's tasks add up: the model runs unless every call of the batch says otherwise. Two wishes are
    stronger than a sibling's, and travel as a flag in the state for one step: a tool's `goto=END`, and, where end hooks
    are waiting, a call that does want the model.
    """

    def __init__(self, tools: Sequence[Any], routes: Routes, *, structured: bool, **settings: Any) -> None:
        super().__init__(tools, route=self._after_call, offered_only=True, **settings)
        self._routes = routes
        self._structured = structured
        self._flag_loops = routes.exit != END

    def _after_call(
        self, call: ToolCall, tool: BaseTool | None, result: ToolMessage | None, goto: Sequence[str | Send]
    ) -> Goto:
        if goto:
            if all(target == END for target in goto):
                return _EndsLoop((self._routes.exit,))
            return self._routes.go(goto, None, source=f"the tool {call['name']!r}")
        if tool is not None and tool.return_direct and result is not None and result.status != "error":
            return (self._routes.exit,)
        return _Loops((self._routes.loop_entry,))

    def _open(self, given: Any, config: RunnableConfig | None, kwargs: Mapping[str, Any]) -> Batch:
        batch = super()._open(given, config, kwargs)
        for key in PRIVATE_KEYS:  # read by now, and nothing for tools to see
            batch.state.pop(key, None)
        return batch

    def _write(self, batch: Batch, outcomes: Sequence[Outcome]) -> Any:
        written: list[Command[Any]] = super()._write(batch, outcomes)
        if self._structured and batch.state.get("structured_response") is not None:
            # The model gave its answer beside these calls: they were asked for, and the run ends after them.
            return [replace(c, goto=(self._routes.exit,)) if isinstance(c.goto, _Loops) else c for c in written]
        flags: dict[str, bool] = {}
        for command in written:
            if isinstance(command.goto, _EndsLoop):
                flags[END_KEY] = True
            elif self._flag_loops and isinstance(command.goto, _Loops):
                flags[LOOP_KEY] = True
        return [*written, Command(update=flags)] if flags else written
