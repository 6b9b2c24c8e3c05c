"""Law 3: a call runs only if its tool was offered in the very model call that asked for it.

Whoever calls the model records the offered names in private state, `{AI message id: [names]}` under `OFFERED_KEY`; the
record travels with the checkpoint, so the check holds after a resume and in other workers too. A graph without that key
(hand-written, without a record) lets all registered tools run.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from langchain_core.messages import ToolCall

from agentkit.tools._outcome import Outcome, error_outcome

OFFERED_KEY: Final = "agentkit_offered"


def offered_names(state: Any, message_id: str | None, *, required: bool) -> Collection[str] | None:
    """The names offered in the model call that made this AI message; None where any registered tool may run.

    Args:
        state: the graph's state.
        message_id: the id of the AI message whose calls are to run.
        required: whether this graph keeps a record, so that a message without one was offered nothing.
    """
    record = state.get(OFFERED_KEY) if isinstance(state, Mapping) else getattr(state, OFFERED_KEY, None)
    if record is None:
        return () if required else None
    names: Collection[str] = record.get(message_id, ())
    return names


def not_offered(call: ToolCall, offered: Collection[str]) -> Outcome:
    """The error result for a call whose tool was not offered; it lists only what was."""
    names = ", ".join(sorted(offered))
    return error_outcome(call, f"Error: {call['name']} is not a valid tool, try one of [{names}].")


def gone(call: ToolCall, offered: Collection[str]) -> Outcome:
    """The error result for a call whose tool was offered, and which its toolset does not give any more."""
    names = ", ".join(sorted(name for name in offered if name != call["name"]))
    return error_outcome(call, f"Error: {call['name']} is no longer available to you; the others are [{names}].")
