"""Finding tools by what they are for: a small ranking over names, descriptions and argument names. Pure."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.tools import BaseTool

_PARTS = re.compile(r"[a-z0-9]+|[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_SPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]{2,}")
_NAME, _DESCRIPTION, _ARGUMENT = 4.0, 1.0, 0.5
_SATURATION = 1.2
_SHORTEST_STEM = 4
_STOP = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "for",
        "from",
        "in",
        "is",
        "it",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "use",
        "with",
        "you",
        "your",
        "can",
        "i",
        "me",
        "my",
    ]
)


def terms(text: str) -> list[str]:
    """The words of a text, lower case; snake_case and camelCase are parted, scripts without spaces give pairs."""
    found: list[str] = []
    for word in _PARTS.findall(_CAMEL.sub(" ", text).lower()):
        if _NOT_SPACED.fullmatch(word):
            found += [word[i : i + 2] for i in range(len(word) - 1)]
        elif word not in _STOP:
            found.append(_stem(word))
    return found


def _stem(word: str) -> str:
    """Plural and verb endings off, roughly: `files` finds `file`, `creating` finds `create`."""
    for ending in ("ing", "ies", "es", "ed", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM - 1:
            return word[: -len(ending)]
    return word


@dataclass(frozen=True, kw_only=True)
class Index:
    """Tools prepared for search. Made by `index_of`."""

    tools: tuple[BaseTool, ...]
    weights: tuple[dict[str, float], ...]
    rarity: dict[str, float]

    def search(self, query: str, limit: int) -> list[BaseTool]:
        """The tools that fit best, best first, at most `limit`; those of equal rank in their own order."""
        asked = set(terms(query))
        wanted = query.strip().lower()
        scored: list[tuple[float, int]] = []
        for position, weight in enumerate(self.weights):
            score = sum(self._score(weight, term) for term in asked)
            if self.tools[position].name.lower() == wanted:
                score += 1_000
            if score > 0:
                scored.append((-score, position))
        return [self.tools[position] for _, position in sorted(scored)[:limit]]

    def _score(self, weight: dict[str, float], term: str) -> float:
        found = weight.get(term, 0.0)
        if not found and len(term) >= _SHORTEST_STEM:
            found = 0.5 * max((w for known, w in weight.items() if known.startswith(term)), default=0.0)
        return self.rarity.get(term, 1.0) * found / (found + _SATURATION) if found else 0.0


def index_of(tools: Sequence[BaseTool]) -> Index:
    """Prepare tools for search."""
    weights = tuple(_weights(tool) for tool in tools)
    spread = Counter(term for weight in weights for term in weight)
    count = len(weights)
    rarity = {term: math.log(1 + (count - n + 0.5) / (n + 0.5)) for term, n in spread.items()}
    return Index(tools=tuple(tools), weights=weights, rarity=rarity)


def _weights(tool: BaseTool) -> dict[str, float]:
    weight: dict[str, float] = {}
    for text, worth in (
        (tool.name, _NAME),
        (tool.description, _DESCRIPTION),
        *((text, _ARGUMENT) for text in _arguments(tool)),
    ):
        for term in terms(text):
            weight[term] = weight.get(term, 0.0) + worth
    return weight


def _arguments(tool: BaseTool) -> Iterable[str]:
    for name, field in tool.args.items():
        yield name
        described: Any = field.get("description") if isinstance(field, dict) else None
        if isinstance(described, str):
            yield described
