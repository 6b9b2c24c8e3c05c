"""Durability "exit": nothing is stored before the run ends, so nothing can be recorded while it runs."""

import logging
from functools import lru_cache
from typing import Literal, get_args

from langchain_core.messages import ToolCall

from agentkit.errors import DefinitionError
from agentkit.tools._outcome import Outcome, error_outcome

logger = logging.getLogger(__name__)

Undurable = Literal["warn", "refuse", "allow"]


def check_undurable(setting: object) -> Undurable:
    """The setting, if it is one. Raises DefinitionError."""
    if setting not in get_args(Undurable):
        raise DefinitionError(f"undurable={setting!r} is not known; use 'warn', 'refuse' or 'allow'")
    return setting  # type: ignore[return-value]


def refused(setting: Undurable, call: ToolCall) -> Outcome | None:
    """The error result for a call that must not run unrecorded; None where it may."""
    name = call["name"]
    if setting == "refuse":
        return error_outcome(
            call,
            f"Error: {name} was not run: this run keeps no record before it ends (durability='exit'), so a crash could "
            "make it run twice.",
        )
    if setting == "warn":
        _warn(name)
    return None


@lru_cache(maxsize=1024)
def _warn(name: str) -> None:
    """Once for each tool."""
    logger.warning(
        "tool %r runs with durability='exit': nothing is recorded before the run ends, so after a crash its calls run "
        "again unnoticed. Use durability 'async' or 'sync', or give the tool ToolPolicy(on_crash='rerun') if it is "
        "idempotent; ToolNode(undurable='refuse' | 'allow') decides otherwise",
        name,
    )
