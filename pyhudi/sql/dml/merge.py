"""MERGE INTO: the engine joins table and source by the statement's condition and computes what changes.

Where the condition is the key, and no clause looks at the table's other columns, there is nothing to join: the index
finds the source's keys, as for an upsert (`merge_by_key`).

Source: docs/sql-dml.md, "MERGE INTO".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.actions.changes.clauses import When
from pyhudi.actions.changes.computed import CLAUSE, Computed, NumberedClause
from pyhudi.errors import ConfigError
from pyhudi.model.keys import META_COLUMNS
from pyhudi.sql.columns import quoted
from pyhudi.sql.dml.changed_rows import ChangeQuery, change
from pyhudi.sql.dml.merge_by_key import query_by_key, upsert_rows
from pyhudi.sql.dml.merge_clauses import MergeClause, MergeSource, bindings_of, read_clauses, read_source
from pyhudi.sql.dml.merge_values import Described, by_clause, chosen, describe
from pyhudi.sql.dml.target import Scope, Target, cast, read_target
from pyhudi.sql.references import references
from pyhudi.sql.session import NamedTable, SqlFrame, SqlSession
from pyhudi.sql.table_options import options_of
from pyhudi.sql.tokens import Reader, SqlToken

__all__ = ["MergeStatement", "parse_merge"]

_TABLE_HAS, _SOURCE_HAS = "_pyhudi_in_table", "_pyhudi_in_source"


@dataclass(frozen=True, slots=True)
class MergeStatement:
    """A MERGE INTO."""

    named: NamedTable
    alias: str
    source: MergeSource
    condition: Reader
    clauses: tuple[MergeClause, ...]

    def run(self, session: SqlSession) -> SqlFrame:
        """Run it as one commit. In Spark it returns no rows, as in Hudi."""
        source = session.query(f"SELECT * FROM {self.source.text}")
        columns = session.columns_of(source)
        rows = upsert_rows(self._described(Target(self.named), columns), source, session)
        if rows is not None:
            result = session.write(self.named, rows, "upsert", options_of(session, self.named))
        else:
            result = change(
                session, self.named, "MERGE", lambda target: self._query(self._described(target, columns), session)
            )
        return session.frame_of_result(result)

    def _described(self, target: Target, columns: pa.Schema) -> Described:
        scope = Scope(self.named.name, self.alias)
        words = {name.lower() for name in columns.names}
        bound = bindings_of(self.condition, target, scope, words)
        return describe(self.clauses, target, scope, self.source, columns, bound)

    def _query(self, described: Described, session: SqlSession) -> ChangeQuery:
        return query_by_key(described, session) or self._joined(described)

    def _joined(self, merge: Described) -> ChangeQuery:
        """The change by a join: rows of the table that change, and new rows."""
        target, placed = merge.target, merge.target.config.populate_meta_fields
        if merge.moving and not placed:
            raise ConfigError(
                f"MERGE INTO {self.named.name} sets partition columns, and the table has no meta columns to find rows "
                "by. Leave the partition columns out."
            )
        names = target.schema.names if merge.moving else [*target.columns_in(self._tokens()), *merge.structs]
        read = target.read_columns(names)
        metas = [name for name in META_COLUMNS if name in read]
        columns = [quoted(self.alias, name) for name in metas]
        columns.append(f"{self._clause(merge)} AS {quoted(CLAUSE)}")
        columns += [f"{text} AS {quoted(name)}" for name, text in self._values(merge, placed).items()]
        condition = merge.scope.text(self.condition)

        def text(view: str) -> str:
            table = f"(SELECT *, true AS {_TABLE_HAS} FROM {view}) AS {quoted(self.alias)}"
            source = f"(SELECT *, true AS {_SOURCE_HAS} FROM {self.source.text}) AS {quoted(self.source.alias)}"
            joined = f"{source} {self._join()} {table} ON ({condition}\n)"
            return f"SELECT * FROM (SELECT {', '.join(columns)} FROM {joined}) AS q WHERE {quoted(CLAUSE)} IS NOT NULL"

        return ChangeQuery(read, text, tuple(self._numbered(merge)), self._computed(merge, placed))

    def _tokens(self) -> Iterator[SqlToken]:
        for reader in (self.condition, *(part for clause in self.clauses for part in clause.readers)):
            yield from reader.tokens[reader.at : reader.stop]

    def _join(self) -> str:
        kinds = {clause.when for clause in self.clauses}
        if When.NOT_MATCHED_BY_SOURCE in kinds:
            return "FULL OUTER JOIN" if When.NOT_MATCHED in kinds else "RIGHT JOIN"
        return "LEFT JOIN" if When.NOT_MATCHED in kinds else "INNER JOIN"

    def _clause(self, merge: Described) -> str:
        """The number of the clause that takes a row, as an expression."""
        table, source = quoted(self.alias, _TABLE_HAS), quoted(self.source.alias, _SOURCE_HAS)
        conditions = {
            When.MATCHED: f"{table} AND {source}",
            When.NOT_MATCHED: f"{source} AND {table} IS NULL",
            When.NOT_MATCHED_BY_SOURCE: f"{table} AND {source} IS NULL",
        }
        numbers = {when: by_clause(merge, when) for when in When}
        made = " ".join(f"WHEN {conditions[when]} THEN {text}" for when, text in numbers.items() if text)
        return f"CASE {made} END"

    def _values(self, merge: Described, placed: bool) -> dict[str, str]:
        """Each column that is set, as an expression of the clause's number."""
        target = merge.target
        texts: dict[str, dict[int, str]] = {}
        for number, values in enumerate(merge.values):
            given = dict(values)
            if number in merge.moving:
                given |= {name: quoted(self.alias, name) for name in target.schema.names if name not in given}
            elif merge.inserts and self.clauses[number].does == "insert":
                given |= {f.name: cast("NULL", f) for f in target.schema if f.name not in given}
            elif not placed:
                given |= {name: quoted(self.alias, name) for name in target.fixed}
            for name, text in given.items():
                texts.setdefault(name, {})[number] = text
        order = [name for name in target.schema.names if name in texts]
        return {name: chosen(texts[name], CLAUSE) for name in order}

    def _numbered(self, merge: Described) -> Iterator[NumberedClause]:
        target = merge.target
        everything = {name: name for name in target.schema.names}
        changeable = {name: name for name in everything if name not in target.fixed}
        arrivals = []
        for number, clause in enumerate(self.clauses):
            if clause.does == "insert":
                arrivals.append(number)
            elif clause.does == "delete":
                yield NumberedClause(When.MATCHED, "delete", number, {})
            else:
                yield NumberedClause(When.MATCHED, "update", number, {name: name for name in merge.values[number]})
        if merge.moving:
            yield NumberedClause(When.MATCHED, "delete", len(self.clauses), {})
            arrivals.append(len(self.clauses) + 1)
        for number in arrivals:
            yield NumberedClause(When.NOT_MATCHED, "insert", number, everything)
            # A new row whose key is there after all, under another condition, is what an upsert makes of it.
            yield NumberedClause(When.MATCHED, "update", number, changeable)

    def _computed(self, merge: Described, placed: bool) -> Computed:
        keys_bound = {name.partition(".")[0] for name in merge.target.keys} <= set(merge.bound.values)
        unknown = bool(merge.target.keys) and not (merge.bound.only_these and keys_bound)
        count = len(self.clauses)
        return Computed(
            is_placed=placed,
            moving=merge.moving,
            leaves=count,
            arrives=count + 1,
            looks_up=(bool(merge.target.keys) and merge.inserts and unknown) or bool(merge.moving),
        )


def parse_merge(text: str, tokens: Sequence[SqlToken], session: SqlSession) -> MergeStatement | None:
    """A MERGE INTO; None when its table is not one of Hudi's."""
    reader = Reader(text, tokens)
    reader.expect("MERGE INTO")
    session.catalog.expect(reference.name for reference in references(text, tokens))
    target = read_target(reader, session, "USING")
    if target is None:
        return None
    reader.expect("USING")
    source = read_source(reader)
    reader.expect("ON")
    condition = reader.until("WHEN MATCHED", "WHEN NOT MATCHED")
    if condition.at_end:
        raise condition.error("a condition")
    return MergeStatement(*target, source, condition, read_clauses(reader))
