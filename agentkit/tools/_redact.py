"""Keep secrets out of texts that models and clients read."""

import re

_SECRETS = (
    (re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"), "***"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}"), r"\1 ***"),
    (
        re.compile(
            r"(?i)\b((?:api|access|secret|auth|private)[_-]?(?:key|token)|password|passwd|pwd|secret|token)"
            r"([\"']?\s*[=:]\s*[\"']?)([^\s\"',;&)}\]]+)"
        ),
        r"\1\2***",
    ),
    (re.compile(r"\b(?:sk|pk|rk|ghp|gho|xox[abp]|AKIA)[-_]?[A-Za-z0-9_-]{12,}"), "***"),
)


def redact(text: str) -> str:
    """Replace what looks like a credential (URL passwords, bearer tokens, api keys) by `***`."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def shorten(text: str, limit: int = 500) -> str:
    """Cut a text to `limit` characters, saying how many were left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} more characters)"
