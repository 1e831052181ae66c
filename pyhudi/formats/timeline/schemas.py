"""Avro schemas of the bodies of instant files, as a compact table.

One row per field, in the exact Avro order. Notation of types (`T` itself may be nested):

    T?      union [null, T], default null        T?!     union [null, T] without default
    T/x     union [T, null], default x           T=x     T with default x
    [T]     array        {T}  map with string keys        T  required, no default
    [T?]    array whose items are [null, T]

Names with a capital are records of this table, in namespace `org.apache.hudi.avro.model`. Strings and the keys of maps
have `avro.java.string`, so that Hudi's generated classes get Java strings.
Source: docs/formats/timeline.md, "Records".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from pyhudi.errors import ConfigError
from pyhudi.formats.timeline.bodies import AvroObject, AvroType

__all__ = ["FIRST_STATISTICS", "NAMESPACE", "RECORDS", "body_schema", "schema_of"]

NAMESPACE = "org.apache.hudi.avro.model"

_COMMIT = """
    partitionToWriteStats {[HoodieWriteStat]}?
    compacted boolean?
    extraMetadata {string}?
    version int/1
    operationType string?
"""
# Fields of a write stat that archive files of version 6 have, too.
FIRST_STATISTICS = """
    fileId string?
    path string?
    prevCommit string?
    numWrites long?
    numDeletes long?
    numUpdateWrites long?
    totalWriteBytes long?
    totalWriteErrors long?
    partitionPath string?
    totalLogRecords long?
    totalLogFiles long?
    totalUpdatedRecordsCompacted long?
    numInserts long?
    totalLogBlocks long?
    totalCorruptLogBlock long?
    totalRollbackBlocks long?
    fileSizeInBytes long?
"""
_VERSIONED_EXTRA = """
    extraMetadata {string}?
    version int/1
