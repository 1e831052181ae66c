"""Records of the metadata table in bounded memory: HFiles merged in key order, and file groups spilled to local disk.

`sorted_runs` returns the records of several HFiles in pieces, so that a compaction need not fit in memory. Each file
ascends by key, and memory holds some rows of each. A piece ends at the smallest of their last keys, so all versions of
a key are in one piece.

`spilled` writes the records of a new partition to local files. A build reads the table without its lock, and the
records wait in these files until the lock is held.

Source: docs/formats/metadata-table.md, "Compaction and cleaning", "Built while writers go on"; docs/formats/hfile.md,
"Layout".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import MetadataTableDamaged
from pyhudi.metadata.keys import sorted_by_key

__all__ = ["sorted_runs", "spilled"]


_KEY = "key"
_ROWS_HELD_MAX = 1 << 18  # of all files together: some ten MB of records
_ROWS_MIN = 1 << 10  # of one file; fewer would cost more in calls than they save


def sorted_runs(files: Sequence[Iterator[pa.Table]], where: str) -> Iterator[pa.Table]:
    """All rows of the files, in pieces that ascend by key; within a piece file by file.

    Args:    files: the rows of each, ascending by their column `key`; where: the files' location, for messages.
    Raises:  MetadataTableDamaged when a file's keys do not ascend.
    """
    rows_held = max(_ROWS_MIN, _ROWS_HELD_MAX // max(1, len(files)))
    streams = [_Stream(rows, rows_held, where) for rows in files]
    while True:
        streams = [stream for stream in streams if stream.fill()]
        if not streams:
            return
        bound = min(stream.last_key for stream in streams)
        yield pa.concat_tables([stream.take(bound) for stream in streams], promote_options="permissive")


class _Stream:
    """The rows of one file that are in memory."""

    def __init__(self, rows: Iterator[pa.Table], rows_held: int, where: str) -> None:
        self._rows, self._rows_held, self._where = rows, rows_held, where
        self._held: pa.Table | None = None
        self.last_key = ""

    def fill(self) -> bool:
        """Read rows if none are in memory; False when the file has no more."""
        if self._held is not None and self._held.num_rows:
            return True
        parts: list[pa.Table] = []
        while sum(part.num_rows for part in parts) < self._rows_held:
            part = next(self._rows, None)
            if part is None:
                break
            parts.append(part)
        if not any(part.num_rows for part in parts):
            return False
        self._held = pa.concat_tables(parts)
        keys = self._held.column(_KEY).combine_chunks()
        if keys[0].as_py() < self.last_key or not pc.all(pc.less_equal(keys[:-1], keys[1:]), min_count=0).as_py():
            raise MetadataTableDamaged(f"{self._where}: the keys of an HFile do not ascend after {keys[0].as_py()!r}.")
        self.last_key = keys[-1].as_py()
        return True

    def take(self, bound: str) -> pa.Table:
        """The rows held with keys up to `bound`."""
        assert self._held is not None
        count = pc.sum(pc.less_equal(self._held.column(_KEY), bound)).as_py() or 0
        first, self._held = self._held.slice(0, count), self._held.slice(count)
        return first


_ROWS_AT_ONCE = 1 << 17  # in memory, when they are read again


def spilled(groups: Mapping[str, Iterable[pa.Table]], folder: str) -> dict[str, Iterable[pa.Table]]:
    """Write the records to files in the folder; return them as readable groups, each ascending by key, in pieces that
    fit into memory.
    """
    return {file_id: _Spilled(_written(records, Path(folder) / file_id)) for file_id, records in groups.items()}


class _Spilled:
    """The records of one file group, which can be read repeatedly."""

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
