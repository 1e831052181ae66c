"""Keys of a secondary index, column by column: the escaped text of a value, `$`, and the escaped record key.

Source: docs/formats/metadata-table.md, "Keys", "Secondary index".
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.model.new_table import SECONDARY_NULLS

__all__ = ["has_secondary_text", "secondary_keys", "secondary_texts"]

_NULL = "\x00"
_SEPARATOR = "$"
_ESCAPED = r"([\\$\x00])"


def has_secondary_text(kind: pa.DataType, table_version: int) -> bool:
    """Is it known what text Hudi makes of the values of a column of this type? Only such columns are indexed."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_date32(kind):
        return True
    if kind in (pa.int32(), pa.int64()):
        return True
    return table_version >= SECONDARY_NULLS and (pa.types.is_timestamp(kind) or pa.types.is_time(kind))


def secondary_texts(values: pa.Array, table_version: int) -> pa.Array:
    """The text of each value, nulls left as they are. The type is one that `has_secondary_text`."""
    kind = values.type
    if pa.types.is_date32(kind) and table_version >= SECONDARY_NULLS:
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        values = values.cast(pa.int64())
    elif pa.types.is_time32(kind):
        values = values.cast(pa.int32())
    return values.cast(pa.string())


def secondary_keys(values: pa.Array, record_keys: pa.Array, table_version: int) -> pa.Array:
    """The key of each row that has one: below version 9 rows without a value have none.

    Args:   values: of the indexed column; record_keys: text without nulls.
    """
    texts = secondary_texts(values, table_version)
    if table_version < SECONDARY_NULLS and texts.null_count:
        known = texts.is_valid()
        texts, record_keys = texts.filter(known), record_keys.filter(known)
    values_escaped = pc.fill_null(_escaped(texts), _NULL)
    return pc.binary_join_element_wise(values_escaped, _escaped(record_keys), _SEPARATOR)


def _escaped(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, _ESCAPED, r"\\\1")
