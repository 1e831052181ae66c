"""The two forms of a record key: one bare value, or `field:value,field:value`.

Source: docs/formats/keys.md, "Record keys". Nothing escapes ":" and "," inside values, so the second form can't always
        be parsed (see parse.py). It is Hudi's form, and the keys must match those that Hudi writes.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import KeyGenError
from pyhudi.java.key_text import text_of
from pyhudi.keygen.base import missing_field, read_field

__all__ = ["EMPTY_PLACEHOLDER", "NULL_PLACEHOLDER", "composite_key", "single_key"]

NULL_PLACEHOLDER = "__null__"
EMPTY_PLACEHOLDER = "__empty__"

OPTION = "hoodie.datasource.write.recordkey.field"


def single_key(batch: pa.RecordBatch, field: str, *, consistent_timestamps: bool, first_row: int = 0) -> pa.Array:
    """Return the text of one field. Raises KeyGenError when a value is null or empty."""
    texts = _texts(batch, field, consistent_timestamps)
    if texts.null_count:
        row = first_row + pc.index(texts.is_null(), True).as_py()
        raise KeyGenError(_no_key(row, f"field {field!r} is null"))
    empty = _empty_mask(texts)
    if empty is not None:
        row = first_row + pc.index(empty, True).as_py()
        raise KeyGenError(_no_key(row, f"field {field!r} is empty"))
    return texts


def composite_key(
    batch: pa.RecordBatch, fields: Sequence[str], *, consistent_timestamps: bool, first_row: int = 0
) -> pa.Array:
    """`f1:v1,f2:v2`, with placeholders for null and empty values.

    Raises KeyGenError when all values of a row are null or empty, or a struct around a nested field is null.
    """
    pieces: list[pa.Array | pa.Scalar] = []
    unusable: pa.Array | None = None  # rows without any value so far
    for number, field in enumerate(fields):
        _check_parents(batch, field, first_row)
        texts = _texts(batch, field, consistent_timestamps)
        missing = None
        empty = _empty_mask(texts)
        if empty is not None:
            missing = pc.fill_null(empty, True)
            texts = pc.if_else(pc.fill_null(empty, False), EMPTY_PLACEHOLDER, texts)
        if texts.null_count:
            missing = texts.is_null() if missing is None else missing
            texts = texts.fill_null(NULL_PLACEHOLDER)
        if number == 0:
            unusable = missing
        elif unusable is not None:
            unusable = None if missing is None else pc.and_(unusable, missing)
        pieces += [pa.scalar(f"{',' if number else ''}{field}:"), texts]
    if unusable is not None and pc.any(unusable).as_py():
        row = first_row + pc.index(unusable, True).as_py()
        raise KeyGenError(_no_key(row, f"every key field ({', '.join(fields)}) is null or empty"))
    return pc.binary_join_element_wise(*pieces, "")


def _texts(batch: pa.RecordBatch, field: str, consistent_timestamps: bool) -> pa.Array:
    column = read_field(batch, field)
    if column is None:
        raise missing_field(field, batch.schema, OPTION)
    return text_of(column, consistent_timestamps=consistent_timestamps, field=field)


def _empty_mask(texts: pa.Array) -> pa.Array | None:
    """True where a text is empty (null where it is null); None when no text is empty, which is the common case."""
    lengths = pc.binary_length(texts)
    return pc.equal(lengths, 0) if pc.min(lengths).as_py() == 0 else None


def _check_parents(batch: pa.RecordBatch, field: str, first_row: int) -> None:
    """Refuse a null struct around a nested field, as Hudi does in this form of the key: the row lacks the field."""
    parent, dot, _ = field.rpartition(".")
    if not dot:
        return
    struct = read_field(batch, parent)
    if struct is not None and struct.null_count:
        row = first_row + pc.index(struct.is_null(), True).as_py()
        raise KeyGenError(_no_key(row, f"the struct {parent!r} around key field {field!r} is null"))


def _no_key(row: int, reason: str) -> str:
    return (
        f"Row {row} (counted from 0 in its partition) has no record key: {reason}. Every row needs one: leave such "
        f"rows out, fill the field, or choose other fields with {OPTION}."
    )
