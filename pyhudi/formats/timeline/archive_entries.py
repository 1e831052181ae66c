"""Entries of the archived timeline below table version 8: one Avro record per state of an instant.

An entry names its instant and state, and holds the body of that state's file in the field of its kind. Entries are in
Avro data blocks of log files whose only header entry is the schema. Write stats are shortened to seventeen fields.
Source: docs/formats/timeline.md, "Records"; docs/formats/history.md, "Archive log".
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import fastavro
import pyarrow as pa

from pyhudi.errors import CorruptFile
from pyhudi.formats.damage import as_corrupt
from pyhudi.formats.log.envelope import BlockType, HeaderKey, encode_block
from pyhudi.formats.log.reader import LogBlock
from pyhudi.formats.timeline.bodies import Body, NewBody, fields_of
from pyhudi.formats.timeline.instant_files import commit_of, decode_avro_record, decode_commit, decode_requested_replace
from pyhudi.formats.timeline.plans import decode_compaction_plan
from pyhudi.formats.timeline.schemas import FIRST_STATISTICS, RECORDS, schema_of
from pyhudi.formats.timeline.write_stats import stat_to_avro
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import ActionKind, State

if TYPE_CHECKING:
    from fastavro.types import Schema

__all__ = ["archive_entry", "commit_of_entry", "encode_entries", "entries_of"]

_COMMIT = """
    partitionToWriteStats {[HoodieWriteStat]}?
    extraMetadata {string}?
    version int/1
    operationType string?
