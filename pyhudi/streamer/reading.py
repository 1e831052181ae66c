"""A batch from its source to the rows to write: transformed, in the columns of the table, each with its keys.

    source → transformers → columns → rows that don't fit, or have no key, set aside

`BatchReader` does it in this process, `SparkReader` (`on_spark.py`) by Spark's tasks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from pyhudi.errors import SchemaMismatch
from pyhudi.result import plain
from pyhudi.schema.evolution import evolve
from pyhudi.schema.projection import project
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns, nullable_columns, read_in_parts, typed_schema
from pyhudi.streamer.schemas import ProvidedColumns
from pyhudi.streamer.settings import PipelineSettings
from pyhudi.streamer.sources.source import Batch, Rejected, RowSource
from pyhudi.streamer.transforms import transforms_of

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkDataFrame

__all__ = ["BatchReader", "Finish", "LocalReader", "ReadBatch", "RowTarget", "TableColumns"]


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of the table, none for a new one. `protected`: those of keys and partition paths; `ordering`: those
    of ordering values; `allows_kinds`: numbers may become texts.
    """

    schema: pa.Schema
    protected: tuple[str, ...] = ()
    ordering: tuple[str, ...] = ()
    allows_kinds: bool = False

    def types_of(self, rows: pa.Schema) -> pa.Schema:
        """The columns of rows as the table stores them; unchanged if they don't fit, which the write reports."""
        try:
            stored = evolve(
                self.schema,
                rows,
                null_for_missing=True,
                schema_mode="merge",
                protected=self.protected,
                ordering_fields=self.ordering,
                allow_kind_change=self.allows_kinds,
            )
        except SchemaMismatch:
            return rows
        fields = (stored.field(one.name) if one.name in stored.names else one for one in rows)
        return nullable_columns(pa.schema(list(fields)))


