"""Key generator TIMESTAMP: one key field as with SIMPLE, the partition from one field that holds a time.

Source: docs/formats/keys.md, "Times"; Hudi's page on key generation.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.keygen.base import BuiltInKey, top_level
from pyhudi.keygen.partition_path import PathStyle
from pyhudi.keygen.record_keys import single_key
from pyhudi.keygen.settings import KeySettings
from pyhudi.keygen.simple import one_partition_field, one_record_field
from pyhudi.keygen.time_settings import TimeSettings
from pyhudi.keygen.timebased import timestamp_part

__all__ = ["TimestampKey"]


@dataclass(frozen=True, slots=True)
class TimestampKey(BuiltInKey):
    """`key_field`: "" only inside automatic keys, which use the partition half alone."""

    key_field: str
    partition_field: str
    style: PathStyle
    time: TimeSettings

    @classmethod
    def from_settings(cls, settings: KeySettings) -> TimestampKey:
        """Raises ConfigError for several fields, or time settings that are missing or wrong."""
        key_field, partition_field = one_record_field(settings, "TIMESTAMP"), one_partition_field(settings, "TIMESTAMP")
        time = TimeSettings.parse(settings.timebased, current_year=settings.current_year)
        return cls(key_field, partition_field, settings.style, time)

    @property
    def type_name(self) -> str:
        return "TIMESTAMP"

    @property
    def input_columns(self) -> tuple[str, ...]:
        return top_level(filter(None, (self.key_field, self.partition_field)))

    def record_key(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        consistent = self.style.consistent_timestamps
        return single_key(batch, self.key_field, consistent_timestamps=consistent, first_row=first_row)

    def partition_path(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        return timestamp_part(batch, self.partition_field, self.style, self.time, first_row)
