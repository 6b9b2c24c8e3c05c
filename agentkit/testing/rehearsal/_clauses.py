"""From a message to tool calls: it is cut into clauses, and each clause is read as the first kind it fits."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentkit.testing.rehearsal import _notes, _numbers
from agentkit.testing.rehearsal._kind import Kind, Want

__all__ = ["KINDS", "Understood", "understand"]

KINDS: tuple[Kind, ...] = (*_notes.KINDS, *_numbers.KINDS)

_SENTENCE_END = re.compile(r"(?<=[!?;。！？；\n])\s*|(?<=\.)\s+(?=\S)")
_LINK = re.compile(
    r"\s*,?\s+(?:and then|and also|and|then|also)\s+|,\s+"
    r"|\s+그리고\s+|(?<=하)고\s+"
    r"|\s*[，,]?\s*(?:然后|还有|并且|另外)\s*|，\s*",
    re.IGNORECASE,
)
_LONGEST = 800  # characters that are read: a rehearsal is talk, not a document
_MOST = 12  # links in one sentence
_WIDEST = 4  # parts that are joined to one clause


@dataclass(frozen=True, kw_only=True)
class Understood:
    """What a message asks for, in order, and the parts that fit no kind."""

    wants: tuple[Want, ...]
    unread: tuple[str, ...]


def understand(text: str) -> Understood:
    """Reads a message. Pure: the same text always gives the same calls."""
    wants: list[Want] = []
    unread: list[str] = []
    for sentence in filter(None, map(str.strip, _SENTENCE_END.split(text[:_LONGEST]))):
        for clause, found in _best(_parts(sentence)):
            wants += found
            unread += [] if found or not clause.strip(" .!?,。！？，") else [clause.strip()]
    return Understood(wants=tuple(wants), unread=tuple(unread))


def _parts(sentence: str) -> list[str]:
    """The sentence cut at its links; each part keeps the link that follows it, so that parts can be joined again."""
    ends = [match.end() for match in _LINK.finditer(sentence)][:_MOST]
    starts = [0, *ends]
    return [sentence[start:end] for start, end in zip(starts, [*ends, len(sentence)], strict=True)]


def _best(parts: Sequence[str]) -> list[tuple[str, list[Want]]]:
    """Parts joined so that least is left unread, and as little as possible is joined.

    "remember that I like tea and what is 12*7" is two clauses, "remember that I like tea and coffee" one.
    """
    best: list[tuple[int, list[tuple[str, list[Want]]]]] = [(0, [])]
    for end in range(1, len(parts) + 1):
        options = []
        for start in range(max(0, end - _WIDEST), end):
            clause = "".join(parts[start:end])
            found = _read(_trimmed(clause), joined=end - start > 1)
            if not found and end - start > 1:
                continue
            cost = best[start][0] + (end - start - 1 if found else 100)
            options.append((cost, [*best[start][1], (_trimmed(clause), found)]))
        best.append(min(options, key=lambda option: option[0]))
    return best[-1][1]


def _trimmed(clause: str) -> str:
    link = list(_LINK.finditer(clause + " "))
    return clause[: link[-1].start()] if link and link[-1].end() >= len(clause) else clause


def _read(clause: str, *, joined: bool) -> list[Want]:
    for kind in KINDS:
        if found := kind.read(clause):
            return found if kind.greedy or not joined else []
    return []
