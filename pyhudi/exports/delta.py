"""Delta metadata beside `.hoodie`: `_delta_log`, one version for each Hudi commit. deltalake's public calls only.

    add columns      a version of its own, which names the commit before: deltalake adds columns by no other call
    add and remove   one version; `hudi.instant` and `hudi.completion.time` in its commitInfo
    replace          Delta changes no column but by adding: so the log is deleted, newest version first, and made again

A version is made on top of the one that was read, or not at all (no retries): of two exports one finds that it was
outrun. Files of earlier versions are never Delta's to delete: a removed file is dated as if it were removed in the year
9999, so that no VACUUM finds it expired, and the table's retention is a hundred years.
Source: Delta's protocol (add, remove, commitInfo); docs/exports.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from pyhudi.errors import PathNotFound, StorageError, TableExists, UnsupportedTable
from pyhudi.exports.commits import ExportCommit, ExportedState
from pyhudi.exports.delta_schema import delta_columns
from pyhudi.exports.delta_statistics import columns_named, columns_with_statistics, statistics_text
from pyhudi.exports.footer_bounds import bounds_in_footer, footer_of
from pyhudi.exports.target import MustRecreate, Overtaken
from pyhudi.filegroup.stats import side_by_side
from pyhudi.meta_client import MetaClient
from pyhudi.model.options.catalogs.exporting import ExportOptions
from pyhudi.redaction import without_secrets
from pyhudi.storage.stores.other_libraries import deltalake_options

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction

__all__ = ["DeltaTarget", "open_delta"]

_LOG = "_delta_log"
_INSTANT, _COMPLETION_TIME = "hudi.instant", "hudi.completion.time"
_FIRST_VERSION, _CHECKPOINT = f"{0:020}.json", ".checkpoint"
_DECODED = re.compile("%[0-9A-Fa-f]{2}")
_NEVER_MS = 253_402_300_799_000  # the end of the year 9999
_CONFIGURATION = {"delta.deletedFileRetentionDuration": "interval 36500 days"}


@dataclass(slots=True)
class DeltaTarget:
    """The Delta log of one table. `store`: deltalake's options of the table's store; its keys are among them. `table`,
    `before`: as it was read, or made, last.
    """

    meta: MetaClient
    store: Mapping[str, str] = field(default_factory=dict, repr=False)
    table: DeltaTable | None = None
    before: ExportedState | None = None

    @property
    def maps_names(self) -> bool:
        return False

    @property
    def location(self) -> str:
        root = self.meta.storage.root
        return f"s3://{root.removeprefix('s3n://')}" if root.startswith("s3n://") else root  # deltalake knows no s3n

    def close(self) -> None:
        """There are no connections."""

    def exported(self) -> ExportedState | None:
        """See `ExportTarget`. Raises TableExists for a Delta table that no export of ours made."""
        self.table = self.before = None
        with self._calling():
            self.table = self._opened()
            if self.table is None:
                return None
            instant, completion_time, is_ours = self._newest_names(self.table)
            columns = tuple(self.table.metadata().partition_columns)
            paths = pa.table(self.table.get_add_actions()).column("path").cast(pa.string()).to_pylist()
        files = frozenset(unquote(str(path)) for path in paths)
        self.before = ExportedState(instant, completion_time, files, columns, is_ours)
        return self.before

    def _opened(self) -> DeltaTable | None:
        """The Delta table; None for no table, and for what a death or another export left of a log that was being
        deleted, which is deleted then: without its first version and a checkpoint no reader can open it.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        store = dict(self.store)
        if not DeltaTable.is_deltatable(self.location, store):
            return None
        try:
            return DeltaTable(self.location, storage_options=store)
        except DeltaError:
            names = [entry.name for entry in self.meta.storage.list(_LOG)]
            if any(name == _FIRST_VERSION or _CHECKPOINT in name for name in names):
                raise
            self._delete_log()
            return None

    def _newest_names(self, table: DeltaTable) -> tuple[str, str, bool]:
        """The instant and the completion time of the newest version that names them, and whether it is the newest of
        all: others may have made some since, as OPTIMIZE does.
        """
        newest = table.version()
        for version in range(newest, -1, -1):
            names = self._commit_info(version)
            if names is None:  # Delta deletes old versions
                break
            if _INSTANT in names:
                return str(names[_INSTANT]), str(names.get(_COMPLETION_TIME, "")), version == newest
        raise TableExists(
            f"{self.location}: its {_LOG} is of a Delta table that was not exported from the Hudi table. Nothing was "
            f"exported; delete {_LOG} if nobody needs it."
        )

    def _commit_info(self, version: int) -> Mapping[str, object] | None:
        """What a version says of itself; None for one that is not there. deltalake's own `history` finds none in a
        folder with `#` or `?` in its name.
        """
        try:
            lines = self.meta.storage.read(f"{_LOG}/{version:020}.json").splitlines()
        except PathNotFound:
            return None
        actions = (json.loads(line) for line in lines if b'"commitInfo"' in line)
        return next((action["commitInfo"] for action in actions if "commitInfo" in action), {})

    def apply(self, commit: ExportCommit) -> None:
        """See `ExportTarget`."""
        from deltalake.transaction import RemoveAction

        columns = delta_columns(commit.schema, self.location)
        if self.table is None or self.before is None:
            self._create(commit, columns)
            return
        fresh = self._fresh_columns(columns, commit.partition_columns)
        if fresh:
            self._add_columns(fresh)
        counted = columns_named(self.table.metadata().configuration, columns)
        actions: list[AddAction | RemoveAction] = list(self._adds(commit, counted))
        actions += [RemoveAction(path, True, _NEVER_MS) for path in commit.removed]
        with self._calling():
            self.table.create_write_transaction(
                actions,
                "append",
                self.table.schema(),
                list(commit.partition_columns),
                commit_properties=_names(commit.instant, commit.completion_time),
            )
            self.table.update_incremental()
        self._has(commit)

    def replace(self, commit: ExportCommit) -> None:
        """See `ExportTarget`. A death in between leaves an earlier version, or no Delta table."""
        columns = delta_columns(commit.schema, self.location)
        self._delete_log()
        self.table = self.before = None
        self._create(commit, columns)

    def _delete_log(self) -> None:
        """Newest version first, so that what a reader finds meanwhile is an earlier version, or no table."""
        while paths := sorted((entry.path for entry in self.meta.storage.walk(_LOG)), reverse=True):
            for path in paths:
                self.meta.storage.delete(path)

    def _create(self, commit: ExportCommit, columns: pa.Schema) -> None:
        from deltalake import DeltaTable, Schema
        from deltalake.transaction import create_table_with_add_actions

        configuration = {**_CONFIGURATION, **columns_with_statistics(columns, commit.partition_columns)}
        with self._calling():
            create_table_with_add_actions(
                self.location,
                Schema.from_arrow(columns),
                list(self._adds(commit, columns_named(configuration, columns))),
                "error",
                list(commit.partition_columns),
                configuration=configuration,
                storage_options=dict(self.store),
                commit_properties=_names(commit.instant, commit.completion_time),
            )
            self.table = DeltaTable(self.location, storage_options=dict(self.store))
        self._has(commit)

    def _has(self, commit: ExportCommit) -> None:
        self.before = ExportedState(commit.instant, commit.completion_time, frozenset(), commit.partition_columns)

    def _fresh_columns(self, columns: pa.Schema, partition_columns: Sequence[str]) -> pa.Schema:
        """The columns to add. Raises MustRecreate where Delta can't get these columns by adding."""
        from deltalake import Schema

        assert self.table is not None
        stored, now = _types(self.table.schema()), _types(Schema.from_arrow(columns))
        for name, kind in stored.items():
            if now.get(name) != kind:
                what = "has another type" if name in now else "was dropped or renamed"
                raise MustRecreate(f"column {name!r} {what}")
        if list(partition_columns) != list(self.table.metadata().partition_columns):
            raise MustRecreate("not every partition path gives the values of the partition columns any more")
        return pa.schema([columns.field(name) for name in now if name not in stored])

    def _add_columns(self, columns: pa.Schema) -> None:
        from deltalake import Schema

        assert self.table is not None
        assert self.before is not None
        names = _names(self.before.instant, self.before.completion_time)
        with self._calling():
            self.table.alter.add_columns(Schema.from_arrow(columns).fields, commit_properties=names)
            self.table.update_incremental()

    def _adds(self, commit: ExportCommit, counted: Mapping[str, pa.DataType]) -> Iterator[AddAction]:
        """`counted`: the columns with statistics."""
        from deltalake.transaction import AddAction

        now_ms = self.meta.clock.now_ms()
        by_path = {file.path: file for file in commit.added}
        for path, footer in side_by_side(by_path, partial(footer_of, self.meta.storage)):
            file = by_path[path]
            values = {name: _text(value) for name, value in file.partition_values.items()}
            statistics = statistics_text(file.row_count, bounds_in_footer(footer, counted, counted), counted)
            yield AddAction(path, file.size_bytes, values, now_ms, True, statistics)

    @contextmanager
    def _calling(self) -> Iterator[None]:
        """Around calls of deltalake. Raises Overtaken when there is a version that was not read, else StorageError."""
        from deltalake.exceptions import CommitFailedError, DeltaError

        try:
            yield
        except (DeltaError, OSError) as error:
            cause = without_secrets(error, self.store)
            is_late = self.table is None and "already exists" in str(error)
            if is_late or isinstance(error, CommitFailedError):
                raise Overtaken(f"{self.location}: another export was faster: {cause}") from cause
            raise StorageError(
                f"{self.location}: deltalake can't do its part ({type(error).__name__}: {cause}). What was exported "
                "before stays as it is; export again."
            ) from cause


