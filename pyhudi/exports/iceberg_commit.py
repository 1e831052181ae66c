"""What goes into one commit of an Iceberg catalog: columns and their names in files, a snapshot, snapshots that expire.

All of it is staged in one transaction of pyiceberg's, so a reader sees all or nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.name_mapping import NameMapping
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update.snapshot import ExpireSnapshots
from pyiceberg.transforms import IdentityTransform

from pyhudi.errors import UnsupportedTable
from pyhudi.exports.commits import DataFile
from pyhudi.exports.footer_bounds import footer_of
from pyhudi.exports.iceberg_columns import (
    EXPORT_AGAIN,
    FormerName,
    change_columns,
    iceberg_schema,
    names_in_files,
    taken_again,
    unmapped,
)
from pyhudi.exports.iceberg_files import ExportedColumns, listed_file
from pyhudi.filegroup.stats import side_by_side
from pyhudi.model.filenames import META_FOLDER
from pyhudi.storage.base import Storage

__all__ = ["StagedCommit", "delete_expired", "identity_spec", "table_url"]

_NAME_MAPPING = "schema.name-mapping.default"
_MANIFESTS_MAX = 100  # more are merged


@dataclass(frozen=True, slots=True)
class StagedCommit:
    """`table`: as it was read; None for a new one. `where`: the table, for messages."""

    transaction: Transaction
    table: Table | None
    storage: Storage
    where: str

    # ---- columns

    def name_columns(self) -> None:
        """Files have the columns' present names."""
        mapping = self.transaction.table_metadata.schema().name_mapping
        self.transaction.set_properties({_NAME_MAPPING: mapping.model_dump_json()})

    def change_columns(self, columns: Schema, former: FormerName, *, makes_new: bool = False) -> dict[str, str]:
        """Columns as they are now. pyiceberg keeps the mapping: a renamed column has both names, a dropped one its own.

        Args:    makes_new: a column whose type can't be changed becomes another one of that name.
        Returns: the columns whose type can't be changed → why; nothing is staged then.
        """
        update = self.transaction.update_schema()
        impossible = change_columns(update, self._schema, columns, former)
        if impossible and makes_new:
            update = self.transaction.update_schema()
            known = former
            change_columns(update, self._schema, columns, lambda path: None if path[0] in impossible else known(path))
            impossible = {}
        if not impossible:
            update.commit()
        return impossible

    def taken_again(self, columns: Schema) -> str:
        """Why a new column's name can't be in the mapping, "" when it can."""
        names = list(taken_again(self._mapping.root, self._schema.as_struct(), columns.as_struct()))
        return f"{', '.join(names)} was dropped and added again; files of before have it still" if names else ""

    def partition_by(self, names: Collection[str]) -> None:
        """The identity of these columns. Files that are there keep the partitions that they have."""
        schema, spec = self._schema, self.transaction.table_metadata.spec()
        before = {schema.find_column_name(field.source_id): field.name for field in spec.fields}
        if before.keys() == set(names):
            return
        with self.transaction.update_spec() as update:
            for name in before.keys() - set(names):
                update.remove_field(before[name])
            for name in (one for one in names if one not in before):
                update.add_identity(name)

    @property
    def _schema(self) -> Schema:
        return self.transaction.table_metadata.schema()

    @property
    def _mapping(self) -> NameMapping:
        return self.transaction.table_metadata.name_mapping() or self._schema.name_mapping

    # ---- files

    def change_files(
        self, added: Sequence[DataFile], removed: Sequence[IcebergFile], summary: Mapping[str, str]
    ) -> dict[str, IcebergFile]:
        """Stage a snapshot. Returns: the files that it adds, by our paths.

        Raises: SchemaMismatch and UnsupportedTable for files that readers of Iceberg would read wrongly.
        """
        listed = dict(self._listed(added))
        update = self.transaction.update_snapshot(snapshot_properties=dict(summary))
        snapshot = update.overwrite() if removed else update.merge_append()
        for file in removed:
            snapshot.delete_data_file(file)
        for file in listed.values():
            snapshot.append_data_file(file)
        snapshot.commit()
        newest = self.transaction.table_metadata.current_snapshot()
        if removed and newest and self.table and len(newest.manifests(self.table.io)) > _MANIFESTS_MAX:
            self.transaction.update_snapshot(snapshot_properties=dict(summary)).merge_append().commit()
        return listed

    def _listed(self, added: Sequence[DataFile]) -> Iterator[tuple[str, IcebergFile]]:
        by_path = {file.path: file for file in added}
        columns = self._columns()
        known: set[pa.Schema] = set()
        for path, footer in side_by_side(by_path, partial(footer_of, self.storage)):
            stored = footer.metadata.schema.to_arrow_schema().remove_metadata()
            if stored not in known:
                self._map_dropped(stored, path)
                known.add(stored)
            yield path, listed_file(by_path[path], data_url(self.storage, path), footer, columns)

    def _columns(self) -> ExportedColumns:
        metadata = self.transaction.table_metadata
        return ExportedColumns(metadata.schema(), metadata.spec(), names_in_files(self._mapping))

    def _map_dropped(self, stored: pa.Schema, path: str) -> None:
        """Columns that the table dropped get a name in the mapping: readers refuse files with others."""
        ids = names_in_files(self._mapping)
        dropped = unmapped(self._mapping, stored)
        if not dropped:
            return
        inner = [field.name for field in dropped if field.name in ids]
        if inner:
            raise UnsupportedTable(
                f"{self.where}: {path} has fields in {', '.join(inner)} that the table lacks by now, and readers of "
                f"Iceberg refuse such a file. Nothing was exported. {EXPORT_AGAIN}"
            )
        with self.transaction.update_schema() as update:
            for column in iceberg_schema(pa.schema(dropped), self.where).fields:
                update.add_column(column.name, column.field_type)
        with self.transaction.update_schema() as update:
            for field in dropped:
                update.delete_column(field.name)

    # ---- snapshots

    def expire(self, retained: int) -> list[Snapshot]:
        """Stage that only the newest snapshots stay, and those that a branch or a tag names. Returns: the others."""
        metadata = self.transaction.table_metadata
        named = {ref.snapshot_id for ref in metadata.refs.values()}
        in_order = sorted(metadata.snapshots, key=lambda one: one.sequence_number or 0)
        expired = [one for one in in_order[: max(0, len(in_order) - retained)] if one.snapshot_id not in named]
        if expired:
            ExpireSnapshots(self.transaction).by_ids([one.snapshot_id for one in expired]).commit()
        return expired


