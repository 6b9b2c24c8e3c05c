"""From what an MCP server returns to the content blocks and the artifact of a result."""

from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.messages.content import (
    create_audio_block,
    create_file_block,
    create_image_block,
)

from agentkit.mcp._extra import sdk
from agentkit.tools._content import clean, clean_blocks, cut, to_json

Block = dict[str, Any]


def result_of(result: Any, *, call_id: str, name: str, max_output: int | None, max_bytes: int | None) -> ToolMessage:
    """The result of a call, success or error alike: blocks for the model, and what programs want as artifact.

    The artifact is `{"structured_content": …}` where there is any, with `"meta"` and, where the text was cut,
    `"content"` (the whole blocks) beside it; None otherwise.

    Args:
        result: the server's CallToolResult.
        call_id: the call it answers.
        name: the tool's name as the model knows it.
        max_output: characters of text in all; more is cut in the middle.
        max_bytes: the size of one image, audio or file; a larger one is replaced by a note.
    """
    server_info = sdk().SERVER_INFO_META_KEY  # in every result of newer servers, and in the tool's metadata already
    blocks = blocks_of(result.content, max_bytes)
    artifact: dict[str, Any] = {}
    if result.structured_content is not None:
        artifact["structured_content"] = result.structured_content
    if meta := {key: value for key, value in (result.meta or {}).items() if key != server_info}:
        artifact["meta"] = meta
    if not blocks:
        blocks = [_text(_without_content(result))]
    shown = limited(blocks, max_output)
    if shown is not blocks:
        artifact["content"] = blocks
    return ToolMessage(
        content=clean_blocks(shown),
        tool_call_id=call_id,
        name=name,
        artifact=artifact or None,
        status="error" if result.is_error else "success",
    )


def _without_content(result: Any) -> str:
    if result.structured_content is not None:
        return to_json(result.structured_content)
    return "The tool failed and said nothing about it." if result.is_error else "Done; the tool returned nothing."


def blocks_of(content: list[Any], max_bytes: int | None) -> list[Block]:
    """LangChain content blocks for MCP ones, in order. What is not known becomes its JSON text."""
    return [_block(each, max_bytes) for each in content]


def _block(content: Any, max_bytes: int | None) -> Block:
    lib = sdk()
    if isinstance(content, lib.TextContent):
        return _text(content.text)
    if isinstance(content, lib.ImageContent):
        return _data(create_image_block, "image", content.data, content.mime_type, max_bytes)
    if isinstance(content, lib.AudioContent):
        return _data(create_audio_block, "audio", content.data, content.mime_type, max_bytes)
    if isinstance(content, lib.ResourceLink):
        return _link(content)
    if isinstance(content, lib.EmbeddedResource):
        return _resource(lib, content.resource, max_bytes)
    return _text(content.model_dump_json(exclude_none=True, by_alias=True))


def _text(text: str) -> Block:
    return {"type": "text", "text": clean(text)}


def _data(make: Any, kind: str, data: str, mime_type: str | None, max_bytes: int | None) -> Block:
    size = len(data) * 3 // 4
    if max_bytes is not None and size > max_bytes:
        return _text(f"[{kind} of {size:,} bytes ({mime_type}) left out: the limit is {max_bytes:,} bytes]")
    return _without_id(make(base64=data, mime_type=mime_type))


def _link(content: Any) -> Block:
    mime_type = content.mime_type or None
    about = {
        key: value
        for key, value in (
            ("name", content.name),
            ("title", content.title),
            ("description", content.description),
            ("size", content.size),
        )
        if value
    }
    extras: Any = {"resource": about} if about else {}
    make = create_image_block if (mime_type or "").startswith("image/") else create_file_block
    return _without_id(make(url=str(content.uri), mime_type=mime_type, **extras))


def _without_id(block: Any) -> Block:
    """The block without the random id that it was given: equal results are to be equal."""
    return {key: value for key, value in block.items() if key != "id"}


def _resource(lib: Any, resource: Any, max_bytes: int | None) -> Block:
    if isinstance(resource, lib.TextResourceContents):
        return _text(resource.text)
    mime_type = resource.mime_type or None
    kind = (mime_type or "").partition("/")[0]
    make = {"image": create_image_block, "audio": create_audio_block}.get(kind, create_file_block)
    return _data(make, kind or "file", resource.blob, mime_type or "application/octet-stream", max_bytes)


def limited(blocks: list[Block], limit: int | None) -> list[Block]:
    """The blocks with at most `limit` characters of text in all; the same list where that is so already."""
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    if limit is None or sum(map(len, texts)) <= limit:
        return blocks
    left, shown = limit, []
    for block in blocks:
        if block["type"] != "text":
            shown.append(block)
        elif len(block["text"]) <= left:
            shown.append(block)
            left -= len(block["text"])
        elif left > 0:
            shown.append({**block, "text": cut(block["text"], left)})
            left = 0
    return shown
