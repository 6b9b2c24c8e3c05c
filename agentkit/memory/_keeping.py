"""Memories of people: where they are kept, how, and how a model sees them. Generators of store calls, see `keep`."""

import hashlib
import unicodedata
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from langgraph.store.base import Item

from agentkit.errors import DefinitionError, InjectionError, NotStorableError
from agentkit.memory._checks import check_json, check_namespace
from agentkit.tools import ToolException, identity

T = TypeVar("T")
Scope = Literal["user", "thread"]
OWN = "me"
RECENT = 10  # memories shown where nothing fits the query


@dataclass(frozen=True, slots=True)
class StoreCall:
    """A call of the store's method of this name; async runs call the one with an `a` before it."""

    method: str
    args: tuple[Any, ...]
    options: dict[str, Any]


Calls = Generator[StoreCall, Any, T]


def run(calls: Calls[T], store: object) -> T:
    """Makes the calls."""
    try:
        call = next(calls)
        while True:
            call = calls.send(getattr(store, call.method)(*call.args, **call.options))
    except StopIteration as done:
        result: T = done.value
        return result


async def arun(calls: Calls[T], store: object) -> T:
    """As `run`."""
    try:
        call = next(calls)
        while True:
            call = calls.send(await getattr(store, "a" + call.method)(*call.args, **call.options))
    except StopIteration as done:
        result: T = done.value
        return result


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """Where memories are kept and how many; the arguments of `memory_tools`."""

    scope: Scope = "user"
    shared: tuple[str, ...] = ()
    max_length: int = 1000
    max_items: int = 1000
    kind: str = "memories"

    def __post_init__(self) -> None:
        if self.scope not in ("user", "thread"):
            raise DefinitionError(f"memory_tools: scope is {self.scope!r}; it is 'user' or 'thread'")
        if min(self.max_length, self.max_items) < 1:
            raise DefinitionError("memory_tools: max_length and max_items must be 1 or more")
        try:
            check_namespace((self.kind, *self.shared), write=True)
        except ValueError as error:
            raise DefinitionError(f"memory_tools: {error}") from error

    def namespace(self, runtime: Any, space: str = OWN) -> tuple[str, ...]:
        """Where the memories of a run's user are, or those of a shared space."""
        if space != OWN:
            if space not in self.shared:
                raise ToolException(f"there is no shared space {space!r}; use {', '.join((OWN, *self.shared))}")
            return (self.kind, "shared", space)
        who = identity(runtime).namespace
        if self.scope == "user":
            return (self.kind, *who)
        thread = getattr(getattr(runtime, "execution_info", None), "thread_id", None)
        if not thread:
            raise InjectionError("scope='thread' needs a run with a thread_id; use scope='user'")
        return (f"{self.kind}-of-threads", *who, label_of(str(thread)))

    def namespaces(self, runtime: Any) -> list[tuple[str, ...]]:
        """All places a run may read: its user's first."""
        return [self.namespace(runtime), *((self.kind, "shared", space) for space in self.shared)]

    def remember(self, namespace: tuple[str, ...], text: str) -> Calls[str]:
        """Keeps a text, once. What differs in case, spaces and punctuation only is the same memory."""
        text = " ".join(text.split())
        key = key_of(text)
        if not key:
            raise ToolException("there is nothing to remember: the text is empty")
        if len(text) > self.max_length:
            raise ToolException(f"the text has {len(text)} characters; {self.max_length} are allowed: make it shorter")
        try:
            check_json(text, "the text")
        except NotStorableError as error:
            raise ToolException(str(error)) from error
        known: Item | None = yield StoreCall("get", (namespace, key), {})
        if known is None:
            full = yield StoreCall("search", (namespace,), {"limit": 1, "offset": self.max_items - 1})
            if full:
                raise ToolException(
                    f"{self.max_items} memories are kept already, which is the limit; forget some first"
                )
        yield StoreCall("put", (namespace, key, {"text": text}), {"index": ["text"]})
        return f"remembered as [{key}]" if known is None else f"known already as [{key}]; its date is renewed"

    def recall(self, namespaces: Sequence[tuple[str, ...]], query: str, limit: int) -> Calls[str]:
        """What fits the query, else what is newest, as lines for the model."""
        query = query.strip()
        found: list[Item] = yield from self.find(namespaces, query, limit)
        if found:
            return "\n".join(line_of(item) for item in found)
        recent: list[Item] = (yield from self.find(namespaces, "", RECENT)) if query else []
        if not recent:
            return "nothing is known yet"
        return "nothing fits exactly; known is:\n" + "\n".join(line_of(item) for item in recent)

    def find(self, namespaces: Sequence[tuple[str, ...]], query: str, limit: int) -> Calls[list[Item]]:
        """The memories that fit, those of the user first."""
        found: list[Item] = []
        for namespace in namespaces:
            found += yield StoreCall("search", (namespace,), {"query": query or None, "limit": limit})
        return found[:limit]

    def forget(self, namespaces: Sequence[tuple[str, ...]], key: str) -> Calls[str]:
        """Deletes a memory by its id."""
        key = key.strip().strip("[]")
        for namespace in namespaces:
            item: Item | None = yield StoreCall("get", (namespace, key), {})
            if item is not None:
                yield StoreCall("delete", (namespace, key), {})
                return f"forgot [{key}] {item.value.get('text', '')}"
        raise ToolException(f"there is no memory [{key}]; recall shows the ids in brackets")


def spaces_of(shared: Sequence[str]) -> tuple[str, ...]:
    """The names of the shared spaces. Raises DefinitionError for a single str, or the name of the user's own."""
    if isinstance(shared, str) or OWN in shared:
        raise DefinitionError(f"memory_tools: shared is a list of names other than {OWN!r}, not {shared!r}")
    return tuple(shared)


def key_of(text: str) -> str:
    """A short id that only depends on a text's words; "" for a text without any."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(
        sign if sign.isalnum() or unicodedata.category(sign).startswith("M") else " " for sign in plain
    ).split()
    return hashlib.sha256(" ".join(words).encode("utf-8", "replace")).hexdigest()[:10] if words else ""


def line_of(item: Item) -> str:
    """A memory as the model sees it: id, date, text, and the name of the shared space if it is in one."""
    space = f" ({item.namespace[2]})" if item.namespace[1] == "shared" else ""
    return f"[{item.key}] {item.updated_at.date().isoformat()}{space} {item.value.get('text', '')}"


def label_of(text: str) -> str:
    """Any text as a label of a namespace."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
