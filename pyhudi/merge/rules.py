"""MergeRules: how versions of a row become one, according to the table's properties.

Below version 9 a payload class decides; from 9 on a mode, a partial update mode and merge properties do. In every
version a strategy id may name a user's merger. All become the same rules here.
Source: docs/formats/merging.md, "Modes and ids", "What properties say", "Mode of a table", "Two versions of a key",
"Partial updates", "Payload classes".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import UnsupportedTable
from pyhudi.merge.base import EVERYWHERE, Mask, Place
from pyhudi.merge.custom import find_merger
from pyhudi.model.merge_mode import (
    BUILT_IN_STRATEGY_IDS,
    COMMIT_TIME_ORDERING,
    CUSTOM,
    DEPRECATED_PAYLOADS,
    EVENT_TIME_ORDERING,
    FIRST_VALUE_PAYLOAD,
    payload_class_name,
)
from pyhudi.model.table_config import TableConfig

__all__ = ["FILL_UNAVAILABLE", "IGNORE_DEFAULTS", "MergeRules", "marked_deletes", "merge_rules"]

IGNORE_DEFAULTS = "IGNORE_DEFAULTS"
FILL_UNAVAILABLE = "FILL_UNAVAILABLE"

_PROPERTY = "hoodie.record.merge.property."
_DELETE_FIELD = "hoodie.payload.delete.field"
_DELETE_MARKER = "hoodie.payload.delete.marker"
_UNAVAILABLE = "hoodie.write.partial.update.unavailable.value"
_PARTIAL_UPDATE_MODE = "hoodie.table.partial.update.mode"
# Older name of the marker's property and of its mode, seen in tables of Hudi's development lines.
_UNAVAILABLE_BEFORE = "hoodie.table.partial.update.custom.marker"
_MODES_BEFORE = {"IGNORE_MARKERS": FILL_UNAVAILABLE, "NONE": ""}
_STORED = frozenset({Place.FILE, Place.SLICE})


@dataclass(frozen=True, slots=True)
class MergeRules:
    """Rules of one table. Picklable.

    `partial_update_mode`: "" keeps the winner unchanged; IGNORE_DEFAULTS fills its nulls, FILL_UNAVAILABLE its columns
    that hold `unavailable_marker`, from the loser, in the places of `fills_in`. `delete_field` and `delete_marker`:
    rows whose field has that text are deletes (`delete_any_case`: ignoring case). `first_wins`: on equal ordering
    values the earlier version wins. `merger`: the path of a user's merger, which merges pairs of rows; its context
    passes it `properties`.

    Exceptions for payload classes: `later_deletes`: places where a later delete removes the row, regardless of
    ordering values; `rows_outlive_deletes`: in log files a row after a delete is alive again, regardless of its value;
    `stamped_by_newer`: a merged row has the meta columns of the later version, even if the other one won;
    `input_fields`: the written batch is combined by these fields, and the greater tuple wins as a whole row; None: it
    is combined by these rules.
    """

    mode: str = COMMIT_TIME_ORDERING
    ordering_fields: tuple[str, ...] = ()
    partial_update_mode: str = ""
    unavailable_marker: str = ""
    delete_field: str | None = None
    delete_marker: str | None = None
    delete_any_case: bool = False
    first_wins: bool = False
    merger: str | None = None
    record_key_fields: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    fills_in: frozenset[Place] = EVERYWHERE
    later_deletes: frozenset[Place] = frozenset()
    rows_outlive_deletes: bool = False
    stamped_by_newer: bool = False
    input_fields: tuple[str, ...] | None = None

    @property
    def by_ordering(self) -> bool:
        """True if ordering values are compared."""
        return self.mode == EVENT_TIME_ORDERING and bool(self.ordering_fields)

    @property
    def needs_pairs(self) -> bool:
        """True if versions must be merged pair by pair: a result can have columns of both, or the place matters."""
        special = bool(self.later_deletes) or self.rows_outlive_deletes
        return bool(self.partial_update_mode) or self.first_wins or self.merger is not None or special

    @property
    def for_input(self) -> MergeRules:
        """The rules for rows of one batch, before they meet anything stored."""
        if self.input_fields is None:
            return self
        mode = EVENT_TIME_ORDERING if self.input_fields else COMMIT_TIME_ORDERING
        return MergeRules(mode, self.input_fields)


def merge_rules(config: TableConfig, merger_classes: Sequence[str] = ()) -> MergeRules:
    """Return the rules of a table.

    Args:    merger_classes: paths of the caller's mergers ("module:Class"); never taken from the table.
    Raises:  UnsupportedTable when its merger is an unknown class: rows are never merged by guessing.
    """
    properties = config.properties
    strategy_id = config.merge_strategy_id
    stored_mode = (properties.get("hoodie.record.merge.mode") or CUSTOM).upper()
    if strategy_id is not None and strategy_id.lower() not in BUILT_IN_STRATEGY_IDS and stored_mode == CUSTOM:
        return _of_merger(config, strategy_id, merger_classes)
    if config.record_merge_mode != CUSTOM:
        return _of_properties(MergeRules(config.record_merge_mode, config.ordering_fields), properties)
    payload = payload_class_name(config.payload_class or "")
    if payload == FIRST_VALUE_PAYLOAD:
        return MergeRules(EVENT_TIME_ORDERING, config.ordering_fields, first_wins=True)
    if payload in DEPRECATED_PAYLOADS:
        return _of_payload(payload, config)
    raise UnsupportedTable(
        f"Table {config.table_name!r} merges rows with {config.payload_class or 'a merger of its own'} (strategy id "
        f"{strategy_id or 'none'}), which has no implementation here. A read_optimized query reads its base files "
        f"without merging."
    )


def marked_deletes(rules: MergeRules, column: pa.Array) -> Mask:
    """Return where the values of `rules.delete_field` mark the row as a delete; null never does."""
    text, marker = column.cast(pa.string()), rules.delete_marker or ""
    if rules.delete_any_case:
        text, marker = pc.utf8_lower(text), marker.lower()
    marked: Mask = pc.fill_null(pc.equal(text, marker), False).to_numpy(zero_copy_only=False)
    return marked


def _of_merger(config: TableConfig, strategy_id: str, merger_classes: Sequence[str]) -> MergeRules:
    path = find_merger(merger_classes, strategy_id)
    if path is None:
        hint = f"none of {', '.join(merger_classes)} has this id" if merger_classes else "no class was given"
        raise UnsupportedTable(
            f"Table {config.table_name!r} merges rows with the merger of strategy id {strategy_id}, which has no "
            f"implementation here: {hint}. Name a Python class with this strategy_id in "
            f'hoodie.write.record.merge.custom.implementation.classes ("module:Class"); a read_optimized query reads '
            f"the base files without merging."
        )
    prefixed = (key for key in config.properties if key.startswith(_PROPERTY))
    rules = MergeRules(
        EVENT_TIME_ORDERING if config.ordering_fields else COMMIT_TIME_ORDERING,
        config.ordering_fields,
        merger=path,
        record_key_fields=config.record_key_fields,
        properties=tuple((key.removeprefix(_PROPERTY), config.properties[key]) for key in sorted(prefixed)),
    )
    return _with_delete_marker(rules, config.properties)


def _of_payload(payload: str, config: TableConfig) -> MergeRules:
    """Return the rules of a payload class, which decides below version 9."""
    mode, fixed_properties = DEPRECATED_PAYLOADS[payload]
    fields = _ordering_fields(config.ordering_fields, fixed_properties)
    rules = _of_properties(MergeRules(mode, fields), fixed_properties)
    partial_update = payload.endswith(".PartialUpdateAvroPayload")
    if not partial_update:
        rules = replace(rules, input_fields=fields if mode == EVENT_TIME_ORDERING else config.ordering_fields)
    if payload.endswith(".AWSDmsAvroPayload"):
        rules = replace(rules, delete_any_case=True)
    if mode == COMMIT_TIME_ORDERING:
        return rules
    if partial_update:
        rules = replace(rules, stamped_by_newer=True, later_deletes=frozenset({Place.FILE}))
    if config.format.orders_log_deletes:
        return rules
    # In Hudi 0.x, deletes in log files have an ordering value only among the log records themselves.
    fills_in = EVERYWHERE if partial_update else _STORED
    later_deletes = rules.later_deletes | {Place.SLICE}
    return replace(rules, rows_outlive_deletes=True, later_deletes=later_deletes, fills_in=fills_in)


def _ordering_fields(configured: tuple[str, ...], fixed_properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the fields to compare. Debezium's classes have fixed ones, which override the table's ordering fields."""
    stored_fields = fixed_properties.get("hoodie.table.ordering.fields")
    return configured if stored_fields is None else tuple(stored_fields.split(","))


