"""Records of a partition that is being built, in files of this machine: the table is read without its lock, and the
records wait here until the lock is held.

Source: docs/formats/metadata-table.md, "Built while writers go on".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from pyhudi.metadata.keys_by_group import sorted_by_key

__all__ = ["spilled"]

_ROWS_AT_ONCE = 1 << 17  # in memory, when they are read again


def spilled(groups: Mapping[str, Iterable[pa.Table]], folder: str) -> dict[str, Iterable[pa.Table]]:
    """The same records, read into files of the folder: each group ascending by key, in pieces that fit into memory."""
    return {file_id: _Spilled(_written(records, Path(folder) / file_id)) for file_id, records in groups.items()}


class _Spilled:
    """The records of one file group, as often as they are wanted."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[pa.Table]:
        if not self._path.exists():
            return
        with pa.OSFile(str(self._path)) as source, pa.ipc.open_stream(source) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])


def _written(records: Iterable[pa.Table], path: Path) -> Path:
    writer: pa.RecordBatchStreamWriter | None = None
    with pa.OSFile(str(path), "wb") as sink:
        try:
            for table in records:
                if not table.num_rows:
                    continue
                if writer is None:
                    writer = pa.ipc.new_stream(sink, table.schema)
                writer.write_table(sorted_by_key(table), _ROWS_AT_ONCE)
        finally:
            if writer is not None:
                writer.close()
    if writer is None:
        path.unlink()
    return path
