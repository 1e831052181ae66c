"""Log block PARQUET_DATA: a whole Parquet file in memory, without prefix.

Source: docs/formats/log.md, "Parquet data block".
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.arrow.kinds import has_struct
from pyhudi.errors import CorruptFile
from pyhudi.formats.base.parquet_calendar import old_calendar
from pyhudi.formats.damage import as_corrupt, check_inflated
from pyhudi.formats.parquet.footer import ParquetFooter, check_column_names

__all__ = ["decode", "encode"]

_SMALL_BYTES = 1 << 20
_BATCH_ROWS = 1 << 16  # memory is checked after this many rows


def decode(content: bytes, schema: str, columns: Collection[str] | None = None, where: str = "log block") -> pa.Table:
    """Decode the block's rows in order. `schema` (Avro JSON of the header) is unused: the Parquet file has its own."""
    with as_corrupt(where, "the Parquet block"):
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        whole = file.schema_arrow
        calendar = old_calendar(file.metadata.metadata)
        names = [name for name in whole.names if columns is None or name in columns]
        lacks_some = columns is not None and len(names) < len(columns)
        if lacks_some or any(has_struct(whole.field(name).type) for name in set(names)):
            length = int.from_bytes(content[-8:-4], "little")
            check_column_names(ParquetFooter(file.metadata, content[-8 - length : -8]), where)
        if len(set(names)) != len(names):
            raise CorruptFile(f"{where}: a column of the Parquet block occurs twice: {', '.join(names)[:200]}.")
        if not names:
            return file.read(columns=[])
        batches: list[pa.RecordBatch] = []
        inflated = 0
        for batch in file.iter_batches(_BATCH_ROWS, columns=names, use_threads=len(content) > _SMALL_BYTES):
            inflated += batch.nbytes
            check_inflated(inflated, len(content), where)
            batches.append(batch if calendar is None else calendar.rebased(batch, whole, where))
        rows = sum(map(len, batches))
        if rows != file.metadata.num_rows:  # pyarrow takes a column without pages for one without rows
            raise CorruptFile(f"{where}: expected {file.metadata.num_rows} rows in the Parquet block, found {rows}.")
        return pa.Table.from_batches(batches, pa.schema([whole.field(name) for name in names], whole.metadata))


def encode(batch: pa.RecordBatch, schema: str, *, page_checksums: bool = True) -> bytes:
    """Encode a Parquet file with these rows, and the metadata of their schema as its own.

    It uses zstd, and for few rows Snappy without dictionaries, which reads faster: zstd's preparation for a page costs
    more than all the work on a small one, and a dictionary is one more page.
    """
    small = batch.nbytes < _SMALL_BYTES
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, batch.schema, compression="snappy" if small else "zstd", compression_level=None if small else 1,
        use_dictionary=not small, version="2.6", store_schema=False,
        write_page_checksum=page_checksums,
    ) as writer:  # fmt: skip
        writer.write_batch(batch)
        if batch.schema.metadata:
            writer.add_key_value_metadata(batch.schema.metadata)  # type: ignore[arg-type]  # bytes, too
    return bytes(sink.getvalue())
