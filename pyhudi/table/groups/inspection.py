"""TableInspection: facts about a table, none of which changes it. `HudiTable.inspect`."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.table.calls import Options, PathLike, TableHandle
from pyhudi.table.wrong_names import checked_methods

if TYPE_CHECKING:
    from pyhudi.queries.query import AsOf
    from pyhudi.report.html import Report
    from pyhudi.services.health import TableHealth
    from pyhudi.table.change import Checkpoint
    from pyhudi.table.description import TableDescription
    from pyhudi.table.exports import ExportedFile
    from pyhudi.table.reports import TableDiff, TableStats

__all__ = ["TableInspection"]


@checked_methods
class TableInspection:
    """Facts about a table; no method changes it."""

    def __init__(self, handle: TableHandle) -> None:
        """Use `HudiTable.inspect`."""
        self._handle = handle

    def describe(self) -> TableDescription:
        """The table in a few lines: type, version, keys, newest commit, metadata table, properties."""
        from pyhudi.table.description import described

        meta = self._handle.fresh()
        return described(meta.storage.root, meta.config, meta.timeline)

    def files(self) -> pa.Table:
        """The newest file of each file group: partition_path, file_id, path, instant_time, size_bytes, log_files."""
        from pyhudi.table.reports import files

        return files(self._handle.fresh())

    def partitions(self) -> pa.Table:
        """The partitions: partition_path ("" for a table without), files, size_bytes, log_files."""
        from pyhudi.table.reports import partitions

        return partitions(self._handle.fresh())

    def stats(self) -> TableStats:
        """Sizes of the newest files, and the totals of each commit on the active timeline; prints as a table.

        Raises: CorruptFile for a commit that can't be read.
        """
        from pyhudi.table.reports import files, table_stats

        meta = self._handle.fresh()
        return table_stats(meta, files(meta)["size_bytes"].combine_chunks())

    def diff(self, since: AsOf, until: AsOf | None = None) -> TableDiff:
        """The changes between two commits: rows, files by partition, columns. No data file is opened.

        Args:   since, until: instant times of commits, or moments as `as_of` of `scan`; None: the newest commit.
        Raises: ConfigError for two in the wrong order, TableError for a moment before the first commit.
        """
        from pyhudi.table.reports import table_diff

        first = self._handle.commit_time(since)
        newest = self._handle.meta.timeline.last_commit()
        last = self._handle.commit_time(until) if until is not None else newest.requested_time if newest else first
        return table_diff(self._handle.meta, first, last)

    def health(self, *, deep: bool = False, options: Options | None = None) -> TableHealth:
        """The causes of slowness or size, and the calls that help; prints as a table.

        They are small files, log files that wait for a compaction, missing statistics, a metadata table that is missing
        or out of date, pending plans, and leftovers of dead writers. Files are listed, but not read or changed.

        Args:    deep: include a dry run of each method of `repair`, which reads keys, log files and history.
                 options: Hudi's own keys: the limits, such as `hoodie.parquet.small.file.limit`.
        Raises:  CorruptFile for a timeline that can't be read.
        """
        from pyhudi.table.reports import health

        return health(self._handle, options, deep)

    def report(self, path: PathLike | None = None, *, options: Options | None = None) -> Report | str:
        """A page for the browser: rows, size, last write, health, timeline, files, partitions, schema and properties.

        The page is one HTML file, which needs no network. Secrets among the properties are hidden. Rows are counted
        if that is cheap; otherwise the page shows the cost of a count.

        Args:
            path: of the HTML file on this machine, which is overwritten. None: no file is written.
            options: Hudi's own keys: the limits of `health`.
        Returns: `path`; without a path an object that a notebook displays, whose `html` is the page.
        Raises:  CorruptFile for a timeline that can't be read, OSError for a file that can't be written.
        """
        from pyhudi.table.reports import report

        return report(self._handle, path, options)

    def checkpoint(self, key: str | None = None) -> Checkpoint:
        """The checkpoint of an ingestion job, from the newest commit with one; its fields are None without one.

        Args:   key: of the commit's extra metadata; None: those of Hudi's Streamer.
        """
        from pyhudi.table.change import checkpoint

        return checkpoint(self._handle, key)

    def export_instants(self, folder: PathLike, *, actions: Collection[str] | None = None) -> ExportedFile:
        """Write the bodies of the completed instants on the active timeline to a folder of this machine, as JSON.

        Args:   actions: of the instants; None: of all kinds. Raises: ConfigError for an unknown one.
        """
        from pyhudi.table.exports import EXPORTED_ACTIONS, export_instants

        return export_instants(self._handle.fresh(), os.fspath(folder), actions or EXPORTED_ACTIONS)

    def __repr__(self) -> str:
        return f"TableInspection({', '.join(name for name in vars(type(self)) if not name.startswith('_'))})"
