"""MERGE INTO whose condition is the key and whose clauses read only the source: the index does the matching.

Each row of the source gets two numbers: the clause to apply if the table has its key, and the clause otherwise.

Source: docs/sql-dml.md, "How a statement becomes a commit".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from pyhudi.actions.changes.clauses import When
from pyhudi.actions.changes.computed import CLAUSE, NEW_CLAUSE, NEW_VALUE, Computed, NumberedClause
from pyhudi.model.keys import DELETE_FLAG_COLUMN
from pyhudi.sql.columns import quoted
from pyhudi.sql.dml.changed_rows import ChangeQuery
from pyhudi.sql.dml.merge_clauses import same_words
from pyhudi.sql.dml.merge_values import BoundMerge, clause_number, value_by_clause
from pyhudi.sql.dml.target import cast, value_of
from pyhudi.sql.session import SqlFrame, SqlSession
from pyhudi.sql.table_options import options_of
from pyhudi.sql.tokens import Reader, dotted_at

__all__ = ["query_by_key", "upsert_rows"]

_GLOBAL_WORDS = ("GLOBAL", "RECORD")  # in the names of indexes that may find a key in another partition


def query_by_key(merge: BoundMerge, session: SqlSession) -> ChangeQuery | None:
    """The change query without a join; None if the statement needs one."""
    if not merge.target.paths_tell_values or not _fits(merge) or not _keys_compare(merge, session):
        return None
    values = _texts(merge)
    matched = clause_number(merge, When.MATCHED) or "NULL"
    not_matched = clause_number(merge, When.NOT_MATCHED) or "NULL"
    # The condition is unknown for a row with a null, though the index may find its key in the null partition.
    columns = [
        f"CASE WHEN {_any_null(merge)} THEN {not_matched} ELSE {matched} END AS {quoted(CLAUSE)}",
        f"{not_matched} AS {quoted(NEW_CLAUSE)}",
        *(f"{text} AS {quoted(name)}" for name, text in values.items()),
    ]
    text = (
        f"SELECT * FROM (SELECT {', '.join(columns)} FROM {merge.source.text}) AS q "
        f"WHERE {quoted(CLAUSE)} IS NOT NULL OR {quoted(NEW_CLAUSE)} IS NOT NULL"
    )
    clauses = tuple(_numbered(merge, values))
    return ChangeQuery(None, lambda _: text, clauses, Computed(is_placed=False))


def _any_null(merge: BoundMerge) -> str:
    """The expression that is true for a row of the source without a value for a field of the condition."""
    return " OR ".join(f"({reader.cut(reader.at, reader.stop)}\n) IS NULL" for reader in merge.bindings.values.values())


def upsert_rows(merge: BoundMerge, source: SqlFrame, session: SqlSession) -> SqlFrame | None:
    """The rows of a MERGE INTO that is equivalent to an upsert by ordering values; None for any other.

    Such a statement updates and inserts all columns without conditions, for example by `*`. The rows in the files need
    not be read.

    Args: source: the source with all its columns; it is returned itself if the table has the same columns.
    """
    target = merge.target
    by_clause_kind = {clause.verb: number for number, clause in enumerate(merge.clauses) if clause.condition is None}
    if set(by_clause_kind) != {"update", "insert"} or len(merge.clauses) != 2 or not target.config.ordering_fields:
        return None
    index = str(options_of(session, target.table).get("hoodie.index.type", "")).upper()
    if target.config.record_merge_mode != "EVENT_TIME_ORDERING" or any(word in index for word in _GLOBAL_WORDS):
        return None
    if DELETE_FLAG_COLUMN in target.schema.names or not _fits(merge) or not _keys_compare(merge, session):
        return None
    updated, inserted = (merge.values[by_clause_kind[does]] for does in ("update", "insert"))
    same = all(inserted.get(name) == text for name, text in updated.items())
    everything = set(target.schema.names)
    if not same or {*updated, *target.fixed} != everything or set(inserted) != everything:
        return None
    if _is_source(inserted, merge):
        return source
    texts = (f"{text} AS {quoted(name)}" for name, text in inserted.items())
    return session.query(f"SELECT {', '.join(texts)} FROM {merge.source.text}")


def _is_source(values: Mapping[str, str], merge: BoundMerge) -> bool:
    """True if these values are exactly the source's columns, all of them and unchanged."""
    columns, schema = merge.columns, merge.target.schema
    if sorted(columns.names) != sorted(values) or any(columns.field(n).type != schema.field(n).type for n in values):
        return False
    fields = [schema.field(name) for name in columns.names]
    return values == {
        field.name: value_of(f"({quoted(merge.source.alias, field.name)}\n)", field, merge.target, field.type)
        for field in fields
    }


def _fits(merge: BoundMerge) -> bool:
    """True if the index pairs the same rows as the condition."""
    target, keys = merge.target, merge.bindings.values
    if not target.keys or any("." in name for name in target.keys) or not merge.bindings.only_these:
        return False
    if merge.moving or merge.structs:
        return False
    if set(keys) != set(target.fixed) or set(target.fixed) < set(target.config.partition_fields):
        return False
    if any(clause.when is When.NOT_MATCHED_BY_SOURCE for clause in merge.clauses):
        return False
    if any(_reads_table(reader, merge) for reader in keys.values()):
        return False
    for clause in merge.clauses:
        if clause.when is When.MATCHED and any(_reads_table(reader, merge) for reader in clause.readers):
            return False
        if clause.verb == "insert" and not _inserts_its_key(merge, clause.star, clause.assignments):
            return False
    return True


