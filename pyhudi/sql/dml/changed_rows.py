"""The rows that a statement changes: a query computes them, and one commit writes them.

A commit of another writer in between is detected before anything is written, and the query is rerun.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from pyhudi.actions.changes.computed import Computed, NumberedClause
from pyhudi.actions.result import WriteResult
from pyhudi.errors import OutdatedRows
from pyhudi.sql.dml.target import Target
from pyhudi.sql.session import NamedTable, SqlFrame, SqlSession
from pyhudi.sql.table_options import options_of
from pyhudi.table.change import change_computed
from pyhudi.table.input import TableInput

__all__ = ["ChangeQuery", "change"]

# Writers that commit every few seconds would always overtake a query of minutes, so give up with an error.
MAX_QUERY_RUNS = 5


@dataclass(frozen=True, slots=True)
class ChangeQuery:
    """A query for the rows that change, and the clauses that change them.

    `columns`: the table's columns that it reads, None if it doesn't read the table. `text`: makes the query from the
    name of the table's rows. `computed`: the form of the computed rows.
    """

    columns: Sequence[str] | None
    text: Callable[[str], str]
    clauses: tuple[NumberedClause, ...]
    computed: Computed


def change(
    session: SqlSession, table: NamedTable, operation: str, query_of: Callable[[Target], ChangeQuery]
) -> WriteResult:
    """Run a change. `query_of`: makes the query for the table's current state.

    Raises: ConfigError for unknown columns; OutdatedRows if others commit faster than the query runs; the errors of
        the engine and of a write.
    """
    for run in range(MAX_QUERY_RUNS):
        try:
            return _change_once(session, table, operation, query_of)
        except OutdatedRows:
            if run == MAX_QUERY_RUNS - 1:
                raise
    raise AssertionError("unreachable")


def _change_once(
    session: SqlSession, table: NamedTable, operation: str, query_of: Callable[[Target], ChangeQuery]
) -> WriteResult:
    target = Target(table)
    commits = table.table.state().timeline.commits()
    query = query_of(target)
    options = options_of(session, table)

    def write(rows: SqlFrame) -> WriteResult:
        computed = query.computed if query.columns is None else replace(query.computed, read=commits)
        return change_computed(table.table, cast("TableInput", rows), query.clauses, computed, options, operation)

    if query.columns is None:
        return write(session.query(query.text("")))
    frame = session.frame_of(table, query.columns)
    if table.table.state().timeline.commits() != commits:
        raise OutdatedRows(f"{table.location}: another write completed while the statement was planned.")
    with session.view_of(frame) as view:
        return write(session.query(query.text(view)))
