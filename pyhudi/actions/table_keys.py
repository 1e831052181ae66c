"""The key generator of a table, as a write uses it, and the check for rows of one batch with colliding keys.

The table's properties define its keys, and a call may repeat them. If the table's generator is a user's class, the call
must name that class. For COMPLEX with one key field Hudi has two spellings of a key (a trap): the keys in the table's
files decide between them.

`key_collisions` finds rows of one batch that have the same record key although their key fields differ. The form
`f1:v1,f2:v2` escapes nothing, so ("1,b:2", "3") and ("1", "2,b:3") make one key of the fields a and b. Null makes the
same key as the text `__null__`, and "" the same key as `__empty__`. The form is Hudi's and can't change; a warning
tells a caller who loses rows.

Source: docs/formats/keys.md, "Record keys"; docs/compatibility.md, "Sides taken".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.action import ActionContext
from pyhudi.engine.base import TaskContext
from pyhudi.errors import ConfigError, KeyGenError
from pyhudi.formats.base import open_base_file
from pyhudi.formats.damage import check_text
from pyhudi.java.key_text import text_of
from pyhudi.keygen import KEY_GENERATORS, KeyColumns, KeyGenerator, detect_single_key_encoding, from_options
from pyhudi.keygen.base import read_field
from pyhudi.keygen.parse import partition_values
from pyhudi.keygen.partition_path import check_folders
from pyhudi.keygen.record_keys import EMPTY_PLACEHOLDER, NULL_PLACEHOLDER
from pyhudi.merge.combine import duplicate_key_rows, single_array
from pyhudi.model.keys import PARTITION_PATH, RECORD_KEY
from pyhudi.model.options import WriteOptions
from pyhudi.model.table_config import TableConfig
from pyhudi.view.file_system_view import FileSystemView

__all__ = [
    "PROBE_TIME",
    "RowNumbers",
    "is_automatic",
    "key_collisions",
    "keygen_options",
    "keys_to_write",
    "stored_generator",
    "table_keygen",
]


PROBE_TIME = "19700101000000000"  # placeholder for the instant time while columns are checked, before it is drawn

_ENCODING = "hoodie.table.complex.keygenerator.encoding"
_SAMPLED_KEYS = 1000


def keygen_options(config: TableConfig, options: WriteOptions) -> dict[str, str]:
    """Options for `keygen.from_options`: the stored ones, completed by those that only writers know."""
    properties = {
        "hoodie.datasource.write.recordkey.field": ",".join(config.record_key_fields),
        "hoodie.datasource.write.partitionpath.field": ",".join(_partition_fields(config, options)),
        "hoodie.datasource.write.hive_style_partitioning": _text(config.hive_style_partitioning),
        "hoodie.datasource.write.partitionpath.urlencode": _text(config.url_encode_partitioning),
        "hoodie.datasource.write.slash.separated.date.partitioning": _text(config.slash_separated_dates),
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": _text(
            options.consistent_logical_timestamp
        ),
        **config.keygen_properties,
        **options.keygen_options,
    }
    generator = _generator(config, options)
    if generator:
        properties["hoodie.datasource.write.keygenerator.class"] = generator
    if options.complex_key_new_encoding is not None:
        properties["hoodie.write.complex.keygen.new.encoding"] = _text(options.complex_key_new_encoding)
    if _ENCODING in config.properties:
        properties[_ENCODING] = config.properties[_ENCODING]
    return properties


def is_automatic(config: TableConfig) -> bool:
    """True when the table has no key fields: every row gets an automatic key."""
    return not config.record_key_fields


def table_keygen(context: ActionContext, instant_time: str) -> KeyGenerator:
    """The generator for one write. Raises ConfigError, and KeyGenError when the table's keys have another form."""
    config = context.meta.config
    properties = keygen_options(config, context.options)
    generator = from_options(properties, table_version=config.table_version, instant_time=instant_time)
    if generator.type_name == "COMPLEX" and len(config.record_key_fields) == 1 and config.populate_meta_fields:
        generator = _with_stored_form(generator, properties, context, instant_time)
    return _DividedPaths(generator, config) if len(config.dropped_partition_fields) > 1 else generator


