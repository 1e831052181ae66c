"""One file slice as a query reads it (`ReadSlice`), and the rules that merge a slice with its log files (`slice_spec`).

The rules are the table's: its merge rules, its keys, and which log blocks count.

Source: docs/architecture.md, "How a table is read"; docs/formats/log.md, "Which blocks count";
docs/formats/merging.md, "Modes and ids", "Two versions of a key".
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.filegroup.read.log_blocks import READING
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.keygen import from_options
from pyhudi.merge.rules import MergeRules, merge_rules
from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import BaseFile, FileSlice
from pyhudi.model.keys import RECORD_KEY
from pyhudi.queries.change_rows import GroupChange
from pyhudi.queries.query import Query
from pyhudi.queries.schema import columns_from_path
from pyhudi.queries.skip.paths import PathValues
from pyhudi.schema.internal import InternalSchema
from pyhudi.view.committed_logs import block_rules, damage_rules

__all__ = ["ReadSlice", "slice_spec"]


@dataclass(frozen=True, slots=True)
class ReadSlice:
    """One file slice to read.

    `path_values`: columns whose value must come from the partition's path, as text (None is null).
    `parsed_path_values`: columns whose value is in the path as well as in the file; if a global index left a key in its
    partition, the path is right.
    `merges`: log files have to be merged; otherwise only the base file, which then exists, is read.
    `change`: only the changes of one commit are read.
    """

    file_slice: FileSlice
    path_values: PathValues = ()
    merges: bool = False
    parsed_path_values: PathValues = ()
    change: GroupChange | None = None

    @classmethod
    def of_base_file(
        cls, base_file: BaseFile, path_values: PathValues = (), parsed_path_values: PathValues = ()
    ) -> ReadSlice:
        """A base file alone."""
        file_slice = FileSlice(base_file.group, base_file.instant_time, base_file)
        return cls(file_slice, path_values, parsed_path_values=parsed_path_values)

    @property
    def from_path(self) -> dict[str, str | None]:
        """The columns whose value is taken from the partition's path."""
        return dict(self.parsed_path_values) | dict(self.path_values)

    @property
    def base_file(self) -> BaseFile:
        """The base file of a slice that has one."""
        assert self.file_slice.base_file is not None, self.file_slice
        return self.file_slice.base_file

    @property
    def size_bytes(self) -> int:
        """Bytes of its files, as stored."""
        base = self.file_slice.base_file
        logs = sum(log.size_bytes for log in self.file_slice.log_files) if self.merges else 0
        return logs + (base.size_bytes if base is not None else 0)


def slice_spec(
    meta: MetaClient,
    schema: pa.Schema,
    query: Query,
    *,
    as_of: str | None = None,
    history: tuple[InternalSchema, ...] = (),
    rules: MergeRules | None = None,
) -> SliceSpec:
    """The rules for merging slices of the table.

    Args:    schema: the table's columns as a query sees them; as_of: instant time, later log blocks do not count;
             history: schemas of the table up to `as_of`, newest first, () where columns match by name; rules: how rows
             merge, None: the table's rules.
    Raises:  UnsupportedTable when the table's merger is an unknown class.
    """
    config = meta.config
    from_path = frozenset(columns_from_path(config))
    stored = [column for column in schema if column.name not in from_path]
    if RECORD_KEY not in schema.names:
        stored = [pa.field(RECORD_KEY, pa.string()), *stored]
    keygen = None
    if not config.populate_meta_fields:
        keygen = from_options(config.properties, schema=schema, table_version=config.table_version)
    return SliceSpec(
        meta.storage,
        pa.schema(stored),
        block_rules(meta, as_of),
        merge_rules(config, query.merger_classes) if rules is None else rules,
        keygen,
        query.memory.merge_bytes,
        query.memory.spill_folder,
        history,
        damage_rules(meta, raises=query.damage.on_read == "fail", advice=READING),
        check_pages=query.damage.page_checksums,
    )
