"""What HudiTable reports about a table, and its queries. Nothing here writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options import ReadOptions, canonical_keys
from pyhudi.model.options.queries import AS_OF, BEGIN, END
from pyhudi.model.table_config import TableConfig
from pyhudi.model.timeline import Timeline
from pyhudi.queries.filters import Where
from pyhudi.queries.history import History, load_table_history
from pyhudi.queries.incremental_range import time_of_range
from pyhudi.queries.query import AsOf, as_of_time, parse_as_of
from pyhudi.queries.schema import read_schema
from pyhudi.table.calls import Options, TableCalls, in_session_zone, session_options
from pyhudi.table.metadata import TableMetadata
from pyhudi.table.scan import FILES_SCHEMA, Scan
from pyhudi.view.consistent_read import read_consistently
from pyhudi.view.file_system_view import FileSystemView

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TableReads"]

_QUERY_TYPE = "hoodie.datasource.query.type"
_FORMAT = "hoodie.datasource.query.incremental.format"
_PARTITIONS_SCHEMA = pa.schema(
    [("partition_path", pa.string()), ("files", pa.int64()), ("size_bytes", pa.int64()), ("log_files", pa.int64())]
)
T = TypeVar("T")


class TableReads(TableCalls):
    """schema, config, timeline, history, metadata, files, partitions, scan, changes."""

    # ---- looking at it

    @property
    def path(self) -> str:
        """Where the table is."""
        return self._meta.storage.root

    @property
    def state(self) -> MetaClient:
        """The table as it is now, for what is built on tables: its storage, properties and timeline at one moment."""
        return self._fresh()

    @property
    def schema(self) -> pa.Schema:
        """The table's data columns as Arrow types; scans return Hudi's meta columns before them."""
        fields = read_schema(self._fresh(), None)
        return pa.schema([field for field in fields if field.name not in META_COLUMNS])

    @property
    def config(self) -> TableConfig:
        """The table's properties, typed."""
        return self._fresh().config

    @property
    def timeline(self) -> Timeline:
        """The active instants."""
        return self._fresh().timeline

    def history(
        self,
        limit: int | None = None,
        *,
        archived: bool = True,
        since: AsOf | None = None,
        until: AsOf | None = None,
    ) -> History:
        """The newest `limit` instants (None: all), newest first; prints as a table.

        Args:
            archived: also those that archiving took off the active timeline.
            since, until: only instant times in this range, both ends included: moments as `as_of` of `scan` takes them,
                so a date is its first moment. With them a long history is read in part.
        """
        meta = self._fresh()
        zone = meta.config.timeline_zone
        first, last = (
            None if end is None else parse_as_of(in_session_zone(end, self._spark), zone) for end in (since, until)
        )
        return load_table_history(meta, limit, archived=archived, since=first, until=last)

    @property
    def metadata(self) -> TableMetadata:
        """The metadata table as it is now: its records, and whether they are right."""
        return TableMetadata(self._fresh(), self._serve)

    def files(self) -> pa.Table:
        """The newest file of each file group: partition_path, file_id, path, instant_time, size_bytes, log_files."""
        rows = [
            {
                "partition_path": s.group.partition_path,
                "file_id": s.group.file_id,
                "path": s.base_file.path if s.base_file else None,
                "instant_time": s.base_instant,
                "size_bytes": (s.base_file.size_bytes if s.base_file else 0) + sum(f.size_bytes for f in s.log_files),
                "log_files": len(s.log_files),
            }
            for s in read_consistently(self._fresh(), FileSystemView.load).all_slices()
        ]
        return pa.Table.from_pylist(rows, FILES_SCHEMA)

    def partitions(self) -> pa.Table:
        """The partitions: partition_path ("" for a table without), files, size_bytes, log_files."""
        view = read_consistently(self._fresh(), FileSystemView.load)
        rows = []
        for partition in view.partitions():
            slices = view.slices(partition)
            logs = [log for s in slices for log in s.log_files]
            size = sum(s.base_file.size_bytes for s in slices if s.base_file) + sum(log.size_bytes for log in logs)
            rows.append(dict(zip(_PARTITIONS_SCHEMA.names, (partition, len(slices), size, len(logs)), strict=True)))
        return pa.Table.from_pylist(rows, _PARTITIONS_SCHEMA)

    # ---- reading

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        as_of: AsOf | None = None,
        query_type: str | None = None,
        *,
        begin: AsOf | None = None,
        end: AsOf | None = None,
        incremental_format: str | None = None,
        options: Options | None = None,
    ) -> Scan:
        """Describe a query; nothing is read until rows are fetched.

        Args:
            columns: names in the wanted order; None: Hudi's meta columns and all data columns.
            where: SQL text (`"day >= '2024-01-01' AND city IN ('x', 'y')"`), a tuple `("city", "=", "x")`, a list of
                tuples that all must hold, or a `pyarrow.compute` expression.
            as_of: the table at that moment: the time of an instant, as `WriteResult`, `history()` and
                `_hoodie_commit_time` show it, or a date or time (text or object; without a zone it is in the Spark
                session's, and without a session in the timeline's).
            query_type: "snapshot" (the default), "read_optimized" for the base files of a merge-on-read table, or
                "incremental" for the rows that were committed in a range of times.
            begin, end: the range of an incremental query, as `as_of` takes them: begin is left out, end is in (None:
                now). Either time of a commit, requested or completed, means that commit; a moment parts what was
                complete then from what was not (below table version 8: begun). begin="earliest": from the first
                commit on.
            incremental_format: what an incremental query returns: "latest_state" (the default), rows in their newest
                version; "cdc", of a table with change logs: all changes, as columns op ("i", "u", "d"), ts_ms (the
                commit), before and after (JSON texts).
            options: Hudi's keys, those that `spark.read.format("hudi")` takes, such as `hoodie.memory.merge.max.size`;
                the session's `spark.hoodie.*` come after them. Times in options keep Hudi's meaning: from table
                version 8 on a range is one of completion times, and `as.of.instant` is compared with instant times.
        Raises: ConfigError for arguments that contradict each other; the rest when rows are fetched.
        """
        given = {**self._mergers, **(options or {})}
        read_options = ReadOptions.parse(given, session_options(self._spark))
        incremental = read_options.incremental
        returned = _given_once(_FORMAT, "incremental_format", incremental_format, incremental.format, given)
        if returned not in ("latest_state", "cdc"):
            raise ConfigError(f"incremental_format={returned!r}: expected 'latest_state' or 'cdc'.")
        kind = _given_once(_QUERY_TYPE, "query_type", query_type, read_options.query_type, given)
        if incremental_format is not None and kind != "incremental":
            raise ConfigError(
                f"incremental_format={incremental_format!r} with a query of type {kind}: give "
                "query_type='incremental' and begin, or call HudiTable.changes."
            )
        meta = self._fresh()

        def moment(key: str, name: str, argument: AsOf | None, option: str | None) -> AsOf | None:
            """What the option means to Hudi; what the argument means in Python."""
            time = _given_once(key, name, argument, option, given)
            is_misplaced = (key == AS_OF) is (kind == "incremental")  # which is refused below
            if argument is None or time is None or is_misplaced or key in canonical_keys(given):
                return time
            time = in_session_zone(time, self._spark)
            return as_of_time(time, meta) if key == AS_OF else time_of_range(name, time, meta, incremental)

        return Scan(
            meta,
            columns=columns,
            where=where,
            as_of=moment(AS_OF, "as_of", as_of, read_options.as_of),
            query_type=kind,
            begin=moment(BEGIN, "begin", begin, read_options.begin),
            end=moment(END, "end", end, read_options.end),
            spark=self._spark,
            merger_classes=read_options.merger_classes,
            memory=read_options.memory,
            damage=read_options.damage,
            use_metadata=read_options.use_metadata,
            unique_keys=read_options.unique_keys,
            incremental=replace(incremental, format=returned),
        )

    def changes(
        self,
        since: AsOf,
        until: AsOf | None = None,
        *,
        format: str | None = None,
        columns: Sequence[str] | None = None,
        where: Where = None,
        options: Options | None = None,
    ) -> Scan:
        """The rows that were committed after `since`, in their newest version: an incremental query.

        `checkpoint` of the result is the `since` of the next call. Deletes are no rows; with format "cdc" they are.

        Args:
            since, until: as `begin` and `end` of `scan`.
            format: as `incremental_format` of `scan`: "cdc" for every change, with the rows before and after.
            columns, where, options: as in `scan`.
        Raises: ConfigError; RangeNotReadable, when rows are fetched, for commits that were archived or cleaned.
        """
        return self.scan(
            columns,
            where,
            query_type="incremental",
            begin=since,
            end=until,
            incremental_format=format,
            options=options,
        )

    def to_arrow(
        self, columns: Sequence[str] | None = None, where: Where = None, as_of: AsOf | None = None
    ) -> pa.Table:
        """`scan(...).to_arrow()`."""
        return self.scan(columns, where, as_of).to_arrow()

    def to_pandas(
        self, columns: Sequence[str] | None = None, where: Where = None, as_of: AsOf | None = None
    ) -> pd.DataFrame:
        """`scan(...).to_pandas()`."""
        return self.scan(columns, where, as_of).to_pandas()

    def _fresh(self) -> MetaClient:
        self._meta = self._meta.reload()
        return self._meta


def _given_once(key: str, name: str, argument: T | None, option: T, given: Options) -> T:
    """The argument, else the option. Raises ConfigError when the call gives both and they differ."""
    if argument is None:
        return option
    if key in canonical_keys(given) and argument != option:
        raise ConfigError(f"{key} is given twice, as {option!r} in options and as {name}={argument!r}. Keep one.")
    return argument