@dataclass(frozen=True, slots=True)
class RowTarget:
    """The table that rows are read for. `columns`: of rows that have no types of their own; `keys`: its key columns;
    `table`: its own columns; `fill`: adds values that a source did not send, and returns lines for the user.
    """

    columns: RowColumns
    keys: Sequence[str]
    table: TableColumns
    fill: Callable[[pa.Table], tuple[pa.Table, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """The input of a round, as it would be written. `data`: its rows; `head`: the first of them."""

    start: Start
    batch: Batch
    data: pa.Table | SparkDataFrame
    schema: pa.Schema
    num_rows: int
    rejected: Sequence[Rejected]
    head: Callable[[int], pa.Table]


class BatchReader(Protocol):
    """The reader of a pipeline's rows."""

    def read(self, start: Start, limit: int | None, target: RowTarget) -> ReadBatch | None:
        """The next rows as they would be written; None if there are none."""
        ...

    def release(self) -> None:
        """Release the rows of the last read."""
        ...


@dataclass(frozen=True, slots=True)
class Finish:
    """The last step. `target`: the columns of the rows; None: their own, as `table` stores them. `is_part`: other rows
    of the batch may have a key column that these lack.
    """

    target: pa.Schema | None
    table: TableColumns
    keys: Sequence[str]
    source: str
    is_part: bool = False

    def __call__(self, rows: pa.Table) -> tuple[pa.Table, list[Rejected]]:
        """The rows that fit and have all keys, in the target's columns, and the others."""
        if self.target is not None and not rows.num_rows:
            return self.target.empty_table(), []
        rows, rejected = self._fitting(rows)
        names = rows.schema.names
        for name in self.missing(rows.schema) if self.is_part and rows.num_rows else ():
            rows = rows.append_column(name, pa.nulls(rows.num_rows))
        keys = [name for name in self.keys if name in rows.schema.names]
        if not keys or not any(rows.column(name).null_count for name in keys):
            return rows, rejected
        valid = pc.is_valid(rows.column(keys[0]))
        for name in keys[1:]:
            valid = pc.and_(valid, pc.is_valid(rows.column(name)))
        reason = f"a row without a value in its key {', '.join(keys)}"
        keyless = [self._rejected(row, reason) for row in rows.filter(pc.invert(valid)).to_pylist()]
        return rows.filter(valid).select(names), rejected + keyless

    def columns(self, schema: pa.Schema) -> pa.Schema:
        """The columns of rows with this schema. New ones without any value are left out: a later batch decides their
        types.
        """
        if self.target is not None:
            return self.target
        return self.table.types_of(typed_schema(nullable_columns(schema), {*self.table.schema.names, *self.keys}))

    def _fitting(self, rows: pa.Table) -> tuple[pa.Table, list[Rejected]]:
        """The rows whose values the columns can hold, and the others. Raises SchemaMismatch for other types."""
        columns = self.columns(rows.schema)
        try:
            return project(rows, columns, exact=True), []
        except SchemaMismatch:
            project(rows.slice(0, 0), columns)
        refused: dict[int, str] = {}

        def read(at: Sequence[int]) -> pa.Table:
            return project(rows.slice(at[0], len(at)), columns, exact=True)

        parts, _ = read_in_parts(read, rows.num_rows, refused, range(rows.num_rows))
        rejected = [self._rejected(_shown(rows.slice(at, 1)), why) for at, why in sorted(refused.items())]
        return pa.concat_tables(parts) if parts else columns.empty_table(), rejected

    def _rejected(self, row: Mapping[str, Any], reason: str) -> Rejected:
        text = _text(row, self.keys)
        return Rejected(f"{self.source}#{xxhash.xxh64_hexdigest(text.encode())}", text, reason)

    def missing(self, schema: pa.Schema) -> list[str]:
        """The key columns that rows lack."""
        return [name for name in self.keys if name not in schema.names and "." not in name]


class LocalReader:
    """Reads batches in this process."""

    def __init__(self, settings: PipelineSettings, source: RowSource, provided: ProvidedColumns) -> None:
        self._settings, self._source, self._provided = settings, source, provided
        self._transforms = transforms_of(settings)

    def read(self, start: Start, limit: int | None, target: RowTarget) -> ReadBatch | None:
        """The rows as an Arrow table."""
        batch = self._source.read(start, limit, target.columns)
        if batch is None:
            return None
        rows = batch.rows
        if rows.num_rows:
            for transform in self._transforms:
                rows = transform(rows)
        elif self._transforms:
            rows = pa.table({})  # transformers would say the columns
        finish = Finish(self._provided.target, target.table, target.keys, self._settings.options.source)
        rows, unfit = finish(rows)
        rows, said = target.fill(rows)
        batch = replace(batch, said=(*batch.said, *said))
        rejected = [*batch.rejected, *unfit]
        return ReadBatch(start, batch, rows, rows.schema, rows.num_rows, rejected, lambda count: rows.slice(0, count))

    def release(self) -> None:
        """Do nothing: no rows are held."""


def _shown(row: pa.Table) -> dict[str, object]:
    """A row's values. Python's times have no nanoseconds without pandas, so values with them are texts."""
    values: dict[str, object] = {}
    for name, column in zip(row.schema.names, row.columns, strict=True):
        if "[ns" not in str(column.type):
            values[name] = column[0].as_py()
        elif pa.types.is_nested(column.type):
            values[name] = column.to_string()
        else:
            values[name] = str(column.cast(pa.string())[0])
    return values


def _text(row: Mapping[str, Any], keys: Sequence[str]) -> str:
    """A row as JSON: its keys and its values. It is the same beside any other rows, which may add columns or widen
    them.
    """
    values = cast("dict[str, object]", _values(plain(row)))
    return json.dumps({**dict.fromkeys(keys), **values}, ensure_ascii=False, sort_keys=True)


def _values(value: object) -> object:
    if isinstance(value, dict):
        return {name: _values(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_values(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
