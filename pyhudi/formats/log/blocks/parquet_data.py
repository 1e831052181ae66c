"""Log block PARQUET_DATA: a whole Parquet file in memory, without prefix.

Source: docs/formats/log.md, "Parquet data block".
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import CorruptFile

__all__ = ["decode", "encode"]

_SMALL_BYTES = 1 << 20


def decode(content: bytes, schema: str, columns: Collection[str] | None = None, where: str = "log block") -> pa.Table:
    """The block's rows in order. `schema` (Avro JSON of the header) is not needed: the Parquet file has its own."""
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        wanted = None if columns is None else [name for name in file.schema_arrow.names if name in columns]
        return file.read(columns=wanted, use_threads=len(content) > _SMALL_BYTES)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptFile(f"{where}: the Parquet block can't be read ({error}).") from error


def encode(batch: pa.RecordBatch, schema: str) -> bytes:
    """A Parquet file with these rows, and the metadata of their schema as its own.

    By zstd, and for few rows by Snappy without dictionaries, which reads faster: preparing to inflate a page costs zstd
    more than all the work on a small one, and a dictionary is one more page.
    """
    small = batch.nbytes < _SMALL_BYTES
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, batch.schema, compression="snappy" if small else "zstd", compression_level=None if small else 1,
        use_dictionary=not small, version="2.6", store_schema=False,
    ) as writer:  # fmt: skip
        writer.write_batch(batch)
        if batch.schema.metadata:
            writer.add_key_value_metadata(batch.schema.metadata)  # type: ignore[arg-type]  # bytes, too
    return bytes(sink.getvalue())
