"""Maintenance: the less frequent services and changes of a table. `HudiTable.maintenance`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from pyhudi.table.calls import Options, PathLike, TableHandle, change_version, open_place
from pyhudi.table.wrong_names import checked_methods

if TYPE_CHECKING:
    from pyhudi.actions.result import WriteResult
    from pyhudi.queries.query import AsOf
    from pyhudi.services.archive.archiving import ArchiveResult
    from pyhudi.services.partition_ttl import TtlResult
    from pyhudi.services.properties import PropertiesChange
    from pyhudi.services.results import CompactionResult
    from pyhudi.services.table_type import TypeChange
    from pyhudi.services.versions.upgrade import VersionChange
    from pyhudi.table.change import Checkpoint
    from pyhudi.table.exports import TableCopy
    from pyhudi.table.groups.repairs import LockAudit, TableRepairs

__all__ = ["Maintenance"]


@checked_methods
class Maintenance:
    """Services, versions, properties, added files, copies and repairs of a table."""

    def __init__(self, handle: TableHandle) -> None:
        """Use `HudiTable.maintenance`."""
        self._handle = handle

    def log_compact(
        self,
        *,
        dry_run: bool = False,
        schedule_only: bool = False,
        instant_time: str | None = None,
        options: Options | None = None,
    ) -> CompactionResult:
        """Merge-on-read: merge the log blocks of slices with many of them; base files are kept. See `compact`."""
        from pyhudi.services.compact.compaction import LOG_COMPACTION
        from pyhudi.services.planned import call

        run = partial(call, LOG_COMPACTION, dry_run=dry_run, schedule_only=schedule_only, instant_time=instant_time)
        return self._handle.serve(run, options, dry_run=dry_run)

    def archive(
        self,
        *,
        min_commits: int | None = None,
        max_commits: int | None = None,
        dry_run: bool = False,
        options: Options | None = None,
    ) -> ArchiveResult:
        """Move old instants from the active timeline to the history, which `history()` still shows.

        Writes do it by themselves. Instants that a reader, a savepoint, pending work or cleaning still needs are kept.

        Args:    min_commits: the number of commits to keep. max_commits: the number above which archiving starts. Both
                     are raised if cleaning needs more. dry_run: only return the instants to archive, and the limit.
        """
        from pyhudi.services.archive.archiving import archive

        arguments = {"min_commits": min_commits, "max_commits": max_commits}
        return self._handle.serve(partial(archive, dry_run=dry_run), options, arguments, dry_run=dry_run)

    def run_ttl(
        self, *, days_retained: int | None = None, dry_run: bool = False, options: Options | None = None
    ) -> TtlResult:
        """Delete the partitions that have expired, by `hoodie.partition.ttl.strategy.days.retain` and related options.

        Args:    days_retained: days after which a partition expires. dry_run: only return the partitions.
        Raises:  WriteConflict for partitions that a pending compaction or clustering is going to rewrite.
        """
        from pyhudi.services.partition_ttl import expire_partitions

        return self._handle.serve(
            partial(expire_partitions, dry_run=dry_run), options, {"days_retained": days_retained}, dry_run=dry_run
        )

    def upgrade(self, to: int = 9, *, dry_run: bool = False, options: Options | None = None) -> VersionChange:
        """Upgrade the table to a higher version (4 → 5 → 6 → 8 → 9), in place. No other process may write to it.

        Failed writes are undone and log files compacted first. A call that died is finished by calling again.

        Args:   dry_run: only return the steps, with the properties that they change.
        Raises: ConfigError when `to` is not a higher version, UnsupportedTable, WriteConflict while others write.
        """
        return change_version(self._handle, to, True, options, dry_run)

    def downgrade(self, to: int, *, dry_run: bool = False, options: Options | None = None) -> VersionChange:
        """Downgrade the table to a lower version (9 → 8 → 6), for software of older releases. See `upgrade`."""
        return change_version(self._handle, to, False, options, dry_run)

    def change_type(self, to: str, *, dry_run: bool = False, options: Options | None = None) -> TypeChange:
        """Make the table COPY_ON_WRITE or MERGE_ON_READ ("cow", "mor"), in place. No other process may write to it.

        To copy-on-write, failed writes are undone and all log files compacted first. A call that died is finished by
        calling again. Below version 8 a merge-on-read table stores its payload class: that of the options, and
        OverwriteWithLatestAvroPayload without one.

        Args:   dry_run: only return the number of file groups to compact.
        Raises: ConfigError for another type, UnsupportedTable when a pending clustering holds log files, WriteConflict
            while others write.
        """
        from pyhudi.services.table_type import change_type

        return self._handle.serve(partial(change_type, to=to, dry_run=dry_run), options, dry_run=dry_run)

    def set_properties(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        unset: Iterable[str] = (),
        dry_run: bool = False,
        options: Options | None = None,
    ) -> PropertiesChange:
        """Set and remove entries of `hoodie.properties`. A backup of the file is kept beside it.

        Args:
            properties: key → value. unset: keys to remove.
            dry_run: only return the differences.
        Raises: ConfigError for properties that describe the files (keys, partitioning, formats, type, version), which
            only rewriting would change.
        """
        from pyhudi.services.properties import set_properties

        call = partial(set_properties, set=properties or {}, unset=tuple(unset), dry_run=dry_run)
        return self._handle.serve(call, options, dry_run=dry_run)

    def set_checkpoint(
        self,
        value: str,
        *,
        key: str | None = None,
        dry_run: bool = False,
        options: Options | None = None,
    ) -> Checkpoint:
        """Set the checkpoint of an ingestion job by an empty commit. Earlier commits are not changed.

        Args:   key: of the commit's extra metadata; None: that of the newest checkpoint of Hudi's Streamer.
                dry_run: only return the checkpoint.
        """
        from pyhudi.table.change import set_checkpoint

        return set_checkpoint(self._handle, value, key, dry_run, options)

    def add_files(
        self,
        paths: PathLike | Sequence[PathLike],
        *,
        operation: Literal["bulk_insert", "insert", "upsert"] | str = "bulk_insert",
        storage_options: Mapping[str, object] | None = None,
        options: Options | None = None,
    ) -> WriteResult:
        """Add the rows of Parquet files, in one commit.

        The rows are written to base files of the table, batch by batch; the files themselves are not changed.

        Args:
            paths: files, or folders with `*.parquet`, on this machine or in any store that tables can be in; hidden
                ones (`_temporary/`, `.a.parquet`) in folders are left out, as in Spark. Partition columns that are not
                in the files come from the names of their folders (`city=rome/`).
            storage_options: of the files' store, as for `open`; they don't apply to the table's.
            operation: upsert replaces rows of known keys; the others don't look up keys, so that files that are added
                twice have all their rows twice.
        Raises: ConfigError for paths without files, and for files of Hudi, Delta and Iceberg tables; SchemaMismatch
            for columns that don't fit the table's; StorageError for a file that can't be read. After an error nothing
            was added.
        """
        from pyhudi.table.imports.rows import add_files

        return add_files(self._handle, paths, operation, storage_options, options)

    def copy_to(
        self,
        path: PathLike,
        as_of: AsOf | None = None,
        *,
        storage_options: Mapping[str, object] | None = None,
    ) -> TableCopy:
        """Copy the table, as it was at a moment, to a new path: a whole Hudi table for every reader and writer.

        Files are copied unchanged, so rows keep their commit times. The copy has the file slices that were the newest
        at that moment and the timeline up to it; nothing older can be read in it. Its metadata table is built from its
        files. Other processes may continue to write to this table.

        Args:   path: as in `open`; an empty or new folder. as_of: as in `scan`; None: now.
                storage_options: Hadoop's keys for the store of the copy.
        Raises: TableExists, ConfigError for a folder that is not empty, TableError for a moment before the first
            commit, or whose files were cleaned. A failed copy is removed.
        """
        from pyhudi.table.at import TableAt
        from pyhudi.table.exports import copy_table

        commit = TableAt.commit_of(self._handle, as_of)
        return copy_table(self._handle, commit, open_place(path, storage_options, self._handle.spark))

    @property
    def repair(self) -> TableRepairs:
        """Repairs that find and fix damage: `repair.orphans()`, `duplicates()` and so on. Nothing changes without
        `dry_run=False`.
        """
        from pyhudi.table.groups.repairs import TableRepairs

        return TableRepairs(self._handle)

    @property
    def lock_audit(self) -> LockAudit:
        """The audit of the storage-based lock: `enable()`, `status()`, `validate()` and so on."""
        from pyhudi.table.groups.repairs import LockAudit

        return LockAudit(self._handle)

    def __repr__(self) -> str:
        return f"Maintenance({', '.join(name for name in vars(type(self)) if not name.startswith('_'))})"
