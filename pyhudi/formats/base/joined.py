"""A bootstrapped base file as one file: the skeleton's meta columns beside the columns of its source file.

Row n of the skeleton is row n of the source. Columns that only the source's folders have (`city=rome`) are added as
constants, in the narrowest type that all readers widen: int, long, date, or text.
Source: docs/formats/bootstrap.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import date
from types import TracebackType
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile, PathNotFound
from pyhudi.formats.base.base import BATCH_ROWS, BaseFileReader, Footer, close_quietly, open_file
from pyhudi.formats.base.ranges import RangeTest
from pyhudi.formats.bootstrap import SourceFile, open_source, source_of
from pyhudi.formats.column_stats import ColumnRange, range_of_values
from pyhudi.model.keys import META_COLUMNS
from pyhudi.storage.base import Storage

__all__ = ["JoinedReader", "folder_columns", "source_batches"]

_INT = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_NULL = "__HIVE_DEFAULT_PARTITION__"


def folder_columns(source_partition: str) -> dict[str, pa.Scalar]:
    """Return the columns that hive-style folders name, with their value."""
    columns: dict[str, pa.Scalar] = {}
    for folder in source_partition.split("/"):
        name, equals, text = folder.partition("=")
        if equals and name:
            columns[unquote(name)] = _value(text)
    return columns


def _value(text: str) -> pa.Scalar:
    if text == _NULL:
        return pa.scalar(None, pa.string())
    if _INT.fullmatch(text):
        number = int(text)
        return pa.scalar(number, pa.int32() if abs(number) < 1 << 31 else pa.int64())
    if _DATE.fullmatch(text):
        try:
            return pa.scalar(date.fromisoformat(text), pa.date32())
        except ValueError:
            pass
    return pa.scalar(unquote(text), pa.string())


class JoinedReader:
    """An open skeleton and its open source file."""

    def __init__(self, skeleton: BaseFileReader, source: BaseFileReader, constants: dict[str, pa.Scalar]) -> None:
        self.where, self._skeleton, self._source = skeleton.where, skeleton, source
        if skeleton.num_rows != source.num_rows:
            raise CorruptFile(
                f"{skeleton.where}: {skeleton.num_rows} rows, but its source file {source.where} has "
                f"{source.num_rows}: the source was changed after the bootstrap. Restore it; a bootstrapped table "
                "needs its source files as they were."
            )
        meta = [field for field in skeleton.schema if field.name in META_COLUMNS]
        data = [field for field in source.schema if field.name not in META_COLUMNS]
        inside = {field.name for field in data}
        self._constants = {name: value for name, value in constants.items() if name not in inside}
        added = [pa.field(name, value.type) for name, value in self._constants.items()]
        self._schema = pa.schema([*meta, *data, *added])
        self._meta = {field.name for field in meta}
        self._data = inside

    @classmethod
    def open(cls, storage: Storage, path: str, *, check_pages: bool = True) -> BaseFileReader:
        """Open both files; only the first if it has data columns of its own, like the copied rows of a bootstrap.

        Raises PathNotFound for a skeleton, CorruptFile for a source file.
        """
        skeleton = open_file(storage, path, check_pages=check_pages)
        if not set(META_COLUMNS).issuperset(skeleton.schema.names):
            return skeleton
        source = None
        try:
            entry = source_of(storage, path)
            outside, source_path = open_source(storage, entry)
            try:
                source = open_file(outside, source_path, check_pages=check_pages)
            except PathNotFound as error:
                raise CorruptFile(
                    f"{outside.full_path(source_path)} does not exist: it has the columns of the bootstrapped file "
                    f"{path!r} of {storage.root}. Restore it; a bootstrapped table needs its source files."
                ) from error
            return cls(skeleton, source, folder_columns(entry.source_partition))
        except BaseException:
            close_quietly(skeleton, source)
            raise

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def columns_of(self, names: Sequence[str]) -> list[str]:
        column_names = set(self._schema.names)
        lacking = [name for name in names if name not in column_names]
        for side in (self._skeleton, self._source) if lacking else ():
            side.columns_of(lacking)  # raises for a damaged name
        return [name for name in names if name in column_names]

    @property
    def num_rows(self) -> int:
        return self._skeleton.num_rows

    @property
    def part_rows(self) -> tuple[int, ...]:
        return (self.num_rows,)  # the parts of the two files differ

    @property
    def plain_bytes(self) -> int:
        return self._skeleton.plain_bytes + self._source.plain_bytes

    @property
    def footer(self) -> Footer:
        return self._skeleton.footer

    def low_cardinality_columns(self) -> tuple[str, ...]:
        sides = (*self._skeleton.low_cardinality_columns(), *self._source.low_cardinality_columns())
        return tuple(self._names(tuple(dict.fromkeys(sides))))

    def plain_columns(self) -> frozenset[str]:
        return (self._skeleton.plain_columns() & self._meta) | (self._source.plain_columns() & self._data)

    def batches(
        self,
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
        dictionaries: Collection[str] = (),
        may_match: RangeTest | None = None,
        parts: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        if parts is not None and not parts:
            return
        names = self._names(columns)
        # Row groups of the two files differ, so none is left out, and rows stay side by side.
        sides = [
            side.batches(of_side, batch_rows, [name for name in dictionaries if name in of_side])
            for side, of_side in self._sides(names)
        ]
        yield from self._join(names, sides)

    def rows_in_parts(self, test: RangeTest) -> int:
        return 0  # the parts of the two files differ

    def numbered_batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS, may_match: RangeTest | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        first = 0
        for batch in self.batches(columns, batch_rows):
            yield first, batch
            first += len(batch)

    def rows_having(self, column: str, values: pa.Array, may_match: RangeTest | None = None) -> npt.NDArray[np.int64]:
        if column in self._constants:
            value = self._constants[column]
            is_one = pc.is_in(pa.array([value.as_py()], value.type), value_set=values.cast(value.type))[0].as_py()
            return np.arange(self.num_rows if is_one else 0)
        return self._side_of(column).rows_having(column, values, may_match)

    def rows_at(self, columns: Sequence[str], rows: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        names = self._names(columns)
        yield from self._join(names, [side.rows_at(of_side, rows) for side, of_side in self._sides(names)])

    def column(self, name: str) -> pa.ChunkedArray:
        if name in self._constants:
            return pa.chunked_array([pa.repeat(self._constants[name], self.num_rows)])
        return self._side_of(name).column(name)

    def ranges(self, names: Sequence[str]) -> tuple[ColumnRange, ...]:
        of_meta = [name for name in names if name in self._meta]
        of_data = [name for name in names if name.partition(".")[0] in self._data]
        constants = [name for name in names if name in self._constants]
        return (
            *self._skeleton.ranges(of_meta),
            *self._source.ranges(of_data),
            *(range_of_values(name, self.column(name)) for name in constants),
        )

    def close(self) -> None:
        self._skeleton.close()
        self._source.close()

    def __enter__(self) -> BaseFileReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _names(self, columns: Sequence[str] | None) -> list[str]:
        names: list[str] = self._schema.names
        if columns is None:
            return names
        column_names = set(names)
        return [name for name in columns if name in column_names]

    def _side_of(self, column: str) -> BaseFileReader:
        return self._skeleton if column in self._meta else self._source

    def _sides(self, names: Sequence[str]) -> list[tuple[BaseFileReader, list[str]]]:
        """Return the files to read and their columns; for constants alone, the skeleton with a column to count rows."""
        meta = [name for name in names if name in self._meta]
        data = [name for name in names if name in self._data]
        if not data:
            return [(self._skeleton, meta or self._skeleton.schema.names[:1])]
        return [*([(self._skeleton, meta)] if meta else []), (self._source, data)]

    def _join(self, names: Sequence[str], sides: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        """Yield batches with these columns, which combine the rows of all sides at equal positions."""
        for parts in _align(sides):
            rows = len(parts[0])
            columns = {name: part.column(name) for part in parts for name in part.schema.names}
            arrays = [
                pa.repeat(self._constants[name], rows) if name in self._constants else columns[name] for name in names
            ]
            fields = [pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _align(sides: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[list[pa.RecordBatch]]:
    """Yield batches of equal lengths, one of each stream at a time. All streams have the same number of rows."""
    pending: list[pa.RecordBatch | None] = [None] * len(sides)
    while True:
        for number, side in enumerate(sides):
            batch = pending[number]
            while batch is None or not len(batch):
                batch = next(side, None)
                if batch is None:
                    return
            pending[number] = batch
        batches = [batch for batch in pending if batch is not None]
        rows = min(map(len, batches))
        yield [batch.slice(0, rows) for batch in batches]
        pending = [batch.slice(rows) for batch in batches]


def source_batches(source: Storage, file: SourceFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns of a source file, those that its folders name included; missing columns are left out."""
    constants = folder_columns(file.source_partition)
    with open_file(source, file.path) as reader:
        names_in_file = set(reader.schema.names)
        inside = [name for name in columns if name in names_in_file]
        added = [name for name in columns if name in constants and name not in names_in_file]
        for batch in reader.batches(inside or reader.schema.names[:1]):
            if not inside and not added:
                yield batch.select([])  # no column, and still its rows
                continue
            arrays = [batch.column(name) for name in inside]
            arrays += [pa.repeat(constants[name], len(batch)) for name in added]
            fields = [pa.field(name, array.type) for name, array in zip([*inside, *added], arrays, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
