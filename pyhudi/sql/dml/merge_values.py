"""The values that the clauses of a MERGE INTO set, as text in the engine's SQL.

Source: docs/sql-dml.md, "MERGE INTO", "Types".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from pyhudi.actions.changes.clauses import When
from pyhudi.errors import ConfigError
from pyhudi.sql.columns import quoted
from pyhudi.sql.dml.merge_clauses import Bindings, MergeClause, MergeSource, same_words
from pyhudi.sql.dml.target import Scope, Target, value_of
from pyhudi.sql.dml.update import SqlAssignment, set_values
from pyhudi.sql.tokens import Reader, tokens_of

__all__ = ["BoundMerge", "bind_merge", "clause_number", "column_type", "value_by_clause"]


@dataclass(frozen=True, slots=True)
class BoundMerge:
    """A MERGE INTO whose names are bound to columns.

    `conditions`, `values`: one for each clause; values are by column, without the keys of stored rows. `moving`:
    numbers of the clauses that can move a row to another partition. `structs`: columns of which only some fields are
    set; the query reads their stored values for the other fields.
    """

    clauses: tuple[MergeClause, ...]
    target: Target
    scope: Scope
    source: MergeSource
    columns: pa.Schema
    bindings: Bindings
    conditions: tuple[str | None, ...]
    values: tuple[Mapping[str, str], ...]
    moving: frozenset[int]
    structs: frozenset[str] = frozenset()

    @property
    def inserts(self) -> bool:
        """True if a clause makes new rows."""
        return any(clause.when is When.NOT_MATCHED for clause in self.clauses)


def bind_merge(
    clauses: tuple[MergeClause, ...],
    target: Target,
    scope: Scope,
    source: MergeSource,
    columns: pa.Schema,
    bindings: Bindings,
) -> BoundMerge:
    """Bind the names of a MERGE INTO to columns. `columns`: of the source.

    Raises: ConfigError for an unknown column, for a column that is set twice, and for a key that would change.
    """
    conditions, values, moving, structs = [], [], set(), set[str]()
    for number, clause in enumerate(clauses):
        owner = _owner(clause, target, source, columns, scope)
        conditions.append(None if clause.condition is None else scope.text(clause.condition, owner))
        assignments = _values_by_column(clause, target, scope, source, columns)
        expressions: dict[str, str] = {}
        for field, value in assignments.items():
            if clause.verb == "update" and _is_same(field, value, target, bindings):
                continue
            if clause.verb == "update" and field in target.partitions:
                moving.add(number)
            text, kind = f"({scope.text(value, owner)}\n)", column_type(value, source, columns)
            expressions[field] = value_of(text, target.schema.field(field), target, kind)
        inside = _fields_of_structs(clause, target, scope)
        what = f"MERGE INTO {target.table.name}"
        struct_values = set_values(inside, target, scope, what, partial(scope.text, owner=owner))
        for name in struct_values:
            if name in assignments or name in target.fixed:
                raise ConfigError(f"{what} sets the column {name} twice in one clause, or it is of the key.")
        structs |= struct_values.keys()
        values.append(expressions | struct_values)
    return BoundMerge(
        clauses,
        target,
        scope,
        source,
        columns,
        bindings,
        tuple(conditions),
        tuple(values),
        frozenset(moving),
        frozenset(structs),
    )


def column_type(value: Reader, source: MergeSource, columns: pa.Schema) -> pa.DataType | None:
    """The type of a value that is a column of the source, None for any other value."""
    words = [token.text.strip("`").lower() for token in value.tokens[value.at : value.stop]]
    name = words[-1] if words in ([words[-1]], [source.alias.lower(), ".", words[-1]]) else None
    return next((field.type for field in columns if field.name.lower() == name), None)


def _fields_of_structs(clause: MergeClause, target: Target, scope: Scope) -> tuple[SqlAssignment, ...]:
    """The assignments of an UPDATE to fields of structs."""
    if clause.verb != "update":
        return ()
    return tuple(one for one in clause.assignments if one.place(target, scope)[1])


def _owner(
    clause: MergeClause, target: Target, source: MergeSource, columns: pa.Schema, scope: Scope
) -> tuple[str, set[str]] | None:
    """The only side that a clause sees, whose columns need no alias there; None for a clause that sees both."""
    if clause.when is When.NOT_MATCHED:
        return source.alias, {name.lower() for name in columns.names}
    if clause.when is When.NOT_MATCHED_BY_SOURCE:
        return scope.alias, {name.lower() for name in target.schema.names}
    return None


def _values_by_column(
    clause: MergeClause, target: Target, scope: Scope, source: MergeSource, columns: pa.Schema
) -> dict[str, Reader]:
    """Column → value of a clause; a star stands for every column that the source has."""
    if clause.star:
        keys = set(target.keys) if clause.verb == "update" else set()  # the struct of a nested key is refused below
        values = {}
        for name in columns.names:
            field = target.find(name)
            if field is not None and field not in keys:
                text = quoted(source.alias, name)
                values[field] = Reader(text, tokens_of(text))
        if not values:
            raise ConfigError(
                f"MERGE INTO {target.table.name}: the source has none of the table's columns, so * is nothing. Its "
                f"columns: {', '.join(columns.names)}."
            )
        return values
    values = {}
    inside = _fields_of_structs(clause, target, scope)
    for assignment in clause.assignments:
        if assignment in inside:
            continue
        field = assignment.column(target, scope).name
        if field in values:
            raise ConfigError(f"MERGE INTO {target.table.name} sets the column {field} twice in one clause.")
        values[field] = assignment.value
    return values


def _is_same(field: str, value: Reader, target: Target, bindings: Bindings) -> bool:
    """True if a key or partition column is set to its value in the condition.

    Raises: ConfigError for a key that is set to another value.
    """
    if field not in target.fixed:
        return False
    if field in bindings.values and same_words(value, bindings.values[field]):
        return True
    if field in target.partitions:
        return False
    raise ConfigError(
        f"MERGE INTO {target.table.name} sets the record key field {field} of existing rows: it identifies the row. "
        "Leave it out (name the other columns where * holds a struct of the key), or delete the row and insert "
        "a new one."
    )


def clause_number(merge: BoundMerge, when: When) -> str:
    """The expression for the number of the first clause of this kind whose condition is true; "" without clauses."""
    rows = [
        f"WHEN {'true' if condition is None else f'({condition}{chr(10)})'} THEN {number}"
        for number, (clause, condition) in enumerate(zip(merge.clauses, merge.conditions, strict=True))
        if clause.when is when
    ]
    return f"CASE {' '.join(rows)} END" if rows else ""


def value_by_clause(texts: Mapping[int, str], number: str) -> str:
    """The expression for a column's value by the number of the clause. Clauses with the same value share a branch."""
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    rows = " ".join(f"WHEN {clause} THEN {text}" for clause, text in texts.items())
    return f"CASE {quoted(number)} {rows} END"
