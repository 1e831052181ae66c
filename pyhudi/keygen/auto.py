"""Automatic record keys `<instant>_<partition number>_<row number>`, for tables without key fields.

They wrap the generator that makes the partition path. When a task runs again, a row keeps its key only if the task's
input has the same rows in the same order. So the writer must number a stored or sorted input, never a second evaluation
of a query that may return different rows. Source: docs/formats/keys.md, "Automatic keys".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.keygen.base import BuiltInKey, KeyColumns

__all__ = ["AutoKey"]


@dataclass(frozen=True, slots=True)
class AutoKey(BuiltInKey):
    """`instant_time`: time of the commit that writes the rows; None until the writer draws it."""

    partition_part: BuiltInKey
    instant_time: str | None = None

    @property
    def type_name(self) -> str:
        """Name of the wrapped generator, which is stored in the table's properties."""
        return self.partition_part.type_name

    @property
    def input_columns(self) -> tuple[str, ...]:
        return self.partition_part.input_columns

    def at(self, instant_time: str) -> AutoKey:
        """Return the generator for one commit."""
        return replace(self, instant_time=instant_time)

    def record_key(self, batch: pa.RecordBatch, first_row: int = 0, partition_id: int = 0) -> pa.Array:
        if not self.instant_time and batch.num_rows:
            raise ConfigError(
                "Automatic record keys need the instant time of the commit: pass instant_time to "
                "pyhudi.keygen.from_options, or name key fields with hoodie.datasource.write.recordkey.field."
            )
        rows = pa.array(np.arange(first_row, first_row + batch.num_rows, dtype=np.int64)).cast(pa.string())
        return pc.binary_join_element_wise(pa.scalar(f"{self.instant_time}_{partition_id}_"), rows, "")

    def partition_path(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        return self.partition_part.partition_path(batch, first_row)

    def columns(self, batch: pa.RecordBatch, *, partition_id: int = 0, first_row: int = 0) -> KeyColumns:
        return KeyColumns(self.record_key(batch, first_row, partition_id), self.partition_path(batch, first_row))
