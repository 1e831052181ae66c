"""The check of options against the table: the table's settings win, and a contradicting call is an error.

Source: docs/formats/keys.md, "Which generator"; docs/formats/merging.md, "Mode of a table".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyhudi.errors import ConfigError
from pyhudi.model.buckets import BUCKET_KEYS, ENGINE, HASH_FIELDS, INDEX_TYPE, NUMBER, TableBuckets, engine_of_index
from pyhudi.model.change_logs import CDC_ENABLED, LOGGING_MODE
from pyhudi.model.keys import KEY_GENERATOR_CLASSES
from pyhudi.model.merge_mode import CUSTOM, mode_of_payload_name, mode_of_strategy
from pyhudi.model.options.declare import key_of
from pyhudi.model.options.known_keys import find_spec
from pyhudi.model.options.merging import (
    MERGE_MODE,
    ORDERING_FIELDS,
    PAYLOAD_CLASS,
    STRATEGY_ID,
)
from pyhudi.model.options.operation import OPERATION
from pyhudi.model.options.spec import text_of
from pyhudi.model.options.table import (
    BASE_FILE_FORMAT,
    KEYGEN_CLASS,
    KEYGEN_TYPE,
    PARTITION_FIELDS,
    RECORD_KEY,
    TABLE_NAME,
    KeyOptions,
    TableOptions,
)

if TYPE_CHECKING:
    from pyhudi.model.table_config import TableConfig

__all__ = ["keep_to_table"]

_CONSISTENT_TIMESTAMPS = key_of(KeyOptions, "consistent_logical_timestamp")
_LEGACY_PAYLOAD = "hoodie.table.legacy.payload.class"
_MERGE_KEYS = (MERGE_MODE, PAYLOAD_CLASS, STRATEGY_ID)


def keep_to_table(options: Mapping[str, str], explicit: frozenset[str], table: TableConfig) -> dict[str, str]:
    """Replace options by the table's settings; return the result.

    Args:    options: canonical key → text. explicit: the keys that the call set; the others are session-wide.
    Raises:  ConfigError naming the option, the call's value and the table's.
    """
    result = dict(options)
    for key, fact in _facts(table).items():
        value = options.get(key)
        if value is not None and key in explicit and not _agree(key, value, fact) and not _brings_its_own(key, table):
            raise ConfigError(
                f"{key}={value}, but the table {table.table_name!r} was made with {fact or 'none'!r}. A write can't "
                f"change this; leave the option out, or write to another path."
            )
        result[key] = str(value) if key == PARTITION_FIELDS and _says_more(value, fact) else fact
    result |= _buckets(options, explicit, table)
    if not _says_its_mode_each_time(table):
        if table.ordering_fields or table.record_merge_mode == CUSTOM:
            _check_merging(options, explicit, table)
        for key in _MERGE_KEYS:
            result.pop(key, None)
        result[MERGE_MODE] = table.record_merge_mode
    for key in (KEYGEN_CLASS, KEYGEN_TYPE):
        if key not in explicit:
            result.pop(key, None)
    # A call may name its generator in any of Hudi's ways; keygen compares it with the table's. Only the call may name a
    # class other than Hudi's: a table's properties must not make its writers import code.
    generator = table.key_generator
    if generator in KEY_GENERATOR_CLASSES and not any(key in explicit for key in (KEYGEN_CLASS, KEYGEN_TYPE)):
        result[KEYGEN_TYPE] = str(generator)
    for key, text in table.keygen_properties.items():
        spec = find_spec(key)
        result.setdefault(spec.key if spec else key, text)
    return result


def _facts(table: TableConfig) -> dict[str, str]:
    """Canonical key → the table's setting as text. If it has no ordering fields, those of the call may combine rows."""
    types = table.partition_field_types
    typed = [f"{name}:{kind}" if kind else name for name, kind in zip(table.partition_fields, types, strict=False)]
    facts = {
        TABLE_NAME: table.table_name,
        key_of(TableOptions, "table_type"): table.table_type,
        key_of(TableOptions, "table_version"): text_of(table.table_version),
        BASE_FILE_FORMAT: table.base_file_format,
        key_of(TableOptions, "populate_meta_fields"): text_of(table.populate_meta_fields),
        RECORD_KEY: text_of(table.record_key_fields),
        key_of(KeyOptions, "hive_style_partitioning"): text_of(table.hive_style_partitioning),
        key_of(KeyOptions, "url_encode_partitioning"): text_of(table.url_encode_partitioning),
        key_of(KeyOptions, "slash_separated_dates"): text_of(table.slash_separated_dates),
        key_of(KeyOptions, "drop_partition_columns"): text_of(table.drop_partition_columns),
        PARTITION_FIELDS: ",".join(typed)
        if len(typed) == len(table.partition_fields)
        else text_of(table.partition_fields),
    }
    facts[CDC_ENABLED] = text_of(table.cdc_enabled)
    if table.cdc_enabled:
        facts[LOGGING_MODE] = table.logging_mode
    if table.properties.get(_CONSISTENT_TIMESTAMPS) == "true":  # only PyHudi's tables have it
        facts[_CONSISTENT_TIMESTAMPS] = "true"
    if table.ordering_fields:
        facts[ORDERING_FIELDS] = text_of(table.ordering_fields)
    return facts


