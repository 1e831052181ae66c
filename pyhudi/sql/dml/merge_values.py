"""What the clauses of a MERGE INTO set, as texts of the engine's SQL.

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
from pyhudi.sql.dml.target import Scope, Target, cast
from pyhudi.sql.dml.update import Assigned, set_values
from pyhudi.sql.tokens import Reader, tokens_of

__all__ = ["Described", "by_clause", "chosen", "describe"]


@dataclass(frozen=True, slots=True)
class Described:
    """A MERGE INTO with its names found.

    `conditions`, `values`: of each clause; values by column, without keys of rows that are there. `moving`: numbers of
    the clauses that can move a row to another partition. `structs`: columns of which some fields are set, so that the
    rows' own values are needed.
    """

    clauses: tuple[MergeClause, ...]
    target: Target
    scope: Scope
    source: MergeSource
    columns: pa.Schema
    bound: Bindings
    conditions: tuple[str | None, ...]
    values: tuple[Mapping[str, str], ...]
    moving: frozenset[int]
    structs: frozenset[str] = frozenset()

    @property
    def inserts(self) -> bool:
        """Whether a clause makes new rows."""
        return any(clause.when is When.NOT_MATCHED for clause in self.clauses)


def describe(
    clauses: tuple[MergeClause, ...],
    target: Target,
    scope: Scope,
    source: MergeSource,
    columns: pa.Schema,
    bound: Bindings,
) -> Described:
    """Find the names of a MERGE INTO. `columns`: of the source.

    Raises: ConfigError for columns that there are not, that are set twice, and for keys that would change.
    """
    conditions, values, moving, structs = [], [], set(), set[str]()
    for number, clause in enumerate(clauses):
        owner = _owner(clause, target, source, columns, scope)
        conditions.append(None if clause.condition is None else scope.text(clause.condition, owner))
        given = _assigned(clause, target, scope, source, columns)
        kept: dict[str, str] = {}
        for field, value in given.items():
            if clause.does == "update" and _is_same(field, value, target, bound):
                continue
            if clause.does == "update" and field in target.partitions:
                moving.add(number)
            kept[field] = cast(f"({scope.text(value, owner)}\n)", target.schema.field(field))
        inside = _fields_of_structs(clause, target, scope)
        what = f"MERGE INTO {target.named.name}"
        made = set_values(inside, target, scope, what, partial(scope.text, owner=owner))
        for name in made:
            if name in given or name in target.fixed:
                raise ConfigError(f"{what} sets the column {name} twice in one clause, or it is of the key.")
        structs |= made.keys()
        values.append(kept | made)
    return Described(
        clauses,
        target,
        scope,
        source,
        columns,
        bound,
        tuple(conditions),
        tuple(values),
        frozenset(moving),
        frozenset(structs),
    )


def _fields_of_structs(clause: MergeClause, target: Target, scope: Scope) -> tuple[Assigned, ...]:
    """What an UPDATE sets within columns."""
    if clause.does != "update":
        return ()
    return tuple(one for one in clause.assigned if one.place(target, scope)[1])


def _owner(
    clause: MergeClause, target: Target, source: MergeSource, columns: pa.Schema, scope: Scope
) -> tuple[str, set[str]] | None:
    """Clauses for one side see that side only, so that its columns need no alias there."""
    if clause.when is When.NOT_MATCHED:
        return source.alias, {name.lower() for name in columns.names}
    if clause.when is When.NOT_MATCHED_BY_SOURCE:
        return scope.alias, {name.lower() for name in target.schema.names}
    return None


def _assigned(
    clause: MergeClause, target: Target, scope: Scope, source: MergeSource, columns: pa.Schema
) -> dict[str, Reader]:
    """Column → value of a clause; a star is every column that the source has."""
    if clause.star:
        keys = {name.partition(".")[0] for name in target.keys} if clause.does == "update" else set()
        found = {}
        for name in columns.names:
            field = target.find(name)
            if field is not None and field not in keys:
                text = quoted(source.alias, name)
                found[field] = Reader(text, tokens_of(text))
        if not found:
            raise ConfigError(
                f"MERGE INTO {target.named.name}: the source has none of the table's columns, so * is nothing. Its "
                f"columns: {', '.join(columns.names)}."
            )
        return found
    found = {}
    inside = _fields_of_structs(clause, target, scope)
    for assigned in clause.assigned:
        if assigned in inside:
            continue
        field = assigned.column(target, scope).name
        if field in found:
            raise ConfigError(f"MERGE INTO {target.named.name} sets the column {field} twice in one clause.")
        found[field] = assigned.value
    return found


def _is_same(field: str, value: Reader, target: Target, bound: Bindings) -> bool:
    """Whether a key or partition column is set to what the condition says that it is.

    Raises: ConfigError for a key that is set to something else.
    """
    if field not in target.fixed:
        return False
    if field in bound.values and same_words(value, bound.values[field]):
        return True
    if field in target.partitions:
        return False
    raise ConfigError(
        f"MERGE INTO {target.named.name} sets the record key field {field} of rows that are there: it says which row "
        "it is. Leave it out, or delete the row and insert it anew."
    )


def by_clause(merge: Described, when: When) -> str:
    """The number of the first clause of a kind whose condition is true, as an expression; empty without clauses."""
    rows = [
        f"WHEN {'true' if condition is None else f'({condition}{chr(10)})'} THEN {number}"
        for number, (clause, condition) in enumerate(zip(merge.clauses, merge.conditions, strict=True))
        if clause.when is when
    ]
    return f"CASE {' '.join(rows)} END" if rows else ""


def chosen(texts: Mapping[int, str], number: str) -> str:
    """A column's value by the number of the clause; clauses that agree need no choice."""
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    rows = " ".join(f"WHEN {clause} THEN {text}" for clause, text in texts.items())
    return f"CASE {quoted(number)} {rows} END"