def delete_expired(table: Table, expired: Sequence[Snapshot]) -> None:
    """Delete the metadata files that only these snapshots had; data files stay. An error is left to Iceberg's own
    removal of orphan files.
    """
    if not expired:
        return
    # A manifest that a later snapshot dropped comes back in none: it is enough to look at the oldest that stays.
    stays = sorted(table.snapshots(), key=lambda one: one.sequence_number or 0)[:1]
    named = {ref.snapshot_id for ref in table.refs().values()}
    stays += [one for one in table.snapshots() if one.snapshot_id in named]
    paths = dict.fromkeys(path for one in expired for path in _metadata_paths(table, one))
    kept = {path for one in stays for path in _metadata_paths(table, one)}
    for path in paths.keys() - kept:
        table.io.delete(path)


def _metadata_paths(table: Table, snapshot: Snapshot) -> Iterator[str]:
    yield snapshot.manifest_list
    yield from (manifest.manifest_path for manifest in snapshot.manifests(table.io))


def identity_spec(schema: Schema, names: Iterable[str]) -> PartitionSpec:
    """Partitions by the values of these columns."""
    fields = [
        PartitionField(schema.find_field(name).field_id, 1000 + number, IdentityTransform(), name)
        for number, name in enumerate(names)
    ]
    return PartitionSpec(*fields)


def data_url(storage: Storage, path: str) -> str:
    """Where readers of Iceberg find a file. Raises UnsupportedTable for what they would not find."""
    full = storage.full_path(path)
    scheme, _, rest = full.partition(":")
    if "?" in full or "#" in full or scheme == "memory":
        raise UnsupportedTable(
            f"{full}: readers of Iceberg would not find this file: they know no memory://, and '?' and '#' end a path "
            "for them. Nothing was exported. In a table with hoodie.datasource.write.partitionpath.urlencode no folder "
            "has such a name."
        )
    if scheme == "file":
        return f"file:///{rest.lstrip('/')}"
    return f"s3:{rest}" if scheme in ("s3a", "s3n") else full


def table_url(storage: Storage) -> str:
    """Where the table is, without a slash at the end."""
    return data_url(storage, META_FOLDER).removesuffix(f"/{META_FOLDER}")
