"""The channels of an agent's state: where the updates of parallel calls meet.

langgraph applies the writes of one step in the order of the task paths, which is the order of the calls, whichever call
finished first. So "the last write of a step" means "the write of the last call", and the channels here rely on that.
"""

import logging
from collections.abc import Sequence
from typing import Any

from langgraph.channels import LastValue
from langgraph.errors import EmptyChannelError

__all__ = ["KEPT_RECORDS", "LastInCallOrder", "OfferedRecords"]

log = logging.getLogger("agentkit.agents")

KEPT_RECORDS = 4
"""For how many AI messages the offered tools are kept; only the newest can have open calls, the rest is slack."""


class LastInCallOrder(LastValue[Any]):
    """A plain state key: takes several writes in one step and keeps the last in call order.

    The result is what the calls would have left behind had they run one after the other. Two writers are still most
    likely a mistake (a reducer would have kept both), so a `StateConflict` warning is logged.
    """

    __slots__ = ()

    def update(self, values: Sequence[Any]) -> bool:
        """Keep the last of `values`. Returns whether anything was written."""
        if not values:
            return False
        if len(values) > 1:
            log.warning(
                "StateConflict: %d writes to the state key %r in one step; the last in call order is kept. "
                "Give the key a reducer to keep all of them.",
                len(values),
                self.key,
            )
        self.value = values[-1]
        return True


class OfferedRecords(LastValue[Any]):
    """Which tools were offered to the model, by AI message id: `{message id: [names]}`.

    A record is written as `{message id: frozenset(names)}`. Anything else is ignored: JSON has no frozenset, so a
    client that may update the state of a thread cannot declare its own calls as offered.
    """

    __slots__ = ()

    def update(self, values: Sequence[Any]) -> bool:
        """Add the records in `values`, newest last, and forget all but the newest `KEPT_RECORDS`."""
        fresh = {
            key: sorted(names)
            for value in values
            if isinstance(value, dict)
            for key, names in value.items()
            if isinstance(names, frozenset)
        }
        if not fresh:
            return False
        known = self.value if self.is_available() else {}
        merged = {key: names for key, names in known.items() if key not in fresh} | fresh
        self.value = dict(list(merged.items())[-KEPT_RECORDS:])
        return True

    def get(self) -> Any:
        """The records; an empty dict before the first one, so that "no record" differs from "no such channel"."""
        try:
            return super().get()
        except EmptyChannelError:
            return {}
