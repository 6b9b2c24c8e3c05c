# ruff: noqa: S608  what is put together here are our own pieces; everything given travels as a parameter
"""The store's work on Postgres: generators of statements, see `_drive`."""

from collections.abc import Sequence
from typing import Any

from langgraph.store.base import GetOp, Item, ListNamespacesOp, PutOp, Result, SearchItem, SearchOp
from psycopg.rows import DictRow

from agentkit.memory import _filter, _rank, _text
from agentkit.memory._checks import SEPARATOR, to_json
from agentkit.memory._drive import Ask, Call, Embed, Steps
from agentkit.memory._store_base import (
    DELETE,
    GET,
    LIST,
    PUT,
    By,
    Index,
    Page,
    Value,
    Work,
    digest,
    put_op,
    search_item,
    write_cursor,
)

_ALIVE = "(store.expires_at IS NULL OR store.expires_at > now())"
_COLUMNS = "store.prefix, store.key, store.value, store.created_at, store.updated_at, store.ttl_minutes"
_ORDER = 'store.prefix COLLATE "C", store.key COLLATE "C"'
_CANDIDATES = 50  # of each ranking, at least, when two are fused

_PUT = """
INSERT INTO store AS s (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes, terms)
SELECT p.prefix, p.key, p.value::jsonb, clock_timestamp(), clock_timestamp(),
    clock_timestamp() + p.ttl * interval '1 minute', p.ttl, string_to_array(p.terms, ' ')
FROM unnest(%s::text[], %s::text[], %s::text[], %s::float8[], %s::text[])
    WITH ORDINALITY AS p(prefix, key, value, ttl, terms, place)
ORDER BY p.place
ON CONFLICT (prefix, key) DO UPDATE SET
    value = EXCLUDED.value,
    created_at = CASE WHEN s.expires_at <= now() THEN EXCLUDED.created_at ELSE s.created_at END,
    updated_at = EXCLUDED.updated_at,
    expires_at = EXCLUDED.expires_at,
    ttl_minutes = EXCLUDED.ttl_minutes,
    terms = EXCLUDED.terms
"""
_DELETE = (
    "DELETE FROM store USING unnest(%s::text[], %s::text[]) AS p(prefix, key)"
    " WHERE store.prefix = p.prefix AND store.key = p.key"
)
_GET = f"SELECT {_COLUMNS} FROM store WHERE store.prefix = %s AND store.key = %s AND {_ALIVE}"
_GET_MANY = (
    f"SELECT {_COLUMNS} FROM unnest(%s::text[], %s::text[]) AS p(prefix, key)"
    f" JOIN store ON store.prefix = p.prefix AND store.key = p.key WHERE {_ALIVE}"
)
_RENEW = (
    "UPDATE store SET expires_at = clock_timestamp() + store.ttl_minutes * interval '1 minute'"
    " FROM unnest(%s::text[], %s::text[]) AS p(prefix, key)"
    f" WHERE store.prefix = p.prefix AND store.key = p.key AND {_ALIVE}"
)
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s || chr(31) || %s, 8))"
_LOCK_ROWS = (
    "SELECT 1 FROM store JOIN unnest(%s::text[], %s::text[]) AS p(prefix, key)"
    " ON store.prefix = p.prefix AND store.key = p.key ORDER BY store.prefix, store.key FOR UPDATE OF store"
)
_DIGESTS = (
    "SELECT v.prefix, v.key, v.field_name, v.digest FROM store_vectors v"
    " JOIN unnest(%s::text[], %s::text[]) AS p(prefix, key) ON v.prefix = p.prefix AND v.key = p.key"
)
_DROP_VECTORS = (
    "DELETE FROM store_vectors v USING unnest(%s::text[], %s::text[], %s::text[]) AS p(prefix, key, field_name)"
    " WHERE v.prefix = p.prefix AND v.key = p.key AND v.field_name = p.field_name"
)
_PUT_VECTORS = """
INSERT INTO store_vectors (prefix, key, field_name, embedding, digest)
SELECT p.prefix, p.key, p.field_name, p.embedding::vector, p.digest
FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %b::bytea[])
    AS p(prefix, key, field_name, embedding, digest)
ON CONFLICT (prefix, key, field_name)
DO UPDATE SET embedding = EXCLUDED.embedding, digest = EXCLUDED.digest, updated_at = now()
"""
COUNT = f"SELECT count(*) AS n FROM store WHERE {_ALIVE}"
SWEEP = (
    "DELETE FROM store WHERE ctid = ANY(ARRAY("
    "SELECT ctid FROM store WHERE expires_at <= now() LIMIT 1000 FOR UPDATE SKIP LOCKED)) RETURNING 1 AS gone"
)


