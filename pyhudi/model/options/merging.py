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
        "Fields that tell which of two rows is newer.",
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
        "The row written later wins, the row with the greater ordering value wins, or your own merger decides "
        "([merging](merging.md)). Unset: inferred from the ordering fields.",
        aliases=("hoodie.record.merge.mode",),
        choices=MERGE_MODES,
        keyword="merge_mode",
    )
    payload_class: str | None = option(
        PAYLOAD_CLASS,
        None,
        "Older way to define how rows merge; version 9 stores the equivalent mode ([merging](merging.md)).",
        aliases=("hoodie.compaction.payload.class",),
        later=("org.apache.hudi.common.model.EmptyHoodieRecordPayload",),
        choices=_PAYLOADS,
        keyword="payload_class",
    )
    delete_field: str | None = option(
        _DELETE_FIELD,
        None,
        "Rows are deletes if this field has the text of `hoodie.payload.delete.marker`. From version 9 on the table "
        "stores it; before, each write has to set it.",
    )
    delete_marker: str | None = option(_DELETE_MARKER, None, "See `hoodie.payload.delete.field`; case-sensitive.")
    merge_strategy_id: str | None = option(
        STRATEGY_ID,
        None,
        "Id of a merge strategy: commit time, event time, by payload, or the `strategy_id` of your own merger.",
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
        "Your mergers as `module:Class`; the first with the table's `strategy_id` is used. Java classes are ignored. A "
        "table never names a class.",
        aliases=("hoodie.datasource.write.record.merger.impls",),
        scopes=ON_READ_AND_WRITE,
    )


def merging_options(values: Values) -> MergingOptions:
    """The options of a write; any of three options may name the merge mode. Raises ConfigError if they disagree."""
    options = parse(MergingOptions, values)
    if (options.delete_field is None) != (options.delete_marker is None):
        raise ConfigError(
            f"{_DELETE_FIELD}={options.delete_field} and {_DELETE_MARKER}={options.delete_marker}: give both, or none "
            "of them."
        )
    mode_by_key = {
        MERGE_MODE: options.merge_mode,
        PAYLOAD_CLASS: mode_of_payload_name(options.payload_class or ""),
        STRATEGY_ID: mode_of_strategy(options.merge_strategy_id or ""),
    }
    modes = {key: value for key, value in mode_by_key.items() if value is not None}
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
    """The bytes of one slice's log rows to keep in memory. `spill_folder` None: the system's temporary folder."""

    merge_bytes: int = option(
        "hoodie.memory.merge.max.size",
        268435456,
        "Queries and writes that merge a slice: maximum bytes of log rows and keys in memory, per slice; the rest "
        "spills to a temporary file. Hudi: 1073741824.",
        scopes=ON_READ_AND_WRITE,
        minimum=0,
    )
    compaction_bytes: int = option(
        "hoodie.memory.compaction.max.size",
        268435456,
        "The same for compaction, log compaction and clustering. Hudi: a share of the heap.",
        minimum=0,
    )
    spill_folder: str | None = option(
        "hoodie.memory.spillable.map.path",
        None,
        "Folder on every machine for log rows that do not fit into memory. Unset: the system's temporary folder.",
        scopes=ON_READ_AND_WRITE,
    )


DEFAULT_MEMORY = MemoryOptions()
