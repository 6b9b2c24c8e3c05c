# ruff: noqa: D417  the docstring is what the model reads, and `runtime` is hidden from it
"""Tools with which an agent keeps what should outlive the conversation."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from langchain_core.tools import BaseTool, tool
from langgraph.prebuilt import ToolRuntime
from langgraph.store.base import BaseStore

from agentkit.errors import InjectionError
from agentkit.tools._identity import identity

_KIND = "memories"


def _place(runtime: ToolRuntime[Any, Any]) -> tuple[BaseStore, tuple[str, ...]]:
    if runtime.store is None:
        raise InjectionError("this run has no store to keep memories in; give the agent store=memory.store")
    return runtime.store, (_KIND, *identity(runtime).namespace)


@tool
def remember(text: str, runtime: ToolRuntime[Any, Any]) -> str:
    """Keep a fact about the user for later conversations, in one self-contained sentence.

    Args:
        text: The fact, e.g. "The user prefers green tea."
    """
    store, namespace = _place(runtime)
    for item in store.search(namespace, limit=1000):
        if item.value.get("text") == text:
            return f"already known as {item.key}"
    key = uuid4().hex[:8]
    store.put(namespace, key, {"text": text, "at": datetime.now(UTC).isoformat(timespec="seconds")})
    return f"remembered as {key}"


@tool
def recall(query: str, runtime: ToolRuntime[Any, Any]) -> str:
    """Look up what is known about the user from earlier conversations.

    Args:
        query: What to look for, in a few words. Empty for everything.
    """
    store, namespace = _place(runtime)
    items = store.search(namespace, query=query or None, limit=20)
    if not items:
        return "nothing is known"
    return "\n".join(f"[{item.key}, {item.updated_at.date()}] {item.value.get('text', '')}" for item in items)


@tool
def forget(memory_id: str, runtime: ToolRuntime[Any, Any]) -> str:
    """Delete one memory, by the id that `recall` shows in brackets.

    Args:
        memory_id: The id, e.g. "3f2a91bc".
    """
    store, namespace = _place(runtime)
    if store.get(namespace, memory_id) is None:
        return f"there is no memory {memory_id}"
    store.delete(namespace, memory_id)
    return f"forgot {memory_id}"


def memory_tools() -> list[BaseTool]:
    """`remember`, `recall` and `forget`, on the store of the run, for the user the run acts for."""
    return [remember, recall, forget]
