"""Key generator NON_PARTITION: keys of one or several fields, all rows in the one partition "".

Partition fields are ignored, as in Hudi. Source: docs/formats/keys.md, "Record keys", "Partition paths".
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.keygen.base import BuiltInKey, top_level
from pyhudi.keygen.partition_path import constant_path
from pyhudi.keygen.record_keys import composite_key, single_key
from pyhudi.keygen.settings import KeySettings

__all__ = ["NonPartitionKey"]


@dataclass(frozen=True, slots=True)
class NonPartitionKey(BuiltInKey):
    """The key of one field is its bare value, that of several is `f1:v1,f2:v2`."""

    record_fields: tuple[str, ...]
    consistent_timestamps: bool = False

    @classmethod
    def from_settings(cls, settings: KeySettings) -> NonPartitionKey:
        return cls(settings.record_fields, settings.style.consistent_timestamps)

    @property
    def type_name(self) -> str:
        return "NON_PARTITION"

    @property
    def input_columns(self) -> tuple[str, ...]:
        return top_level(self.record_fields)

    def record_key(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        consistent = self.consistent_timestamps
        if len(self.record_fields) == 1:
            return single_key(batch, self.record_fields[0], consistent_timestamps=consistent, first_row=first_row)
        return composite_key(batch, self.record_fields, consistent_timestamps=consistent, first_row=first_row)

    def partition_path(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        return constant_path("", batch.num_rows)
