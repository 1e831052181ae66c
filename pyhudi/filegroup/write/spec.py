"""WriteSpec: the common settings of all files of one write."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from pyhudi.errors import WriteConflict
from pyhudi.filegroup.write.markers import EarlyConflicts, WhilePending, create_marker, delete_markers
from pyhudi.formats.base import BaseFileOptions
from pyhudi.keygen.base import KeyGenerator
from pyhudi.merge.rules import MergeRules
from pyhudi.model.change_logs import ChangeLogOptions
from pyhudi.schema.internal import InternalSchema
from pyhudi.storage.base import Storage

__all__ = ["BaseFileOptions", "WriteSpec"]


@dataclass(frozen=True, slots=True)
class WriteSpec:
    """The settings with which tasks write base files of one instant. Picklable.

    `schema` holds the data columns (no meta columns); those in `partition_columns_dropped` are not stored.
    `rules`: how rows merge; None: by `merge_mode` and `ordering_fields` alone. `early` checks for other writers of a
    file group before its file is made; None: no check. `while_pending` checks before and after each file that the
    write is not over; None: the tasks end before the write does. `texts_are_checked`: incoming texts are known to be
    UTF-8; else the tasks check them. `stats_columns`: columns whose statistics the tasks report per file (dotted names
    of nested ones); None: no columns. `reports_keys`: the tasks report the new and removed keys of each file group.
    `history`: the table's schemas with ids of columns, newest first: columns of files that are rewritten are matched by
    them; () where they match by name. `change_log`: how changes of rewritten files are logged; None: not at all.
    `key_generator` recomputes the keys of stored rows when `populate_meta_fields` is False, else it is unused.
    """

    storage: Storage
    instant_time: str
    table_name: str
    table_version: int
    schema: pa.Schema
    populate_meta_fields: bool = True
    partition_columns_dropped: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    merge_mode: str = "COMMIT_TIME_ORDERING"
    rules: MergeRules | None = None
    file: BaseFileOptions = field(default_factory=BaseFileOptions)
    key_generator: KeyGenerator | None = None
    early: EarlyConflicts | None = None
    while_pending: WhilePending | None = None
    texts_are_checked: bool = False
    stats_columns: tuple[str, ...] | None = None
    reports_keys: bool = False
    change_log: ChangeLogOptions | None = None
    history: tuple[InternalSchema, ...] = ()

    def announce(self, path: str, io_type: str) -> None:
        """Announce a data file by a marker. Raises WriteConflict if another writer's file conflicts, or if the write
        is over.
        """
        if self.while_pending is not None:
            self.while_pending.check(self.storage, self.instant_time)
        if self.early is not None:
            self.early.check(self.storage, self.instant_time, path)
        create_marker(self.storage, self.instant_time, path, io_type)

    def confirm(self, path: str) -> None:
        """Confirm that an announced file was written. If the write is over by now, the file is deleted again.

        Raises: WriteConflict.
        """
        if self.while_pending is None:
            return
        try:
            self.while_pending.check(self.storage, self.instant_time)
        except WriteConflict:
            self.storage.delete(path)
            delete_markers(self.storage, self.instant_time)  # only late tasks have some, and each deletes its own file
            raise

    @property
    def merging(self) -> MergeRules:
        """The rules that merge an incoming row with the stored one."""
        return self.rules or MergeRules(self.merge_mode, self.ordering_fields)

    @property
    def stored_schema(self) -> pa.Schema:
        """The data columns that base files hold."""
        return pa.schema([column for column in self.schema if column.name not in self.partition_columns_dropped])
