"""What a server says about its tools, and what follows for running them."""

from typing import Any

from langchain_core.tools import BaseTool

from agentkit.tools import ToolPolicy


def metadata_of(tool: Any, server_info: Any, server: str) -> dict[str, Any]:
    """The tool's metadata: everything under `mcp`, as LangChain has it, and the name that the server knows it by."""
    about: dict[str, Any] = {"name": tool.name}
    if tool.annotations is not None:
        about["annotations"] = tool.annotations.model_dump(exclude_none=True)
    if tool.meta is not None:
        about["_meta"] = tool.meta
    found: dict[str, Any] = {"tool": about}
    if server_info is not None:
        found["server"] = server_info.model_dump(exclude_none=True)
    found.setdefault("server", {})["label"] = server
    return {"mcp": found}


def policy_for(annotations: Any) -> ToolPolicy:
    """The policy that a tool's annotations suggest: what only reads, or may be repeated, is run again after a crash."""
    return ToolPolicy(on_crash="rerun" if is_repeatable(annotations) else "unknown")


def is_repeatable(annotations: Any) -> bool:
    """Whether a server says that calling a tool twice does what calling it once does."""
    return annotations is not None and bool(annotations.read_only_hint or annotations.idempotent_hint)


def is_read_only(tool: BaseTool) -> bool:
    """Whether the server says that this tool changes nothing. False where it says nothing; a server may lie."""
    return bool(_hints(tool).get("read_only_hint", False))


def is_destructive(tool: BaseTool) -> bool:
    """Whether this tool may destroy something: true unless the server says that it only reads, or only adds."""
    hints = _hints(tool)
    return not hints.get("read_only_hint", False) and bool(hints.get("destructive_hint", True))


def _hints(tool: BaseTool) -> dict[str, Any]:
    about: dict[str, Any] = ((tool.metadata or {}).get("mcp") or {}).get("tool") or {}
    hints: dict[str, Any] = about.get("annotations") or {}
    return hints
