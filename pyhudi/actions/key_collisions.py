"""Rows of one batch that have the same record key, though their key fields differ.

`f1:v1,f2:v2` escapes nothing, so ("1,b:2", "3") and ("1", "2,b:3") make one key of the fields a and b; null makes that
of `__null__`, and "" that of `__empty__`. The form is Hudi's and stays; whoever loses rows by it is told.
Source: docs/formats/keys.md, "Record keys"; docs/compatibility.md, "Sides taken".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.java.key_text import text_of
from pyhudi.keygen.base import read_field
from pyhudi.keygen.record_keys import EMPTY_PLACEHOLDER, NULL_PLACEHOLDER
from pyhudi.merge.combine import duplicate_key_rows, single_array
from pyhudi.model.keys import PARTITION_PATH, RECORD_KEY

__all__ = ["key_collisions"]


def key_collisions(rows: pa.Table, fields: Sequence[str]) -> str:
    """What is wrong with the keys of a batch, "" when nothing is.

    Args:    rows: with RECORD_KEY and PARTITION_PATH; fields: the key fields, in their order. Rows that lack a field,
             as those of a delete by keys do, are not looked at.
    """
    if len(fields) < 2 or not all(name.partition(".")[0] in rows.column_names for name in fields):
        return ""
    columns = [_column(rows, field) for field in fields]
    if not _may_collide(columns, fields):
        return ""
    at, numbers = duplicate_key_rows(rows, (RECORD_KEY, PARTITION_PATH))
    if not len(at):
        return ""
    taken = pa.array(at)
    values = [text_of(column.take(taken)) for column in columns]
    _, firsts, groups = np.unique(numbers, return_index=True, return_inverse=True)
    differs = np.zeros(len(at), np.bool_)
    for texts in values:
        codes = texts.dictionary_encode(null_encoding="encode").indices.to_numpy()
        differs |= codes != codes[firsts[groups]]
    if not differs.any():
        return ""
    row = int(np.flatnonzero(differs)[0])
    one, other = (tuple(texts[place].as_py() for texts in values) for place in (int(firsts[groups[row]]), row))
    key = rows.column(RECORD_KEY)[int(at[row])].as_py()
    return (
        f"Rows of the batch whose key fields ({', '.join(fields)}) differ have the same record key, such as {one} and "
        f"{other} with {key!r:.200}, so that they are one row of the table. Hudi's keys escape nothing; leave "
        f"',{fields[1]}:' and the like, {NULL_PLACEHOLDER!r} and {EMPTY_PLACEHOLDER!r} out of key fields."
    )


def _column(rows: pa.Table, field: str) -> pa.Array:
    top, _, rest = field.partition(".")
    if field in rows.column_names or not rest:
        return single_array(rows.column(field))
    found = read_field(pa.RecordBatch.from_arrays([single_array(rows.column(top))], names=[top]), field)
    return pa.nulls(len(rows), pa.string()) if found is None else found


def _may_collide(columns: Sequence[pa.Array], fields: Sequence[str]) -> bool:
    """Does a value hold what separates two fields, or what stands for nothing? Numbers and dates never do."""
    for column, (_, following) in zip(columns, pairwise((*fields, "")), strict=True):
        if pa.types.is_primitive(column.type):
            continue
        texts = text_of(column)
        if following and _any(pc.match_substring(texts, f",{following}:")):
            return True
        if _any(pc.is_in(texts, value_set=pa.array([NULL_PLACEHOLDER, EMPTY_PLACEHOLDER]))):
            return True
    return False


def _any(found: pa.Array) -> bool:
    return bool(pc.any(found).as_py())
