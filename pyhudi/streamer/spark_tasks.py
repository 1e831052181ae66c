"""The work of Spark's tasks for a pipeline. Rows are packed in Arrow's stream format until all columns are known.

    FetchSplits   a group of splits → rows by the source's own `fetch`, packed; an answer for each split
    PackRows      rows of transformers → finished and packed; an answer for each partition
    UnpackSplits    packed rows → rows in the columns of the batch

The packed rows are cached, so that all later steps have the same rows. If Spark has lost some of them and computes
them again, their number must not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import pyarrow as pa

from pyhudi.engine.base import TaskContext
from pyhudi.errors import MissingLibrary, SchemaMismatch, StorageError
from pyhudi.schema.projection import project
from pyhudi.streamer.json_messages import RowColumns
from pyhudi.streamer.reading import Finish
from pyhudi.streamer.sources.registry import open_source
from pyhudi.streamer.sources.source import Fetched, Rejected, SourceSetting, SplitSource

__all__ = ["ANSWER", "NUMBER", "PACKED", "ROWS", "FetchSplits", "PackRows", "SplitReply", "UnpackSplits", "answers_of"]

NUMBER, ROWS, ANSWER = "number", "rows", "answer"
PACKED = pa.schema([(NUMBER, pa.int32()), (ANSWER, pa.binary()), (ROWS, pa.binary())])
_PACKED_BYTES = 4 << 20  # of one value; workers get 10,000 values at once
Numbered = tuple[int, Any]


class _Report(msgspec.Struct, frozen=True):
    """A task's report on its rows. `columns`: their schema, in Arrow's format."""

    rows: int
    size_bytes: int
    keyless: int
    columns: bytes
    rejected: list[tuple[str, str, str]]
    end: str
    said: list[str]


@dataclass(frozen=True, slots=True)
class FetchSplits:
    """Fetch splits with the task's own source. `finish`: None if transformers come first."""

    setting: SourceSetting
    columns: RowColumns
    finish: Finish | None

    def __call__(self, context: TaskContext, splits: Sequence[Numbered]) -> Iterator[pa.RecordBatch]:
        try:
            source: Any = open_source(self.setting)
        except MissingLibrary as error:
            raise MissingLibrary(f"On a worker of Spark: {error}") from error
        assert isinstance(source, SplitSource)
        try:
            for number, split in splits:
                fetched = source.fetch(split, self.columns)
                rows, keyless = (fetched.rows, []) if self.finish is None else self.finish(fetched.rows)
                yield _answer(number, rows, keyless, fetched)
                yield from _packed(number, rows)
        finally:
            source.close()


@dataclass(frozen=True, slots=True)
class PackRows:
    """Finish and pack the rows of transformers, under the number of the partition."""

    finish: Finish

    def __call__(self, context: TaskContext, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        is_empty = True
        for batch in batches:
            is_empty = False
            rows, keyless = self.finish(pa.Table.from_batches([batch]))
            yield _answer(context.partition_id, rows, keyless)
            yield from _packed(context.partition_id, rows)
        if is_empty:  # it answers as well, so that rows which it lacks when it is computed again are missed
            yield _answer(context.partition_id, (self.finish.target or pa.schema([])).empty_table(), [])


@dataclass(frozen=True, slots=True)
class UnpackSplits:
    """The rows of some numbers, in these columns. `counts`: number → its number of rows; others are left out."""

    counts: Mapping[int, int]
    schema: pa.Schema

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.unpacked(batches)

    def unpacked(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows. Raises StorageError when a number has other rows than before."""
        seen: dict[int, int] = {}
        for batch in batches:
            for number, packed in zip(_numbers(batch.column(NUMBER)), batch.column(ROWS), strict=True):
                if number not in self.counts:
                    continue
                seen.setdefault(number, 0)
                if not packed.is_valid:
                    continue
                for rows in pa.ipc.open_stream(packed.as_buffer()):
                    seen[number] += rows.num_rows
                    yield self._typed(rows)
        for number, count in seen.items():
            if count != self.counts[number]:
                raise StorageError(
                    f"A part of the source was read again, because Spark had lost its rows, and has {count:,} rows "
                    f"instead of {self.counts[number]:,}. Nothing was written."
                )

    def _typed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        typed = project(rows, self.schema, exact=True)
        for field, column in zip(self.schema, typed.columns, strict=True):
            if not field.nullable and column.null_count:
                raise SchemaMismatch(
                    f"Null-value for required field: the column {field.name!r} is NOT NULL, and a row has no value in "
                    "it. Nothing was written. Give it one, or let the column take nulls in the schema."
                )
        return typed


@dataclass(frozen=True, slots=True)
class SplitReply:
    """A task's report. `rows`, `size_bytes`: of the packed rows; `keyless`: rows that lack a key, which are among the
    rejected ones of `fetched`; this has the rest, and the columns.
    """

    number: int
    rows: int
    size_bytes: int
    keyless: int
    fetched: Fetched


def answers_of(table: pa.Table) -> list[SplitReply]:
    """The answers of tasks, by their numbers."""
    answers = []
    for number, packed in zip(_numbers(table.column(NUMBER)), table.column(ANSWER), strict=True):
        if packed.is_valid:
            report = msgspec.msgpack.decode(packed.as_buffer(), type=_Report)
            rows = pa.ipc.read_schema(pa.py_buffer(report.columns)).empty_table()
            fetched = Fetched(rows, [Rejected(*one) for one in report.rejected], report.end, report.said)
            answers.append(SplitReply(number, report.rows, report.size_bytes, report.keyless, fetched))
    return sorted(answers, key=lambda answer: answer.number)


def _numbers(column: pa.Array | pa.ChunkedArray) -> list[int]:
    return cast("list[int]", column.to_pylist())


def _answer(number: int, rows: pa.Table, keyless: Sequence[Rejected], fetched: Fetched | None = None) -> pa.RecordBatch:
    fetched = fetched or Fetched(rows)
    texts = [(one.position, one.text, one.reason) for one in (*fetched.rejected, *keyless)]
    columns = rows.schema.serialize().to_pybytes()
    report = _Report(rows.num_rows, rows.nbytes, len(keyless), columns, texts, fetched.end, list(fetched.said))
    answer = pa.array([msgspec.msgpack.encode(report)], pa.binary())
    return pa.RecordBatch.from_arrays([pa.array([number], pa.int32()), answer, pa.nulls(1, pa.binary())], schema=PACKED)


def _packed(number: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows packed into values of limited size."""
    size = max(1, _PACKED_BYTES * rows.num_rows // max(1, rows.nbytes))
    for start in range(0, rows.num_rows, size):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows.slice(start, size))
        packed = pa.array([sink.getvalue().to_pybytes()], pa.binary())
        yield pa.RecordBatch.from_arrays(
            [pa.array([number], pa.int32()), pa.nulls(1, pa.binary()), packed], schema=PACKED
        )
