"""Options that decide which row wins, and how much memory merging takes.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from pyhudi.errors import ConfigError
from pyhudi.model.merge_mode import MERGE_MODES, mode_of_payload_name, mode_of_strategy
from pyhudi.model.options.declare import Values, option, parse
from pyhudi.model.options.spec import ON_READ_AND_WRITE

__all__ = [
    "DEFAULT_MEMORY",
    "MERGE_MODE",
    "ORDERING_FIELDS",
    "PAYLOAD_CLASS",
    "STRATEGY_ID",
    "MemoryOptions",
    "MergerOptions",
    "MergingOptions",
    "merging_options",
]

ORDERING_FIELDS = "hoodie.table.ordering.fields"
MERGE_MODE = "hoodie.write.record.merge.mode"
PAYLOAD_CLASS = "hoodie.datasource.write.payload.class"
STRATEGY_ID = "hoodie.write.record.merge.strategy.id"
_DELETE_FIELD = "hoodie.payload.delete.field"
_DELETE_MARKER = "hoodie.payload.delete.marker"

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PAYLOADS = tuple(
    f"org.apache.hudi.{name}"
    for name in (
        "common.model.DefaultHoodieRecordPayload",
        "common.model.OverwriteWithLatestAvroPayload",
        "common.model.EventTimeAvroPayload",
        "common.model.PartialUpdateAvroPayload",
        "common.model.OverwriteNonDefaultsWithLatestAvroPayload",
        "common.model.FirstValueAvroPayload",
        "common.model.AWSDmsAvroPayload",
        "payload.AWSDmsAvroPayload",
        "common.model.debezium.PostgresDebeziumAvroPayload",
        "common.model.debezium.MySqlDebeziumAvroPayload",
    )
)


@dataclass(frozen=True)  # no slots: WriteOptions has several bases
class MergingOptions:
    """`merge_mode` None: the table's mode, or the one implied by the ordering fields."""

    ordering_fields: tuple[str, ...] = option(
        ORDERING_FIELDS,
        (),
        "Fields that say which of two rows is newer.",
        aliases=(
            "hoodie.datasource.write.precombine.field",
            "hoodie.table.precombine.field",
            "hoodie.payload.ordering.field",
        ),
        keyword="ordering",
        may_be_empty=True,
    )
    merge_mode: str | None = option(
        MERGE_MODE,
        None,
        "The row written later wins, the one with the greater ordering value, or a merger of yours decides "
        "([merging](merging.md)). Inferred from the ordering fields.",
        aliases=("hoodie.record.merge.mode",),
        choices=MERGE_MODES,
        keyword="merge_mode",
    )
    payload_class: str | None = option(
        PAYLOAD_CLASS,
        None,
        "Older way to say how rows merge; version 9 stores what it means ([merging](merging.md)).",
        aliases=("hoodie.compaction.payload.class",),
        later=("org.apache.hudi.common.model.EmptyHoodieRecordPayload",),
        choices=_PAYLOADS,
        keyword="payload_class",
    )
    delete_field: str | None = option(
        _DELETE_FIELD,
        None,
        "Rows whose field of this name has the text of `hoodie.payload.delete.marker` are deletes. Version 9 "
        "stores it; before, each write says it.",
    )
    delete_marker: str | None = option(_DELETE_MARKER, None, "See `hoodie.payload.delete.field`; case counts.")
    merge_strategy_id: str | None = option(
        STRATEGY_ID,
        None,
        "Id of a merge strategy: commit time, event time, by payload, or the `strategy_id` of a merger of yours.",
        aliases=(
            "hoodie.datasource.write.record.merger.strategy",
            "hoodie.record.merge.strategy.id",
            "hoodie.compaction.record.merger.strategy",
        ),
    )


@dataclass(frozen=True)  # no slots: WriteOptions has several bases
class MergerOptions:
    """`merger_classes`: paths of the caller's mergers, of a read or a write."""

    merger_classes: tuple[str, ...] = option(
        "hoodie.write.record.merge.custom.implementation.classes",
        (),
        "Your mergers as `module:Class`; the first whose `strategy_id` is the table's is used. Java classes are "
        "passed over. A table never names a class.",
        aliases=("hoodie.datasource.write.record.merger.impls",),
        scopes=ON_READ_AND_WRITE,
    )


def merging_options(values: Values) -> MergingOptions:
    """The options of a write; any of three may name the merge mode. Raises ConfigError when they disagree."""
    options = parse(MergingOptions, values)
    if (options.delete_field is None) != (options.delete_marker is None):
        raise ConfigError(
            f"{_DELETE_FIELD}={options.delete_field} and {_DELETE_MARKER}={options.delete_marker}: give both, or none "
            "of them."
        )
    named = {
        MERGE_MODE: options.merge_mode,
        PAYLOAD_CLASS: mode_of_payload_name(options.payload_class or ""),
        STRATEGY_ID: mode_of_strategy(options.merge_strategy_id or ""),
    }
    modes = {key: value for key, value in named.items() if value is not None}
    if len(set(modes.values())) > 1:
        raise ConfigError(
            f"The options name different merge modes: {', '.join(f'{k} → {v}' for k, v in modes.items())}. Keep one."
        )
    strategy = options.merge_strategy_id
    if strategy is not None and not _UUID.fullmatch(strategy):
        raise ConfigError(f"{STRATEGY_ID}={strategy}: expected a UUID, as in 5c2d9a3e-8f1b-4c6d-9e0f-1a2b3c4d5e6f.")
    return replace(options, merge_mode=next(iter(modes.values()), None))


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """Bytes of log rows of one slice that stay in memory. `spill_folder`: None is the system's temporary folder."""

    merge_bytes: int = option(
        "hoodie.memory.merge.max.size",
        268435456,
        "Queries and writes that merge a slice: bytes of log rows and keys in memory, per slice; the rest waits in a "
        "temporary file. Hudi: 1073741824.",
        scopes=ON_READ_AND_WRITE,
        minimum=0,
    )
    compaction_bytes: int = option(
        "hoodie.memory.compaction.max.size",
        268435456,
        "Compaction, log compaction and clustering: as hoodie.memory.merge.max.size. Hudi: a share of the heap.",
        minimum=0,
    )
    spill_folder: str | None = option(
        "hoodie.memory.spillable.map.path",
        None,
        "Folder for log rows that do not fit into memory, on every machine; None: the system's temporary folder.",
        scopes=ON_READ_AND_WRITE,
    )


DEFAULT_MEMORY = MemoryOptions()
