"""From what a tool returns to what a provider accepts as the content of a result."""

import base64
import json
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

_BLOCK_TYPES = frozenset(
    {"text", "image_url", "image", "json", "search_result", "custom_tool_call_output", "document", "file", "audio"}
    | {"video", "text-plain", "reasoning", "non_standard", "input_audio", "tool_reference"}
)
_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
)


def content_of(value: Any) -> tuple[str | list[Any], Any]:
    """The content for a returned value, and an artifact where the content cannot hold it all.

    Text stays text and content blocks stay blocks; other values become JSON (what JSON lacks becomes its text). Bytes
    that are an image become an image block, UTF-8 becomes text, other bytes are named and kept as artifact.
    """
    if isinstance(value, str):
        return clean(value), None
    if isinstance(value, BaseMessage):
        return content_of(value.content)
    if isinstance(value, bytes | bytearray | memoryview):
        return _from_bytes(bytes(value))
    if is_blocks(value):
        return clean_blocks(value), None
    return clean(to_json(value)), None


def is_blocks(value: Any) -> bool:
    """Whether a value is a list of content blocks a message can hold; an empty list is none."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, dict) and item.get("type") in _BLOCK_TYPES for item in value)
    )


def to_json(value: Any) -> str:
    """JSON text of any value; str(value) where even that fails."""
    try:
        if isinstance(value, BaseModel):
            return value.model_dump_json()
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        pass
    try:
        return json.dumps(to_jsonable_python(value, fallback=str), ensure_ascii=False)
    except Exception:  # noqa: BLE001 - a broken __iter__ or __repr__ of a foreign object must not lose the result
        return str(value)


def clean(text: str) -> str:
    """The text with what no database and no provider takes, NUL and lone surrogates, replaced by U+FFFD."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_blocks(blocks: list[Any]) -> list[Any]:
    """The blocks with their texts cleaned; the same list where there was nothing to do."""
    cleaned = [_clean_deep(block) for block in blocks]
    return cleaned if any(new is not old for new, old in zip(cleaned, blocks, strict=True)) else blocks


def _clean_deep(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        cleaned = {key: _clean_deep(item) for key, item in value.items()}
        return cleaned if any(cleaned[key] is not value[key] for key in value) else value
    return clean_blocks(value) if isinstance(value, list) else value


def _from_bytes(data: bytes) -> tuple[str | list[Any], Any]:
    for magic, mime_type in _IMAGES:
        if data.startswith(magic) and (magic != b"RIFF" or data[8:12] == b"WEBP"):
            return [{"type": "image", "base64": base64.b64encode(data).decode(), "mime_type": mime_type}], None
    try:
        return clean(data.decode("utf-8")), None
    except UnicodeDecodeError:
        return f"{len(data):,} bytes of binary data (kept as the artifact of this result)", data


def cut(text: str, limit: int) -> str:
    """The head and the tail of a text longer than `limit` characters, with a note between them."""
    note = f"\n… {len(text) - limit:,} of {len(text):,} characters left out; the whole is kept as artifact …\n"
    head = (limit + 1) * 2 // 3
    return text[:head] + note + (text[-(limit - head) :] if limit > head else "")
