"""Schema post-processors: the schema of a provider becomes another, one after the other.

A user's function is `module:function`, which takes an Arrow schema and returns one. Each is applied to the schema of
the rows that are read, and to that of the rows that are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.model.options.streamer.runs import SchemaChangeOptions
from pyhudi.registry import Registry
from pyhudi.streamer.settings import PipelineSettings

__all__ = ["SCHEMA_CHANGES", "changed_schema"]

SchemaChange: TypeAlias = Callable[[pa.Schema, SchemaChangeOptions], pa.Schema]

_PACKAGES = tuple(f"org.apache.hudi.utilities.schema.{part}" for part in ("", "postprocessor.", "postprocessor.add."))
_ROWS = {
    "DropColumnSchemaPostProcessor": f"{__name__}:without_columns",
    "AddPrimitiveColumnSchemaPostProcessor": f"{__name__}:with_column",
    "DeleteSupportSchemaPostProcessor": f"{__name__}:with_deletes",
}
SCHEMA_CHANGES: Registry[Callable[..., pa.Schema]] = Registry(
    kind="schema post-processor",
    entries=_ROWS,
    aliases={f"{package}{name}": name for name in _ROWS for package in _PACKAGES},
)
_DELETED = "_hoodie_is_deleted"
_TYPES: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "bytes": pa.binary(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}


def changed_schema(schema: pa.Schema, settings: PipelineSettings) -> pa.Schema:
    """The schema after all post-processors of the configuration. Raises ConfigError."""
    options = settings.options.schema_changes
    for name in options.names:
        change = SCHEMA_CHANGES.load(name)
        try:
            schema = change(schema) if ":" in SCHEMA_CHANGES.canonical(name) else change(schema, options)
        except ConfigError as error:
            raise ConfigError(f"{settings.place}: {name}: {error}") from error
        if not isinstance(schema, pa.Schema):
            raise ConfigError(f"{settings.place}: {name} returned {schema!r:.100}; expected a schema of Arrow.")
    return schema


def without_columns(schema: pa.Schema, options: SchemaChangeOptions) -> pa.Schema:
    """Leave out columns, ignoring the case of their names, as in Hudi. Raises ConfigError for unknown columns."""
    dropped = {name.lower() for name in options.dropped}
    missing = dropped - {name.lower() for name in schema.names}
    if missing or not dropped:
        raise ConfigError(
            f"schema_post_processor.delete.columns={','.join(options.dropped)}: expected columns of the schema, which "
            f"has {', '.join(schema.names)}."
        )
    columns = [column for column in schema if column.name.lower() not in dropped]
    if not columns:
        raise ConfigError("schema_post_processor.delete.columns leaves no column.")
    return pa.schema(columns)


def with_column(schema: pa.Schema, options: SchemaChangeOptions) -> pa.Schema:
    """Add a column after the others. Raises ConfigError if it exists already."""
    if options.added is None or options.added_type is None:
        raise ConfigError("schema_post_processor.add.column.name and .type are both needed.")
    if options.added in schema.names:
        raise ConfigError(f"the schema has a column {options.added} already.")
    return schema.append(pa.field(options.added, _TYPES[options.added_type]))


def with_deletes(schema: pa.Schema, options: SchemaChangeOptions) -> pa.Schema:
    """Add `_hoodie_is_deleted`, unless it exists."""
    return schema if _DELETED in schema.names else schema.append(pa.field(_DELETED, pa.bool_()))
