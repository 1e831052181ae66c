"""Key generator COMPLEX: any number of key fields and partition fields.

The trap (docs/formats/keys.md, "Record keys"): with one key field, Hudi up to 0.14.0 and from 1.0.3 on writes `f:v`,
the releases between write the bare `v`. A table has one form or the other, and mixing them makes duplicates silently,
so the writer inspects the table's keys and pins the form.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from pyhudi.errors import ConfigError, KeyGenError
from pyhudi.keygen.base import BuiltInKey, top_level
from pyhudi.keygen.partition_path import PLAIN, PathStyle, join_parts, value_part
from pyhudi.keygen.record_keys import composite_key, single_key
from pyhudi.keygen.settings import KeySettings

__all__ = ["ComplexKey", "detect_single_key_encoding"]


@dataclass(frozen=True, slots=True)
class ComplexKey(BuiltInKey):
    """`single_field_prefix`: write `f:v` for a single key field; if False, the bare value."""

    record_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    style: PathStyle = PLAIN
    single_field_prefix: bool = True

    @classmethod
    def from_settings(cls, settings: KeySettings) -> ComplexKey:
        """Raises ConfigError for partition fields with a type, which only CUSTOM reads."""
        typed = [field for field in settings.partition_fields if ":" in field]
        if typed:
            raise ConfigError(
                f"Partition field {typed[0]!r} has a type, which key generator COMPLEX doesn't read. "
                f"Use key generator CUSTOM, or name the field alone."
            )
        style = settings.single_partition_style()
        return cls(settings.record_fields, settings.partition_fields, style, settings.single_field_prefix)

    @property
    def type_name(self) -> str:
        return "COMPLEX"

    @property
    def input_columns(self) -> tuple[str, ...]:
        return top_level(self.record_fields, self.partition_fields)

    def record_key(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        consistent = self.style.consistent_timestamps
        if len(self.record_fields) == 1 and not self.single_field_prefix:
            return single_key(batch, self.record_fields[0], consistent_timestamps=consistent, first_row=first_row)
        return composite_key(batch, self.record_fields, consistent_timestamps=consistent, first_row=first_row)

    def partition_path(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        parts = [value_part(batch, field, self.style, first_row) for field in self.partition_fields]
        return join_parts(parts, batch.num_rows)


def detect_single_key_encoding(
    sample_keys: Iterable[str], field: str
) -> Literal["FIELD_PREFIXED", "VALUE_ONLY"] | None:
    """Return the form of the record keys in an existing table with one key field.

    Args:    sample_keys: record keys from the table's files, as many as are available.
    Returns: the form, as `hoodie.table.complex.keygenerator.encoding` spells it; None without keys.
    Raises:  KeyGenError when the sample has both forms: the table was written by Hudi releases that disagree.
    """
    prefixed = bare = None
    for key in sample_keys:
        if key.startswith(f"{field}:"):
            prefixed = prefixed or key
        else:
            bare = bare or key
        if prefixed and bare:
            raise KeyGenError(
                f"The table has record keys of both forms, {prefixed!r} and {bare!r}: it was written by Hudi releases "
                f"that spell COMPLEX keys of one field differently, and an upsert in either form would make silent "
                f"duplicates of rows in the other. Rewrite the table with one form first, or name it with "
                f"hoodie.table.complex.keygenerator.encoding if the values themselves begin with {field + ':'!r}."
            )
    if prefixed:
        return "FIELD_PREFIXED"
    return "VALUE_ONLY" if bare else None
