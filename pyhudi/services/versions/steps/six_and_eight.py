"""Versions 6 and 8: another timeline layout, another archive, merge modes instead of payload classes.

Source: docs/formats/table-config.md, "Keys", "Steps between versions"; docs/formats/merging.md, "Mode of a table"; the
        golden tables of Hudi's upgrades and downgrades.
"""

from __future__ import annotations

from pyhudi.actions.action import ActionContext
from pyhudi.errors import UnsupportedTable
from pyhudi.index.consistent_bucket import move_markers
from pyhudi.model.keys import KEY_GENERATOR_CLASSES, USER_PROVIDED, key_generator_type
from pyhudi.model.merge_mode import (
    BUILT_IN_STRATEGY_IDS,
    COMMIT_TIME_ORDERING,
    CUSTOM,
    DEFAULT_PAYLOAD,
    EVENT_TIME_ORDERING,
    EVENT_TIME_STRATEGY_ID,
    OVERWRITE_PAYLOAD,
    PAYLOAD_STRATEGY_ID,
    PAYLOADS,
    STRATEGY_IDS,
    mode_of_payload,
)
from pyhudi.model.options import WriteOptions
from pyhudi.model.table_config import TableConfig
from pyhudi.services.versions.steps.base import Converted, PropertyChange, VersionStep
from pyhudi.services.versions.steps.schema_history import copy_schema_commits, delete_old_schema_commits
from pyhudi.services.versions.steps.timeline_layouts import (
    archive_to_history,
    completion_times,
    copy_timeline,
    delete_layout,
    history_to_archive,
)

__all__ = ["EIGHT_TO_SIX", "SIX_TO_EIGHT"]

_MODE = "hoodie.record.merge.mode"
_STRATEGY_ID = "hoodie.record.merge.strategy.id"
_OLD_STRATEGY_ID = "hoodie.compaction.record.merger.strategy"
_PAYLOAD = "hoodie.compaction.payload.class"
_KEYGEN_CLASS = "hoodie.table.keygenerator.class"
_KEYGEN_TYPE = "hoodie.table.keygenerator.type"
_PARTITION_FIELDS = "hoodie.table.partition.fields"
_GIVEN_PARTITION_FIELDS = "hoodie.datasource.write.partitionpath.field"


def _to_eight(config: TableConfig, options: WriteOptions) -> PropertyChange:
    change = {
        "hoodie.table.initial.version": config.properties["hoodie.table.version"],
        "hoodie.timeline.path": "timeline",
        **_merging_of_eight(config),
    }
    key_generator = config.properties.get(_KEYGEN_CLASS)
    if key_generator:
        kind = key_generator_type(key_generator)
        change[_KEYGEN_TYPE] = kind if kind in KEY_GENERATOR_CLASSES else USER_PROVIDED
    if config.key_generator == "CUSTOM" and _GIVEN_PARTITION_FIELDS in options.explicit:
        change[_PARTITION_FIELDS] = ",".join(options.partition_fields)
    return PropertyChange(change)


def _merging_of_eight(config: TableConfig) -> dict[str, str]:
    """Merge properties as in Apache Hudi: ordered merge-on-read tables merge by event time from now on, whatever their
    payload class did. Their log files were compacted before.
    """
    payload = config.payload_class
    if payload is not None and mode_of_payload(payload) == CUSTOM:
        return {_PAYLOAD: payload, _MODE: CUSTOM, _STRATEGY_ID: PAYLOAD_STRATEGY_ID}
    by_value = payload is not None and mode_of_payload(payload) == EVENT_TIME_ORDERING
    by_value = by_value or (config.is_merge_on_read and bool(config.ordering_fields))
    mode = EVENT_TIME_ORDERING if by_value else COMMIT_TIME_ORDERING
    return {_PAYLOAD: PAYLOADS[mode], _MODE: mode, _STRATEGY_ID: STRATEGY_IDS[mode]}


def _to_six(config: TableConfig, options: WriteOptions) -> PropertyChange:
    mode, payload = config.record_merge_mode, config.payload_class
    change = {}
    if mode == CUSTOM and (payload is None or config.merge_strategy_id not in (None, *BUILT_IN_STRATEGY_IDS)):
        raise UnsupportedTable(
            f"The table {config.table_name!r} merges by the strategy {config.merge_strategy_id}, which version 6 can't "
            f"name: there Hudi merges by payload classes. Nothing was changed."
        )
    if payload is None:
        change[_PAYLOAD] = DEFAULT_PAYLOAD if mode == EVENT_TIME_ORDERING else OVERWRITE_PAYLOAD
    if config.is_merge_on_read and _OLD_STRATEGY_ID not in config.properties:
        change[_OLD_STRATEGY_ID] = EVENT_TIME_STRATEGY_ID  # with every payload class, which decides
    if _KEYGEN_CLASS not in config.properties and config.key_generator is not None:
        change[_KEYGEN_CLASS] = KEY_GENERATOR_CLASSES.get(config.key_generator, config.key_generator)
    if ":" in config.properties.get(_PARTITION_FIELDS, ""):
        change[_PARTITION_FIELDS] = ",".join(config.partition_fields)
    if config.properties.get("hoodie.archivelog.folder") != "archived":
        change["hoodie.archivelog.folder"] = "archived"  # tables created above version 6 have "history"
    remove = tuple(key for key in (_MODE, _STRATEGY_ID) if key in config.properties)
    return PropertyChange(change, remove)


def _new_layout(context: ActionContext, target: TableConfig) -> Converted:
    meta = context.meta
    delete_layout(meta)
    meta.storage.delete_tree(target.timeline_path)  # also a history from before a downgrade: the archive has all of it
    meta.storage.make_folder(target.history_path)
    times = completion_times(meta)
    copy_schema_commits(meta, target, {requested: completed for (requested, _), completed in times.items()})
    instants = copy_timeline(meta, target, times)
    return Converted(instants, archive_to_history(meta, target))


def _old_layout(context: ActionContext, target: TableConfig) -> Converted:
    meta = context.meta
    delete_layout(meta)
    meta.storage.make_folder(target.history_path)
    times = {
        (i.requested_time, i.action.completed_as.value): i.completion_time
        for i in meta.timeline.completed()
        if i.completion_time is not None
    }
    copy_schema_commits(meta, target, {})
    # Moved while the table has version 8, which needs no markers: in version 6 a marker next to its ring hides earlier
    # rings, so none may exist if the call dies.
    move_markers(meta.storage, target.table_version)
    return Converted(copy_timeline(meta, target, times), history_to_archive(meta, target))


def _settle_in_new_layout(context: ActionContext) -> None:
    _delete_other_layout(context)
    move_markers(context.meta.storage, context.meta.config.table_version)


def _delete_other_layout(context: ActionContext) -> None:
    """Delete instant files in their old place. The archives are kept, as in Apache Hudi."""
    delete_layout(context.meta)
    delete_old_schema_commits(context.meta)


SIX_TO_EIGHT = VersionStep(
    6, 8, properties=_to_eight, rolls_back_and_compacts=True, convert=_new_layout, tidy=_settle_in_new_layout
)
EIGHT_TO_SIX = VersionStep(
    8, 6, properties=_to_six, rolls_back_and_compacts=True, convert=_old_layout, tidy=_delete_other_layout
)
