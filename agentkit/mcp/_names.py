"""Names of tools that every provider accepts, from names that servers gave. Pure."""

import hashlib
import re
from collections.abc import Iterable

_LONGEST = 64
_MARK = 8


def clean_names(names: Iterable[str], prefix: str = "") -> dict[str, str]:
    """An accepted name for each original name, in order; no two are equal.

    Letters, digits, `_` and `-` stay; everything else becomes `_`. What is too long, or collides with another name,
    ends in a mark made from the original: a name depends on which other tools there are only where they collide.
    """
    originals = list(dict.fromkeys(names))
    plain = {name: _clean(prefix + name) for name in originals}
    counts: dict[str, int] = {}
    for cleaned in plain.values():
        counts[cleaned] = counts.get(cleaned, 0) + 1
    taken = {cleaned for name, cleaned in plain.items() if prefix + name == cleaned}
    result: dict[str, str] = {}
    for name, cleaned in plain.items():
        given = cleaned
        if prefix + name != cleaned and (counts[cleaned] > 1 or cleaned in taken):
            given = _marked(cleaned, name)
        result[name] = given
    return result


def _clean(name: str) -> str:
    cleaned = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_") or "tool"
    return cleaned if len(cleaned) <= _LONGEST else _marked(cleaned, name)


def _marked(cleaned: str, original: str) -> str:
    mark = hashlib.sha256(original.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
    return f"{cleaned[: _LONGEST - _MARK - 1]}_{mark}"