"""

RECORDS: Mapping[str, str] = {
    "HoodieCommitMetadata": _COMMIT,
    "HoodieReplaceCommitMetadata": _COMMIT + "partitionToReplaceFileIds {[string]}?",
    "HoodieWriteStat": FIRST_STATISTICS
    + """
        logVersion int?
        logOffset long?
        baseFile string?
        logFiles [string]?
        cdcStats {long}?
        prevBaseFile string?
        minEventTime long?
        maxEventTime long?
        runtimeStats HoodieRuntimeStats?
        totalLogFilesCompacted long?
        totalLogReadTimeMs long?
        totalLogSizeCompacted long?
        tempPath string?
        numUpdates long?
    """,
    "HoodieRuntimeStats": """
        totalScanTime long?
        totalCreateTime long?
        totalUpsertTime long?
    """,
    "HoodieRequestedReplaceMetadata": "operationType string?\n clusteringPlan HoodieClusteringPlan?" + _VERSIONED_EXTRA,
    "HoodieClusteringPlan": """
        inputGroups [HoodieClusteringGroup]?
        strategy HoodieClusteringStrategy?
        extraMetadata {string}?
        version int/1
        preserveHoodieMetadata boolean?
        missingSchedulePartitions [string]?
    """,
    "HoodieClusteringGroup": """
        slices [HoodieSliceInfo]?
        metrics {double}?
        numOutputFileGroups int/1
    """
    + _VERSIONED_EXTRA,
    "HoodieSliceInfo": """
        dataFilePath string?
        deltaFilePaths [string]?
        fileId string?!
        partitionPath string?
        bootstrapFilePath string?
        version int/1
    """,
    "HoodieClusteringStrategy": """
        strategyClassName string?
        strategyParams {string}?
        version int/1
    """,
    "HoodieCompactionPlan": """
        operations [HoodieCompactionOperation]?
        extraMetadata {string}?
        version int/1
        strategy HoodieCompactionStrategy?
        preserveHoodieMetadata boolean/false
        missingSchedulePartitions [string]?
    """,
    "HoodieCompactionOperation": """
        baseInstantTime string?!
        deltaFilePaths [string]?
        dataFilePath string?
        fileId string?!
        partitionPath string?
        metrics {double}?
        bootstrapFilePath string?
    """,
    "HoodieCompactionStrategy": """
        compactorClassName string?
        strategyParams {string}?
        version int/1
    """,
    "HoodieIndexPlan": """
        version int/1
        indexPartitionInfos [HoodieIndexPartitionInfo]?
    """,
    "HoodieIndexCommitMetadata": """
        version int/1
        operationType string?
        indexPartitionInfos [HoodieIndexPartitionInfo]?
    """,
    "HoodieIndexPartitionInfo": """
        version int/1
        metadataPartitionPath string?
        indexUptoInstant string?
        extraMetadata {string}?
    """,
    "HoodieRollbackPlan": """
        instantToRollback HoodieInstantInfo?
        RollbackRequests [HoodieRollbackRequest]?
        version int/1
    """,
    "HoodieInstantInfo": """
        commitTime string
        action string
    """,
    "HoodieRollbackRequest": """
        partitionPath string
        fileId string?
        latestBaseInstant string?
        filesToBeDeleted [string]=[]
        logBlocksToBeDeleted {long}?
    """,
    "HoodieRollbackMetadata": """
        startRollbackTime string
        timeTakenInMillis long
        totalFilesDeleted int
        commitsRollback [string]
        partitionMetadata {HoodieRollbackPartitionMetadata}
        version int/1
        instantsRollback [HoodieInstantInfo]=[]
    """,
    "HoodieRollbackPartitionMetadata": """
        partitionPath string
        successDeleteFiles [string]
        failedDeleteFiles [string]
        rollbackLogFiles {long}?
        logFilesFromFailedCommit {long}?
    """,
    "HoodieCleanerPlan": """
        earliestInstantToRetain HoodieActionInstant?
        lastCompletedCommitTimestamp string=""
        policy string
        filesToBeDeletedPerPartition {[string]}?
        version int/1
        filePathsToBeDeletedPerPartition {[HoodieCleanFileInfo]}?
        partitionsToBeDeleted [string]?
        extraMetadata {string}?
    """,
    "HoodieActionInstant": """
        timestamp string
        action string
        state string
    """,
    "HoodieCleanFileInfo": """
        filePath string?
        isBootstrapBaseFile boolean?
    """,
    "HoodieCleanMetadata": """
        startCleanTime string
        timeTakenInMillis long
        totalFilesDeleted int
        earliestCommitToRetain string
        lastCompletedCommitTimestamp string=""
        partitionMetadata {HoodieCleanPartitionMetadata}
        version int/1
        bootstrapPartitionMetadata {HoodieCleanPartitionMetadata}?
        extraMetadata {string}?
    """,
    "HoodieCleanPartitionMetadata": """
        partitionPath string
        policy string
        deletePathPatterns [string]
        successDeleteFiles [string]
        failedDeleteFiles [string]
        isPartitionDeleted boolean?
    """,
    "HoodieRestorePlan": """
        instantsToRollback [HoodieInstantInfo]=[]
        version int/2
        savepointToRestoreTimestamp string?
    """,
    "HoodieRestoreMetadata": """
        startRestoreTime string
        timeTakenInMillis long
        instantsToRollback [string]
        hoodieRestoreMetadata {[HoodieRollbackMetadata?]}
        version int/1
        restoreInstantInfo [HoodieInstantInfo]=[]
    """,
    "HoodieSavepointMetadata": """
        savepointedBy string
        savepointedAt long
        comments string
        partitionMetadata {HoodieSavepointPartitionMetadata}
        version int/1
    """,
    "HoodieSavepointPartitionMetadata": """
        partitionPath string
        savepointDataFile [string]
    """,
    "HoodieLSMTimelineInstant": """
        instantTime string?
        completionTime string?
        action string?
        metadata bytes?
        plan bytes?
        version int=1
    """,
}

_NUMBERS = frozenset({"boolean", "int", "long", "double", "bytes"})
_JAVA_STRING = {"avro.java.string": "String"}


@cache
def body_schema(record: str) -> str:
    """Return the Avro JSON of one record of the table, with all records that it uses.

    Raises ConfigError for an unknown record.
    """
    if record not in RECORDS:
        raise ConfigError(f"Unknown record {record!r}; known bodies: {', '.join(RECORDS)}.")
    return schema_of(record, RECORDS)


def schema_of(record: str, records: Mapping[str, str]) -> str:
    """Return the Avro JSON of one record of a table of records in this module's notation."""
    return json.dumps(_record(record, NAMESPACE, records, set()), separators=(",", ":"))


def _record(name: str, namespace: str | None, records: Mapping[str, str], defined: set[str]) -> AvroObject:
    defined.add(name)
    rows = [line.split(None, 1) for line in records[name].splitlines() if line.strip()]
    head: AvroObject = {"type": "record", "name": name}
    if namespace:
        head["namespace"] = namespace
    return {**head, "fields": [_field(field, notation.strip(), records, defined) for field, notation in rows]}


def _field(name: str, notation: str, records: Mapping[str, str], defined: set[str]) -> AvroObject:
    if notation.endswith("?!"):
        return {"name": name, "type": ["null", _type(notation[:-2], records, defined)]}
    if notation.endswith("?"):
        return {"name": name, "type": ["null", _type(notation[:-1], records, defined)], "default": None}
    for mark in "/=":
        inner, has_default, default = notation.partition(mark)
        if has_default:
            plain = _type(inner, records, defined)
            return {"name": name, "type": [plain, "null"] if mark == "/" else plain, "default": json.loads(default)}
    return {"name": name, "type": _type(notation, records, defined)}


def _type(notation: str, records: Mapping[str, str], defined: set[str]) -> AvroType:
    if notation.endswith("?"):
        return ["null", _type(notation[:-1], records, defined)]
    if notation.startswith("["):
        return {"type": "array", "items": _type(notation[1:-1], records, defined)}
    if notation.startswith("{"):
        return {"type": "map", "values": _type(notation[1:-1], records, defined), **_JAVA_STRING}
    if notation == "string":
        return {"type": "string", **_JAVA_STRING}
    if notation in _NUMBERS or notation in defined:
        return notation
    return _record(notation, None, records, defined)
