"""A key generator of the user, for tables that name their generator's class."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.keygen import KeyColumns


class ShoutedKey:
    """The key in capitals, the partition as it is."""

    def __init__(self, record_fields: tuple[str, ...], partition_fields: tuple[str, ...]) -> None:
        self.record_field, self.partition_field = record_fields[0], partition_fields[0]

    def columns(self, batch: pa.RecordBatch) -> KeyColumns:
        return KeyColumns(pc.utf8_upper(batch.column(self.record_field)), batch.column(self.partition_field))