def work(group: Work, index: Index, by: By | None) -> Steps[list[Result]]:
    """Does one group of operations; the results in their order."""
    ops = [op for _, op in group.ops]
    if group.kind is GET:
        return _gets(ops)
    if group.kind is PUT:
        return _puts(ops, index)
    if group.kind is DELETE:
        return _deletes(ops)
    if group.kind is LIST:
        return _namespaces(ops[0])
    return _search(ops[0], by)


def _prefix(namespace: Sequence[str]) -> str:
    return SEPARATOR.join(namespace)


def _item(row: DictRow) -> Item:
    return Item(
        value=row["value"],
        key=row["key"],
        namespace=tuple(row["prefix"].split(SEPARATOR)),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def _renew(rows: Sequence[DictRow]) -> Steps[None]:
    """Renews the lifetime of those that have one."""
    mortal = [row for row in rows if row["ttl_minutes"] is not None]
    if mortal:
        yield Ask(_RENEW, ([row["prefix"] for row in mortal], [row["key"] for row in mortal]))


def _gets(ops: Sequence[GetOp]) -> Steps[list[Result]]:
    wanted = [(_prefix(op.namespace), op.key) for op in ops]
    if len(ops) == 1:
        rows = yield Ask(_GET, wanted[0])
    else:
        unique = sorted(set(wanted))
        rows = yield Ask(_GET_MANY, ([prefix for prefix, _ in unique], [key for _, key in unique]))
    found = {(row["prefix"], row["key"]): row for row in rows}
    renew = {at for at, op in zip(wanted, ops, strict=True) if op.refresh_ttl and at in found}
    yield from _renew([found[at] for at in sorted(renew)])
    return [_item(found[at]) if at in found else None for at in wanted]


def _puts(ops: Sequence[PutOp], index: Index) -> Steps[list[Result]]:
    prefixes = [_prefix(op.namespace) for op in ops]
    keys = [op.key for op in ops]
    texts = [_text.texts_of(op.value, index.paths(op)) for op in ops]
    vectors = None
    if index.embeddings is not None:
        vectors = yield from _changed_vectors(prefixes, keys, texts)
    terms = [
        None if op.index is False else " ".join(_text.terms_of([text for _, text in found]))
        for op, found in zip(ops, texts, strict=True)
    ]
    yield Ask(_PUT, (prefixes, keys, [to_json(op.value) for op in ops], [op.ttl for op in ops], terms))
    if vectors is not None:
        gone, new = vectors
        if gone:
            yield Ask(_DROP_VECTORS, [list(column) for column in zip(*gone, strict=True)])
        if new:
            yield Ask(_PUT_VECTORS, [list(column) for column in zip(*new, strict=True)])
    return [None] * len(ops)


_Gone = list[tuple[str, str, str]]
_New = list[tuple[str, str, str, str, bytes]]


def _changed_vectors(
    prefixes: Sequence[str], keys: Sequence[str], texts: Sequence[Sequence[tuple[str, str]]]
) -> Steps[tuple[_Gone, _New]]:
    """The vectors to delete and to write. Only changed texts are embedded; each distinct one once."""
    # the rows stay locked, so that nobody changes a vector that is found unchanged here
    yield Ask(_LOCK_ROWS, (list(prefixes), list(keys)))
    rows = yield Ask(_DIGESTS, (list(prefixes), list(keys)))
    there = {(row["prefix"], row["key"], row["field_name"]): row["digest"] for row in rows}
    wanted = {
        (prefix, key, field): text
        for prefix, key, found in zip(prefixes, keys, texts, strict=True)
        for field, text in found
    }
    changed = {at: text for at, text in wanted.items() if there.get(at) != digest(text)}
    distinct = list(dict.fromkeys(changed.values()))
    made = dict(zip(distinct, (yield Embed(distinct)), strict=True)) if distinct else {}
    new = [(*at, _vector(made[text]), digest(text)) for at, text in changed.items()]
    return [at for at in there if at not in wanted], new


def _vector(numbers: Sequence[float]) -> str:
    return "[" + ",".join(map(repr, map(float, numbers))) + "]"


def _deletes(ops: Sequence[PutOp]) -> Steps[list[Result]]:
    yield Ask(_DELETE, ([_prefix(op.namespace) for op in ops], [op.key for op in ops]))
    return [None] * len(ops)


def _scope(prefix: Sequence[str], condition: Value | None) -> tuple[str, list[Any]]:
    """What a search may see: alive, at or below the namespace, fulfilling the filter."""
    where, params = _filter.to_sql(_filter.parse(condition))
    if prefix:
        path = _prefix(prefix)
        below = path.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + ".%"
        where = f"(store.prefix = %s OR store.prefix LIKE %s) AND {where}"
        params = [path, below, *params]
    return f"{_ALIVE} AND {where}", params


def _search(op: SearchOp, by: By | None) -> Steps[list[Result]]:
    where, params = _scope(op.namespace_prefix, op.filter)
    if by is None or not op.query:
        sql = f"SELECT {_COLUMNS} FROM store WHERE {where} ORDER BY store.updated_at DESC, {_ORDER} LIMIT %s OFFSET %s"
        rows = yield Ask(sql, [*params, op.limit, op.offset])
        found = [search_item(_item(row), None) for row in rows]
    elif by == "both":
        many = max(_CANDIDATES, 2 * (op.limit + op.offset))
        words = yield from _by_words(where, params, op.query, many, 0)
        near = yield from _by_vector(where, params, op.query, many, 0)
        by_key = {(row["prefix"], row["key"]): row for row in (*near, *words)}
        ranked = _rank.fused(
            [((row["prefix"], row["key"]), row["share"]) for row in words],
            [((row["prefix"], row["key"]), 1.0) for row in near],
        )
        window = ranked[op.offset : op.offset + op.limit]
        rows = [by_key[at] for at, _ in window]
        found = [search_item(_item(by_key[at]), score) for at, score in window]
    else:
        ranking = _by_words if by == "text" else _by_vector
        rows = yield from ranking(where, params, op.query, op.limit, op.offset)
        found = [search_item(_item(row), row["score"]) for row in rows]
    if op.refresh_ttl:
        yield from _renew(rows)
    results: list[SearchItem] = found
    return [results]


def _by_words(where: str, params: Sequence[Any], query: str, limit: int, offset: int) -> Steps[list[DictRow]]:
    terms = _text.query_terms(query)
    if not terms:
        return []
    factor = (
        f"{_rank.SATURATION + 1} / (1 + {_rank.SATURATION} * (1 - {_rank.LENGTH} "
        f"+ {_rank.LENGTH} * cardinality(store.terms) / greatest(scope.mean, 1)))"
    )
    sql = f"""
    WITH scope AS (
        SELECT count(*)::float8 AS n, avg(cardinality(store.terms))::float8 AS mean
        FROM store WHERE store.terms IS NOT NULL AND {where}
    ), hit AS MATERIALIZED (
        SELECT store.prefix, store.key, w.term
        FROM store, unnest(store.terms) AS w(term)
        WHERE store.terms && %s::text[] AND w.term = ANY(%s::text[]) AND {where}
    ), weight AS (
        SELECT hit.term, ln(1 + (scope.n - count(*) + 0.5) / (count(*) + 0.5)) AS worth
        FROM hit, scope GROUP BY hit.term, scope.n
    ), asked AS (
        -- terms that no item has count too: they were asked for
        SELECT sum(coalesce(weight.worth, ln(1 + (scope.n + 0.5) / 0.5))) AS worth
        FROM scope, unnest(%s::text[]) AS q(term) LEFT JOIN weight ON weight.term = q.term
    ), total AS (
        SELECT hit.prefix, hit.key, sum(weight.worth) AS worth FROM hit JOIN weight USING (term)
        GROUP BY hit.prefix, hit.key
    )
    SELECT {_COLUMNS}, (total.worth * {factor})::float8 AS score, (total.worth / asked.worth)::float8 AS share
    FROM total JOIN store USING (prefix, key), scope, asked
    ORDER BY score DESC, store.updated_at DESC, {_ORDER} LIMIT %s OFFSET %s
    """
    rows: list[DictRow] = yield Ask(sql, [*params, terms, terms, *params, terms, limit, offset])
    return rows


def _by_vector(where: str, params: Sequence[Any], query: str, limit: int, offset: int) -> Steps[list[DictRow]]:
    # exact, not approximate: a scope is one person's items, and an approximate index loses those a filter leaves
    (vector,) = yield Embed([query], query=True)
    sql = f"""
    WITH near AS MATERIALIZED (
        SELECT store.prefix, store.key, min(v.embedding <=> %s::vector) AS far
        FROM store JOIN store_vectors v ON v.prefix = store.prefix AND v.key = store.key
        WHERE {where} GROUP BY store.prefix, store.key
    )
    SELECT {_COLUMNS}, (1 - near.far)::float8 AS score
    FROM near JOIN store ON store.prefix = near.prefix AND store.key = near.key
    ORDER BY near.far, store.updated_at DESC, {_ORDER} LIMIT %s OFFSET %s
    """
    rows: list[DictRow] = yield Ask(sql, [_vector(vector), *params, limit, offset])
    return rows


def _namespaces(op: ListNamespacesOp) -> Steps[list[Result]]:
    # labels hold no dots, so the array of a prefix's parts is its namespace, and sorts like a tuple
    parts = "string_to_array(store.prefix, '.') COLLATE \"C\""
    conditions, params = [_ALIVE], list[Any]()
    for condition in op.match_conditions or ():
        for place, label in enumerate(condition.path):
            size = f"cardinality({parts})"
            at = f"{place + 1}" if condition.match_type == "prefix" else f"{size} - {len(condition.path) - 1 - place}"
            conditions.append(f"{size} >= {len(condition.path)}")
            if label != "*":
                conditions.append(f"(string_to_array(store.prefix, '.'))[{at}] = %s")
                params.append(label)
    shown = f"({parts})[1:{int(op.max_depth)}]" if op.max_depth is not None else parts
    sql = f"""
    SELECT DISTINCT {shown} AS namespace FROM store WHERE {" AND ".join(conditions)}
    ORDER BY namespace LIMIT %s OFFSET %s
    """
    rows = yield Ask(sql, [*params, op.limit, op.offset])
    return [[tuple(row["namespace"]) for row in rows]]


def update(namespace: tuple[str, ...], key: str, index: Index, fields: Any, ttl: float | None) -> Steps[Value | None]:
    """Locks the item, has its value changed, and writes it."""
    at = (_prefix(namespace), key)
    yield Ask(_LOCK, at)  # an item that is not there yet has no row to lock
    rows = yield Ask(_GET + " FOR UPDATE", at)
    value: Value | None = yield Call(rows[0]["value"] if rows else None)
    op = put_op(namespace, key, value, fields, ttl)
    yield from _deletes([op]) if value is None else _puts([op], index)
    return value


def page(prefix: tuple[str, ...], condition: Value | None, limit: int, after: tuple[str, str] | None) -> Steps[Page]:
    """One page, in the order of prefix and key."""
    where, params = _scope(prefix, condition)
    if after is not None:
        where += f" AND ({_ORDER}) > (%s, %s)"
        params += after
    sql = f"SELECT {_COLUMNS} FROM store WHERE {where} ORDER BY {_ORDER} LIMIT %s"
    rows = yield Ask(sql, [*params, limit + 1])
    more = len(rows) > limit
    rows = rows[:limit]
    return Page(
        items=[_item(row) for row in rows],
        cursor=write_cursor(rows[-1]["prefix"], rows[-1]["key"]) if more else None,
    )