@dataclass(frozen=True)
class _DividedPaths:
    """Keys for a table whose files leave the partition columns out: a path has to contain the value of each."""

    generator: KeyGenerator
    config: TableConfig

    @property
    def type_name(self) -> str:
        return self.generator.type_name

    @property
    def input_columns(self) -> tuple[str, ...]:
        return self.generator.input_columns

    def columns(self, batch: pa.RecordBatch, *, partition_id: int = 0, first_row: int = 0) -> KeyColumns:
        """See `KeyGenerator.columns`. Raises KeyGenError also for a path that readers can't divide among the fields."""
        keys = self.generator.columns(batch, partition_id=partition_id, first_row=first_row)
        for path in cast("list[str]", pc.unique(keys.partition_path).to_pylist()):
            partition_values(
                path,
                self.config.partition_fields,
                self.config.hive_style_partitioning,
                self.config.url_encode_partitioning,
            )
        return keys


def stored_generator(generator: KeyGenerator) -> KeyGenerator:
    """The generator that the table's properties name, without the wrapper of `table_keygen`."""
    return generator.generator if isinstance(generator, _DividedPaths) else generator


def keys_to_write(generator: KeyGenerator, batch: pa.RecordBatch, partition_id: int, first_row: int) -> KeyColumns:
    """Keys of rows to be written. Raises KeyGenError also for paths that can't be folder names, and ConfigError for key
    and partition columns with text that is not UTF-8.
    """
    columns = generator.input_columns or batch.schema.names
    check_text(batch.select([name for name in batch.schema.names if name in columns]), first_row)
    keys = generator.columns(batch, partition_id=partition_id, first_row=first_row)
    check_folders(keys.partition_path)
    return keys


@dataclass(frozen=True)
class RowNumbers:
    """The numbers of rows in column work, which sees a batch at a time. A retry starts again."""

    _arrived: dict[TaskContext, int] = field(default_factory=dict, compare=False, repr=False)

    def first_of(self, context: TaskContext, batch: pa.RecordBatch) -> int:
        """The number of the batch's first row in its task attempt; batches must come in order, each once."""
        first = self._arrived.get(context, 0)
        self._arrived[context] = first + batch.num_rows
        return first


def _with_stored_form(
    generator: KeyGenerator, properties: dict[str, str], context: ActionContext, instant_time: str
) -> KeyGenerator:
    config = context.meta.config
    if _ENCODING in properties:
        return generator
    stored = detect_single_key_encoding(_sample_keys(context), config.record_key_fields[0])
    if stored is None:
        return generator
    if config.format.prefixes_single_complex_key and stored == "VALUE_ONLY":
        raise KeyGenError(
            f"{context.meta.storage.root}: the table has version {config.table_version} and the key generator COMPLEX "
            f"with one key field, so every writer spells its keys '{config.record_key_fields[0]}:value', but its files "
            "hold bare values. Writing would make silent duplicates of rows that exist; nothing was written. If the "
            f"files are right, say so with {_ENCODING}=VALUE_ONLY in the table's properties."
        )
    return from_options(
        {**properties, _ENCODING: stored}, table_version=config.table_version, instant_time=instant_time
    )


def _sample_keys(context: ActionContext) -> list[str]:
    """Some record keys of the newest and the oldest base file with rows."""
    files = sorted(FileSystemView.load(context.meta).all_base_files(), key=lambda file: file.instant_time)
    keys: list[str] = []
    for file in dict.fromkeys((*reversed(files[-2:]), *files[:1])):
        with open_base_file(context.meta.storage, file.path) as reader:
            batches = reader.batches([RECORD_KEY], batch_rows=_SAMPLED_KEYS)
            for batch in islice(batches, 1):
                keys += [key for key in batch.column(0).to_pylist() if key is not None]
    return keys


