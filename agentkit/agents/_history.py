"""How `messages` is kept: the one place that decides between langgraph's DeltaChannel and a plain reducer.

With the DeltaChannel a checkpoint holds what a step added instead of the whole history, so storage grows with the text
and not with its square. It is marked beta in langgraph: `AGENTKIT_DELTA_MESSAGES=0` in the environment, read when
agentkit is imported, turns it off. Threads written either way can be read either way.
"""

import os
from collections.abc import Callable
from typing import Any

from langgraph.channels import DeltaChannel

from agentkit.messages import add_history, history

__all__ = ["SNAPSHOT_FREQUENCY", "messages_channel"]

SNAPSHOT_FREQUENCY = 50
"""Updates of `messages` between two full copies: bounds how much is replayed to read a thread."""


def messages_channel(*, delta: bool | None = None) -> DeltaChannel[Any] | Callable[[Any, Any], Any]:
    """The annotation for a `messages` key. `delta=None` follows the environment."""
    if delta is None:
        delta = os.environ.get("AGENTKIT_DELTA_MESSAGES", "1").strip().lower() not in {"0", "false", "no", "off"}
    return DeltaChannel(history, snapshot_frequency=SNAPSHOT_FREQUENCY) if delta else add_history
