"""Versions 8 and 9: the same files, other properties for merging and ordering, versions in the index definitions.

Source: docs/formats/timeline.md, "Folders"; docs/formats/table-config.md, "Keys", "Steps between versions";
docs/formats/merging.md, "Mode of a table", "Payload classes".
"""

from __future__ import annotations

from collections.abc import Callable

from pyhudi.actions.action import ActionContext
from pyhudi.errors import CorruptFile, PathNotFound, UnsupportedTable
from pyhudi.formats.json_text import parse_json, pretty_json
from pyhudi.formats.timeline.bodies import Body, fields_of
from pyhudi.metadata.schema import MetadataKind
from pyhudi.model.filenames import INDEX_DEFINITIONS_PATH
from pyhudi.model.merge_mode import (
    CUSTOM,
    DEPRECATED_PAYLOADS,
    PAYLOAD_STRATEGY_ID,
    STRATEGY_IDS,
    mode_of_payload,
    payload_class_name,
)
from pyhudi.model.options import WriteOptions
from pyhudi.model.table_config import TableConfig
from pyhudi.services.versions.steps.base import Converted, PropertyChange, VersionStep

__all__ = ["EIGHT_TO_NINE", "NINE_TO_EIGHT"]

_MODE = "hoodie.record.merge.mode"
_STRATEGY_ID = "hoodie.record.merge.strategy.id"
_PAYLOAD = "hoodie.compaction.payload.class"
_LEGACY_PAYLOAD = "hoodie.table.legacy.payload.class"
_PARTIAL_UPDATE = "hoodie.table.partial.update.mode"
_ORDERING = "hoodie.table.ordering.fields"
_PRECOMBINE = "hoodie.table.precombine.field"
_PROPERTY = "hoodie.record.merge.property."
_DELETE = f"{_PROPERTY}hoodie.payload.delete."
_MYSQL_ORDERING = "_event_seq"  # up to version 8; version 9 compares its two parts


def _to_nine(config: TableConfig, options: WriteOptions) -> PropertyChange:
    _check_complex_keys(config, options, "upgrade")
    payload = config.payload_class
    change: dict[str, str] = {_MODE: config.record_merge_mode}
    remove = set()
    if config.record_merge_mode != CUSTOM:
        remove.add(_STRATEGY_ID)
    ordering = ",".join(config.ordering_fields)
    if payload is not None and payload_class_name(payload) in DEPRECATED_PAYLOADS:
        mode, extras = DEPRECATED_PAYLOADS[payload_class_name(payload)]
        change |= {_MODE: mode, _LEGACY_PAYLOAD: payload, **extras}
        ordering = change.pop(_ORDERING, ordering)
        remove |= {_PAYLOAD, _STRATEGY_ID}
    if f"{_DELETE}field" not in change and options.delete_field and options.delete_marker:
        change |= {f"{_DELETE}field": options.delete_field, f"{_DELETE}marker": options.delete_marker}
    if ordering:
        change[_ORDERING] = ordering
    remove.add(_PRECOMBINE)
    return _only_changes(config, change, remove)


def _to_eight(config: TableConfig, options: WriteOptions) -> PropertyChange:
    _check_complex_keys(config, options, "downgrade")
    payload = config.legacy_payload_class
    if payload is None and config.partial_update_mode != "NONE":
        raise UnsupportedTable(
            f"The table {config.table_name!r} fills in missing values (hoodie.table.partial.update.mode="
            f"{config.partial_update_mode}) and has no payload class of older versions that would say so to version 8. "
            f"Nothing was changed."
        )
    if len(config.ordering_fields) > 1 and payload_class_name(payload or "") not in DEPRECATED_PAYLOADS:
        raise UnsupportedTable(
            f"The table {config.table_name!r} orders by {', '.join(config.ordering_fields)}; version 8 has one "
            f"ordering field. Nothing was changed."
        )
    change, remove = _merging_of_eight(config, payload)
    ordering = ",".join(config.ordering_fields)
    if payload is not None and payload.endswith(".MySqlDebeziumAvroPayload"):
        ordering = _MYSQL_ORDERING
    if ordering:
        change[_PRECOMBINE] = ordering
    return _only_changes(config, change, {*remove, _ORDERING, _PARTIAL_UPDATE, _LEGACY_PAYLOAD})


