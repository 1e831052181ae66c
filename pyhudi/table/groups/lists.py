"""Groups of a table with one noun each: `table.savepoints`, `table.indexes`, `table.constraints`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyhudi.result import Result
from pyhudi.table.calls import Options, TableHandle
from pyhudi.table.wrong_names import checked_methods

if TYPE_CHECKING:
    from pyhudi.queries.query import AsOf
    from pyhudi.services.indexes import IndexInfo, IndexList
    from pyhudi.services.savepoint import Savepoint, Savepoints

__all__ = ["Constraint", "IndexRemoval", "TableConstraints", "TableIndexes", "TableSavepoints"]


@checked_methods
class TableSavepoints:
    """Saved commits: cleaning keeps their files, and `HudiTable.restore` can return to one."""

    def __init__(self, handle: TableHandle) -> None:
        """Use `HudiTable.savepoints`."""
        self._handle = handle

    def list(self) -> Savepoints:
        """The savepoints, oldest first; prints as a table."""
        from pyhudi.services.savepoint import load_savepoints

        return load_savepoints(self._handle.fresh())

    def create(
        self,
        instant_time: AsOf | None = None,
        *,
        user: str = "",
        comment: str = "",
        options: Options | None = None,
    ) -> Savepoint:
        """Save a commit (None: the newest): cleaning keeps its files, and `restore` can return to it.

        Raises: TableError when there is no such commit, it is saved already, or files of it were cleaned.
        """
        from pyhudi.services.savepoint import savepoint

        commit_time = None if instant_time is None else self._handle.commit_time(instant_time)
        return self._handle.serve(partial(savepoint, instant_time=commit_time, user=user, comment=comment), options)

    def delete(self, instant_time: AsOf, *, dry_run: bool = False, options: Options | None = None) -> Savepoint:
        """Delete the savepoint of a commit; the commit's files are then cleaned by the policy.

        Args:    dry_run: only look it up.
        Raises:  TableError when the commit has no savepoint.
        """
        from pyhudi.services.savepoint import delete_savepoint

        service = partial(delete_savepoint, instant_time=self._handle.commit_time(instant_time), dry_run=dry_run)
        return self._handle.serve(service, options, dry_run=dry_run)

    def __repr__(self) -> str:
        return repr(self.list())


@dataclass(frozen=True, slots=True, repr=False)
class IndexRemoval(Result):
    """`name`: as in the call. `partitions`: the removed partitions of the metadata table (dry run: those to remove)."""

    name: str
    partitions: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(self.partitions) or 'nothing'} removed from the metadata table"


@checked_methods
class TableIndexes:
    """The indexes of the metadata table, which every write updates."""

    def __init__(self, handle: TableHandle) -> None:
        """Use `HudiTable.indexes`."""
        self._handle = handle

    def list(self) -> IndexList:
        """The indexes of the metadata table, including those being built; prints as a table."""
        from pyhudi.services.indexes import load_indexes

        return load_indexes(self._handle.fresh())

    def create(
        self,
        name: str,
        *,
        columns: str | Sequence[str] = (),
        index_type: str | None = None,
        expression: str | None = None,
        while_writing: bool = False,
        schedule_only: bool = False,
        options: Options | None = None,
    ) -> IndexInfo:
        """Build an index of the metadata table, which every later write updates.

        Other writers wait for the table's lock during the build, unless `while_writing` lets them continue. A table
        without a metadata table gets one.

        Args:
            name: any name for a secondary or expression index; for others their type: `record_index`, `column_stats`,
                `partition_stats`, `bloom_filters`.
            columns: for a secondary index the column to look up; for column_stats those that get statistics.
            index_type: None: the type in `name`, else `secondary_index`; for an expression index `column_stats` (None)
                or `bloom_filters`.
            expression: for an expression index the function of a column, as SQL text:
                "from_unixtime(ts, 'yyyy-MM-dd')". Times are in UTC.
            while_writing: the table is read without its lock; needs a lock that all writers share, and version 8.
            schedule_only: leave the plan on the timeline, for `build` of any process.
            options: Hudi's own keys, such as `hoodie.metadata.global.record.level.index.min.filegroup.count`.
        Raises: ConfigError when the index exists, or the table can't have it; WriteConflict when the lock was
            lost. After an error no index was added.
        """
        from pyhudi.table.groups.metadata import build_index

        return build_index(self._handle, name, columns, index_type, expression, while_writing, schedule_only, options)

    def build(self, *, options: Options | None = None) -> builtins.tuple[IndexInfo, ...]:
        """Build the indexes with pending plans, while writers go on: those of `schedule_only`, those whose builders
        died, and those that Apache Hudi has scheduled.

        Raises: WriteConflict when another process builds one of them.
        """
        from pyhudi.services.index_building import build_waiting

        return self._handle.serve(build_waiting, options)

    def drop(self, name: str, *, dry_run: bool = False, options: Options | None = None) -> IndexRemoval:
        """Remove an index from the metadata table, by its name or that of its partition.

        Args:    dry_run: only return the partitions to remove.
        Raises:  ConfigError when it does not exist, or another index needs it.
        """
        from pyhudi.services.indexes import drop_index

        service = partial(drop_index, name=name, dry_run=dry_run)
        return IndexRemoval(name, self._handle.serve(service, options, dry_run=dry_run))

    def __repr__(self) -> str:
        return repr(self.list())


@dataclass(frozen=True, slots=True, repr=False)
class Constraint(Result):
    """A CHECK constraint: PyHudi writes no rows for which `condition` is false."""

    name: str
    condition: str

    def __str__(self) -> str:
        return f"{self.name}: {self.condition}"


@checked_methods
class TableConstraints:
    """The CHECK constraints of the table."""

    def __init__(self, handle: TableHandle) -> None:
        """Use `HudiTable.constraints`."""
        self._handle = handle

    def list(self) -> dict[str, str]:
        """The constraints: name → SQL condition."""
        from pyhudi.actions.constraints import constraints_of

        return constraints_of(self._handle.fresh().config)

    def add(self, name: str, condition: str, *, options: Options | None = None) -> Constraint:
        """Refuse rows in writes by PyHudi for which a condition is false; unknown, as for null, passes.

        Args:   condition: SQL text over the table's columns, such as `"fare > 0"`.
        Raises: SchemaMismatch when rows of the table break it; ConfigError for a name in use, and a condition
            that the columns can't answer.
        """
        from pyhudi.services.constraints import add_constraint

        self._handle.serve(partial(add_constraint, name=name, condition=condition), options)
        return Constraint(name, self.list().get(name, condition))

    def drop(self, name: str, *, options: Options | None = None) -> Constraint:
        """Drop a constraint. Raises ConfigError if it does not exist."""
        from pyhudi.services.constraints import drop_constraint

        condition = self.list().get(name, "")
        self._handle.serve(partial(drop_constraint, name=name), options)
        return Constraint(name, condition)

    def __repr__(self) -> str:
        return repr(self.list())