def _buckets(options: Mapping[str, str], explicit: frozenset[str], table: TableConfig) -> dict[str, str]:
    """The index options of a table whose file groups are buckets. Only a write that replaces all of them may differ. A
    write's number of buckets is the initial number of new rings.
    """
    buckets, chosen = (
        TableBuckets.of(table.properties),
        {key: options[key] for key in BUCKET_KEYS if key in options and key in explicit},
    )
    if buckets is None or (chosen and options.get(OPERATION, "").lower() == "insert_overwrite_table"):
        return {}
    facts = buckets.properties()
    engine = engine_of_index(chosen.get(INDEX_TYPE, "BUCKET"))
    wrong = [INDEX_TYPE] if engine is None or engine not in ("", buckets.engine) else []
    if chosen.get(ENGINE, buckets.engine).upper() != buckets.engine:
        wrong.append(ENGINE)
    if buckets.is_consistent:
        facts |= {key: text for key, text in chosen.items() if key == NUMBER}
    elif chosen.get(NUMBER, facts[NUMBER]) != facts[NUMBER]:
        wrong.append(NUMBER)
    fields = ",".join(buckets.hash_fields or table.record_key_fields)
    if chosen.get(HASH_FIELDS, fields) not in (fields, ""):
        wrong.append(HASH_FIELDS)
    if wrong:
        raise ConfigError(
            f"{wrong[0]}={chosen[wrong[0]]}, but the file groups of the table {table.table_name!r} are buckets: "
            f"{', '.join(f'{key}={text}' for key, text in buckets.properties().items())}. Rows would be stored twice. "
            f"Leave the option out, or rewrite the table by insert_overwrite_table."
        )
    return facts


def _brings_its_own(key: str, table: TableConfig) -> bool:
    """True if the table's payload class orders by fixed columns, so that the call's ordering field is only recorded."""
    payload = table.properties.get(_LEGACY_PAYLOAD, "")
    return key == ORDERING_FIELDS and ".debezium." in payload


def _agree(key: str, text: str, fact: str) -> bool:
    if key == PARTITION_FIELDS:  # version 6 stores no ":TYPE", and plain writers need not repeat it
        return _bare(text) == _bare(fact)
    return text.lower() == fact.lower()


def _says_more(text: str | None, fact: str) -> bool:
    """True if the call only adds types of a CUSTOM key generator's partition fields, which version 6 does not store."""
    return text is not None and ":" in text and ":" not in fact and _bare(text) == _bare(fact)


def _bare(fields: str) -> list[str]:
    return [name.partition(":")[0] for name in fields.split(",")]


def _says_its_mode_each_time(table: TableConfig) -> bool:
    """True if each write's payload class decides: Hudi 0.x stores no merge mode in copy-on-write tables."""
    return not table.format.stores_merging and table.payload_class is None and table.merge_strategy_id is None


def _check_merging(options: Mapping[str, str], explicit: frozenset[str], table: TableConfig) -> None:
    mode_of = {
        MERGE_MODE: lambda text: text,
        PAYLOAD_CLASS: mode_of_payload_name,
        STRATEGY_ID: mode_of_strategy,
    }
    for key, table_value in _stored_merging(table).items():
        if key in options and key in explicit and not _same_merger(options[key], table_value):
            raise ConfigError(
                f"{key}={options[key]}, but the table {table.table_name!r} was made with {table_value or 'none'}. A "
                "write can't change this; leave the option out."
            )
    if table.record_merge_mode == CUSTOM and MERGE_MODE not in explicit:
        return
    for key, mode in mode_of.items():
        named_mode = mode(options[key]) if key in options and key in explicit else None
        if named_mode is not None and named_mode != table.record_merge_mode:
            raise ConfigError(
                f"{key}={options[key]} means {named_mode}, but the table {table.table_name!r} merges by "
                f"{table.record_merge_mode}. A write can't change this; leave the option out."
            )


def _stored_merging(table: TableConfig) -> dict[str, str | None]:
    """The stored payload class and strategy id of tables with mode CUSTOM or made with a payload class."""
    custom = table.record_merge_mode == CUSTOM
    payload = table.properties.get(_LEGACY_PAYLOAD) or (table.payload_class if custom else None)
    strategy_id = table.merge_strategy_id if custom and table.format.stores_merging else None
    return {PAYLOAD_CLASS: payload, STRATEGY_ID: strategy_id}


def _same_merger(merger: str, table_merger: str | None) -> bool:
    """True if a payload class or strategy id is equivalent to the stored one. Merge modes are compared elsewhere."""
    name = merger.rpartition(".")[2]
    if table_merger is None or mode_of_payload_name(table_merger) is not None:
        return mode_of_payload_name(merger) is not None or mode_of_strategy(merger.lower()) is not None
    return name.lower() == table_merger.rpartition(".")[2].lower()
