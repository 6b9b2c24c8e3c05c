"""Ranking: how well words fit (BM25), and how two rankings become one (reciprocal ranks)."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)

# BM25 with each term counted once: notes are short, and what matters is which words they have. SQL uses the same.
SATURATION = 1.2
LENGTH = 0.5
_RANK = 60  # of reciprocal rank fusion: how much less a second place is worth than a first


def by_words(items: Mapping[K, Sequence[str]], wanted: Sequence[str]) -> list[tuple[K, float]]:
    """The items that have any of the wanted terms, best first. `items`: the terms of everything in scope."""
    looked_for = set(wanted)
    hits = {key: looked_for.intersection(terms) for key, terms in items.items()}
    counts = {term: sum(term in hit for hit in hits.values()) for term in looked_for}
    total = len(items)
    mean = sum(map(len, items.values())) / total if total else 1.0
    weights = {term: math.log(1 + (total - n + 0.5) / (n + 0.5)) for term, n in counts.items()}
    scores = {
        key: sum(weights[term] for term in hit) * length_factor(len(items[key]), mean)
        for key, hit in hits.items()
        if hit
    }
    return sorted(scores.items(), key=lambda pair: -pair[1])


def length_factor(length: int, mean: float) -> float:
    """How much a text of this many terms is worth."""
    return (SATURATION + 1) / (1 + SATURATION * (1 - LENGTH + LENGTH * length / max(mean, 1.0)))


def fused(*rankings: Sequence[K]) -> list[tuple[K, float]]:
    """One ranking of several, best first; 1.0 is the first in all of them."""
    scores: dict[K, float] = {}
    for ranking in rankings:
        for place, key in enumerate(ranking):
            scores[key] = scores.get(key, 0.0) + (_RANK + 1) / (_RANK + 1 + place) / len(rankings)
    return sorted(scores.items(), key=lambda pair: -pair[1])


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """How alike two vectors are, -1 to 1; 0 for an empty one."""
    size = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / size if size else 0.0
