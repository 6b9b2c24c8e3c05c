"""Texts and their words: what full-text search sees of an item, the same for every store.

Languages that separate words are split at them, English endings cut off. Korean, Chinese, Japanese and Thai are split
into pairs of characters, which needs no dictionary and finds a word whatever particle follows it.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from langgraph.store.base import get_text_at_path, tokenize_path

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUNS = re.compile(
    f"(?P<pairs>[{_UNSPACED}\U00020000-\U0003ffff]+)|(?P<word>(?:(?![{_UNSPACED}\U00020000-\U0003ffff])\\w|[\u0300-\u036f])+)"
)
_LONGEST = 64
_VOWELS = frozenset("aeiouy")
_FILLERS = frozenset(
    """
    a an and are as at be been by can could did do does for from had has have he her his how i in is it its me my of
    on or our she should so that the their them there they this to was we were what when where which who whom whose
    why will with would you your s t m re ve ll d
    """.split()  # noqa: SIM905  a text is easier to read than a list of sixty strings
)
# an ending, what stands for it, and how long a word must be to have it
_PLURALS = (("ies", "y", 5), ("sses", "ss", 5), ("shes", "sh", 5), ("ches", "ch", 5), ("xes", "x", 4))


def texts_of(value: Any, fields: Sequence[str]) -> list[tuple[str, str]]:
    """The texts of a value at these paths, each with its name; "$" is everything readable in it, as one text."""
    found: list[tuple[str, str]] = []
    for field in fields:
        if field == "$":
            found.append(("$", "\n".join(_leaves(value))))
            continue
        texts = get_text_at_path(value, tokenize_path(field))
        names = [field] if len(texts) == 1 else [f"{field}.{index}" for index in range(len(texts))]
        found.extend(zip(names, texts, strict=True))
    return [(name, text) for name, text in found if text.strip()]


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)


def terms_of(texts: Sequence[str]) -> list[str]:
    """The distinct terms an item is found by, sorted."""
    return sorted({term for text in texts for term in _terms(text, single=True)})


def query_terms(query: str) -> list[str]:
    """The distinct terms a query looks for, sorted."""
    return sorted(set(_terms(query, single=False)))


def _terms(text: str, *, single: bool) -> Iterator[str]:
    for match in _RUNS.finditer(unicodedata.normalize("NFKC", text).casefold()):
        run = match["pairs"]
        if run:
            yield from (run[at : at + 2] for at in range(len(run) - 1))
            if single or len(run) == 1:
                yield from run
        elif (word := _plain(match["word"])) not in _FILLERS:
            yield _stem(word)[:_LONGEST]


def _plain(word: str) -> str:
    """Without accents: café is cafe."""
    if word.isascii():
        return word.replace("_", "")
    parts = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", "".join(part for part in parts if not "\u0300" <= part <= "\u036f"))


def _stem(word: str) -> str:
    """An English word without its usual endings; the same word for `hiking`, `hiked`, `hikes` and `hike`."""
    if not word.isascii() or len(word) < 4 or not word.isalpha():  # noqa: PLR2004  short words have no endings
        return word
    for ending, instead, least in _PLURALS:
        if word.endswith(ending) and len(word) >= least:
            word = word.removesuffix(ending) + instead
            break
    else:
        if word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    for ending in ("ing", "edly", "ed", "ly"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 2 and _VOWELS & set(rest):  # noqa: PLR2004  `king` and `red` are no endings
            word = rest[:-1] if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest  # noqa: PLR2004
            break
    return word[:-1] if len(word) > 3 and word[-1] == "e" else word  # noqa: PLR2004