def _inserts_its_key(merge: BoundMerge, star: bool, assignments: object) -> bool:
    """True if a new row gets the key in the condition."""
    if star:
        sources = {name: quoted(merge.source.alias, name) for name in merge.columns.names}
        texts = {merge.target.find(name): text for name, text in sources.items()}
        return all(_same_text(texts.get(name), merge.bindings.values[name], merge) for name in merge.target.fixed)
    assert isinstance(assignments, tuple)
    values = {one.column(merge.target, merge.scope).name: one.value for one in assignments}
    return all(name in values and same_words(values[name], merge.bindings.values[name]) for name in merge.target.fixed)


def _same_text(text: str | None, reader: Reader, merge: BoundMerge) -> bool:
    if text is None:
        return False
    expression, plain = _plain_text(reader.cut(reader.at, reader.stop)), _plain_text(text)
    return expression in (plain, plain.removeprefix(f"{merge.source.alias.lower()}."))


def _plain_text(name: str) -> str:
    return name.replace("`", "").lower()


def _reads_table(reader: Reader, merge: BoundMerge) -> bool:
    """True if an expression may read a column of the table, directly or in a query."""
    source = {name.lower() for name in merge.columns.names}
    tokens, at = reader.tokens[: reader.stop], reader.at
    while at < reader.stop:
        token = tokens[at]
        if token.is_word("SELECT") or token.is_symbol("*"):
            return True
        if not token.is_name:
            at += 1
            continue
        parts, at = dotted_at(tokens, at)
        if len(merge.scope.without_table(parts)) < len(parts):
            return True
        if parts[0].lower() not in source and merge.target.find(parts[0]) is not None:
            return True
    return False


def _keys_compare(merge: BoundMerge, session: SqlSession) -> bool:
    """True if the types of the key fields and their values are such that equal values make equal keys."""
    pairs = [(name, reader.cut(reader.at, reader.stop)) for name, reader in merge.bindings.values.items()]
    plain = {_plain_text(quoted(merge.source.alias, name)): name for name in merge.columns.names}
    if all(_plain_text(text) in plain for _, text in pairs):
        kinds = [(name, merge.columns.field(plain[_plain_text(text)]).type) for name, text in pairs]
        return all(_alike(kind, merge.target.schema.field(name).type) for name, kind in kinds)
    texts = ", ".join(f"({text}) AS {quoted(name)}" for name, text in pairs)
    schema = session.columns_of(session.query(f"SELECT {texts} FROM {merge.source.text}"))
    return all(_alike(schema.field(n).type, merge.target.schema.field(name).type) for n, (name, _) in enumerate(pairs))


def _alike(source: pa.DataType, column: pa.DataType) -> bool:
    if pa.types.is_integer(source) and pa.types.is_integer(column):
        return source.bit_width <= column.bit_width
    return source == column or (pa.types.is_large_string(source) and pa.types.is_string(column))


def _texts(merge: BoundMerge) -> dict[str, str]:
    """The columns of the computed rows: keys, values for stored rows, and values for new rows if they differ."""
    target = merge.target
    texts: dict[str, str] = {}
    for name, reader in merge.bindings.values.items():
        texts[name] = cast(f"({reader.cut(reader.at, reader.stop)}\n)", target.schema.field(name))
    updates, inserts_by_column = _by_column(merge, "update"), _by_column(merge, "insert")
    if inserts_by_column:
        inserts = [n for n, clause in enumerate(merge.clauses) if clause.verb == "insert"]
        for field in target.schema:
            clause_texts = inserts_by_column.setdefault(field.name, {})
            clause_texts |= {number: cast("NULL", field) for number in inserts if number not in clause_texts}
    expressions = {name: value_by_clause(numbers, CLAUSE) for name, numbers in updates.items()}
    for name, numbers in inserts_by_column.items():
        text = value_by_clause(numbers, NEW_CLAUSE)
        if name not in texts:
            expressions[name if expressions.get(name, text) == text else NEW_VALUE + name] = text
    return texts | expressions


def _by_column(merge: BoundMerge, verb: str) -> dict[str, dict[int, str]]:
    columns: dict[str, dict[int, str]] = {}
    for number, (clause, values) in enumerate(zip(merge.clauses, merge.values, strict=True)):
        if clause.verb == verb:
            for name, text in values.items():
                columns.setdefault(name, {})[number] = text
    return columns


def _numbered(merge: BoundMerge, texts: Mapping[str, str]) -> Iterator[NumberedClause]:
    for number, (clause, values) in enumerate(zip(merge.clauses, merge.values, strict=True)):
        if clause.verb == "insert":
            columns = {
                name: NEW_VALUE + name if NEW_VALUE + name in texts else name for name in merge.target.schema.names
            }
            yield NumberedClause(When.NOT_MATCHED, "insert", number, columns, NEW_CLAUSE)
            # A row with a null is new by the condition. It updates a stored row of its key, as in an upsert.
            fixed = {*merge.target.fixed} - merge.target.loose
            changeable = {name: column for name, column in columns.items() if name not in fixed}
            yield NumberedClause(When.MATCHED, "update", number, changeable)
        else:
            yield NumberedClause(When.MATCHED, clause.verb, number, {name: name for name in values})
