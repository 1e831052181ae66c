"""Bodies of savepoint and restore files: bytes ↔ the model. Avro containers in all table versions.

Source: docs/formats/timeline.md, "Records", "Savepoint and restore".
"""

from __future__ import annotations

from pyhudi.errors import CorruptFile
from pyhudi.formats.timeline.bodies import Fields, fields_of
from pyhudi.formats.timeline.instant_files import (
    decode_avro_record,
    encode_avro_record,
    instant_info,
    planned_instant,
    rollback_metadata_of,
    rollback_metadata_record,
)
from pyhudi.model.plans import RestoreMetadata, RestorePlan, SavepointMetadata

__all__ = [
    "decode_restore_metadata",
    "decode_restore_plan",
    "decode_savepoint",
    "encode_restore_metadata",
    "encode_restore_plan",
    "encode_savepoint",
]

_PLAN_VERSION = 2  # the version that names the target of the restore


def encode_savepoint(metadata: SavepointMetadata) -> bytes:
    """Encode the body of a completed savepoint."""
    return encode_avro_record(
        "HoodieSavepointMetadata",
        {
            "savepointedBy": metadata.savepointed_by,
            "savepointedAt": metadata.savepointed_at_ms,
            "comments": metadata.comments,
            "partitionMetadata": {
                partition: {"partitionPath": partition, "savepointDataFile": list(names)}
                for partition, names in metadata.files.items()
            },
            "version": 1,
        },
    )


def decode_savepoint(data: bytes, where: str = "savepoint") -> SavepointMetadata:
    """Decode the files of a savepoint. Raises CorruptFile."""
    body = _fields(data, where, "the body of a savepoint", "partitionMetadata")
    return SavepointMetadata(
        savepointed_by=body.text("savepointedBy"),
        savepointed_at_ms=body.number("savepointedAt"),
        comments=body.text("comments"),
        files={
            partition: saved.texts("savepointDataFile") for partition, saved in body.record_map("partitionMetadata")
        },
    )


def encode_restore_plan(plan: RestorePlan) -> bytes:
    """Encode the body of `<R>.restore.requested`."""
    return encode_avro_record(
        "HoodieRestorePlan",
        {
            "instantsToRollback": [{"commitTime": i.commit_time, "action": i.action} for i in plan.instants],
            "version": _PLAN_VERSION,
            "savepointToRestoreTimestamp": plan.restore_to,
        },
    )


def decode_restore_plan(data: bytes, where: str = "restore.requested") -> RestorePlan:
    """Decode the plan of a restore. Raises CorruptFile."""
    body = _fields(data, where, "the plan of a restore", "instantsToRollback")
    instants = tuple(planned_instant(instant) for instant in body.records("instantsToRollback"))
    return RestorePlan(instants, body.optional_text("savepointToRestoreTimestamp"))


def encode_restore_metadata(metadata: RestoreMetadata) -> bytes:
    """Encode the body of a completed restore."""
    return encode_avro_record(
        "HoodieRestoreMetadata",
        {
            "startRestoreTime": metadata.start_restore_time,
            "timeTakenInMillis": metadata.time_taken_ms,
            "instantsToRollback": [i.commit_time for i in metadata.instants],
            "hoodieRestoreMetadata": {
                time: [rollback_metadata_record(rollback) for rollback in rollbacks]
                for time, rollbacks in metadata.rollbacks.items()
            },
            "version": 1,
            "restoreInstantInfo": [{"commitTime": i.commit_time, "action": i.action} for i in metadata.instants],
        },
    )


def decode_restore_metadata(data: bytes, where: str = "restore") -> RestoreMetadata:
    """Decode the body of a completed restore. Raises CorruptFile."""
    body = _fields(data, where, "the body of a restore", "hoodieRestoreMetadata")
    return RestoreMetadata(
        start_restore_time=body.text("startRestoreTime"),
        time_taken_ms=body.number("timeTakenInMillis"),
        instants=tuple(instant_info(instant) for instant in body.records("restoreInstantInfo")),
        rollbacks={
            time: tuple(rollback_metadata_of(fields_of(r, where)) for r in rollbacks if r is not None)
            for time, rollbacks in body.list_map("hoodieRestoreMetadata")
        },
    )


def _fields(data: bytes, where: str, expected: str, key: str) -> Fields:
    """Return the fields of a body; `key` is a required one."""
    body = decode_avro_record(data, where)
    if body.get(key) is None:
        raise CorruptFile(f"{where}: expected {expected}, found keys {sorted(body)[:10]!s:.300}.")
    return Fields(body, where)
