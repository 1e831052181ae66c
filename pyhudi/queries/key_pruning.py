"""File groups that a query for some keys need not open, by the record index of the metadata table.

    key = 'a', key IN ('a', 'b')     and the same of the fields that keys are made of, combined by AND and OR
    keys                             as the table's key generator makes them
    record index                     the file groups that have them; a slice of any other is left out

The index is of the newest snapshot, and of rows that are alive, so that other queries go without it. It has one place
for a key, and rows of one key that inserts left in several file groups would be lost: it is used where the caller says
that there are none (`hoodie.pyhudi.read.unique.keys`).
Source: docs/formats/metadata-table.md, "Record index"; docs/reading.md, "The metadata table".
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pyarrow as pa

from pyhudi.errors import HudiError
from pyhudi.keygen import from_options
from pyhudi.keygen.base import BuiltInKey
from pyhudi.metadata.partitions import MetadataKind
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.keys import RECORD_KEY
from pyhudi.model.predicate import Column, Predicate
from pyhudi.model.predicate.tree import Value
from pyhudi.model.table_config import TableConfig
from pyhudi.queries.index_lookups import groups_of_places, only_values

__all__ = ["MAX_KEYS", "groups_with_keys", "sole_key_field", "wanted_keys"]

# Keys that a query looks up. A look-up decompresses a block of the index for each of them, so that opening the files
# costs less from some thousands on, and values of several fields must not multiply without end.
MAX_KEYS = 10000
_PARTITION = MetadataKind.RECORD_INDEX.value.prefix


def groups_with_keys(table: MetadataTable, keys: frozenset[str]) -> frozenset[FileGroupId] | None:
    """The file groups that have these keys; None when the index can't say it of the table as it was loaded.

    Raises: CorruptFile, MetadataTableDamaged.
    """
    if _PARTITION not in table.partitions:
        return None
    groups = groups_of_places(table.lookup(_PARTITION, keys))
    # A write that this query does not see may have moved rows; nothing in an index that was built anew since shows it.
    return groups if table.data.is_current() else None


def wanted_keys(predicate: Predicate, config: TableConfig, schema: pa.Schema) -> frozenset[str] | None:
    """The keys of all rows that the predicate can keep; None when it does not say them, or too many.

    Args:   predicate: bound to `schema`.
    """
    keys = _keys_of_column(predicate)
    return keys if keys is not None else _keys_of_fields(predicate, config, schema)


def _keys_of_column(predicate: Predicate) -> frozenset[str] | None:
    """Those that the column of record keys is compared with."""
    values = _values(predicate, Column((RECORD_KEY,)))
    return None if values is None else frozenset(map(str, values))


def _keys_of_fields(predicate: Predicate, config: TableConfig, schema: pa.Schema) -> frozenset[str] | None:
    """Those that are made of the values that all key fields are compared with."""
    fields = config.record_key_fields
    if not fields or not all(_is_plain(name, schema) for name in fields):
        return None
    by_field = [_values(predicate, Column((name,))) for name in fields]
    values = [own for own in by_field if own is not None]
    count = 1
    for own in values:
        count *= len(own)
    if len(values) < len(fields) or count > MAX_KEYS:
        return None
    if not count:
        return frozenset()
    rows = list(product(*values))
    types = [schema.field(name).type for name in fields]
    try:
        columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(types)]
        batch = pa.RecordBatch.from_arrays(columns, names=list(fields))
        return frozenset(_made(batch, config))
    except (HudiError, pa.ArrowException, TypeError, OverflowError):
        return None  # values that no key is made of, or a generator that needs whole rows: the files are read


def _made(batch: pa.RecordBatch, config: TableConfig) -> Iterator[str]:
    """The keys of these rows; of one field alone also in the other form that COMPLEX has had (`name:value`)."""
    generator = from_options(config.properties, table_version=config.table_version)
    if not isinstance(generator, BuiltInKey):
        raise pa.ArrowInvalid(f"{generator.type_name} makes keys of whole rows")
    yield from map(str, generator.record_key(batch).to_pylist())
    if batch.num_columns == 1:
        (name,), texts = batch.schema.names, batch.column(0).cast(pa.string()).to_pylist()
        yield from (form for text in texts for form in (str(text), f"{name}:{text}"))


def sole_key_field(config: TableConfig, schema: pa.Schema) -> str | None:
    """The one column of which record keys are made, if rows have the same key just when they have the same value."""
    fields = config.record_key_fields
    if len(fields) != 1 or not _is_plain(fields[0], schema):
        return None
    try:
        generator = from_options(config.properties, table_version=config.table_version)
    except HudiError:
        return None  # of a kind that nobody here knows
    return fields[0] if isinstance(generator, BuiltInKey) else None


def _is_plain(name: str, schema: pa.Schema) -> bool:
    """Is it a column whose equal values make equal keys, whatever the options? Others are too subtle (-0.0, times)."""
    at = schema.get_field_index(name)
    kind = schema.field(at).type if at >= 0 else pa.null()
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)


def _values(predicate: Predicate, column: Column) -> tuple[Value, ...] | None:
    """The only values of the column with which a row can pass; None when there may be others."""
    found = only_values(predicate, column)
    return found if found is None or len(found) <= MAX_KEYS else None
