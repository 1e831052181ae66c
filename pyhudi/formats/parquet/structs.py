"""The structs of a Parquet file: numbers of the fields that this package reads or writes, and the file's frame.

Source: the Parquet format, `parquet.thrift`.
"""

from __future__ import annotations

__all__ = [
    "MAGIC",
    "ColumnChunk",
    "ColumnMetaData",
    "FileMetaData",
    "OffsetIndex",
    "PageHeader",
    "RowGroupEntry",
    "SchemaElement",
    "SizeStatistics",
    "Statistics",
    "framed",
]

MAGIC = b"PAR1"


def framed(footer: bytes) -> bytes:
    """Return a footer as the end of a file: followed by its length and the magic."""
    return footer + len(footer).to_bytes(4, "little") + MAGIC


class FileMetaData:
    """A footer."""

    VERSION, SCHEMA, ROWS, ROW_GROUPS, KEY_VALUES = 1, 2, 3, 4, 5


class SchemaElement:
    """A node of the schema. `REPEATED`: a repetition."""

    REPETITION, NAME, CHILDREN = 3, 4, 5
    REPEATED = 2


class RowGroupEntry:
    """A row group, as the footer lists it."""

    COLUMNS, PLAIN_BYTES, ROWS, FILE_OFFSET, STORED_BYTES, ORDINAL = 1, 2, 3, 5, 6, 7


class ColumnChunk:
    """Parts of the page index: position and length."""

    OTHER_FILE, OFFSET, METADATA = 1, 2, 3
    OFFSET_INDEX, COLUMN_INDEX = (4, 5), (6, 7)
    CRYPTO_METADATA, ENCRYPTED_METADATA = 8, 9


class ColumnMetaData:
    """`BLOOM_FILTER`: position and length."""

    TYPE, ENCODINGS, PATH, CODEC, VALUES, PLAIN_BYTES, STORED_BYTES = 1, 2, 3, 4, 5, 6, 7
    DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, STATISTICS, SIZES = 9, 10, 11, 12, 16
    BLOOM_FILTER = (14, 15)


class Statistics:
    """`IS_EXACT`: whether the greatest and the least bound are values; otherwise they are truncated bounds."""

    BOUNDS, IS_EXACT = (1, 2, 5, 6), (7, 8)


class SizeStatistics:
    """`LEVELS`: histograms of repetition and definition levels."""

    TEXT_BYTES, LEVELS = 1, (2, 3)


class OffsetIndex:
    """`POSITION`: of a page, in its location."""

    LOCATIONS, POSITION = 1, 1


class PageHeader:
    """`DATA`, `DICTIONARY`, `DATA_V2`: types. `VALUES`: in the headers of data pages, `V1` and `V2`."""

    TYPE, STORED_BYTES, V1, V2 = 1, 3, 5, 8
    VALUES = 1
    DATA, DICTIONARY, DATA_V2 = 0, 2, 3
