"""What merging needs of stored rows: their record keys, and which of them are deletes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.keygen.base import KeyGenerator
from pyhudi.merge.base import Mask
from pyhudi.merge.combine import single_array
from pyhudi.merge.rules import MergeRules, marked_deletes
from pyhudi.model.keys import DELETE_FLAG_COLUMN, META_COLUMNS, RECORD_KEY

__all__ = ["delete_flags", "with_record_keys"]


def with_record_keys(generator: KeyGenerator | None, rows: pa.Table) -> pa.Table:
    """The rows with their record key, which tables without meta columns do not store."""
    if generator is None:
        return rows
    plain = rows.select([name for name in rows.column_names if name not in META_COLUMNS])
    keys = pa.chunked_array([generator.columns(b).record_key for b in plain.combine_chunks().to_batches()], pa.string())
    at = rows.schema.get_field_index(RECORD_KEY)
    return rows.append_column(RECORD_KEY, keys) if at < 0 else rows.set_column(at, RECORD_KEY, keys)


def delete_flags(rules: MergeRules, rows: pa.Table) -> Mask | None:
    """Data rows that are deletes by their flag column or by the configured marker."""
    flags: Mask | None = None
    if DELETE_FLAG_COLUMN in rows.column_names and pa.types.is_boolean(rows.schema.field(DELETE_FLAG_COLUMN).type):
        flags = pc.fill_null(single_array(rows.column(DELETE_FLAG_COLUMN)), False).to_numpy(zero_copy_only=False)
    if rules.delete_field is not None and rules.delete_field in rows.column_names:
        marked = marked_deletes(rules, single_array(rows.column(rules.delete_field)))
        flags = marked if flags is None else flags | marked
    return flags
