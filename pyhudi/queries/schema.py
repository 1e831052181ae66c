"""The schema of a query's result, and partition columns whose values come from the path.

The meta columns come first, then the table's columns. A snapshot query uses the table's newest schema, a time travel
query the schema of its instant. A table without populated meta columns (virtual keys) returns none of them. A table
that drops partition columns from its files returns these columns too: `with_path_values` fills them from the
partition's path.
Source: docs/formats/schema.md, "Schema of a table", "Reading older files"; docs/formats/base-files.md, "Meta columns";
docs/formats/keys.md, "Partition paths".
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from pyhudi.formats.avro.schema import arrow_from_avro, without_meta
from pyhudi.formats.base import open_base_file
from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.table_config import TableConfig
from pyhudi.schema.casts import cast
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["columns_from_path", "read_schema", "with_path_values"]


def read_schema(meta: MetaClient, as_of: str | None, view: FileSystemView | None = None) -> pa.Schema:
    """Columns of a full read, in Hudi's order.

    Args:
        as_of: instant time, None for now.
        view: where to find a base file when no commit has the schema (its commits may be archived).
    """
    data = _data_schema(meta, as_of, view)
    for field in meta.config.dropped_partition_fields:
        if data.get_field_index(field) < 0:
            data = data.append(pa.field(field, pa.string()))
    if not meta.config.populate_meta_fields:
        return data
    return pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *data])


def _data_schema(meta: MetaClient, as_of: str | None, view: FileSystemView | None) -> pa.Schema:
    if as_of is None:
        schema = meta.table_schema()
        if len(schema):
            return schema
    else:
        text = meta.commits.schema_json_as_of(meta.timeline, as_of) or meta.config.create_schema
        if text is not None:
            return without_meta(arrow_from_avro(text))
    newest = max(view.all_base_files() if view else (), key=lambda base: base.instant_time, default=None)
    if newest is None:
        return pa.schema([])
    with open_base_file(meta.storage, newest.path) as reader:
        return without_meta(reader.schema)


def columns_from_path(config: TableConfig) -> tuple[str, ...]:
    """Partition fields that the files leave out, so that their values come from the partition's path."""
    return config.dropped_partition_fields


def with_path_values(rows: pa.RecordBatch, from_path: Mapping[str, str | None], target: pa.Schema) -> pa.RecordBatch:
    """The rows as a query returns them: the columns of `target`, with the values of the path for `from_path`."""
    if not target.names:
        return rows.select([])  # it keeps the number of rows
    columns = [
        _constant(from_path[field.name], field.type, rows.num_rows)
        if field.name in from_path
        else rows.column(field.name)
        for field in target
    ]
    return pa.RecordBatch.from_arrays(columns, schema=target)


def _constant(text: str | None, data_type: pa.DataType, rows: int) -> pa.Array:
    value = cast(pa.array([text], pa.string()), data_type)[0] if text is not None else pa.scalar(None, data_type)
    return pa.repeat(value, rows)