def _merging_of_eight(config: TableConfig, payload: str | None) -> tuple[dict[str, str], set[str]]:
    mode = config.record_merge_mode
    change = {_MODE: mode}
    if mode in STRATEGY_IDS:
        change[_STRATEGY_ID] = STRATEGY_IDS[mode]
    if payload is None:
        return change, set()
    change[_PAYLOAD] = payload
    if mode_of_payload(payload) == CUSTOM:
        change |= {_MODE: CUSTOM, _STRATEGY_ID: PAYLOAD_STRATEGY_ID}
    # Properties implied by the payload class; those that a user set stay.
    extras = DEPRECATED_PAYLOADS.get(payload_class_name(payload), ("", {}))[1]
    return change, {key for key in extras if key.startswith(_PROPERTY)}


def _only_changes(config: TableConfig, change: dict[str, str], remove: set[str]) -> PropertyChange:
    stored = config.properties
    return PropertyChange(
        {key: value for key, value in change.items() if stored.get(key) != value},
        tuple(sorted(key for key in remove if key in stored and key not in change)),
    )


def _check_complex_keys(config: TableConfig, options: WriteOptions, verb: str) -> None:
    """Refuse complex keys with one field and unknown encoding: Hudi's releases have two for the same table version."""
    single = config.key_generator == "COMPLEX" and len(config.record_key_fields) == 1
    if not (single and options.versions.complex_key_validation):
        return
    raise UnsupportedTable(
        f"The table {config.table_name!r} has the key generator COMPLEX with the one key field "
        f"{config.record_key_fields[0]!r}. Some releases of Hudi wrote such keys as 'field:value', others as 'value', "
        f"and a writer of another version may take the other one, which doubles rows. Make sure that "
        f"hoodie.write.complex.keygen.new.encoding is right in all your writers, then {verb} with "
        f"hoodie.write.complex.keygen.validation.enable=false. Nothing was changed."
    )


def _write_versions(context: ActionContext, target: TableConfig) -> Converted:
    """Add versions to index definitions; without one they are of version 8. Indexes of values and expressions become
    V2: the metadata table is rebuilt in the new version, where Hudi can't read older ones.
    """
    _change_definitions(context, lambda one: {**one, "version": one.get("version") or _first(one)})
    return Converted()


def _first(definition: Body) -> str:
    """The version of an index without one."""
    return "V2" if str(definition.get("indexName", "")).startswith(_BUILT_ANEW) else "V1"


def _drop_newer_indexes(context: ActionContext, target: TableConfig) -> Converted:
    """Delete partitions of the metadata table with indexes newer than V1, which version 8 does not know."""
    _change_definitions(context, lambda definition: definition if definition.get("version") in (None, "V1") else None)
    return Converted()


def _change_definitions(context: ActionContext, change: Callable[[Body], Body | None]) -> None:
    storage = context.meta.storage
    try:
        data = storage.read(INDEX_DEFINITIONS_PATH)
    except PathNotFound:
        return
    where = storage.full_path(INDEX_DEFINITIONS_PATH)
    try:
        body = fields_of(parse_json(data, where, "JSON"), where).body
        definitions = dict(body["indexDefinitions"])
        after = {name: change(definition) for name, definition in definitions.items()}
    except (CorruptFile, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFile(
            f"{where}: expected index definitions as JSON, found {data[:40]!r} ({error!r}). Restore or delete the "
            f"file; Hudi recreates it when it builds an index."
        ) from error
    after = {name: definition for name, definition in after.items() if definition is not None}
    if after != definitions:
        storage.write(INDEX_DEFINITIONS_PATH, pretty_json({**body, "indexDefinitions": after}).encode())


_BUILT_ANEW = (MetadataKind.SECONDARY_INDEX.value.prefix, MetadataKind.EXPRESSION_INDEX.value.prefix)
EIGHT_TO_NINE = VersionStep(8, 9, properties=_to_nine, rolls_back_and_compacts=True, convert=_write_versions)
NINE_TO_EIGHT = VersionStep(9, 8, properties=_to_eight, rolls_back_and_compacts=True, convert=_drop_newer_indexes)