def _of_properties(rules: MergeRules, properties: Mapping[str, str]) -> MergeRules:
    name = properties.get(_PARTIAL_UPDATE_MODE, "").upper()
    partial = _MODES_BEFORE.get(name, name)
    if partial not in ("", IGNORE_DEFAULTS, FILL_UNAVAILABLE):
        raise UnsupportedTable(f"{_PARTIAL_UPDATE_MODE}={name} is not known to this release.")
    marker = _merge_property(properties, _UNAVAILABLE) or properties.get(_UNAVAILABLE_BEFORE, "")
    return replace(_with_delete_marker(rules, properties), partial_update_mode=partial, unavailable_marker=marker)


def _with_delete_marker(rules: MergeRules, properties: Mapping[str, str]) -> MergeRules:
    field, marker = _merge_property(properties, _DELETE_FIELD), _merge_property(properties, _DELETE_MARKER)
    if (field is None) != (marker is None):
        raise UnsupportedTable(
            f"The table's properties have one of {_DELETE_FIELD} ({field}) and {_DELETE_MARKER} ({marker}); real Hudi "
            f"wants both or none."
        )
    return replace(rules, delete_field=field, delete_marker=marker)


def _merge_property(properties: Mapping[str, str], key: str) -> str | None:
    return properties.get(_PROPERTY + key) or properties.get(key)
