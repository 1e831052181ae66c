"""The indexes of a HudiTable that its metadata table has: made, dropped, listed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyhudi.model.predicate import parse_call
from pyhudi.services.index_building import build_waiting, run_index_plan, schedule_index
from pyhudi.services.indexes import (
    IndexInfo,
    IndexList,
    create_index,
    drop_index,
    index_info,
    load_indexes,
    wanted_index,
)
from pyhudi.table.calls import Options, TableCalls

__all__ = ["TableIndexes"]


class TableIndexes(TableCalls):
    """create_index, build_indexes, drop_index, indexes."""

    def create_index(
        self,
        name: str,
        *,
        columns: str | Sequence[str] = (),
        index_type: str | None = None,
        expression: str | None = None,
        while_writing: bool = False,
        schedule_only: bool = False,
        options: Options | None = None,
        **more: object,
    ) -> IndexInfo:
        """Build an index of the metadata table, which every later write keeps up.

        Other writers wait for the table's lock meanwhile, unless `while_writing` says that they go on. A table without
        a metadata table gets one.

        Args:
            name: of a secondary or expression index; of the others their type: `record_index`, `column_stats`,
                `partition_stats`, `bloom_filters`.
            columns: of a secondary index the one that it finds rows by; of column_stats those that get statistics.
            index_type: None: the type that the name is, else `secondary_index`; of an expression index `column_stats`,
                which is what None means then, or `bloom_filters`.
            expression: of an expression index the function of a column whose values it knows, as SQL text:
                "from_unixtime(ts, 'yyyy-MM-dd')". Times are those of UTC.
            while_writing: the table is read without its lock; needs a lock that all writers share, and version 8.
            schedule_only: leave the plan on the timeline, for `build_indexes` of any process.
            options: Hudi's own keys, such as `hoodie.metadata.global.record.level.index.min.filegroup.count`.
        Raises: ConfigError when there is such an index, or the table can't have it; WriteConflict when the lock was
            lost. Nothing has an index then that it did not have before.
        """
        wanted = (columns,) if isinstance(columns, str) else tuple(columns)
        call = None if expression is None else parse_call(expression)
        if not while_writing and not schedule_only:
            run = partial(create_index, name=name, columns=wanted, index_type=index_type, expression=call)
            return self._serve(run, options, more)
        index = wanted_index(name, wanted, index_type, call)
        plan = self._serve(partial(schedule_index, wanted=index), options, more)
        if not schedule_only:
            return self._serve(partial(run_index_plan, instant_time=plan.requested_time), options, more)
        return index_info(self._meta.reload(), index.partition)

    def build_indexes(self, *, options: Options | None = None, **more: object) -> tuple[IndexInfo, ...]:
        """Build the indexes whose plans wait, while writers go on: those of `schedule_only`, those whose builders died,
        and those that Apache Hudi has scheduled.

        Raises: WriteConflict when another process builds one of them.
        """
        return self._serve(build_waiting, options, more)

    def drop_index(self, name: str, *, options: Options | None = None, **more: object) -> None:
        """Take an index out of the metadata table, by the name that it was made with, or that of its partition.

        Raises: ConfigError when there is none of that name, or another index needs it.
        """
        self._serve(partial(drop_index, name=name), options, more)

    def indexes(self) -> IndexList:
        """The indexes that the metadata table has, and those that are being built; prints as a table."""
        return load_indexes(self._meta.reload())
