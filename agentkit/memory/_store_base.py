"""What every store of agentkit can do beyond langgraph's BaseStore."""

import base64
import binascii
import hashlib
import json
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from agentkit.errors import DefinitionError
from agentkit.memory import _filter
from agentkit.memory._checks import check_key, check_namespace, check_op, check_window

By = Literal["text", "vector", "both"]
Value = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Index:
    """What of an item can be found by a query: the texts at `fields`, and their vectors where there are embeddings."""

    fields: tuple[str, ...] = ("$",)
    embeddings: Embeddings | None = None
    dims: int | None = None

    def paths(self, op: PutOp) -> tuple[str, ...]:
        """The paths of an operation's texts."""
        if op.index is False:
            return ()
        return self.fields if op.index is None else tuple(op.index)


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some items, and where the next ones begin; `cursor` is None on the last page."""

    items: list[Item]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Work:
    """Operations of one kind that are done together, each with its place in the batch."""

    kind: type
    ops: list[tuple[int, Any]]


class Store(BaseStore):
    """langgraph's BaseStore with one meaning on Postgres and in memory, and more.

    - Filters: see `agentkit.memory` docs; unknown operators are errors.
    - Items past their lifetime are never returned; reading one renews its lifetime unless `refresh_ttl=False`.
    - Namespaces, keys and values are checked on every path, before anything is written.
    - A batch is done in its order. A bad operation fails alone: the others are done, then its error is raised.
    - Without a query, `search` gives the items last written first. With one, see `find`.
    """

    supports_ttl = True

    def __init__(self, index: Index, ttl: TTLConfig | None) -> None:
        self.index = index
        self.ttl_config = ttl

    @abstractmethod
    def find(
        self,
        namespace_prefix: tuple[str, ...],
        query: str,
        *,
        by: By | None = None,
        filter: Value | None = None,  # noqa: A002  as in BaseStore.search
        limit: int = 10,
        offset: int = 0,
    ) -> list[SearchItem]:
        """Items that fit the query, best first: by their words, their vectors, or both rankings fused.

        `by` defaults to "both" where the store has embeddings, else "text". Scores compare within one answer only.
        """

    @abstractmethod
    async def afind(
        self,
        namespace_prefix: tuple[str, ...],
        query: str,
        *,
        by: By | None = None,
        filter: Value | None = None,  # noqa: A002  as in BaseStore.search
        limit: int = 10,
        offset: int = 0,
    ) -> list[SearchItem]:
        """As `find`."""

    @abstractmethod
    def update(
        self,
        namespace: tuple[str, ...],
        key: str,
        change: Callable[[Value | None], Value | None],
        *,
        index: Literal[False] | list[str] | None = None,
        ttl: float | None = None,
    ) -> Value | None:
        """Replaces an item's value by `change(value)`, atomically: no other writer comes in between.

        `change` gets None where there is no item, and returns None to delete it. It is called once, while the item is
        locked; it must not use the store. Returns the new value. `ttl`: minutes, as in `put`.
        """

    @abstractmethod
    async def aupdate(
        self,
        namespace: tuple[str, ...],
        key: str,
        change: Callable[[Value | None], Value | Awaitable[Value | None] | None],
        *,
        index: Literal[False] | list[str] | None = None,
        ttl: float | None = None,
    ) -> Value | None:
        """As `update`; `change` may be async."""

    @abstractmethod
    def page(
        self,
        namespace_prefix: tuple[str, ...],
        *,
        filter: Value | None = None,  # noqa: A002  as in BaseStore.search
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """All items in the order of their namespaces and keys, page by page.

        An item that is there from the first page to the last comes exactly once, whatever is written in between.
        Reading pages renews no lifetimes.
        """

    @abstractmethod
    async def apage(
        self,
        namespace_prefix: tuple[str, ...],
        *,
        filter: Value | None = None,  # noqa: A002  as in BaseStore.search
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """As `page`."""

    def search_by(self, op: SearchOp, by: By | None) -> By | None:
        """How a search is done; None where there is nothing to look for."""
        if not op.query:
            return None
        chosen = by or ("both" if self.index.embeddings is not None else "text")
        if chosen not in ("text", "vector", "both"):
            raise DefinitionError(f"by is {by!r}; it is 'text', 'vector' or 'both'")
        if chosen != "text" and self.index.embeddings is None:
            raise DefinitionError(f"by={chosen!r} needs embeddings: open_memory(embeddings=…)")
        return chosen


def plan(ops: Iterable[Op]) -> tuple[list[Work], list[Result | Exception]]:
    """What is to be done together, in order, and the results so far: errors of the operations that are wrong."""
    results: list[Result | Exception] = []
    works: list[Work] = []
    keys: set[tuple[tuple[str, ...], str]] = set()
    for place, op in enumerate(ops):
        results.append(None)
        try:
            check_op(op)
            if isinstance(op, SearchOp):
                _filter.parse(op.filter)
        except ValueError as error:
            results[place] = error
            continue
        kind = _Delete if isinstance(op, PutOp) and op.value is None else type(op)
        key = (op.namespace, op.key) if isinstance(op, PutOp) else None
        alone = kind in (SearchOp, ListNamespacesOp) or not works or works[-1].kind is not kind or key in keys
        if alone:
            works.append(Work(kind, []))
            keys.clear()
        if key is not None:
            keys.add(key)
        works[-1].ops.append((place, op))
    return works, results


class _Delete:
    """The kind of a PutOp without a value."""


DELETE, GET, PUT, SEARCH, LIST = _Delete, GetOp, PutOp, SearchOp, ListNamespacesOp


def put_op(namespace: tuple[str, ...], key: str, value: Value | None, index: Any, ttl: float | None) -> PutOp:
    """A checked PutOp."""
    op = PutOp(namespace, key, value, index, ttl)
    check_op(op)
    return op


def check_target(namespace: tuple[str, ...], key: str) -> None:
    """Raises for a namespace or key that cannot be written to."""
    check_namespace(namespace, write=True)
    check_key(namespace, key)


def search_op(
    prefix: tuple[str, ...], query: str | None, condition: Value | None, limit: int, offset: int = 0
) -> SearchOp:
    """A checked SearchOp that renews no lifetime but of what it finds by a query."""
    op = SearchOp(prefix, condition, limit, offset, query, refresh_ttl=query is not None)
    check_op(op)
    _filter.parse(condition)
    return op


def write_cursor(namespace: str, key: str) -> str:
    """An opaque text that names the last item of a page."""
    return base64.urlsafe_b64encode(json.dumps([namespace, key]).encode()).decode()


def read_cursor(cursor: str | None, limit: int) -> tuple[str, str] | None:
    """The last item before the wanted page. Raises DefinitionError for what is no cursor."""
    check_window(limit, 0)
    if limit == 0:
        raise DefinitionError("limit is 0; a page has at least one item")
    if cursor is None:
        return None
    try:
        namespace, key = json.loads(base64.urlsafe_b64decode(cursor))
    except (ValueError, TypeError, binascii.Error):
        raise DefinitionError(f"{cursor!r} is no cursor; pass the one of the page before, or None") from None
    return str(namespace), str(key)


def digest(text: str) -> bytes:
    """Tells whether a text has changed since its vector was made."""
    return hashlib.sha256(text.encode()).digest()[:16]


def search_item(item: Item, score: float | None) -> SearchItem:
    """An item as a search gives it."""
    return SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, score)


def settle(results: list[Result | Exception]) -> list[Result]:
    """The results of a batch; raises the error of an operation that failed, naming it. The others were done."""
    failed = [(place, one) for place, one in enumerate(results) if isinstance(one, Exception)]
    if not failed:
        return results  # type: ignore[return-value]  # there are no errors among them
    place, error = failed[0]
    if len(results) > 1:
        error.add_note(f"operation {place} of a batch of {len(results)}; {len(results) - len(failed)} others were done")
        for other, another in failed[1:]:
            error.add_note(f"operation {other} failed too: {another}")
    raise error
