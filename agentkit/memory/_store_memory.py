"""The store in memory: the same meaning as on Postgres, gone when the process ends."""

import inspect
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from agentkit.memory import _filter, _rank, _text
from agentkit.memory._checks import SEPARATOR, to_json
from agentkit.memory._drive import Embed, aembed, embed
from agentkit.memory._store_base import (
    By,
    Index,
    Page,
    Store,
    Value,
    check_target,
    digest,
    plan,
    put_op,
    read_cursor,
    search_item,
    search_op,
    settle,
    write_cursor,
)

_At = tuple[tuple[str, ...], str]
_Vectors = Mapping[str, tuple[bytes, Sequence[float]]]


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """An item as it is kept: its value as JSON, so that nobody changes it from outside."""

    json: str
    created: datetime
    updated: datetime
    ttl: float | None
    expires: datetime | None
    terms: Sequence[str] | None
    vectors: _Vectors

    def item(self, at: _At) -> Item:
        return Item(
            value=json.loads(self.json), key=at[1], namespace=at[0], created_at=self.created, updated_at=self.updated
        )


class InMemoryStore(Store):
    """A store for tests and for what need not last. Safe for threads.

    Args:
        embeddings: makes vectors of texts, for `find`.
        fields: the paths of the texts that are searched by default; "$" is all text of an item.
        ttl: default lifetime in minutes and whether reading renews it, as langgraph's TTLConfig.
    """

    def __init__(
        self,
        *,
        embeddings: Embeddings | None = None,
        fields: Sequence[str] = ("$",),
        ttl: TTLConfig | None = None,
    ) -> None:
        super().__init__(Index(fields=tuple(fields), embeddings=embeddings), ttl)
        self._entries: dict[_At, _Entry] = {}
        self._lock = threading.RLock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Does the operations in their order; see `Store` for what a bad one does."""
        return self._batch(ops, None)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`."""
        return await self._abatch(ops, None)

    def _batch(self, ops: Iterable[Op], by: By | None) -> list[Result]:
        works, results = plan(ops)
        embeddings = self.index.embeddings
        for group in works:
            for place, op in group.ops:
                try:
                    wish = self._wish(op, by)
                    vectors = embed(embeddings, wish) if wish is not None and embeddings is not None else []
                    results[place] = self._do(op, by, vectors)
                except ValueError as error:
                    results[place] = error
        return settle(results)

    async def _abatch(self, ops: Iterable[Op], by: By | None) -> list[Result]:
        works, results = plan(ops)
        embeddings = self.index.embeddings
        for group in works:
            for place, op in group.ops:
                try:
                    wish = self._wish(op, by)
                    vectors = await aembed(embeddings, wish) if wish is not None and embeddings is not None else []
                    results[place] = self._do(op, by, vectors)
                except ValueError as error:
                    results[place] = error
        return settle(results)

    def _wish(self, op: Op, by: By | None) -> Embed | None:
        """What the operation needs vectors of."""
        if self.index.embeddings is None:
            return None
        if isinstance(op, SearchOp):
            chosen = self.search_by(op, by)
            return Embed([op.query or ""], query=True) if chosen in ("vector", "both") else None
        if isinstance(op, PutOp) and op.value is not None:
            with self._lock:
                changed = self._changed(op)
            return Embed(changed) if changed else None
        return None

    def _changed(self, op: PutOp) -> list[str]:
        """The distinct texts of which the item has no vector yet."""
        entry = self._entries.get((op.namespace, op.key))
        there = {known for known, _ in entry.vectors.values()} if entry is not None else set()
        texts = _text.texts_of(op.value, self.index.paths(op))
        return list(dict.fromkeys(text for _, text in texts if digest(text) not in there))

    def _do(self, op: Op, by: By | None, vectors: Sequence[Sequence[float]]) -> Result:
        with self._lock:
            self._sweep()
            if isinstance(op, GetOp):
                return self._get(op)
            if isinstance(op, PutOp):
                self._put(op, vectors)
                return None
            if isinstance(op, SearchOp):
                return self._search(op, by, vectors)
            assert isinstance(op, ListNamespacesOp)  # noqa: S101  `plan` has refused all others
            return self._namespaces(op)

    def _sweep(self) -> None:
        now = datetime.now(UTC)
        for at in [at for at, entry in self._entries.items() if entry.expires is not None and entry.expires <= now]:
            del self._entries[at]

    def _renew(self, at: _At) -> None:
        entry = self._entries[at]
        if entry.ttl is not None:
            self._entries[at] = replace(entry, expires=datetime.now(UTC) + timedelta(minutes=entry.ttl))

    def _get(self, op: GetOp) -> Item | None:
        at = (op.namespace, op.key)
        entry = self._entries.get(at)
        if entry is None:
            return None
        if op.refresh_ttl:
            self._renew(at)
        return entry.item(at)

    def _put(self, op: PutOp, vectors: Sequence[Sequence[float]]) -> None:
        at = (op.namespace, op.key)
        if op.value is None:
            self._entries.pop(at, None)
            return
        old = self._entries.get(at)
        now = datetime.now(UTC)
        texts = _text.texts_of(op.value, self.index.paths(op))
        made: dict[bytes, Sequence[float]] = dict(old.vectors.values()) if old is not None else {}
        made.update(zip(map(digest, self._changed(op)), vectors, strict=False))
        self._entries[at] = _Entry(
            json=to_json(op.value),
            created=old.created if old is not None else now,
            updated=now,
            ttl=op.ttl,
            expires=None if op.ttl is None else now + timedelta(minutes=op.ttl),
            terms=None if op.index is False else _text.terms_of([text for _, text in texts]),
            vectors={name: (digest(text), made[digest(text)]) for name, text in texts if digest(text) in made},
        )

    def _scope(self, prefix: tuple[str, ...], condition: Value | None) -> dict[_At, _Entry]:
        parsed = _filter.parse(condition)
        return {
            at: entry
            for at, entry in self._entries.items()
            if at[0][: len(prefix)] == prefix and _filter.matches(parsed, json.loads(entry.json))
        }

    def _search(self, op: SearchOp, by: By | None, vectors: Sequence[Sequence[float]]) -> list[SearchItem]:
        scope = self._scope(op.namespace_prefix, op.filter)
        # the order of whatever else is equal: last written first, then by name
        order = sorted(scope, key=_name)
        order.sort(key=lambda at: scope[at].updated, reverse=True)
        ranked = self._ranked({at: scope[at] for at in order}, op, self.search_by(op, by), vectors)
        found = ranked[op.offset : op.offset + op.limit]
        if op.refresh_ttl:
            for at, _ in found:
                self._renew(at)
        return [search_item(scope[at].item(at), score) for at, score in found]

    def _ranked(
        self, scope: Mapping[_At, _Entry], op: SearchOp, by: By | None, vectors: Sequence[Sequence[float]]
    ) -> list[tuple[_At, float | None]]:
        if by is None:
            return [(at, None) for at in scope]
        terms = {at: entry.terms for at, entry in scope.items() if entry.terms is not None}
        words = _rank.by_words(terms, _text.query_terms(op.query or "")) if by != "vector" else []
        near = _near(scope, vectors[0]) if by != "text" else []
        if by == "both":
            return list(_rank.fused([(at, share) for at, _, share in words], [(at, 1.0) for at, _ in near]))
        return [(at, score) for at, score, _ in words] if by == "text" else list(near)

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = {
            namespace[: op.max_depth]
            for namespace, _ in self._entries
            if all(_fits(condition, namespace) for condition in op.match_conditions or ())
        }
        return sorted(found)[op.offset : op.offset + op.limit]

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
        """See `Store.find`."""
        found: Any = self._batch([search_op(namespace_prefix, query, filter, limit, offset)], by)[0]
        return list(found)

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
        """See `Store.find`."""
        found: Any = (await self._abatch([search_op(namespace_prefix, query, filter, limit, offset)], by))[0]
        return list(found)

    def update(
        self,
        namespace: tuple[str, ...],
        key: str,
        change: Callable[[Value | None], Value | None],
        *,
        index: Literal[False] | list[str] | None = None,
        ttl: float | None = None,
    ) -> Value | None:
        """See `Store.update`."""
        check_target(namespace, key)
        while True:
            seen, old = self._peek(namespace, key)
            value = change(old)
            op = put_op(namespace, key, value, index, ttl)
            wish = self._wish(op, None)
            vectors = embed(self.index.embeddings, wish) if wish is not None and self.index.embeddings else []
            if self._swap(op, seen, vectors):
                return value

    async def aupdate(
        self,
        namespace: tuple[str, ...],
        key: str,
        change: Callable[[Value | None], Value | Awaitable[Value | None] | None],
        *,
        index: Literal[False] | list[str] | None = None,
        ttl: float | None = None,
    ) -> Value | None:
        """See `Store.update`."""
        check_target(namespace, key)
        while True:
            seen, old = self._peek(namespace, key)
            answer = change(old)
            value: Value | None = await answer if inspect.isawaitable(answer) else answer
            op = put_op(namespace, key, value, index, ttl)
            wish = self._wish(op, None)
            vectors = await aembed(self.index.embeddings, wish) if wish is not None and self.index.embeddings else []
            if self._swap(op, seen, vectors):
                return value

    def _peek(self, namespace: tuple[str, ...], key: str) -> tuple[_Entry | None, Value | None]:
        with self._lock:
            self._sweep()
            entry = self._entries.get((namespace, key))
        return entry, None if entry is None else json.loads(entry.json)

    def _swap(self, op: PutOp, seen: _Entry | None, vectors: Sequence[Sequence[float]]) -> bool:
        """Writes if nobody else has meanwhile."""
        with self._lock:
            if self._entries.get((op.namespace, op.key)) is not seen:
                return False
            self._put(op, vectors)
            return True

    def page(
        self,
        namespace_prefix: tuple[str, ...],
        *,
        filter: Value | None = None,  # noqa: A002  as in BaseStore.search
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """See `Store.page`."""
        search_op(namespace_prefix, None, filter, limit)
        after = read_cursor(cursor, limit)
        with self._lock:
            self._sweep()
            scope = self._scope(namespace_prefix, filter)
        names = sorted((_name(at), at) for at in scope if after is None or _name(at) > after)
        shown = names[:limit]
        return Page(
            items=[scope[at].item(at) for _, at in shown],
            cursor=write_cursor(*shown[-1][0]) if len(names) > limit else None,
        )

    async def apage(self, namespace_prefix: tuple[str, ...], **how: Any) -> Page:
        """See `Store.page`."""
        return self.page(namespace_prefix, **how)


def _name(at: _At) -> tuple[str, str]:
    return SEPARATOR.join(at[0]), at[1]


def _near(scope: Mapping[_At, _Entry], vector: Sequence[float]) -> list[tuple[_At, float]]:
    scores = {
        at: max(_rank.cosine(vector, one) for _, one in entry.vectors.values())
        for at, entry in scope.items()
        if entry.vectors
    }
    return sorted(scores.items(), key=lambda pair: -pair[1])


def _fits(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
