"""Ranking: how well words fit (BM25), and how two rankings become one (reciprocal ranks)."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)

# BM25 with each term counted once: notes are short, and what matters is which words they have. SQL uses the same.
SATURATION = 1.2
LENGTH = 0.5
_RANK = 60  # of reciprocal rank fusion: how much less a second place is worth than a first


def by_words(items: Mapping[K, Sequence[str]], wanted: Sequence[str]) -> list[tuple[K, float, float]]:
    """The items that have any of the wanted terms, best first, with score and share. `items`: all terms in scope.

    The share says how much of what was asked an item has, 0 to 1, a rare term counting more than a common one.
    """
    looked_for = set(wanted)
    hits = {key: hit for key, terms in items.items() if (hit := looked_for.intersection(terms))}
    counts = {term: sum(term in hit for hit in hits.values()) for term in looked_for}
    total = len(items)
    mean = sum(map(len, items.values())) / total if total else 1.0
    weights = {term: math.log(1 + (total - n + 0.5) / (n + 0.5)) for term, n in counts.items()}
    asked = sum(weights.values())
    found = []
    for key, hit in hits.items():
        worth = sum(map(weights.__getitem__, hit))
        found.append((key, worth * length_factor(len(items[key]), mean), worth / asked))
    return sorted(found, key=lambda one: -one[1])


def length_factor(length: int, mean: float) -> float:
    """How much a text of this many terms is worth."""
    return (SATURATION + 1) / (1 + SATURATION * (1 - LENGTH + LENGTH * length / max(mean, 1.0)))


def fused(*rankings: Sequence[tuple[K, float]]) -> list[tuple[K, float]]:
    """One ranking of several, best first; 1.0 is the first in all of them.

    Each ranking has its keys in order, with a weight from 0 to 1: a place in a ranking is worth that much less.
    """
    scores: dict[K, float] = {}
    for ranking in rankings:
        for place, (key, weight) in enumerate(ranking):
            scores[key] = scores.get(key, 0.0) + weight * (_RANK + 1) / (_RANK + 1 + place) / len(rankings)
    return sorted(scores.items(), key=lambda pair: -pair[1])


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """How alike two vectors are, -1 to 1; 0 for an empty one."""
    size = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / size if size else 0.0
