"""What calls answer with: values with fields, `to_dict`, `to_json`, and a text for people.

The calls make them; the names are for annotations. Each is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyhudi.actions.result import WriteResult
    from pyhudi.actions.undo.restore_result import RestoreResult, RollbackResult
    from pyhudi.exports.result import ExportResult
    from pyhudi.model.instant import Instant
    from pyhudi.model.table_config import TableConfig
    from pyhudi.model.timeline import Timeline
    from pyhudi.queries.history import History, HistoryEntry
    from pyhudi.queries.statistics_validation import Difference
    from pyhudi.services.archive.archiving import ArchiveResult
    from pyhudi.services.clean.runs import CleanResult
    from pyhudi.services.health import TableHealth
    from pyhudi.services.indexes import IndexInfo, IndexList
    from pyhudi.services.metadata_table import MetadataRebuild
    from pyhudi.services.partition_ttl import TtlResult
    from pyhudi.services.properties import PropertiesChange
    from pyhudi.services.repair.result import RepairResult
    from pyhudi.services.results import ClusteringResult, CompactionResult
    from pyhudi.services.savepoint import Savepoint, Savepoints
    from pyhudi.services.table_type import TypeChange
    from pyhudi.services.versions.upgrade import VersionChange
    from pyhudi.sql.duckdb_frames import SqlResult
    from pyhudi.streamer.results import StreamerCheck, StreamerRun
    from pyhudi.sync.check.result import EngineVerdict, SyncCheck, SyncFinding
    from pyhudi.sync.result import SyncedTable, SyncResult
    from pyhudi.table.change import Checkpoint
    from pyhudi.table.description import TableDescription
    from pyhudi.table.exports import ExportedFile, TableCopy
    from pyhudi.table.groups.lists import Constraint, IndexRemoval
    from pyhudi.table.groups.metadata import MetadataStats, TableMetadata
    from pyhudi.table.reports import TableDiff, TableStats

__all__ = [
    "ArchiveResult",
    "Checkpoint",
    "CleanResult",
    "ClusteringResult",
    "CompactionResult",
    "Constraint",
    "Difference",
    "EngineVerdict",
    "ExportResult",
    "ExportedFile",
    "History",
    "HistoryEntry",
    "IndexInfo",
    "IndexList",
    "IndexRemoval",
    "Instant",
    "MetadataRebuild",
    "MetadataStats",
    "PropertiesChange",
    "RepairResult",
    "RestoreResult",
    "RollbackResult",
    "Savepoint",
    "Savepoints",
    "SqlResult",
    "StreamerCheck",
    "StreamerRun",
    "SyncCheck",
    "SyncFinding",
    "SyncResult",
    "SyncedTable",
    "TableConfig",
    "TableCopy",
    "TableDescription",
    "TableDiff",
    "TableHealth",
    "TableMetadata",
    "TableStats",
    "Timeline",
    "TtlResult",
    "TypeChange",
    "VersionChange",
    "WriteResult",
]

_HOME = {
    "ArchiveResult": "pyhudi.services.archive.archiving",
    "Checkpoint": "pyhudi.table.change",
    "CleanResult": "pyhudi.services.clean.runs",
    "ClusteringResult": "pyhudi.services.results",
    "CompactionResult": "pyhudi.services.results",
    "Constraint": "pyhudi.table.groups.lists",
    "Difference": "pyhudi.queries.statistics_validation",
    "EngineVerdict": "pyhudi.sync.check.result",
    "ExportResult": "pyhudi.exports.result",
    "ExportedFile": "pyhudi.table.exports",
    "History": "pyhudi.queries.history",
    "HistoryEntry": "pyhudi.queries.history",
    "IndexInfo": "pyhudi.services.indexes",
    "IndexList": "pyhudi.services.indexes",
    "IndexRemoval": "pyhudi.table.groups.lists",
    "Instant": "pyhudi.model.instant",
    "MetadataRebuild": "pyhudi.services.metadata_table",
    "MetadataStats": "pyhudi.table.groups.metadata",
    "PropertiesChange": "pyhudi.services.properties",
    "RepairResult": "pyhudi.services.repair.result",
    "RestoreResult": "pyhudi.actions.undo.restore_result",
    "RollbackResult": "pyhudi.actions.undo.restore_result",
    "Savepoint": "pyhudi.services.savepoint",
    "Savepoints": "pyhudi.services.savepoint",
    "SqlResult": "pyhudi.sql.duckdb_frames",
    "StreamerCheck": "pyhudi.streamer.results",
    "StreamerRun": "pyhudi.streamer.results",
    "SyncCheck": "pyhudi.sync.check.result",
    "SyncFinding": "pyhudi.sync.check.result",
    "SyncResult": "pyhudi.sync.result",
    "SyncedTable": "pyhudi.sync.result",
    "TableConfig": "pyhudi.model.table_config",
    "TableCopy": "pyhudi.table.exports",
    "TableDescription": "pyhudi.table.description",
    "TableDiff": "pyhudi.table.reports",
    "TableHealth": "pyhudi.services.health",
    "TableMetadata": "pyhudi.table.groups.metadata",
    "TableStats": "pyhudi.table.reports",
    "Timeline": "pyhudi.model.timeline",
    "TtlResult": "pyhudi.services.partition_ttl",
    "TypeChange": "pyhudi.services.table_type",
    "VersionChange": "pyhudi.services.versions.upgrade",
    "WriteResult": "pyhudi.actions.result",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'pyhudi.results' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
