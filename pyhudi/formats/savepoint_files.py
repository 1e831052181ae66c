"""Bodies of savepoint and restore files: bytes ↔ the model. Avro containers in all table versions.

Source: docs/formats/timeline.md, "Records", "Savepoint and restore".
"""

from __future__ import annotations

from pyhudi.errors import CorruptFile
from pyhudi.formats.instant_files import (
    decode_avro_record,
    encode_avro_record,
    rollback_metadata_of,
    rollback_metadata_record,
)
from pyhudi.model.plans import InstantInfo
from pyhudi.model.savepoints import RestoreMetadata, RestorePlan, SavepointMetadata

__all__ = [
    "decode_restore_metadata",
    "decode_restore_plan",
    "decode_savepoint",
    "encode_restore_metadata",
    "encode_restore_plan",
    "encode_savepoint",
]

_PLAN_VERSION = 2  # the version that names what is restored to


def encode_savepoint(metadata: SavepointMetadata) -> bytes:
    """Body of a completed savepoint."""
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
    """What a savepoint keeps. Raises CorruptFile."""
    body = decode_avro_record(data, where)
    try:
        return SavepointMetadata(
            savepointed_by=str(body.get("savepointedBy") or ""),
            savepointed_at_ms=int(body.get("savepointedAt") or 0),
            comments=str(body.get("comments") or ""),
            files={
                partition: tuple(str(name) for name in saved["savepointDataFile"])
                for partition, saved in body["partitionMetadata"].items()
            },
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptFile(f"{where}: expected the body of a savepoint, found keys {sorted(body)[:10]}.") from error


def encode_restore_plan(plan: RestorePlan) -> bytes:
    """Body of `<R>.restore.requested`."""
    return encode_avro_record(
        "HoodieRestorePlan",
        {
            "instantsToRollback": [{"commitTime": i.commit_time, "action": i.action} for i in plan.instants],
            "version": _PLAN_VERSION,
            "savepointToRestoreTimestamp": plan.restore_to,
        },
    )


def decode_restore_plan(data: bytes, where: str = "restore.requested") -> RestorePlan:
    """The plan of a restore. Raises CorruptFile."""
    body = decode_avro_record(data, where)
    try:
        instants = tuple(InstantInfo(i["commitTime"], i["action"]) for i in body["instantsToRollback"])
    except (KeyError, TypeError) as error:
        raise CorruptFile(f"{where}: expected the plan of a restore, found keys {sorted(body)[:10]}.") from error
    return RestorePlan(instants, body.get("savepointToRestoreTimestamp"))


def encode_restore_metadata(metadata: RestoreMetadata) -> bytes:
    """Body of a completed restore."""
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
    """What a completed restore did. Raises CorruptFile."""
    body = decode_avro_record(data, where)
    try:
        return RestoreMetadata(
            start_restore_time=body["startRestoreTime"],
            time_taken_ms=body["timeTakenInMillis"],
            instants=tuple(InstantInfo(i["commitTime"], i["action"]) for i in body.get("restoreInstantInfo") or ()),
            rollbacks={
                time: tuple(rollback_metadata_of(r) for r in rollbacks if r is not None)
                for time, rollbacks in body["hoodieRestoreMetadata"].items()
            },
        )
    except (KeyError, TypeError) as error:
        raise CorruptFile(f"{where}: expected the body of a restore, found keys {sorted(body)[:10]}.") from error
