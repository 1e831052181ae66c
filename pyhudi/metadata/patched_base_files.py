"""Base files of a compaction that are made from the older ones: a few records of many were changed by the log files.

    log files of the slice  → the keys that they have, or delete
    these keys              → with their versions in the base file, where these count → live records, merged as always
    the base file           → its blocks, with those records in their place (`formats/hfile/patching.py`)

So a compaction costs what was written since the last one, and a copy of the rest. Records that are copied keep the name
of the file that they were first written to as `_hoodie_file_name`, which nobody reads.
Source: docs/formats/metadata-table.md, "Compaction and cleaning"; docs/decisions/0017-patched-base-files.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.formats.hfile import HFileReader
from pyhudi.formats.hfile.patching import HFilePatch
from pyhudi.metadata.found_records import KEY, concat_records
from pyhudi.metadata.group_files import encoded_records, new_filter, record_info
from pyhudi.metadata.merging import COMBINED, merged_records
from pyhudi.metadata.partitions import kind_of
from pyhudi.metadata.schema import of_schema, record_fields
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileSlice

__all__ = ["patch_of"]

_FEW_LOG_BYTES = 4 << 20  # compressed: their records are all in memory
_FEW_LOG_SHARE = 0.25  # of the base file's bytes: beyond it few blocks would stay as they are


@contextmanager
def patch_of(table: MetadataTable, file_slice: FileSlice, file_name: str) -> Iterator[HFilePatch | None]:
    """How the base file of a slice becomes one with all that its log files say; None where all of it is to be written
    anew. The old file is open meanwhile.

    Args:    file_name: of the new one. Raises: MetadataTableDamaged, CorruptFile.
    """
    base, log_bytes = file_slice.base_file, sum(log.size_bytes for log in file_slice.log_files)
    if base is None or log_bytes > min(_FEW_LOG_BYTES, _FEW_LOG_SHARE * base.size_bytes):
        yield None
        return
    version = table.data.config.table_version
    with table.meta.storage.open_input(base.path) as source:
        keys, values = _changed(table, file_slice, file_name)
        reader = HFileReader(source, base.path)
        yield HFilePatch.of(reader, record_info(version), new_filter(), keys, values)


def _changed(table: MetadataTable, file_slice: FileSlice, file_name: str) -> tuple[pa.Array, pa.Array]:
    """The keys of the log files, ascending, and their live records as the base file shall have them, else null."""
    kind, version = kind_of(file_slice.group.partition_path), table.data.config.table_version
    logs = table.reader(replace(file_slice, base_file=None)).all()
    keys = pc.unique(logs.column(KEY).combine_chunks())
    versions = logs
    if kind in COMBINED:
        versions = concat_records([table.reader(replace(file_slice, log_files=())).with_keys(keys), logs])
    live = merged_records(versions, kind)
    wanted = keys.cast(pa.binary())
    wanted = wanted.take(pc.sort_indices(wanted))
    if not live.num_rows:
        return wanted, pa.nulls(len(wanted), pa.binary())
    rows = of_schema(live, record_fields(version, kind))
    encoded = encoded_records(rows.drop_columns([KEY]), version, file_name).cast(pa.binary())
    return wanted, encoded.take(pc.index_in(wanted, rows.column(KEY).combine_chunks().cast(pa.binary())))
