"""UPDATE and DELETE FROM: the engine finds the rows and computes their new values, and one commit writes them.

    UPDATE t [AS x] SET a = …, x.b = …, s.c = … [WHERE …]        DELETE FROM t [AS x] [WHERE …]

Source: docs/sql-dml.md, "UPDATE", "DELETE FROM"; Spark's SQL reference, "Subquery".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.actions.changes.clauses import When
from pyhudi.actions.changes.computed import CLAUSE, Computed, NumberedClause
from pyhudi.errors import ConfigError
from pyhudi.expressions.terms import check_repeatable
from pyhudi.model.keys import META_COLUMNS
from pyhudi.sql.columns import quoted
from pyhudi.sql.dml.changed_rows import ChangeQuery, change
from pyhudi.sql.dml.compared_texts import check_constants
from pyhudi.sql.dml.target import FieldPath, Scope, Target, cast, field_path, read_target, struct_with
from pyhudi.sql.session import NamedTable, SqlFrame, SqlSession
from pyhudi.sql.tokens import Reader, SqlToken

__all__ = ["ChangeStatement", "SqlAssignment", "parse_delete", "parse_update", "read_assignments", "set_values"]


@dataclass(frozen=True, slots=True)
class SqlAssignment:
    """`column = value` of a SET clause. `name`: the column, with its qualifiers."""

    name: tuple[str, ...]
    value: Reader

    def column(self, target: Target, scope: Scope) -> pa.Field:
        """The column of the table. Raises ConfigError for an unknown column, and for a field of a struct."""
        column, fields = self.place(target, scope)
        if fields:
            raise ConfigError(
                f"INSERT ({'.'.join(self.name)}): a new row has whole columns. Name {column.name}, and give it "
                "named_struct(...)."
            )
        return column

    def place(self, target: Target, scope: Scope) -> tuple[pa.Field, FieldPath]:
        """The column of the table, and the nested field to set. Raises ConfigError for an unknown name."""
        name = scope.without_table(self.name)
        column = target.column(name[0])
        return column, field_path(column, name[1:], ".".join(self.name))


def set_values(
    assignments: Iterable[SqlAssignment],
    target: Target,
    scope: Scope,
    what: str,
    text_of: Callable[[Reader], str],
) -> dict[str, str]:
    """Column → its new value, as an expression in the engine's SQL.

    Args: what: begins the error; text_of: returns a value's expression.
    Raises: ConfigError for an unknown name, and for a column or field that is set twice.
    """
    columns: dict[str, pa.Field] = {}
    texts: dict[str, dict[FieldPath, str]] = {}
    for assignment in assignments:
        column, fields = assignment.place(target, scope)
        columns[column.name] = column
        by_field = texts.setdefault(column.name, {})
        if any(fields[: len(other)] == other[: len(fields)] for other in by_field):
            raise ConfigError(f"{what} sets the column {'.'.join((column.name, *fields)):.200} twice.")
        by_field[fields] = f"({text_of(assignment.value)}\n)"
    return {
        name: cast(by_field[()], columns[name])
        if () in by_field
        else struct_with(columns[name], quoted(scope.alias, name), by_field)
        for name, by_field in texts.items()
    }


@dataclass(frozen=True, slots=True)
class ChangeStatement:
    """An UPDATE, or a DELETE FROM without `assignments`. `condition` None: all rows."""

    table: NamedTable
    alias: str
    condition: Reader | None
    assignments: tuple[SqlAssignment, ...] | None

    def run(self, session: SqlSession) -> SqlFrame:
        """Run it as one commit. The result has no rows in Spark, as in Hudi."""
        result = change(session, self.table, "DELETE" if self.assignments is None else "UPDATE", self._query)
        return session.frame_of_result(result)

    def _query(self, target: Target) -> ChangeQuery:
        scope = Scope(self.table.name, self.alias)
        values = self._values(target, scope)
        check_constants(self.condition, target, scope)
        condition = "" if self.condition is None else scope.text(self.condition)
        readers = [assignment.value for assignment in self.assignments or ()]
        readers += [] if self.condition is None else [self.condition]
        names = target.columns_in([token for reader in readers for token in tokens_of(reader)])
        places = [assignment.place(target, scope) for assignment in self.assignments or ()]
        read = target.read_columns([*names, *(column.name for column, fields in places if fields)])
        metas = [name for name in (*META_COLUMNS, *target.fixed) if name in read]
        if target.config.populate_meta_fields:
            metas = [name for name in metas if name in META_COLUMNS]
        columns = [quoted(self.alias, name) for name in metas]
        columns += [f"0 AS {quoted(CLAUSE)}", *(f"{text} AS {quoted(name)}" for name, text in values.items())]
        where = f" WHERE ({condition}\n)" if condition else ""

        def text(view: str) -> str:
            return f"SELECT {', '.join(columns)} FROM {view} AS {quoted(self.alias)}{where}"

        is_delete = self.assignments is None
        clause = NumberedClause(When.MATCHED, "delete" if is_delete else "update", 0, {name: name for name in values})
        computed = Computed(is_placed=target.config.populate_meta_fields, only_deletes=is_delete)
        return ChangeQuery(read, text, (clause,), computed)

    def _values(self, target: Target, scope: Scope) -> dict[str, str]:
        """The new values by column. Raises ConfigError for key and partition columns, as in Hudi."""
        for assignment in self.assignments or ():
            column, _ = assignment.place(target, scope)
            for fields, what in ((target.keys, "record key"), (target.config.partition_fields, "partition")):
                if column.name in (name.partition(".")[0] for name in fields):
                    raise ConfigError(
                        f"UPDATE {self.table.name} sets the {what} field {column.name}, which says which row it is and "
                        "where it lives. Leave it out; MERGE INTO moves rows to other partitions."
                    )
        return set_values(self.assignments or (), target, scope, f"UPDATE {self.table.name}", scope.text)


def tokens_of(reader: Reader) -> Sequence[SqlToken]:
    """The remaining tokens of a cursor."""
    return reader.tokens[reader.at : reader.stop]


def parse_update(text: str, tokens: Sequence[SqlToken], session: SqlSession) -> ChangeStatement | None:
    """Parse an UPDATE; None for a table that is not Hudi's."""
    reader = Reader(text, tokens)
    reader.expect("UPDATE")
    target = read_target(reader, session, "SET")
    if target is None:
        return None
    reader.expect("SET")
    assignments = read_assignments(reader.until("WHERE"))
    return ChangeStatement(*target, _condition(reader), assignments)


def parse_delete(text: str, tokens: Sequence[SqlToken], session: SqlSession) -> ChangeStatement | None:
    """Parse a DELETE FROM; None for a table that is not Hudi's."""
    reader = Reader(text, tokens)
    reader.expect("DELETE FROM")
    target = read_target(reader, session, "WHERE")
    return None if target is None else ChangeStatement(*target, _condition(reader), None)


def read_assignments(reader: Reader) -> tuple[SqlAssignment, ...]:
    """Read `a = …, b.c = …`."""
    assignments = []
    for part in reader.split():
        name = part.dotted("a column to set")
        if not part.accept_symbol("=") and not part.accept_symbol("=="):
            raise part.error("'='")
        if part.at_end:
            raise part.error("a value")
        assignments.append(SqlAssignment(name, part))
    return tuple(assignments)


def _condition(reader: Reader) -> Reader | None:
    if not reader.accept("WHERE"):
        reader.expect_end()
        return None
    if reader.at_end:
        raise reader.error("a condition")
    check_repeatable(reader.remaining_text, "WHERE")
    return reader
