"""MERGE INTO: the engine joins table and source by the statement's condition and computes the changes.

No join is needed if the condition is the key and no clause reads other columns of the table. The index then finds the
source's keys, as for an upsert (`merge_by_key`).

Source: docs/sql-dml.md, "MERGE INTO".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.actions.changes.clauses import When
from pyhudi.actions.changes.computed import CLAUSE, Computed, NumberedClause
from pyhudi.actions.result import WriteResult
from pyhudi.errors import ConfigError
from pyhudi.expressions.terms import check_repeatable
from pyhudi.model.keys import META_COLUMNS
from pyhudi.sql.columns import quoted
from pyhudi.sql.dml.changed_rows import ChangeQuery, change
from pyhudi.sql.dml.compared_texts import check_constants, check_source_types
from pyhudi.sql.dml.merge_by_key import query_by_key, upsert_rows
from pyhudi.sql.dml.merge_clauses import MergeClause, MergeSource, bindings_of, read_clauses, read_source
from pyhudi.sql.dml.merge_values import BoundMerge, bind_merge, clause_number, column_type, value_by_clause
from pyhudi.sql.dml.target import Scope, Target, cast, read_target
from pyhudi.sql.references import references
from pyhudi.sql.session import NamedTable, SqlFrame, SqlSession
from pyhudi.sql.table_options import options_of
from pyhudi.sql.tokens import Reader, SqlToken

__all__ = ["MergeStatement", "merge_into", "parse_merge"]

_TABLE_HAS, _SOURCE_HAS = "_pyhudi_in_table", "_pyhudi_in_source"


@dataclass(frozen=True, slots=True)
class MergeStatement:
    """A MERGE INTO."""

    table: NamedTable
    alias: str
    source: MergeSource
    condition: Reader
    clauses: tuple[MergeClause, ...]

    def run(self, session: SqlSession) -> SqlFrame:
        """Run it as one commit. The result has no rows in Spark, as in Hudi."""
        return session.frame_of_result(self.write(session))

    def write(self, session: SqlSession) -> WriteResult:
        """Run it as one commit."""
        source = session.query(f"SELECT * FROM {self.source.text}")
        columns = session.columns_of(source)
        rows = upsert_rows(self._bind(Target(self.table), columns), source, session)
        if rows is not None:
            return session.write(self.table, rows, "upsert", options_of(session, self.table))
        return change(session, self.table, "MERGE", lambda target: self._query(self._bind(target, columns), session))

    def _bind(self, target: Target, columns: pa.Schema) -> BoundMerge:
        scope = Scope(self.table.name, self.alias)
        words = {name.lower() for name in columns.names}
        bindings = bindings_of(self.condition, target, scope, words)
        kinds = {name: column_type(value, self.source, columns) for name, value in bindings.values.items()}
        check_source_types({name: kind for name, kind in kinds.items() if kind is not None}, target)
        for condition in (self.condition, *(clause.condition for clause in self.clauses)):
            check_constants(condition, target, scope)
        return bind_merge(self.clauses, target, scope, self.source, columns, bindings)

    def _query(self, merge: BoundMerge, session: SqlSession) -> ChangeQuery:
        return query_by_key(merge, session) or self._join_query(merge)

    def _join_query(self, merge: BoundMerge) -> ChangeQuery:
        """The change query with a join: it returns changed rows of the table, and new rows."""
        target, is_placed = merge.target, merge.target.config.populate_meta_fields
        if merge.moving and not is_placed:
            raise ConfigError(
                f"MERGE INTO {self.table.name} sets partition columns, and the table has no meta columns to find rows "
                "by. Leave the partition columns out."
            )
        names = target.schema.names if merge.moving else [*target.columns_in(self._tokens()), *merge.structs]
        read = target.read_columns(names)
        metas = [name for name in META_COLUMNS if name in read]
        columns = [quoted(self.alias, name) for name in metas]
        columns.append(f"{self._clause(merge)} AS {quoted(CLAUSE)}")
        columns += [f"{text} AS {quoted(name)}" for name, text in self._values(merge, is_placed).items()]
        condition = merge.scope.text(self.condition)

        def text(view: str) -> str:
            table = f"(SELECT *, true AS {_TABLE_HAS} FROM {view}) AS {quoted(self.alias)}"
            source = f"(SELECT *, true AS {_SOURCE_HAS} FROM {self.source.text}) AS {quoted(self.source.alias)}"
            join = f"{source} {self._join()} {table} ON ({condition}\n)"
            return f"SELECT * FROM (SELECT {', '.join(columns)} FROM {join}) AS q WHERE {quoted(CLAUSE)} IS NOT NULL"

        return ChangeQuery(read, text, tuple(self._numbered_clauses(merge)), self._computed(merge, is_placed))

    def _tokens(self) -> Iterator[SqlToken]:
        for reader in (self.condition, *(part for clause in self.clauses for part in clause.readers)):
            yield from reader.tokens[reader.at : reader.stop]

    def _join(self) -> str:
        kinds = {clause.when for clause in self.clauses}
        if When.NOT_MATCHED_BY_SOURCE in kinds:
            return "FULL OUTER JOIN" if When.NOT_MATCHED in kinds else "RIGHT JOIN"
        return "LEFT JOIN" if When.NOT_MATCHED in kinds else "INNER JOIN"

    def _clause(self, merge: BoundMerge) -> str:
        """The expression for the number of the clause that handles a row."""
        table, source = quoted(self.alias, _TABLE_HAS), quoted(self.source.alias, _SOURCE_HAS)
        conditions = {
            When.MATCHED: f"{table} AND {source}",
            When.NOT_MATCHED: f"{source} AND {table} IS NULL",
            When.NOT_MATCHED_BY_SOURCE: f"{table} AND {source} IS NULL",
        }
        numbers = {when: clause_number(merge, when) for when in When}
        cases = " ".join(f"WHEN {conditions[when]} THEN {text}" for when, text in numbers.items() if text)
        return f"CASE {cases} END"

    def _values(self, merge: BoundMerge, is_placed: bool) -> dict[str, str]:
        """Column → its new value, as an expression over the clause's number."""
        target = merge.target
        texts: dict[str, dict[int, str]] = {}
        for number, values in enumerate(merge.values):
            expressions = dict(values)
            names = [name for name in target.schema.names if name not in expressions]
            if number in merge.moving:
                expressions |= {name: quoted(self.alias, name) for name in names}
            elif merge.inserts and self.clauses[number].verb == "insert":
                expressions |= {name: cast("NULL", target.schema.field(name)) for name in names}
            elif not is_placed:
                expressions |= {name: quoted(self.alias, name) for name in target.fixed}
            for name, text in expressions.items():
                texts.setdefault(name, {})[number] = text
        order = [name for name in target.schema.names if name in texts]
        return {name: value_by_clause(texts[name], CLAUSE) for name in order}

    def _numbered_clauses(self, merge: BoundMerge) -> Iterator[NumberedClause]:
        target = merge.target
        everything = {name: name for name in target.schema.names}
        changeable = {name: name for name in everything if name not in target.fixed or name in target.loose}
        inserts = []
        for number, clause in enumerate(self.clauses):
            if clause.verb == "insert":
                inserts.append(number)
            elif clause.verb == "delete":
                yield NumberedClause(When.MATCHED, "delete", number, {})
            else:
                yield NumberedClause(When.MATCHED, "update", number, {name: name for name in merge.values[number]})
        if merge.moving:
            yield NumberedClause(When.MATCHED, "delete", len(self.clauses), {})
            yield NumberedClause(When.NOT_MATCHED, "insert", len(self.clauses) + 1, everything)
        for number in inserts:
            yield NumberedClause(When.NOT_MATCHED, "insert", number, everything)
            # The table may already have the key of a new row. Then the row updates it, as in an upsert.
            yield NumberedClause(When.MATCHED, "update", number, changeable)

    def _computed(self, merge: BoundMerge, is_placed: bool) -> Computed:
        keys_bound = {name.partition(".")[0] for name in merge.target.keys} <= set(merge.bindings.values)
        tells_all = merge.bindings.only_these and keys_bound and merge.target.paths_tell_values
        unknown = bool(merge.target.keys) and not tells_all
        count = len(self.clauses)
        return Computed(
            is_placed=is_placed,
            moving=merge.moving,
            leaves=count,
            arrives=count + 1,
            looks_up=(bool(merge.target.keys) and merge.inserts and unknown) or bool(merge.moving),
        )


def parse_merge(text: str, tokens: Sequence[SqlToken], session: SqlSession) -> MergeStatement | None:
    """Parse a MERGE INTO; None for a table that is not Hudi's."""
    reader = Reader(text, tokens)
    reader.expect("MERGE INTO")
    session.catalog.expect(reference.name for reference in references(text, tokens))
    target = read_target(reader, session, "USING")
    return None if target is None else merge_into(*target, reader)


def merge_into(table: NamedTable, alias: str, reader: Reader) -> MergeStatement:
    """Parse the rest of a MERGE INTO a table, which begins with USING. Raises ConfigError."""
    reader.expect("USING")
    source = read_source(reader)
    reader.expect("ON")
    condition = reader.until("WHEN MATCHED", "WHEN NOT MATCHED")
    if condition.at_end:
        raise condition.error("a condition")
    check_repeatable(condition.remaining_text, "MERGE INTO, ON")
    return MergeStatement(table, alias, source, condition, read_clauses(reader))
