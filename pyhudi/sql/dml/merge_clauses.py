"""The clauses of MERGE INTO, as they are written.

    MERGE INTO t [AS x] USING source [AS s] ON condition
    WHEN MATCHED [AND c] THEN UPDATE SET * | a = …, … | DELETE
    WHEN NOT MATCHED [BY TARGET] [AND c] THEN INSERT * | (columns) VALUES (…)
    WHEN NOT MATCHED BY SOURCE [AND c] THEN UPDATE SET a = …, … | DELETE

Source: docs/sql-dml.md, "MERGE INTO".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pyhudi.actions.changes.clauses import When
from pyhudi.errors import ConfigError
from pyhudi.sql.clauses import Reader
from pyhudi.sql.dml.scope import read_alias
from pyhudi.sql.dml.update import Assigned, read_assignments

__all__ = ["MergeClause", "MergeSource", "read_clauses", "read_source"]

_STARTS = ("WHEN MATCHED", "WHEN NOT MATCHED")


@dataclass(frozen=True, slots=True)
class MergeSource:
    """The rows to merge. `relation`: a table's name, a query in parentheses or a frame in braces, as the user wrote it.
    `columns`: the names that the alias gives to the columns.
    """

    relation: str
    alias: str
    columns: str = ""

    @property
    def text(self) -> str:
        """The source as a FROM clause has it."""
        return f"{self.relation} AS `{self.alias}`{self.columns}"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """`star`: all columns; else `assigned`, for new rows what each named column gets."""

    when: When
    does: Literal["update", "delete", "insert"]
    condition: Reader | None
    star: bool = False
    assigned: tuple[Assigned, ...] = ()

    @property
    def readers(self) -> tuple[Reader, ...]:
        """The clause's expressions."""
        values = tuple(assigned.value for assigned in self.assigned)
        return values if self.condition is None else (self.condition, *values)


def read_source(reader: Reader) -> MergeSource:
    """What follows USING; steps over it."""
    start, name = reader.at, "_pyhudi_source_rows"
    if reader.sees_symbol("("):
        reader.parenthesised()
    elif reader.accept_symbol("{"):  # a frame: spark.sql("… USING {df} AS s …", df=df)
        reader.identifier("the name of a frame")
        reader.expect_symbol("}")
    else:
        name = reader.table_name().parts[-1]
    relation = reader.cut(start, reader.at)
    alias = read_alias(reader, "ON") or name
    columns = ""
    if reader.sees_symbol("("):
        start = reader.at
        reader.parenthesised()
        columns = reader.cut(start, reader.at)
    return MergeSource(relation, alias, columns)


def read_clauses(reader: Reader) -> tuple[MergeClause, ...]:
    """All clauses. Raises ConfigError for none, and for one that can't be reached."""
    clauses: list[MergeClause] = []
    while not reader.at_end:
        clauses.append(_clause(reader))
    if not clauses:
        raise reader.error("WHEN MATCHED or WHEN NOT MATCHED")
    for number, clause in enumerate(clauses):
        if clause.condition is None and any(later.when is clause.when for later in clauses[number + 1 :]):
            raise ConfigError(
                "MERGE INTO: only the last clause of its kind may leave its condition out; the clause after it would "
                "never get a row."
            )
    return tuple(clauses)


def _clause(reader: Reader) -> MergeClause:
    when = _kind(reader)
    condition = None
    if reader.accept("AND"):
        condition = reader.until("THEN")
        if condition.at_end:
            raise condition.error("a condition")
    reader.expect("THEN")
    if when is When.NOT_MATCHED:
        reader.expect("INSERT")
        return _insert(reader, condition)
    if reader.accept("DELETE"):
        return MergeClause(when, "delete", condition)
    reader.expect("UPDATE SET")
    if reader.accept_symbol("*"):
        if when is When.NOT_MATCHED_BY_SOURCE:
            raise ConfigError("MERGE INTO: UPDATE SET * takes values of the source, which rows not in it don't have.")
        return MergeClause(when, "update", condition, star=True)
    assigned = read_assignments(reader.until(*_STARTS))
    return MergeClause(when, "update", condition, assigned=assigned)


def _kind(reader: Reader) -> When:
    if reader.accept("WHEN MATCHED"):
        return When.MATCHED
    reader.expect("WHEN NOT MATCHED")
    if reader.accept("BY SOURCE"):
        return When.NOT_MATCHED_BY_SOURCE
    reader.accept("BY TARGET")
    return When.NOT_MATCHED


def _insert(reader: Reader, condition: Reader | None) -> MergeClause:
    if reader.accept_symbol("*"):
        return MergeClause(When.NOT_MATCHED, "insert", condition, star=True)
    names = []
    for part in reader.parts():
        names.append(part.dotted("a column"))
        part.expect_end()
    reader.expect("VALUES")
    values: Sequence[Reader] = list(reader.parts())
    if len(names) != len(values):
        raise ConfigError(f"MERGE INTO: INSERT names {len(names)} columns and has {len(values)} values.")
    assigned = tuple(Assigned(name, value) for name, value in zip(names, values, strict=True))
    return MergeClause(When.NOT_MATCHED, "insert", condition, assigned=assigned)
