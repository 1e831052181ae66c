"""Damaged bytes: errors of decoders as CorruptFile, limits for decoded sizes, and the check that text is UTF-8.

Decoders report the damage that they find. Other damage raises errors in Arrow, fastavro, zlib or Python. `as_corrupt`
turns these into CorruptFile around the decoding of a kind of input, not at each line that may raise one.

`check_inflated` limits how much larger than its bytes a part of a file may become. A few kB of Parquet or of an HFile
can stand for gigabytes: pages of one value, bodies of zeros. Real writers make parts of bounded size, because a log
block has a limit and because keys differ.

`check_text` checks text before anything is written. Arrow and Spark accept any bytes as text, but Avro and HFile blocks
with bytes that are not UTF-8 can't be read. Arrow's check handles whole columns, and takes about a nanosecond per byte.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_list, is_text
from pyhudi.errors import ConfigError, CorruptFile, UnsupportedTable

__all__ = [
    "FOREIGN_ERRORS",
    "as_corrupt",
    "as_corrupt_file",
    "check_inflated",
    "check_text",
    "check_text_column",
    "located",
    "text_checked",
]


FOREIGN_ERRORS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    pa.ArrowException,
    struct.error,
    zlib.error,
)
_QUOTED_CHARS = 500  # of the original message: it may quote the file


@contextmanager
def as_corrupt_file(where: str, format_name: str) -> Iterator[None]:
    """Turn pyarrow's errors about bytes into CorruptFile with the file's name."""
    try:
        yield
    except FOREIGN_ERRORS as error:
        raise CorruptFile(
            f"{where}: not a readable {format_name} file: {error} Restore the file from a copy of the table, or roll "
            "the write back that made it."
        ) from error


@contextmanager
def as_corrupt(where: str, what: str) -> Iterator[None]:
    """Turn foreign errors in the block into CorruptFile; HudiError passes.

    Args: where: the file, and the place in it; what: the decoded thing.
    """
    try:
        yield
    except FOREIGN_ERRORS as error:
        text = str(error)[:_QUOTED_CHARS]
        raise CorruptFile(f"{where}: {what} can't be read ({type(error).__name__}: {text}).") from error


@contextmanager
def located(where: str) -> Iterator[None]:
    """Add file and position to the errors about bytes that the block raises."""
    try:
        yield
    except (CorruptFile, UnsupportedTable) as error:
        raise type(error)(f"{where}: {error}") from error


# Twice `hoodie.logfile.data.block.max.size`: a block of usual size is always read.
FREE_BYTES = 512 << 20
# For larger parts: the maximum of deflate, far above that of rows with distinct keys.
MAX_RATIO = 1032


def check_inflated(
    inflated_bytes: int, stored_bytes: int, where: str, *, free_bytes: int = FREE_BYTES, ratio: int = MAX_RATIO
) -> None:
    """Check that the stored bytes may inflate to this size. Raises CorruptFile.

    Args: free_bytes: sizes up to here are always allowed.
    """
    limit = max(free_bytes, ratio * stored_bytes)
    if inflated_bytes > limit:
        raise CorruptFile(
            f"{where}: {stored_bytes} bytes become {inflated_bytes} or more; at most {limit} are read: {free_bytes}, "
            f"or {ratio} for each stored byte. No writer of Hudi makes such a file; restore it from a copy."
        )


def check_text(rows: pa.Table | pa.RecordBatch, first_row: int = 0) -> None:
    """Raise ConfigError, with column and row, for text that is not UTF-8, also inside other types."""
    for field, column in zip(rows.schema, rows.columns, strict=True):
        check_text_column(field.name, cast("pa.Array | pa.ChunkedArray", column), first_row)


def check_text_column(name: str, column: pa.Array | pa.ChunkedArray, first_row: int = 0) -> None:
    """Like `check_text`, for one column."""
    if not _holds_text(column.type):
        return
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        for path, text in _texts(chunk, name):
            number = _first_invalid(text)
            if number is None:
                continue
            row = f", row {first_row + number} (counted from 0)" if path == name else ""
            raise ConfigError(
                f"Column {path!r}{row}: found text that is not UTF-8, {_bytes_of(text, number)!r}. Decode it by its "
                "own encoding, or give the column the type binary. Nothing was written."
            )
        first_row += len(chunk)


def text_checked(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return the same stream, which raises the error of `check_text` at invalid text."""
    if not any(_holds_text(field.type) for field in reader.schema):
        return reader
    return pa.RecordBatchReader.from_batches(reader.schema, _check_batches(reader))


def _check_batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    first_row = 0
    for batch in reader:
        check_text(batch, first_row)
        first_row += batch.num_rows
        yield batch


def _holds_text(kind: pa.DataType) -> bool:
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return _holds_text(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _holds_text(kind.storage_type)
    return is_text(kind) or any(_holds_text(kind.field(i).type) for i in range(kind.num_fields))


def _texts(array: pa.Array, path: str) -> Iterator[tuple[str, pa.Array]]:
    """Yield the arrays of text in a column, with their paths, without values hidden by a slice or a null."""
    kind = array.type
    if not _holds_text(kind):
        return
    if is_text(kind):
        yield path, array
    elif pt.is_dictionary(kind):
        yield from _used_texts(cast("pa.DictionaryArray", array), path)
    elif isinstance(kind, pa.BaseExtensionType):
        yield from _texts(cast("pa.ExtensionArray", array).storage, path)
    elif pt.is_struct(kind):
        for field, child in zip(kind, cast("pa.StructArray", array).flatten(), strict=True):
            yield from _texts(child, f"{path}.{field.name}")
    elif pt.is_map(kind):
        entries = array.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
        yield from _texts(cast("pa.ListArray", entries).flatten(), path)
    elif is_list(kind):
        yield from _texts(cast("pa.ListArray", array).flatten(), f"{path}.element")
    elif pt.is_run_end_encoded(kind):
        yield from _texts(cast("pa.RunEndEncodedArray", array).values, path)


def _used_texts(array: pa.DictionaryArray, path: str) -> Iterator[tuple[str, pa.Array]]:
    """Return the texts of a dictionary; if one is invalid, only those that rows use."""
    for inner, text in _texts(array.dictionary, path):
        yield inner, text if _first_invalid(text) is None else array.dictionary.take(array.indices)


def _first_invalid(text: pa.Array) -> int | None:
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        # Rare, and the write fails: rows may be checked one by one.
        return next((n for n in range(len(text)) if text[n].is_valid and not _is_text(_bytes_of(text, n))), None)
    return None


def _bytes_of(text: pa.Array, number: int) -> bytes:
    value = text[number].as_buffer()
    return b"" if value is None else value.to_pybytes()


def _is_text(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