def _names(instant: str, completion_time: str) -> CommitProperties:
    """What a version says of itself, and that it is made at once or not at all."""
    from deltalake import CommitProperties

    return CommitProperties({_INSTANT: instant, _COMPLETION_TIME: completion_time}, max_commit_retries=0)


def _types(schema: Any) -> Mapping[str, object]:
    return {field["name"]: field["type"] for field in json.loads(schema.to_json())["fields"]}


def _text(value: object | None) -> str | None:
    """A partition value as Delta's log has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):
        return value.isoformat()
    return None if value is None else str(value)


def open_delta(meta: MetaClient, options: ExportOptions) -> DeltaTarget:
    """The Delta log of a table. Raises UnsupportedTable for a place that deltalake can't reach."""
    root = meta.storage.root
    if root.startswith("memory:"):
        raise UnsupportedTable(f"{root}: deltalake can't reach a table in memory. Nothing was exported.")
    decoded = _DECODED.search(root)
    if decoded is not None:
        raise UnsupportedTable(
            f"{root}: deltalake takes {decoded[0]!r} in the name of a folder for another character, and "
            "looks elsewhere. Rename the folder. Nothing was exported."
        )
    if "://" in root and ("?" in root or "#" in root):
        raise UnsupportedTable(
            f"{root}: '?' and '#' end an address for deltalake. Move the table. Nothing was exported."
        )
    return DeltaTarget(meta, deltalake_options(meta.storage))