def _partition_fields(config: TableConfig, options: WriteOptions) -> tuple[str, ...]:
    typed = tuple(
        f"{name}:{kind}" if kind else name
        for name, kind in zip(config.partition_fields, config.partition_field_types, strict=True)
    )
    # Below version 8 the table stores bare names, and only the caller knows the types of the CUSTOM generator.
    bare = tuple(field.partition(":")[0] for field in options.partition_fields)
    if bare == config.partition_fields and not any(config.partition_field_types):
        return options.partition_fields
    return typed


def _generator(config: TableConfig, options: WriteOptions) -> str | None:
    requested = KEY_GENERATORS.canonical(options.key_generator) if options.key_generator else None
    stored = config.key_generator if config.key_generator in KEY_GENERATORS.entries else None
    if requested and stored and requested != stored:
        raise ConfigError(
            f"The call names the key generator {options.key_generator}, but the table {config.table_name!r} was made "
            f"with {config.key_generator}. Another generator would give rows other keys; leave the option out."
        )
    if stored is None and requested is None and config.key_generator is not None:
        raise ConfigError(
            f"The table {config.table_name!r} was made with the key generator {config.key_generator}, which is not one "
            "of Hudi's own. Name a Python class that makes the same keys: "
            "hoodie.datasource.write.keygenerator.class='module:Class'."
        )
    return requested or stored


def _text(flag: bool) -> str:
    return "true" if flag else "false"


def key_collisions(rows: pa.Table, fields: Sequence[str]) -> str:
    """A description of colliding keys in a batch, "" if there are none.

    Args:    rows: with RECORD_KEY and PARTITION_PATH; fields: the key fields, in their order. Rows that lack a field,
             as in a delete by keys, are not checked.
    """
    if len(fields) < 2 or not all(name.partition(".")[0] in rows.column_names for name in fields):
        return ""
    columns = [_column(rows, field) for field in fields]
    if not _may_collide(columns, fields):
        return ""
    at, numbers = duplicate_key_rows(rows, (RECORD_KEY, PARTITION_PATH))
    if not len(at):
        return ""
    rows_at = pa.array(at)
    values = [text_of(column.take(rows_at)) for column in columns]
    _, firsts, groups = np.unique(numbers, return_index=True, return_inverse=True)
    differs = np.zeros(len(at), np.bool_)
    for texts in values:
        codes = texts.dictionary_encode(null_encoding="encode").indices.to_numpy()
        differs |= codes != codes[firsts[groups]]
    if not differs.any():
        return ""
    row = int(np.flatnonzero(differs)[0])
    one, other = (tuple(texts[place].as_py() for texts in values) for place in (int(firsts[groups[row]]), row))
    key = rows.column(RECORD_KEY)[int(at[row])].as_py()
    return (
        f"Rows of the batch whose key fields ({', '.join(fields)}) differ have the same record key, such as {one} and "
        f"{other} with {key!r:.200}, so that they are one row of the table. Hudi's keys escape nothing; leave "
        f"',{fields[1]}:' and the like, {NULL_PLACEHOLDER!r} and {EMPTY_PLACEHOLDER!r} out of key fields."
    )


def _column(rows: pa.Table, field: str) -> pa.Array:
    top, _, nested_path = field.partition(".")
    if field in rows.column_names or not nested_path:
        return single_array(rows.column(field))
    column = read_field(pa.RecordBatch.from_arrays([single_array(rows.column(top))], names=[top]), field)
    return pa.nulls(len(rows), pa.string()) if column is None else column


def _may_collide(columns: Sequence[pa.Array], fields: Sequence[str]) -> bool:
    """True if a value contains the separator of fields, or a placeholder for null. Numbers and dates never do."""
    for column, (_, following) in zip(columns, pairwise((*fields, "")), strict=True):
        if pa.types.is_primitive(column.type):
            continue
        texts = text_of(column)
        if following and _any(pc.match_substring(texts, f",{following}:")):
            return True
        if _any(pc.is_in(texts, value_set=pa.array([NULL_PLACEHOLDER, EMPTY_PLACEHOLDER]))):
            return True
    return False


def _any(mask: pa.Array) -> bool:
    return bool(pc.any(mask).as_py())
