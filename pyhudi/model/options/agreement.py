"""Options against the table they meet: the table's own facts win, a call that says otherwise is told both values.

Source: docs/formats/keys.md, "Which generator"; docs/formats/merging.md, "Mode of a table".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyhudi.errors import ConfigError
from pyhudi.model.key_generator_names import KEY_GENERATOR_CLASSES
from pyhudi.model.merge_mode import CUSTOM, mode_of_payload_name, mode_of_strategy
from pyhudi.model.options.table import option, text_of

if TYPE_CHECKING:
    from pyhudi.model.table_config import TableConfig

__all__ = ["keep_to_table"]

_KEYGEN_CLASS = "hoodie.datasource.write.keygenerator.class"
_KEYGEN_TYPE = "hoodie.datasource.write.keygenerator.type"
_CONSISTENT_TIMESTAMPS = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
_PARTITION = "hoodie.datasource.write.partitionpath.field"
_MERGE_MODE = "hoodie.write.record.merge.mode"
_MERGE_KEYS = (_MERGE_MODE, "hoodie.datasource.write.payload.class", "hoodie.write.record.merge.strategy.id")


def keep_to_table(given: Mapping[str, str], explicit: frozenset[str], table: TableConfig) -> dict[str, str]:
    """`given` with the table's facts in place.

    Args:    given: canonical key → text. explicit: the keys that the call itself gave; the others are session-wide.
    Raises:  ConfigError naming the option, the call's value and the table's.
    """
    result = dict(given)
    for key, fact in _facts(table).items():
        said = given.get(key)
        if said is not None and key in explicit and not _agree(key, said, fact) and not _brings_its_own(key, table):
            raise ConfigError(
                f"{key}={said}, but the table {table.table_name!r} was made with {fact or 'none'!r}. A write can't "
                f"change this; leave the option out, or write to another path."
            )
        result[key] = str(said) if key == _PARTITION and _says_more(said, fact) else fact
    if not _says_its_mode_each_time(table):
        if table.ordering_fields or table.record_merge_mode == CUSTOM:
            _check_merging(given, explicit, table)
        for key in _MERGE_KEYS:
            result.pop(key, None)
        result[_MERGE_MODE] = table.record_merge_mode
    for key in (_KEYGEN_CLASS, _KEYGEN_TYPE):
        if key not in explicit:
            result.pop(key, None)
    # A call may name its generator in any of Hudi's ways; keygen compares it with the table's. A class that is not
    # Hudi's comes from the call alone: a table's properties must not make its writers import code.
    stored = table.key_generator
    if stored in KEY_GENERATOR_CLASSES and not any(key in explicit for key in (_KEYGEN_CLASS, _KEYGEN_TYPE)):
        result[_KEYGEN_TYPE] = str(stored)
    for key, text in table.keygen_properties.items():
        spec_key = option(key).key if _is_option(key) else key
        result.setdefault(spec_key, text)
    return result


def _facts(table: TableConfig) -> dict[str, str]:
    """Canonical key → text of what the table is. Without ordering fields the call's own may combine its rows."""
    types = table.partition_field_types
    typed = [f"{name}:{kind}" if kind else name for name, kind in zip(table.partition_fields, types, strict=False)]
    facts = {
        "hoodie.table.name": table.table_name,
        "hoodie.datasource.write.table.type": table.table_type,
        "hoodie.write.table.version": text_of(table.table_version),
        "hoodie.table.base.file.format": table.base_file_format,
        "hoodie.populate.meta.fields": text_of(table.populate_meta_fields),
        "hoodie.datasource.write.recordkey.field": text_of(table.record_key_fields),
        "hoodie.datasource.write.hive_style_partitioning": text_of(table.hive_style_partitioning),
        "hoodie.datasource.write.partitionpath.urlencode": text_of(table.url_encode_partitioning),
        "hoodie.datasource.write.slash.separated.date.partitioning": text_of(table.slash_separated_dates),
        "hoodie.datasource.write.drop.partition.columns": text_of(table.drop_partition_columns),
        _PARTITION: ",".join(typed) if len(typed) == len(table.partition_fields) else text_of(table.partition_fields),
    }
    if table.properties.get(_CONSISTENT_TIMESTAMPS) == "true":  # PyHudi's tables say so, Hudi's never do
        facts[_CONSISTENT_TIMESTAMPS] = "true"
    if table.ordering_fields:
        facts["hoodie.table.ordering.fields"] = text_of(table.ordering_fields)
    return facts


def _brings_its_own(key: str, table: TableConfig) -> bool:
    """The table's payload class orders by columns of its own: the call's ordering field says what Hudi was told."""
    payload = table.properties.get("hoodie.table.legacy.payload.class", "")
    return key == "hoodie.table.ordering.fields" and ".debezium." in payload


def _agree(key: str, said: str, fact: str) -> bool:
    if key == _PARTITION:  # version 6 stores no ":TYPE", and plain writers need not repeat it
        return _bare(said) == _bare(fact)
    return said.lower() == fact.lower()


def _says_more(said: str | None, fact: str) -> bool:
    """The types of a CUSTOM key generator's partition fields, which version 6 does not store."""
    return said is not None and ":" in said and ":" not in fact and _bare(said) == _bare(fact)


def _bare(fields: str) -> list[str]:
    return [name.partition(":")[0] for name in fields.split(",")]


def _says_its_mode_each_time(table: TableConfig) -> bool:
    """Hudi 0.x stores no merge mode in copy-on-write tables: the payload class of each write decides."""
    return table.table_version < 8 and table.payload_class is None and table.merge_strategy_id is None


def _check_merging(given: Mapping[str, str], explicit: frozenset[str], table: TableConfig) -> None:
    mode_of = {
        _MERGE_KEYS[0]: lambda text: text,
        _MERGE_KEYS[1]: mode_of_payload_name,
        _MERGE_KEYS[2]: mode_of_strategy,
    }
    for key, stored in _stored_merging(table).items():
        if key in given and key in explicit and not _same_merger(given[key], stored):
            raise ConfigError(
                f"{key}={given[key]}, but the table {table.table_name!r} was made with {stored or 'none'}. A write "
                f"can't change this; leave the option out."
            )
    if table.record_merge_mode == CUSTOM and _MERGE_MODE not in explicit:
        return
    for key, mode in mode_of.items():
        said = mode(given[key]) if key in given and key in explicit else None
        if said is not None and said != table.record_merge_mode:
            raise ConfigError(
                f"{key}={given[key]} means {said}, but the table {table.table_name!r} merges by "
                f"{table.record_merge_mode}. A write can't change this; leave the option out."
            )


def _stored_merging(table: TableConfig) -> dict[str, str | None]:
    """What tables with mode CUSTOM, and those made with a payload class, store by name."""
    custom = table.record_merge_mode == CUSTOM
    payload = table.properties.get("hoodie.table.legacy.payload.class") or (table.payload_class if custom else None)
    strategy_id = table.merge_strategy_id if custom and table.table_version >= 8 else None
    return {_MERGE_KEYS[1]: payload, _MERGE_KEYS[2]: strategy_id}


def _same_merger(said: str, stored: str | None) -> bool:
    """Whether a class or id means the stored one; those that stand for a mode are compared by it, elsewhere."""
    name = said.rpartition(".")[2]
    if stored is None or mode_of_payload_name(stored) is not None:
        return mode_of_payload_name(said) is not None or mode_of_strategy(said.lower()) is not None
    return name.lower() == stored.rpartition(".")[2].lower()


def _is_option(key: str) -> bool:
    try:
        option(key)
    except KeyError:
        return False
    return True
