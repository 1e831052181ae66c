"""Rows of CSV. Fields are read as text; columns get the table's types, or the narrowest that fit all fields.

An empty field is null; an empty text is `""`. No other word means null. An empty line is no row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.projection import project
from pyhudi.schema.value_types import typed_nulls
from pyhudi.table.row_files.changed_numbers import changed_text
from pyhudi.table.row_files.json_rows import one_schema
from pyhudi.table.row_files.text_values import column_of_texts

__all__ = ["csv_reader", "csv_types"]

Opener: TypeAlias = Callable[[], IO[bytes]]
Types: TypeAlias = Mapping[str, pa.DataType]


def csv_types(
    files: Mapping[str, Opener], schema: pa.Schema | None, encoding: str, key_columns: Collection[str] = ()
) -> dict[str, pa.DataType]:
    """The type of each column that the files have: the table's, or the narrowest that all fields of all files fit.

    Structs have the fields that one of the rows names. Columns of keys that the table lacks stay text, unless different
    texts are different values: 1.1 and 1.10, or true and TRUE, would be one key.
    """
    types = {} if schema is None else {field.name: field.type for field in schema}
    remaining: dict[str, list[pa.DataType]] = {}
    nested = {name: pa.null() for name, data_type in types.items() if pa.types.is_nested(data_type)}
    for place, opener in files.items():
        names = _names(place, opener, encoding)
        new = [name for name in names if name not in types]
        parts = [name for name in names if name in nested]
        for batch in _texts(place, opener, names, encoding) if new or parts else ():
            for name in new:
                candidates = remaining.get(name, _KEY_CANDIDATES if name in key_columns else _CANDIDATES)
                is_padded = name in key_columns and _has(batch.column(name), _PADDED)
                remaining[name] = [one for one in candidates if not is_padded and _fits(batch.column(name), one)]
            for name in parts:
                values = column_of_texts(name, batch.column(name), types[name])
                schemas = [pa.schema([(name, nested[name])]), pa.schema([(name, values.type)])]
                nested[name] = one_schema(schemas, place).field(name).type
    nested_types = {name: typed_nulls(kind, types[name]) for name, kind in nested.items()}
    return {**types, **nested_types, **{name: _narrowest(candidates) for name, candidates in remaining.items()}}


def csv_reader(place: str, opener: Opener, types: Types, encoding: str) -> pa.RecordBatchReader:
    """The rows of a file, as a stream. Raises ConfigError for text that is no CSV, SchemaMismatch for a value."""
    names = _names(place, opener, encoding)
    columns = pa.schema([pa.field(name, types.get(name, pa.null())) for name in names])

    def batches() -> Iterator[pa.RecordBatch]:
        for texts in _texts(place, opener, names, encoding):
            arrays = [column_of_texts(f.name, texts.column(f.name), f.type) for f in columns]
            yield project(pa.RecordBatch.from_arrays(arrays, names=columns.names), columns)

    return pa.RecordBatchReader.from_batches(columns, batches())


# From the narrowest. Times of day remain text, as do numbers that would lose digits, leading zeros or a sign.
_CANDIDATES: Sequence[pa.DataType] = [
    pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.float64(),
]  # fmt: skip
_KEY_CANDIDATES = [one for one in _CANDIDATES if one not in (pa.bool_(), pa.float64())]
_PADDED = r"^\s|\s$"
_CODES = r"^[+-]?0[0-9xX]|^\+"  # 00123: a postal code, an account; 0x1F; +4930: a telephone
_MANY_DIGITS = r"^[+-]?([0-9]{16,}$|[0-9.]{18,})"  # more than a float keeps
_BOOLEANS = r"^(?i:true|false)$"


def _narrowest(candidates: Sequence[pa.DataType]) -> pa.DataType:
    """The first type that fits. Columns that fit numbers and times alike have only empty texts."""
    if candidates and pa.types.is_null(candidates[0]):
        return candidates[0]
    if not candidates or {pa.int64(), pa.date32()} <= set(candidates[:3]):
        return pa.string()
    return candidates[0]


def _fits(texts: pa.Array, data_type: pa.DataType) -> bool:
    if pa.types.is_null(data_type):
        return texts.null_count == len(texts)
    values = pc.utf8_trim(texts.filter(pc.not_equal(texts, "")), characters=" \t\r\n")
    if pa.types.is_boolean(data_type):
        return not len(values) or bool(pc.all(pc.match_substring_regex(values, _BOOLEANS)).as_py())
    if _has(values, _CODES) and not pa.types.is_temporal(data_type):
        return False
    if pa.types.is_floating(data_type) and _has(values, _MANY_DIGITS):
        return False
    try:
        return changed_text(values, values.cast(data_type)) is None
    except pa.ArrowInvalid:
        return False


def _has(values: pa.Array, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(values, pattern)).as_py())


def _names(place: str, opener: Opener, encoding: str) -> list[str]:
    """The columns of the first line. Raises SchemaMismatch for a name twice."""
    with _errors(place, encoding):
        names = _open(opener, {}, encoding).schema.names
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise SchemaMismatch(f"{place} has several columns called {duplicate!r}. Rename or drop the others.")
    return names


def _texts(place: str, opener: Opener, names: Iterable[str], encoding: str) -> Iterator[pa.RecordBatch]:
    with _errors(place, encoding):
        yield from _open(opener, dict.fromkeys(names, pa.string()), encoding)


def _open(opener: Opener, types: Types, encoding: str) -> pacsv.CSVStreamingReader:
    return pacsv.open_csv(
        opener(),
        read_options=pacsv.ReadOptions(encoding=encoding),
        parse_options=pacsv.ParseOptions(newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(
            column_types=dict(types), strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
        ),
    )


@contextmanager
def _errors(place: str, encoding: str) -> Iterator[None]:
    try:
        yield
    except (UnicodeError, pa.ArrowInvalid) as error:
        if isinstance(error, UnicodeError) or "UTF8" in str(error):
            raise ConfigError(
                f"{place} is not in the encoding {encoding}: give the right one, such as encoding='latin-1'. "
                "Nothing was written."
            ) from error
        raise ConfigError(f"{place} can't be read as CSV: {error}. Nothing was written.") from error
