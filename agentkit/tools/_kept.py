"""Remembering what was made of an object, so that asking again gives the very same objects.

Identity matters here: plans and bound models are kept by it, so a new copy each time would be planned and bound again.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")

_MOST = 2_048


class Kept(Generic[S, T]):
    """`make`, called once for each object. Holds the last `most` objects and what became of them.

    Args:
        make: called with the object.
        most: how many are held; the oldest goes first.
    """

    def __init__(self, make: Callable[[S], T], *, most: int = _MOST) -> None:
        self._make = make
        self._most = most
        self._made: dict[int, tuple[S, T]] = {}
        self._lock = threading.Lock()

    def __call__(self, source: S) -> T:
        """What was made of this object."""
        found = self._made.get(id(source))
        if found is not None:
            return found[1]  # the entry holds its source, so no other object can have its id
        made = self._make(source)
        with self._lock:
            found = self._made.setdefault(id(source), (source, made))
            if len(self._made) > self._most:
                del self._made[next(iter(self._made))]
        return found[1]
