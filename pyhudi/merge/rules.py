"""MergeRules: how versions of a row become one, as the table's properties say it.

Below version 9 a payload class says it; from 9 on a mode, a partial update mode and merge properties. Both become the
same rules here. Source: spec, files and records 5.2, 5.3, 5.6 ("partial update mode") and 5.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyhudi.errors import UnsupportedTable
from pyhudi.model.merge_mode import COMMIT_TIME_ORDERING, CUSTOM, DEPRECATED_PAYLOADS, EVENT_TIME_ORDERING
from pyhudi.model.table_config import TableConfig

__all__ = ["FILL_UNAVAILABLE", "IGNORE_DEFAULTS", "MergeRules", "merge_rules"]

IGNORE_DEFAULTS = "IGNORE_DEFAULTS"
FILL_UNAVAILABLE = "FILL_UNAVAILABLE"

_PROPERTY = "hoodie.record.merge.property."
_DELETE_FIELD = "hoodie.payload.delete.field"
_DELETE_MARKER = "hoodie.payload.delete.marker"
_UNAVAILABLE = "hoodie.write.partial.update.unavailable.value"
_PARTIAL_UPDATE_MODE = "hoodie.table.partial.update.mode"
_FIRST_VALUE = "org.apache.hudi.common.model.FirstValueAvroPayload"


@dataclass(frozen=True, slots=True)
class MergeRules:
    """Rules of one table. Picklable.

    `partial_update_mode`: "" takes the winner as it is; IGNORE_DEFAULTS fills its nulls, FILL_UNAVAILABLE its columns
    that hold `unavailable_marker`, from the loser. `delete_field` and `delete_marker`: rows whose field has that text
    are deletes. `first_wins`: of equal ordering values the earlier version stays.
    """

    mode: str = COMMIT_TIME_ORDERING
    ordering_fields: tuple[str, ...] = ()
    partial_update_mode: str = ""
    unavailable_marker: str = ""
    delete_field: str | None = None
    delete_marker: str | None = None
    first_wins: bool = False

    @property
    def by_ordering(self) -> bool:
        """Ordering values are compared."""
        return self.mode == EVENT_TIME_ORDERING and bool(self.ordering_fields)

    @property
    def needs_pairs(self) -> bool:
        """Versions have to be merged pair by pair, because a result can have columns of both."""
        return bool(self.partial_update_mode) or self.first_wins


def merge_rules(config: TableConfig) -> MergeRules:
    """The rules of a table.

    Raises UnsupportedTable when its merger is a class that nobody here knows: its rows can't be merged by guessing.
    """
    properties = config.properties
    payload = properties.get("hoodie.compaction.payload.class") if config.table_version < 9 else None
    payload = payload or (config.payload_class if config.record_merge_mode == CUSTOM else None)
    if config.record_merge_mode != CUSTOM:
        return _of_properties(MergeRules(config.record_merge_mode, config.ordering_fields), properties)
    if payload == _FIRST_VALUE:
        return MergeRules(EVENT_TIME_ORDERING, config.ordering_fields, first_wins=True)
    if payload in DEPRECATED_PAYLOADS:
        mode, stored = DEPRECATED_PAYLOADS[payload]
        return _of_properties(MergeRules(mode, _ordering_fields(payload, config.ordering_fields, stored)), stored)
    raise UnsupportedTable(
        f"Table {config.table_name!r} merges rows with {payload or 'a merger of its own'} (strategy id "
        f"{properties.get('hoodie.record.merge.strategy.id', 'none')}), which has no implementation here. A "
        f"read_optimized query reads its base files without merging."
    )


def _ordering_fields(payload: str, configured: tuple[str, ...], stored: Mapping[str, str]) -> tuple[str, ...]:
    """Debezium's classes compare columns of their own, whatever the table's ordering field is."""
    own = stored.get("hoodie.table.ordering.fields")
    return configured if own is None else tuple(own.split(","))


def _of_properties(rules: MergeRules, properties: Mapping[str, str]) -> MergeRules:
    partial = properties.get(_PARTIAL_UPDATE_MODE, "").upper()
    if partial not in ("", "NONE", IGNORE_DEFAULTS, FILL_UNAVAILABLE):
        raise UnsupportedTable(f"{_PARTIAL_UPDATE_MODE}={partial} is not known to this release.")

    def merge_property(key: str) -> str | None:
        return properties.get(_PROPERTY + key) or properties.get(key)

    return replace(
        rules,
        partial_update_mode="" if partial == "NONE" else partial,
        unavailable_marker=merge_property(_UNAVAILABLE) or "",
        delete_field=merge_property(_DELETE_FIELD),
        delete_marker=merge_property(_DELETE_MARKER),
    )
