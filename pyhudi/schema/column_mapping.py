"""Reading one file under schema on read: its columns are matched to the query's by id.

The same applies to a log block, which counts as a file of its own instant.

A file's column has its name in the schema at the time of writing; that gives its id, and the id its name in the query
(rename). An id missing from the query's schema is left out; an id missing from the file's schema is null, even when the
file has a column of that name (dropped and added again).
Source: docs/formats/schema.md, "Schema history".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.model.keys import META_COLUMNS
from pyhudi.schema.internal import InternalSchema, ListType, MapType, SchemaColumn, StructType, schema_as_of
from pyhudi.schema.projection import ColumnData, Rows, as_type, project

__all__ = ["ColumnMapping", "FileColumns", "column_mapping", "file_columns"]

_ROOT = -1


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """A plan for reading one file: `plan(batch)` turns its rows into the query's. Picklable.

    `file_columns`: the required columns, under their names in the file. `schema`: of the result.
    """

    file_columns: tuple[str, ...]
    schema: pa.Schema
    written: InternalSchema
    query: InternalSchema

    def __call__(self, data: Rows) -> Rows:
        """Return the rows under the query's schema, same kind of data. Raises SchemaMismatch like `project`."""
        return project(self.named(data), self.schema)

    def named(self, data: Rows) -> Rows:
        """Return the rows with the query's names; columns outside the query get names that no query can have."""
        fields = _renamed_fields(data.schema, StructType(self.written.columns), _names_by_id(self.query.columns), _ROOT)
        arrays = [_retyped(column, field.type) for column, field in zip(data.itercolumns(), fields, strict=True)]
        names = [field.name for field in fields]
        return type(data).from_arrays(arrays, names=names)


@dataclass(frozen=True, slots=True)
class FileColumns:
    """A query's columns in a file: their `names` there (the file may lack some); `by_id`: None if matched by name."""

    names: tuple[str, ...]
    by_id: ColumnMapping | None = None

    def named(self, rows: Rows) -> Rows:
        """Return the file's rows with the names of the query."""
        return rows if self.by_id is None else self.by_id.named(rows)


def file_columns(history: Sequence[InternalSchema], instant_time: str, columns: Sequence[str]) -> FileColumns:
    """Return the query's columns in files of an instant.

    Args:   history: newest first, beginning with the query's schema; () for tables without a history.
    """
    if not history:
        return FileColumns(tuple(columns))
    existing = {column.name for column in history[0].columns}
    plan = column_mapping(history, instant_time, history[0], [name for name in columns if name in existing])
    if plan is None:
        return FileColumns(tuple(columns))
    others = (name for name in columns if name not in existing and name in META_COLUMNS)
    return FileColumns((*others, *plan.file_columns), plan)


def column_mapping(
    history: Sequence[InternalSchema],
    instant_time: str,
    query: InternalSchema,
    columns: Iterable[str] | None = None,
) -> ColumnMapping | None:
    """Return the plan for files written by the commit `instant_time`.

    Args:
        history: of the table (`load_history`).
        query: the schema to read under: the newest of the history, or the one as of a point in time.
        columns: names in `query` to read, in that order; None = all.
    Returns: None when no schema of the history is old enough; then columns match by name.
    """
    written = schema_as_of(history, instant_time)
    if written is None:
        return None
    by_name = {column.name: column for column in query.columns}
    mapped = query.columns if columns is None else tuple(by_name[name] for name in columns)
    file_names = {column.id: column.name for column in written.columns}
    return ColumnMapping(
        file_columns=tuple(file_names[column.id] for column in mapped if column.id in file_names),
        schema=pa.schema([column.to_arrow() for column in mapped]),
        written=written,
        query=query,
    )


def _names_by_id(columns: Iterable[SchemaColumn]) -> dict[int, str]:
    """Return names of all columns and parts of columns."""
    names: dict[int, str] = {}
    pending = list(columns)
    while pending:
        column = pending.pop()
        names[column.id] = column.name
        pending += _parts(column.type)
    return names


def _parts(data_type: object) -> tuple[SchemaColumn, ...]:
    if isinstance(data_type, StructType):
        return data_type.columns
    if isinstance(data_type, ListType):
        return (data_type.element,)
    if isinstance(data_type, MapType):
        return (data_type.key, data_type.value)
    return ()


def _renamed_fields(
    fields: Iterable[pa.Field], written: StructType, names: dict[int, str], parent: int
) -> list[pa.Field]:
    """Fields of a file under the query's names for their ids."""
    by_name = {column.name: column for column in written.columns}
    out = []
    for position, field in enumerate(fields):
        column = by_name.get(field.name)
        if column is None and parent == _ROOT and field.name in META_COLUMNS:
            out.append(field)  # histories may omit them
        elif column is None or column.id not in names:
            # A name that no query can have, so that a new column of the same name stays null. Not with NUL, which
            # would end names inside types in the C data interface.
            out.append(field.with_name(f"\x01dropped {parent} {position}"))
        else:
            out.append(pa.field(names[column.id], _rename_nested(field.type, column, names), nullable=field.nullable))
    return out


def _rename_nested(data_type: pa.DataType, column: SchemaColumn, names: dict[int, str]) -> pa.DataType:
    """Return the file's type with its nested names changed; a type of another shape stays unchanged."""
    written = column.type
    if isinstance(written, StructType) and pa.types.is_struct(data_type):
        return pa.struct(_renamed_fields(data_type.fields, written, names, column.id))
    if isinstance(written, ListType) and pa.types.is_list(data_type):
        item = data_type.value_field
        return pa.list_(pa.field(item.name, _rename_nested(item.type, written.element, names), nullable=item.nullable))
    if isinstance(written, MapType) and pa.types.is_map(data_type):
        item = data_type.item_field
        value = pa.field(item.name, _rename_nested(item.type, written.value, names), nullable=item.nullable)
        return pa.map_(data_type.key_type, value)
    return data_type


def _retyped(column: ColumnData, data_type: pa.DataType) -> ColumnData:
    if column.type.equals(data_type):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([as_type(chunk, data_type) for chunk in column.chunks], data_type)
    return as_type(column, data_type)
