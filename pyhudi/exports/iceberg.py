"""Iceberg metadata over a table's own files, in a catalog of pyiceberg's: one snapshot a commit. Public calls only.

    exported    the files of the current snapshot, whose summary names the commit (`hudi.instant`)
    apply       one catalog commit: columns, names of columns in files, the snapshot, the snapshots that expire with it
    replace     the same, where a column becomes another one: its former values can't be read any more

A commit is made on top of the snapshot that was read, or not at all: pyiceberg's own retries would add files twice, so
the table's property turns them off. Nothing of Iceberg's may delete our files: `gc.enabled` is false.
Source: the Iceberg specification; docs/exports.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import ConfigError, HudiError, StorageError, TableExists, UnsupportedTable
from pyhudi.exports.commits import ExportCommit, ExportedState
from pyhudi.exports.iceberg_catalog import open_catalog
from pyhudi.exports.target import MustRecreate, Overtaken
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import SCHEMA_FOLDER, base_file_parts
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options.catalogs.exporting import ExportOptions
from pyhudi.model.options.catalogs.iceberg import IcebergOptions, key_of_iceberg
from pyhudi.queries.plan import schema_history
from pyhudi.redaction import without_secrets
from pyhudi.schema.internal import InternalSchema, schema_as_of
from pyhudi.services.clean.exported import note_export

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile as IcebergFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


__all__ = ["IcebergTarget", "open_iceberg"]

_INSTANT, _COMPLETION_TIME, _ACTION = "hudi.instant", "hudi.completion.time", "hudi.action"
_TABLE_PATH = "hudi.table.path"
_OLDEST = "iceberg.oldest"  # the note for cleaning, beside that of the newest
# What a table of ours must have: whoever changes it finds it back with the next export.
_PROPERTIES = {
    "commit.retry.num-retries": "0",
    "commit.manifest-merge.enabled": "true",
    "gc.enabled": "false",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


@dataclass(slots=True)
class IcebergTarget:
    """The Iceberg table of one table. `table`, `before`, `listed`: as it was read, or made, last; `listed`: its files
    by our paths. `history`: schemas with ids, newest first.
    """

    meta: MetaClient
    options: IcebergOptions
    catalog: Catalog
    table: Table | None = None
    before: ExportedState | None = None
    listed: dict[str, IcebergFile] = field(default_factory=dict)
    history: tuple[InternalSchema, ...] = ()

    @property
    def maps_names(self) -> bool:
        return True

    @property
    def location(self) -> str:
        return f"{self._name} in the catalog {self.options.catalog}"

    @property
    def _name(self) -> str:
        config = self.meta.config
        return self.options.table or f"{config.database_name or 'default'}.{config.table_name}"

    @property
    def _where(self) -> str:
        return f"{self.meta.storage.root}: the Iceberg table {self.location}"

    def close(self) -> None:
        """End the catalog's connections."""
        self.catalog.close()

    # ---- what there is

    def exported(self) -> ExportedState | None:
        """See `ExportTarget`. Raises TableExists for an Iceberg table of another table, or that others wrote to."""
        self.table, self.before, self.listed = None, None, {}
        with self._calling():
            self.table = self._loaded()
            if self.table is None:
                return None
            self._check_ours(self.table)
            snapshot = self.table.current_snapshot()
            if snapshot is None:
                return None
            self.before = self._exported(self.table, snapshot)
            return self.before

    def _loaded(self) -> Table | None:
        """The table of that name; None for none. Raises TableExists for one that is not of Iceberg."""
        from pyiceberg.exceptions import NoSuchIcebergTableError, NoSuchPropertyException, NoSuchTableError

        try:
            return self.catalog.load_table(self._name)
        except (NoSuchIcebergTableError, NoSuchPropertyException) as error:
            raise TableExists(
                f"{self._where}: the catalog has a table of that name, which is not of Iceberg. Nothing was exported. "
                f"Give another name by {key_of_iceberg('table')}."
            ) from error
        except NoSuchTableError:
            return None

    def _check_ours(self, table: Table) -> None:
        path, root = table.properties.get(_TABLE_PATH), self._path
        if path != root:
            made_of = f"is of the Hudi table {path}" if path else "was not made by an export"
            raise TableExists(
                f"{self._where} {made_of}. Nothing was exported. Give another name by {key_of_iceberg('table')}, or "
                "drop that table if nobody needs it."
            )

    def _exported(self, table: Table, snapshot: Snapshot) -> ExportedState:
        summary = snapshot.summary
        instant = None if summary is None else summary[_INSTANT]
        if summary is None or instant is None:
            raise TableExists(
                f"{self._where} was changed by another program: snapshot {snapshot.snapshot_id} names no {_INSTANT}. "
                "Exports make such a table only themselves. Nothing was exported. Roll that table back to the snapshot "
                "before, or drop it, which keeps every data file, and export again."
            )
        base = self._path
        for manifest in snapshot.manifests(table.io):
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                self.listed[entry.data_file.file_path.removeprefix(f"{base}/")] = entry.data_file
        names = (table.schema().find_column_name(one.source_id) for one in table.spec().fields)
        return ExportedState(
            str(instant),
            str(summary[_COMPLETION_TIME] or ""),
            frozenset(self.listed),
            tuple(name for name in names if name is not None),
        )

    # ---- changes

    def apply(self, commit: ExportCommit) -> None:
        """See `ExportTarget`."""
        self._check_partition_columns(commit)
        self._load_history()
        if self.table is None:
            self._create(commit)
        else:
            self._change(self.table, commit)

    def replace(self, commit: ExportCommit) -> None:
        """See `ExportTarget`. The table stays, with the ids of its columns; only its newest snapshot can be read."""
        self._load_history()
        if self.table is None:
            self._create(commit)
            return
        paths = {file.path for file in commit.added}
        removed = tuple(path for path in self.listed if path not in paths)
        self._change(self.table, replace(commit, removed=removed), is_whole=True)

    def _check_partition_columns(self, commit: ExportCommit) -> None:
        """Raise UnsupportedTable for columns that neither the files have nor the partitions' values."""
        nowhere = set(self.meta.config.dropped_partition_fields) - set(commit.partition_columns)
        if nowhere:
            raise UnsupportedTable(
                f"{self._where}: the partition columns {', '.join(sorted(nowhere))} are not in the files "
                "(hoodie.datasource.write.drop.partition.columns), and not every partition path gives their values: "
                "readers of Iceberg would see NULL in all rows. Nothing was exported."
            )

    def _create(self, commit: ExportCommit) -> None:
        """The first snapshot, and the table with it. Its columns go through the schemas of older files, so that the
        name mapping has all names.
        """
        from pyhudi.exports.iceberg_columns import former_name, iceberg_schema
        from pyhudi.exports.iceberg_commit import StagedCommit, identity_spec

        times = _times(file.path for file in commit.added)
        problem = self._misread(commit, times)
        if problem:
            raise UnsupportedTable(f"{self._where}: {problem}")
        earlier = self._earlier(commit, times)
        schemas = [iceberg_schema(_with_meta_columns(one, commit.schema), self._where) for one in earlier]
        schemas.append(iceberg_schema(commit.schema, self._where))
        self._check_outside(self.options.location or "")
        with self._calling(), self._namespace():
            transaction = self.catalog.create_table_transaction(
                self._name,
                schemas[0],
                self.options.location,
                identity_spec(schemas[0], () if earlier else commit.partition_columns),
                properties={**_PROPERTIES, _TABLE_PATH: self._path},
            )
            self._check_outside(transaction.table_metadata.location)
            staged = StagedCommit(transaction, None, self.meta.storage, self._where)
            staged.name_columns()
            for before, after, schema in zip(
                earlier, [*earlier, self._schema_of(commit)][1:], schemas[1:], strict=True
            ):
                impossible = staged.change_columns(schema, former_name(before, after))
                if impossible:
                    raise UnsupportedTable(f"{self._where}: {_why(impossible)}")
            staged.partition_by(commit.partition_columns)
            listed = staged.change_files(commit.added, (), _summary(commit))
            self.table = transaction.commit_transaction()
        self._has(commit, listed)

    @contextmanager
    def _namespace(self) -> Iterator[None]:
        """It is there for a `with` block; a new one goes again if the block fails."""
        from pyiceberg.exceptions import NamespaceAlreadyExistsError

        name, is_new = self._name.rpartition(".")[0], False
        try:
            self.catalog.create_namespace(name)
            is_new = True
        except NamespaceAlreadyExistsError:
            pass
        except Exception:  # a SQL catalog's database says so when another export makes it at that moment
            if not self.catalog.namespace_exists(name):
                raise
        try:
            yield
        except BaseException:
            with suppress(Exception):  # the first error says more
                if is_new:
                    self.catalog.drop_namespace(name)
            raise

    def _change(self, table: Table, commit: ExportCommit, *, is_whole: bool = False) -> None:
        """A snapshot on top of the one that was read. `is_whole`: the commit adds all files; its reader asks for them
        only.
        """
        from pyhudi.exports.iceberg_columns import former_name, iceberg_schema
        from pyhudi.exports.iceberg_commit import StagedCommit, delete_expired

        columns = iceberg_schema(commit.schema, self._where)
        gone = set(commit.removed)
        problem = self._misread(commit, _times([*(f.path for f in commit.added), *(self.listed.keys() - gone)]))
        if problem and is_whole:
            raise UnsupportedTable(f"{self._where}: {problem}")
        with self._calling():
            transaction = table.transaction()
            staged = StagedCommit(transaction, table, self.meta.storage, self._where)
            if any(table.properties.get(key) != value for key, value in _PROPERTIES.items()):
                transaction.set_properties(_PROPERTIES)
            before = None if self.before is None else schema_as_of(self.history, self.before.instant)
            now = self._schema_of(commit)
            problem = problem or (not is_whole and before == now and staged.taken_again(columns)) or ""
            former = former_name(before, now)
            impossible = {} if problem else staged.change_columns(columns, former, makes_new=is_whole)
            if problem or impossible:
                raise MustRecreate(problem or _why(impossible))
            staged.partition_by(commit.partition_columns)
            removed = [self.listed[path] for path in commit.removed]
            added = [file for file in commit.added if not is_whole or file.path not in self.listed]
            listed = staged.change_files(added, removed, _summary(commit))
            expired = staged.expire(1 if is_whole else self.options.snapshots_retained)
            self.table = transaction.commit_transaction()
        with suppress(Exception):  # they are in nobody's way
            delete_expired(self.table, expired)
        self._has(commit, listed)

    def _has(self, commit: ExportCommit, listed: dict[str, IcebergFile]) -> None:
        for path in commit.removed:
            del self.listed[path]
        self.listed.update(listed)
        self._note_oldest()
        self.before = ExportedState(commit.instant, commit.completion_time, frozenset(), commit.partition_columns)

    def _note_oldest(self) -> None:
        """Let cleaning keep the files of all snapshots that are there, not only those of the newest."""
        snapshots = [] if self.table is None else self.table.snapshots()
        instants = [one.summary[_INSTANT] for one in snapshots if one.summary is not None]
        note_export(self.meta.storage, _OLDEST, min(filter(None, instants)))

    # ---- schemas

    def _load_history(self) -> None:
        """The history as it is now: the commit may be newer than `meta`."""
        if any(self.meta.storage.list(SCHEMA_FOLDER)):
            self.meta = self.meta.reload()
            self.history = schema_history(self.meta, None)

    def _schema_of(self, commit: ExportCommit) -> InternalSchema | None:
        """The schema with ids when a commit was made; None without a history."""
        return schema_as_of(self.history, commit.instant)

    def _earlier(self, commit: ExportCommit, times: Iterable[str]) -> list[InternalSchema]:
        """The earlier schemas that files were written with, oldest first."""
        now = self._schema_of(commit)
        written = {one.version_id: one for time in times if (one := schema_as_of(self.history, time)) is not None}
        return [written[key] for key in sorted(written) if now is not None and key < now.version_id]

    def _misread(self, commit: ExportCommit, times: Iterable[str]) -> str | None:
        """Why no mapping of names is right for files of all these times."""
        from pyhudi.exports.iceberg_columns import misread_since

        now = self._schema_of(commit)
        for time in sorted(times):
            written = schema_as_of(self.history, time)
            name = None if now is None or written is None or written is now else misread_since(now, written)
            if name:
                return (
                    f"files of {time} have another column under the name {name!r}, which was dropped or renamed since. "
                    f"Readers of Iceberg find columns by name, and would mix them. {_AGAIN}"
                )
        return None

    # ---- catalog

    @property
    def _path(self) -> str:
        from pyhudi.exports.iceberg_commit import table_url

        return table_url(self.meta.storage)

    def _check_outside(self, location: str) -> None:
        """Raise ConfigError for metadata within the Hudi table, whose services would take them for a partition."""
        if f"{location.replace('s3a://', 's3://')}/".startswith(f"{self._path}/"):
            raise ConfigError(
                f"{self._where} would have its metadata at {location}, inside of the Hudi table. Nothing was exported. "
                f"Give a folder outside by {key_of_iceberg('location')}."
            )

    @contextmanager
    def _calling(self) -> Iterator[None]:
        """Errors of pyiceberg and of the catalog's client as ours."""
        from pyiceberg.exceptions import (
            CommitFailedException,
            CommitStateUnknownException,
            NoSuchNamespaceError,
            TableAlreadyExistsError,
        )

        try:
            yield
        except (HudiError, MustRecreate):
            raise
        except Exception as error:  # each catalog has a client of its own, with errors of its own
            cause = without_secrets(error, self.catalog.properties)
            # Without the namespace: another first export, which had made it, has failed.
            if isinstance(error, CommitFailedException | TableAlreadyExistsError | NoSuchNamespaceError):
                raise Overtaken(f"{self._where} was changed meanwhile: {cause}") from cause
            if isinstance(error, CommitStateUnknownException):
                raise StorageError(
                    f"{self._where}: nobody knows whether the catalog took the commit: {cause}. Export again: the next "
                    "export finds out."
                ) from cause
            raise StorageError(f"{self._where}: the catalog refused: {type(error).__name__}: {cause}") from cause


_AGAIN = "Rewrite the older files (table.cluster())."


def _why(impossible: dict[str, str]) -> str:
    return f"Iceberg has no such change of type: {'; '.join(impossible.values())}. {_AGAIN}"


def _summary(commit: ExportCommit) -> dict[str, str]:
    return {_INSTANT: commit.instant, _COMPLETION_TIME: commit.completion_time, _ACTION: commit.action}


def _times(paths: Iterable[str]) -> set[str]:
    """The instants that wrote base files."""
    parts = (base_file_parts(path.rpartition("/")[2]) for path in paths)
    return {part[2] for part in parts if part is not None}


def _with_meta_columns(written: InternalSchema, now: pa.Schema) -> pa.Schema:
    """Histories may leave them out."""
    names = {column.name for column in written.columns}
    meta = [one for one in now if one.name in META_COLUMNS and one.name not in names]
    return pa.schema([*meta, *written.to_arrow()])


def open_iceberg(meta: MetaClient, options: ExportOptions) -> IcebergTarget:
    """The Iceberg table of a table. Raises ConfigError for an unknown catalog, MissingLibrary, StorageError."""
    return IcebergTarget(meta, options.iceberg, open_catalog(options.iceberg, meta.storage))
