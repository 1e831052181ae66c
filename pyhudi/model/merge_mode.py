"""The merge modes, which decide which version of a row wins, and the equivalent payload classes and strategy ids.

Source: docs/formats/merging.md, "Modes and ids", "What properties say", "Mode of a table", "Payload classes".
"""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.errors import ConfigError
from pyhudi.model.table_format import TableFormat

__all__ = [
    "BUILT_IN_STRATEGY_IDS",
    "COMMIT_TIME_ORDERING",
    "COMMIT_TIME_STRATEGY_ID",
    "CUSTOM",
    "DEFAULT_PAYLOAD",
    "DEPRECATED_PAYLOADS",
    "EVENT_TIME_ORDERING",
    "EVENT_TIME_STRATEGY_ID",
    "FIRST_VALUE_PAYLOAD",
    "MERGE_MODES",
    "OVERWRITE_PAYLOAD",
    "PAYLOADS",
    "PAYLOAD_STRATEGY_ID",
    "STRATEGY_IDS",
    "infer_merge_mode",
    "mode_of_payload",
    "mode_of_payload_name",
    "mode_of_strategy",
    "payload_class_name",
]

COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"  # the version written later wins
EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"  # the greater ordering value wins, on a tie the one written later
CUSTOM = "CUSTOM"
MERGE_MODES = (COMMIT_TIME_ORDERING, EVENT_TIME_ORDERING, CUSTOM)

COMMIT_TIME_STRATEGY_ID = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
EVENT_TIME_STRATEGY_ID = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
PAYLOAD_STRATEGY_ID = "00000000-0000-0000-0000-000000000000"
STRATEGY_IDS = {EVENT_TIME_ORDERING: EVENT_TIME_STRATEGY_ID, COMMIT_TIME_ORDERING: COMMIT_TIME_STRATEGY_ID}
BUILT_IN_STRATEGY_IDS = (COMMIT_TIME_STRATEGY_ID, EVENT_TIME_STRATEGY_ID, PAYLOAD_STRATEGY_ID)

_PACKAGE = "org.apache.hudi.common.model."
DEFAULT_PAYLOAD = f"{_PACKAGE}DefaultHoodieRecordPayload"
OVERWRITE_PAYLOAD = f"{_PACKAGE}OverwriteWithLatestAvroPayload"
FIRST_VALUE_PAYLOAD = f"{_PACKAGE}FirstValueAvroPayload"
_EVENT_TIME_PAYLOAD = f"{_PACKAGE}EventTimeAvroPayload"
# The class that Hudi stores with a mode in tables below version 9, unless the caller names another one of that mode.
PAYLOADS = {EVENT_TIME_ORDERING: DEFAULT_PAYLOAD, COMMIT_TIME_ORDERING: OVERWRITE_PAYLOAD}
_MODES_OF_PAYLOADS = {
    DEFAULT_PAYLOAD: EVENT_TIME_ORDERING,
    _EVENT_TIME_PAYLOAD: EVENT_TIME_ORDERING,
    OVERWRITE_PAYLOAD: COMMIT_TIME_ORDERING,
}
_MODES_OF_NAMES = {name.rpartition(".")[2]: mode for name, mode in _MODES_OF_PAYLOADS.items()}
_MODES_OF_STRATEGIES = {strategy_id: mode for mode, strategy_id in STRATEGY_IDS.items()}
_MOVED = {"org.apache.hudi.payload.AWSDmsAvroPayload": f"{_PACKAGE}AWSDmsAvroPayload"}

_PROPERTY = "hoodie.record.merge.property."
_PARTIAL_UPDATE = "hoodie.table.partial.update.mode"
_DELETE_FIELD = f"{_PROPERTY}hoodie.payload.delete.field"
_DELETE_MARKER = f"{_PROPERTY}hoodie.payload.delete.marker"
_DEBEZIUM_DELETE = {_DELETE_FIELD: "_change_operation_type", _DELETE_MARKER: "d"}

