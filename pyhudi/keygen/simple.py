"""Key generator SIMPLE: one key field as it is, one partition field.

Source: docs/formats/keys.md, "Record keys", "Partition paths".
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.keygen.base import BuiltInKey, top_level
from pyhudi.keygen.partition_path import PLAIN, PathStyle, value_part
from pyhudi.keygen.record_keys import single_key
from pyhudi.keygen.settings import PARTITION_PATH, RECORD_KEY, KeySettings

__all__ = ["SimpleKey", "one_partition_field", "one_record_field"]


@dataclass(frozen=True, slots=True)
class SimpleKey(BuiltInKey):
    """`key_field`: "" only inside automatic keys, which use the partition half alone."""

    key_field: str
    partition_field: str
    style: PathStyle = PLAIN

    @classmethod
    def from_settings(cls, settings: KeySettings) -> SimpleKey:
        """Raises ConfigError unless there is one partition field and at most one key field."""
        return cls(one_record_field(settings, "SIMPLE"), one_partition_field(settings, "SIMPLE"), settings.style)

    @property
    def type_name(self) -> str:
        return "SIMPLE"

    @property
    def input_columns(self) -> tuple[str, ...]:
        return top_level(filter(None, (self.key_field, self.partition_field)))

    def record_key(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        consistent = self.style.consistent_timestamps
        return single_key(batch, self.key_field, consistent_timestamps=consistent, first_row=first_row)

    def partition_path(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        return value_part(batch, self.partition_field, self.style, first_row)


def one_record_field(settings: KeySettings, generator: str) -> str:
    """Return the only key field, "" without any. Raises ConfigError for several."""
    if len(settings.record_fields) > 1:
        raise ConfigError(
            f"Key generator {generator} takes one key field, {RECORD_KEY[0]} names {len(settings.record_fields)}: "
            f"{', '.join(settings.record_fields)}. Use COMPLEX or CUSTOM for keys of several fields."
        )
    return settings.record_fields[0] if settings.record_fields else ""


def one_partition_field(settings: KeySettings, generator: str) -> str:
    """Return the only partition field. Raises ConfigError for none or several."""
    if len(settings.partition_fields) != 1:
        named = ", ".join(settings.partition_fields) or "none"
        raise ConfigError(
            f"Key generator {generator} takes one partition field, {PARTITION_PATH[0]} names: {named}. "
            f"Use NON_PARTITION for none, COMPLEX or CUSTOM for several."
        )
    field = settings.partition_fields[0]
    if ":" in field:
        raise ConfigError(
            f"Partition field {field!r} has a type, which key generator {generator} doesn't read. "
            f"Use key generator CUSTOM, or name the field alone."
        )
    return field
