"""The rows that a statement changes: a query of the table gives them, one commit writes them.

What others commit between the two is noticed before anything is written; the query then runs again.
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

# Writers that commit every few seconds overtake a query of minutes again and again; it is then better to say so.
MAX_QUERY_RUNS = 5


@dataclass(frozen=True, slots=True)
class ChangeQuery:
    """A query for the rows that change, and what happens to them.

    `columns`: those of the table that it reads, None when it doesn't read the table; `text`: the query, given the name
    of the table's rows. `computed`: made by what the table had when they were read.
    """

    columns: Sequence[str] | None
    text: Callable[[str], str]
    clauses: tuple[NumberedClause, ...]
    computed: Computed


def change(
    session: SqlSession, named: NamedTable, operation: str, query_of: Callable[[Target], ChangeQuery]
) -> WriteResult:
    """Run a change. `query_of`: makes the query for the table as it is now.

    Raises: ConfigError for columns that there are not; OutdatedRows when others commit faster than the query runs; what
        the engine says of the query, and what a write raises.
    """
    for run in range(MAX_QUERY_RUNS):
        try:
            return _change_once(session, named, operation, query_of)
        except OutdatedRows:
            if run == MAX_QUERY_RUNS - 1:
                raise
    raise AssertionError("unreachable")


def _change_once(
    session: SqlSession, named: NamedTable, operation: str, query_of: Callable[[Target], ChangeQuery]
) -> WriteResult:
    target = Target(named)
    read = named.table.timeline.commits()
    query = query_of(target)
    options = options_of(session, named)

    def write(rows: SqlFrame) -> WriteResult:
        computed = query.computed if query.columns is None else replace(query.computed, read=read)
        return change_computed(named.table, cast("TableInput", rows), query.clauses, computed, options, operation)

    if query.columns is None:
        return write(session.query(query.text("")))
    frame = session.frame_of(named, query.columns)
    if named.table.timeline.commits() != read:
        raise OutdatedRows(f"{named.location}: another write completed while the statement was planned.")
    with session.view_of(frame) as view:
        return write(session.query(query.text(view)))