"""
_RECORDS: Mapping[str, str] = {
    **RECORDS,
    "HoodieArchivedMetaEntry": """
        hoodieCommitMetadata HoodieCommitMetadata?
        hoodieCleanMetadata HoodieCleanMetadata?
        hoodieCompactionMetadata HoodieCompactionMetadata?
        hoodieRollbackMetadata HoodieRollbackMetadata?
        hoodieSavePointMetadata HoodieSavepointMetadata?
        commitTime string?
        actionType string?
        version int/1
        hoodieCompactionPlan HoodieCompactionPlan?
        hoodieCleanerPlan HoodieCleanerPlan?
        actionState string?
        hoodieReplaceCommitMetadata HoodieReplaceCommitMetadata?
        hoodieRequestedReplaceMetadata HoodieRequestedReplaceMetadata?
        HoodieInflightReplaceMetadata HoodieCommitMetadata?
        hoodieIndexCommitMetadata HoodieIndexCommitMetadata?
        stateTransitionTime string?
    """,
    "HoodieCommitMetadata": _COMMIT,
    "HoodieReplaceCommitMetadata": _COMMIT + "partitionToReplaceFileIds {[string]}?",
    "HoodieWriteStat": FIRST_STATISTICS,
    "HoodieCompactionMetadata": "partitionToCompactionWriteStats {[HoodieCompactionWriteStat]}?!",
    "HoodieCompactionWriteStat": """
        partitionPath string?
        totalLogRecords long?
        totalLogFiles long?
        totalUpdatedRecordsCompacted long?
        hoodieWriteStat HoodieWriteStat?
    """,
    "HoodieCompactionPlan": """
        operations [HoodieCompactionOperation]?
        extraMetadata {string}?
        version int/1
        strategy HoodieCompactionStrategy?
        preserveHoodieMetadata boolean/false
    """,
    "HoodieClusteringPlan": """
        inputGroups [HoodieClusteringGroup]?
        strategy HoodieClusteringStrategy?
        extraMetadata {string}?
        version int/1
        preserveHoodieMetadata boolean?
    """,
}
_STAT_FIELDS = tuple(line.split()[0] for line in FIRST_STATISTICS.splitlines() if line.strip())
# Every archived commit has this empty entry, with which Hudi removes a statistic of old releases.
_ROLLING_STAT = {"ROLLING_STAT": ""}
_HEAD = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")
_CONTENT_VERSION = 3
_NAMING = ("commitTime", "actionType", "actionState", "stateTransitionTime")  # fields that identify the entry


def archive_entry(instant_time: str, action: ActionKind, state: State, body: bytes, transition_time: str) -> NewBody:
    """Return the entry of one state of an instant.

    Args:    action: as in the name of the state's file (`compaction` until it completes as `commit`); body: that file's
             bytes; transition_time: when that file was made, as an instant time.
    Raises:  CorruptFile.
    """
    where = f"{instant_time}.{action.value}, state {state.name.lower()}"
    return {
        "commitTime": instant_time,
        "actionType": action.value,
        "actionState": state.name,
        "stateTransitionTime": transition_time,
        "version": None,
        **_payload(action, state, body, where),
    }


def _payload(action: ActionKind, state: State, body: bytes, where: str) -> NewBody:
    if action.is_commit and not action.is_replacing:
        return {"hoodieCommitMetadata": _commit(body, where)}
    if not body:
        return {}
    completed = state is State.COMPLETED
    if action.is_compaction and state is State.REQUESTED:
        decode_compaction_plan(body, where)
        return {"hoodieCompactionPlan": decode_avro_record(body, where)}
    if action is ActionKind.REPLACECOMMIT:
        if completed:
            return {"hoodieReplaceCommitMetadata": _commit(body, where)}
        if state is State.INFLIGHT:
            return {"HoodieInflightReplaceMetadata": _commit(body, where)}
        return {"hoodieRequestedReplaceMetadata": decode_requested_replace(body, where)}
    name = {
        (ActionKind.CLEAN, True): "hoodieCleanMetadata",
        (ActionKind.CLEAN, False): "hoodieCleanerPlan",
        (ActionKind.ROLLBACK, True): "hoodieRollbackMetadata",
        (ActionKind.SAVEPOINT, True): "hoodieSavePointMetadata",
    }.get((action, completed))
    return {} if name is None else {name: decode_avro_record(body, where)}


def _commit(body: bytes, where: str) -> NewBody:
    metadata = decode_commit(body, where)
    entry: NewBody = {
        "partitionToWriteStats": {
            partition: [
                {name: value for name, value in stat_to_avro(stat).items() if name in _STAT_FIELDS} for stat in stats
            ]
            for partition, stats in metadata.partition_to_write_stats.items()
        },
        "extraMetadata": {**metadata.extra_metadata, **_ROLLING_STAT},
        "version": None,
        "operationType": metadata.operation_type,
    }
    if metadata.partition_to_replace_file_ids is not None:
        replaced = metadata.partition_to_replace_file_ids
        entry["partitionToReplaceFileIds"] = {partition: list(ids) for partition, ids in replaced.items()}
    return entry


def encode_entries(entries: Sequence[Mapping[str, object]]) -> bytes:
    """Encode the block of these entries for an archive file."""
    content = io.BytesIO()
    content.write(_HEAD.pack(_CONTENT_VERSION, len(entries)))
    for entry in entries:
        record = io.BytesIO()
        try:
            fastavro.schemaless_writer(record, _parse_schema(_schema()), dict(entry))
        # The body has a schema of its own, which may not fit.
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise CorruptFile(
                f"{entry.get('commitTime')}.{entry.get('actionType')}: the body is not what one of its kind holds "
                f"({error!s:.300}), so it can't be archived. Restore the file."
            ) from error
        data = record.getvalue()
        content.write(_LENGTH.pack(len(data)) + data)
    return encode_block(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: _schema()}, content.getvalue())


def entries_of(block: LogBlock, columns: Sequence[str] | None = None) -> Iterator[Body]:
    """Yield the entries of a block, in their order.

    Args:    columns: fields to decode, None for all.
    Raises:  CorruptFile when the block is damaged.
    """
    rows = block.rows(columns)
    if "commitTime" not in rows.column_names:
        raise CorruptFile(f"{block.where}: expected entries of archived instants, found {rows.column_names[:5]}.")
    kinds = {name: rows.schema.field(name).type for name in _NAMING if name in rows.column_names}
    if not all(map(pa.types.is_string, kinds.values())):
        raise CorruptFile(f"{block.where}: expected entries of archived instants, found {kinds}.")
    for batch in rows.to_batches():
        with as_corrupt(block.where, "the entries of archived instants"):
            entries = batch.to_pylist(maps_as_pydicts="lossy")
        yield from entries


def commit_of_entry(entry: Body) -> CommitMetadata | None:
    """Return the commit metadata in an entry, None when it holds none."""
    metadata = entry.get("hoodieReplaceCommitMetadata") or entry.get("hoodieCommitMetadata")
    if metadata is None:
        return None
    body = fields_of(metadata, f"archived {entry.get('commitTime')}")
    extra = {key: value for key, value in body.text_map("extraMetadata").items() if key not in _ROLLING_STAT}
    return commit_of({**body.body, "extraMetadata": extra}, body.where)


@cache
def _schema() -> str:
    return schema_of("HoodieArchivedMetaEntry", _RECORDS)


@cache
def _parse_schema(schema: str) -> Schema:
    return fastavro.parse_schema(json.loads(schema))
