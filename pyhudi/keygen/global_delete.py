"""Key generator GLOBAL_DELETE: for deletes through a global index, by key alone.

The key is always `f:v`, even with one field, so it does not match the keys of a SIMPLE table with one key field.
Source: docs/formats/keys.md, "Record keys".
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.keygen.base import BuiltInKey, top_level
from pyhudi.keygen.partition_path import constant_path
from pyhudi.keygen.record_keys import composite_key
from pyhudi.keygen.settings import KeySettings

__all__ = ["GlobalDeleteKey"]


@dataclass(frozen=True, slots=True)
class GlobalDeleteKey(BuiltInKey):
    """Keys are `f1:v1,f2:v2`, for any number of fields."""

    record_fields: tuple[str, ...]
    consistent_timestamps: bool = False

    @classmethod
    def from_settings(cls, settings: KeySettings) -> GlobalDeleteKey:
        return cls(settings.record_fields, settings.style.consistent_timestamps)

    @property
    def type_name(self) -> str:
        return "GLOBAL_DELETE"

    @property
    def input_columns(self) -> tuple[str, ...]:
        return top_level(self.record_fields)

    def record_key(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        consistent = self.consistent_timestamps
        return composite_key(batch, self.record_fields, consistent_timestamps=consistent, first_row=first_row)

    def partition_path(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        return constant_path("", batch.num_rows)
