"""Where a run goes next. Every route of the agent's loop is decided here, by which calls are open.

START → before_agent… → [ before_model… → model → after_model… → tools ]* → after_agent… → END
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langgraph.constants import END
from langgraph.types import Send

from agentkit.agents._retries import asks_again
from agentkit.agents._state import END_KEY, LOOP_KEY
from agentkit.errors import DefinitionError
from agentkit.messages import open_calls

AFTER_AGENT = ".after_agent"
"""How the names of end hooks end: what sends the run to its end there is there already."""

log = logging.getLogger("agentkit.agents")

__all__ = ["Goto", "Routes"]

Goto = str | Sequence[str | Send]


@dataclass(frozen=True, kw_only=True)
class Routes:
    """The fixed points of one agent's graph, and the decisions between them.

    loop_entry: the first node of each round (the first before_model hook, else the model).
    loop_exit: the last node before the tools (the last after_model hook to run, else the model).
    exit: where a run ends (the first after_agent hook to run, else END).
    tools: the name of the tools node; None if the agent has none.
    nodes: the names of all nodes.
    """

    entry: str
    loop_entry: str
    loop_exit: str
    exit: str
    tools: str | None
    nodes: frozenset[str]

    def after_model(self, messages: Sequence[BaseMessage], structured: object = None) -> Goto:
        """From the end of a round: run what is open; else answer, or ask the model again if it waits for results."""
        last = _last_ai(messages)
        if last is None:
            return self.exit
        if last.tool_calls and self.tools is not None and (calls := open_calls(messages)):
            return self.sends(calls)
        if structured is not None:
            return self.exit
        if last.tool_calls or last.invalid_tool_calls or asks_again(messages[-1]):
            return self.loop_entry
        return self.exit

    def jump(self, target: str, messages: Sequence[BaseMessage], *, hook: str) -> Goto:
        """Where a hook's `{"jump_to": target}` leads. To the tools go only open calls; without any, to the model."""
        if target == "end":
            return END if hook.endswith(AFTER_AGENT) else self.exit
        if target == "model":
            # The first before_model hook is where the loop begins: jumping to itself would never end.
            return "model" if hook == self.loop_entry else self.loop_entry
        if target == "tools":
            if self.tools is None:
                raise DefinitionError(f"{hook} jumps to the tools, and this agent has none: give create_agent tools")
            return self.sends(open_calls(messages)) or self.loop_entry
        raise DefinitionError(f'{hook} returned jump_to={target!r}: only "model", "tools" and "end" exist')

    def sends(self, calls: Sequence[ToolCall]) -> list[Send]:
        """One task per call: the payload is the call alone, the state is read where it runs."""
        return [Send(self.tools or "", [{**call, "type": "tool_call"}]) for call in calls]

    def go(self, targets: Sequence[str | Send], messages: Sequence[BaseMessage] | None, *, source: str) -> Goto:
        """Where the `goto` of a Command leads that a tool or a hook (`source`) returned.

        To the tools go the open calls; a tool has no `messages` to find them in, and its batch is ending: the loop goes
        on. A name that is no node leads nowhere in langgraph, and the run would end in silence: the loop goes on, and
        that is logged.
        """
        gone: list[str | Send] = []
        for target in targets:
            if target == END:
                gone.append(END if source.endswith(AFTER_AGENT) else self.exit)
            elif isinstance(target, Send) or (target in self.nodes and target != self.tools):
                gone.append(target)
            elif target == self.tools and messages is not None:
                gone += self.sends(open_calls(messages)) or [self.loop_entry]
            else:
                if target != self.tools:
                    log.warning("%s wants to go to %r, which is no node of this agent: ignored", source, target)
                gone.append(self.loop_entry)
        return gone

    def finished(self, state: dict[str, Any], node: str) -> bool:
        """Whether the node that begins a round, or the one that ends a run, must leave this turn to the other."""
        if node == self.loop_entry and state.get(END_KEY):
            return True
        return node == self.exit and bool(state.get(LOOP_KEY)) and not state.get(END_KEY)


def _last_ai(messages: Sequence[BaseMessage]) -> AIMessage | None:
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, AIMessage):
            return message
    return None
