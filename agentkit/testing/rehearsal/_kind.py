"""What the rehearsal model understands: a kind of sentence, and the calls it is turned into."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Kind", "Want", "patterns"]

Reader = Callable[[re.Match[str]], "list[dict[str, Any]]"]


@dataclass(frozen=True, kw_only=True)
class Want:
    """One tool call that a sentence asks for."""

    tool: str
    args: Mapping[str, Any]
    purpose: str = ""  # why, where that is not what the tool does: a memory is looked up in order to forget it


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of sentence.

    `rules` are tried in order on a clause; the first that matches gives the arguments of each call, or none, where it
    turns out not to fit. `greedy` kinds may reach over an "and": "remember that I like tea and coffee".
    """

    tool: str
    example: str
    rules: tuple[tuple[re.Pattern[str], Reader], ...]
    greedy: bool = False
    purpose: str = ""

    def read(self, clause: str) -> list[Want]:
        """The calls that the clause asks for; none, if it is not of this kind."""
        for pattern, reader in self.rules:
            if (match := pattern.search(clause)) and (found := reader(match)):
                return [Want(tool=self.tool, args=args, purpose=self.purpose) for args in found]
        return []


def patterns(*rules: tuple[str, Reader]) -> tuple[tuple[re.Pattern[str], Reader], ...]:
    """Compiles the rules of a kind; case does not matter."""
    return tuple((re.compile(text, re.IGNORECASE), reader) for text, reader in rules)
