"""Index pieces of many tasks: those of one file group of the index are joined, each group in a task of its own.

A look-up opens every HFile of a file group, so that a commit must not bring as many as a load had tasks.
Source: docs/formats/metadata-table.md, "Record index", "Writing".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pyarrow as pa

from pyhudi.engine.base import Engine, TaskContext
from pyhudi.formats.hfile import HFileReader
from pyhudi.metadata.group_files import record_file
from pyhudi.metadata.index_pieces import PieceWriter, pieces_by_group
from pyhudi.metadata.keys_by_group import one_per_key
from pyhudi.metadata.sorted_runs import sorted_runs
from pyhudi.model.commit import IndexPiece, WriteStatus
from pyhudi.model.filenames import index_pieces_folder
from pyhudi.storage.base import as_storage_error

__all__ = ["JoinPieces", "with_joined_pieces"]

_PIECES_MAX = 8  # that a file group takes as they are: a look-up of a key takes a third of a millisecond more for each
_JOINED_MAX = 250  # at once: each is an open file
_RECORDS_MAX = 1_000_000  # of a joined piece: some 25 MB, which are held as a whole when it is copied
_KEY, _VALUE = "key", "value"
_SCHEMA = pa.schema([pa.field("pieces", pa.string(), nullable=False)])
_PIECES = msgspec.json.Decoder(tuple[IndexPiece, ...])


def with_joined_pieces(
    engine: Engine, writer: PieceWriter | None, statuses: tuple[WriteStatus, ...]
) -> tuple[WriteStatus, ...]:
    """The statuses, with pieces of tasks as they are only where a file group of the index has few of them.

    Where tasks have seen different file groups nothing is joined: the commit can't take any of them as it is.
    Args:   writer: with which the tasks made pieces, None: they made none.
    Raises: TaskFailed.
    """
    by_group = pieces_by_group(piece for status in statuses for piece in status.index_pieces)
    crowded = [
        tuple(pieces[start : start + _JOINED_MAX])
        for pieces in by_group.values()
        for start in range(0, len(pieces) if len(pieces) > _PIECES_MAX else 0, _JOINED_MAX)
    ]
    counts = {piece.of_groups for pieces in by_group.values() for piece in pieces}
    if writer is None or not crowded or len(counts) > 1:
        return statuses
    joined = engine.collect(engine.fan_out(crowded, JoinPieces(writer), _SCHEMA)).column("pieces").to_pylist()
    left = [piece for pieces in by_group.values() if len(pieces) <= _PIECES_MAX for piece in pieces]
    pieces = (*left, *(piece for text in joined for piece in _PIECES.decode(str(text))))
    first, *others = (replace(status, index_pieces=()) for status in statuses)
    return (replace(first, index_pieces=pieces), *others)


@dataclass(frozen=True, slots=True)
class JoinPieces:
    """Fan-out work: the pieces of one file group become one, or a few of which each has a range of the keys."""

    writer: PieceWriter

    def __call__(self, task: TaskContext, pieces: Sequence[IndexPiece]) -> Iterator[pa.RecordBatch]:
        path = f"{index_pieces_folder(self.writer.instant_time)}/joined-{pieces[0].group}-{task.write_token}"
        joined = msgspec.json.encode(tuple(self._joined(pieces, path))).decode()
        yield pa.RecordBatch.from_arrays([pa.array([joined], pa.string())], schema=_SCHEMA)

    def _joined(self, pieces: Sequence[IndexPiece], path: str) -> Iterator[IndexPiece]:
        storage, version = self.writer.storage, self.writer.table_version
        where = storage.full_path(path)
        with ExitStack() as opened:
            runs = sorted_runs([self._rows(piece, opened) for piece in pieces], where)
            sink = opened.enter_context(storage.open_output(path))
            file, offset, records = record_file(sink, version), 0, 0

            def closed() -> IndexPiece:
                return replace(pieces[0], path=path, offset=offset, size_bytes=file.close(), records=records)

            for run in runs:
                columns = run.combine_chunks()
                rows, keys = one_per_key(columns.column(_KEY).combine_chunks(), np.arange(len(run)))
                with as_storage_error(where):
                    file.append_columns(keys, columns.column(_VALUE).combine_chunks().take(rows))
                records += len(keys)
                if records >= _RECORDS_MAX:
                    yield (piece := closed())
                    file, offset, records = record_file(sink, version), offset + piece.size_bytes, 0
            if records:
                yield closed()

    def _rows(self, piece: IndexPiece, opened: ExitStack) -> Iterator[pa.Table]:
        where = self.writer.storage.full_path(piece.path)
        source = opened.enter_context(self.writer.storage.open_input(piece.path))
        for entries in HFileReader(source, where, piece.offset, piece.size_bytes).scan():
            yield pa.table({_KEY: entries.key_array().cast(pa.string()), _VALUE: entries.values()})
