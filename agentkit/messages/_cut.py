"""Where a history can be cut."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from agentkit.messages._calls import is_ai
from agentkit.messages._faults import plan


def safe_cut(messages: Sequence[BaseMessage], index: int) -> int:
    """The largest position up to `index` where a cut parts no call from its result.

    `messages[:cut]` can then be summarised or dropped and `messages[cut:]` kept. Calls that the last AI message has
    open count as answered at the end: their results are still to come. Negative positions count from the end, as in
    slices.
    """
    size = len(messages)
    cut = min(index, size) if index >= 0 else max(size + index, 0)
    made = plan(messages)
    last = next((at for at in range(size - 1, -1, -1) if is_ai(messages[at])), None)
    spans: list[tuple[int, int]] = []
    for group in made.groups.values():
        places = [slot.at for slot in group.slots if slot.at is not None]
        if group.index == last and len(places) < len(group.slots):
            places.append(size)
        spans.append((min([group.index, *places]), max([group.index, *places])))
    for first, end in sorted(spans, reverse=True):
        if first < cut <= end:
            cut = first
    return cut
