"""Key generator CUSTOM: partition fields with a type each, `country:SIMPLE,ts:TIMESTAMP`.

Each part is made as the generator of that name would make it alone; all TIMESTAMP parts share one set of settings. The
record key is as with SIMPLE (one field) or COMPLEX (several). Source: docs/formats/keys.md, "Custom".
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.keygen.base import BuiltInKey, top_level
from pyhudi.keygen.partition_path import PLAIN, PathStyle, join_parts, value_part
from pyhudi.keygen.record_keys import composite_key, single_key
from pyhudi.keygen.settings import PARTITION_PATH, KeySettings
from pyhudi.keygen.timestamp import TimeSettings, timestamp_part

__all__ = ["CustomKey"]


@dataclass(frozen=True, slots=True)
class CustomKey(BuiltInKey):
    """`partition_parts`: field and type, SIMPLE or TIMESTAMP; `time`: None without a TIMESTAMP part."""

    record_fields: tuple[str, ...]
    partition_parts: tuple[tuple[str, str], ...]
    style: PathStyle = PLAIN
    time: TimeSettings | None = None

    @classmethod
    def from_settings(cls, settings: KeySettings) -> CustomKey:
        """Raises ConfigError for a field without a type, an unknown type, or wrong settings of TIMESTAMP parts."""
        parts = tuple(_typed_field(text) for text in settings.partition_fields)
        needs_time = any(kind == "TIMESTAMP" for _, kind in parts)
        time = TimeSettings.parse(settings.timebased, current_year=settings.current_year) if needs_time else None
        return cls(settings.record_fields, parts, settings.single_partition_style(), time)

    @property
    def type_name(self) -> str:
        return "CUSTOM"

    @property
    def input_columns(self) -> tuple[str, ...]:
        return top_level(self.record_fields, (field for field, _ in self.partition_parts))

    def record_key(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        consistent = self.style.consistent_timestamps
        if len(self.record_fields) == 1:
            return single_key(batch, self.record_fields[0], consistent_timestamps=consistent, first_row=first_row)
        return composite_key(batch, self.record_fields, consistent_timestamps=consistent, first_row=first_row)

    def partition_path(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        return join_parts([self._part(batch, *part, first_row) for part in self.partition_parts], batch.num_rows)

    def _part(self, batch: pa.RecordBatch, field: str, kind: str, first_row: int) -> pa.Array:
        if kind == "SIMPLE":
            return value_part(batch, field, self.style, first_row)
        assert self.time is not None, self
        return timestamp_part(batch, field, self.style, self.time, first_row)


def _typed_field(text: str) -> tuple[str, str]:
    field, colon, kind = (piece.strip() for piece in text.partition(":"))
    if not colon or kind.upper() not in ("SIMPLE", "TIMESTAMP"):
        raise ConfigError(
            f"Key generator CUSTOM: partition field {text!r} in {PARTITION_PATH[0]}; expected field:SIMPLE or "
            f"field:TIMESTAMP. Tables before version 8 store the names alone, so writers must give the types again."
        )
    return field, kind.upper()
