"""Which columns of a table have statistics in its metadata table.

    version 8, 9    three meta columns, and those that are named or the first of the table, of types that have bounds
    below           all columns, the five meta columns among them, or exactly those that are named

Source: docs/formats/metadata-table.md, "Indexed columns".
"""

from __future__ import annotations

import pyarrow as pa

from pyhudi.formats.column_ranges import column_type
from pyhudi.formats.column_stats import OLD_DECIMAL
from pyhudi.model.keys import COMMIT_TIME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from pyhudi.model.options.metadata import MetadataOptions

__all__ = ["indexed_columns"]

_ALWAYS = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)


def indexed_columns(
    schema: pa.Schema, options: MetadataOptions, table_version: int, *, populate_meta_fields: bool = True
) -> tuple[str, ...]:
    """Names of the columns, fields of structs by dotted names, in the order in which Hudi lists them.

    Args: schema: the data columns, as files store them.
    """
    named = options.column_stats_columns
    if table_version < 8:
        return named or ((*META_COLUMNS, *schema.names) if populate_meta_fields else tuple(schema.names))
    wanted = [name for name in named or schema.names if name not in META_COLUMNS]
    found = [name for name in wanted if _is_supported(column_type(schema, name), table_version)]
    if not named:
        found = found[: options.column_stats_columns_max]
    return tuple(dict.fromkeys((*(_ALWAYS if populate_meta_fields else ()), *found)))


def _is_supported(kind: pa.DataType | None, table_version: int) -> bool:
    if kind is None or pa.types.is_nested(kind):
        return False
    if table_version < 9 and pa.types.is_decimal(kind):
        whole_digits = OLD_DECIMAL.precision - OLD_DECIMAL.scale
        return bool(kind.scale <= OLD_DECIMAL.scale and kind.precision - kind.scale <= whole_digits)
    return True