# The payload classes that version 9 expresses by a mode and properties: class → (mode, properties to store).
DEPRECATED_PAYLOADS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    OVERWRITE_PAYLOAD: (COMMIT_TIME_ORDERING, {}),
    DEFAULT_PAYLOAD: (EVENT_TIME_ORDERING, {}),
    _EVENT_TIME_PAYLOAD: (EVENT_TIME_ORDERING, {}),
    f"{_PACKAGE}OverwriteNonDefaultsWithLatestAvroPayload": (
        COMMIT_TIME_ORDERING,
        {_PARTIAL_UPDATE: "IGNORE_DEFAULTS"},
    ),
    f"{_PACKAGE}PartialUpdateAvroPayload": (EVENT_TIME_ORDERING, {_PARTIAL_UPDATE: "IGNORE_DEFAULTS"}),
    f"{_PACKAGE}AWSDmsAvroPayload": (COMMIT_TIME_ORDERING, {_DELETE_FIELD: "Op", _DELETE_MARKER: "D"}),
    f"{_PACKAGE}debezium.MySqlDebeziumAvroPayload": (
        EVENT_TIME_ORDERING,
        {**_DEBEZIUM_DELETE, "hoodie.table.ordering.fields": "_event_bin_file,_event_pos"},
    ),
    f"{_PACKAGE}debezium.PostgresDebeziumAvroPayload": (
        EVENT_TIME_ORDERING,
        {
            **_DEBEZIUM_DELETE,
            "hoodie.table.ordering.fields": "_event_lsn",
            _PARTIAL_UPDATE: "FILL_UNAVAILABLE",
            f"{_PROPERTY}hoodie.write.partial.update.unavailable.value": "__debezium_unavailable_value",
        },
    ),
}


def payload_class_name(payload_class: str) -> str:
    """The name of a payload class in this file; classes that Hudi moved also work under their old names."""
    return _MOVED.get(payload_class, payload_class)


def mode_of_payload(payload_class: str) -> str:
    """The mode that a payload class stands for below version 9."""
    return _MODES_OF_PAYLOADS.get(payload_class, CUSTOM)


def mode_of_payload_name(payload_class: str) -> str | None:
    """Like `mode_of_payload`, for a class in options, with or without package; None if it stands for no mode."""
    return _MODES_OF_NAMES.get(payload_class.rpartition(".")[2])


def mode_of_strategy(strategy_id: str) -> str | None:
    """The mode that a merge strategy's id stands for; None for the id of payload classes and for ids of mergers."""
    return _MODES_OF_STRATEGIES.get(strategy_id)


def infer_merge_mode(
    *,
    table_version: int,
    is_merge_on_read: bool,
    mode: str | None,
    payload_class: str | None,
    strategy_id: str | None,
    has_ordering: bool,
) -> str:
    """Infer the merge mode of a table from its properties (or a writer's options); None stands for absent ones.

    Below version 8 the payload class decides before the strategy id (0.x stores the event-time id with every payload),
    and a copy-on-write table stores neither: there 0.x overwrites with the latest row, ordering field or not. From 8 on
    the strategy id decides before the payload class; version 9 stores the mode. Raises ConfigError for an unknown mode
    and for one that payload class or strategy id contradict.
    """
    table_format = TableFormat(table_version)
    if mode is not None:
        mode = mode.upper()
        if mode not in MERGE_MODES:
            raise ConfigError(f"hoodie.record.merge.mode is {mode!r}; expected one of {', '.join(MERGE_MODES)}.")
    if payload_class is None and strategy_id is None:
        if mode is not None:
            return mode
        if not table_format.stores_merging and not is_merge_on_read:
            return COMMIT_TIME_ORDERING
        return EVENT_TIME_ORDERING if has_ordering else COMMIT_TIME_ORDERING
    # Version 9 may still have an id from before its upgrade; the mode counts.
    if table_format.merges_by_stored_mode and mode is not None and payload_class is None:
        return mode
    payload_first = payload_class is not None and (not table_format.prefers_strategy_id or strategy_id is None)
    if payload_first:
        inferred = mode_of_payload(str(payload_class))
    else:
        inferred = mode_of_strategy(str(strategy_id)) or CUSTOM
    if mode is not None and mode != inferred:
        reason = f"payload class {payload_class}" if payload_first else f"merge strategy id {strategy_id}"
        raise ConfigError(
            f"hoodie.record.merge.mode is {mode}, but the {reason} means {inferred}. Leave one of them out, or set "
            f"both to the same."
        )
    return inferred
