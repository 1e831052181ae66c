"""PyHudi: Apache Hudi's tables in Python, on PySpark or without it.

    import pyhudi

    pyhudi.enable(spark)                                  # df.write.format("hudi") and spark.read.format("hudi")
    pyhudi.write_hudi(path, data, record_key="id")        # Arrow, pandas or Spark data
    pyhudi.HudiTable.open(path).scan().to_arrow()

Names are imported on first use, so `import pyhudi` is light and needs no PySpark. It sets the Python of a Spark session
that this process starts later to one with pyhudi (`spark/worker_python.py`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from pyhudi.errors import (
    ConfigError,
    CorruptFile,
    DamagedLog,
    HudiError,
    KeyGenError,
    LockTimeout,
    RangeNotReadable,
    SchemaMismatch,
    StorageError,
    TableError,
    TableExists,
    TableNotFound,
    TaskFailed,
    UnsupportedTable,
    ValidationFailed,
    WriteConflict,
)
from pyhudi.spark.worker_python import name_driver_python

if TYPE_CHECKING:
    from pyhudi.actions.result import WriteResult
    from pyhudi.actions.undo.restore_result import RestoreResult, RollbackResult
    from pyhudi.listeners.metrics import flush_metrics, metrics
    from pyhudi.model.instant import Instant
    from pyhudi.model.options import HudiOptionWarning
    from pyhudi.model.table_config import TableConfig
    from pyhudi.model.timeline import Timeline
    from pyhudi.progress_line import show_progress
    from pyhudi.queries.history import History, HistoryEntry
    from pyhudi.queries.statistics_validation import Difference
    from pyhudi.schema.changes import (
        AddColumn,
        ChangeType,
        DropColumn,
        DropNotNull,
        MoveColumn,
        RenameColumn,
        SetComment,
    )
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
    from pyhudi.session.enable import disable, enable
    from pyhudi.session.stream_sink import write_batches_to
    from pyhudi.sql.duckdb_frames import SqlResult
    from pyhudi.sql.duckdb_session import DuckDbSession, sql
    from pyhudi.sql.procedures.registry import call
    from pyhudi.table import HudiTable, write_hudi
    from pyhudi.table.arguments import CreateArguments, RowArguments, WriteArguments
    from pyhudi.table.at import TableAt
    from pyhudi.table.bootstrap import bootstrap
    from pyhudi.table.change import Checkpoint
    from pyhudi.table.dataset import HudiDataset
    from pyhudi.table.description import TableDescription
    from pyhudi.table.exports import ExportedFile, TableCopy
    from pyhudi.table.follow import follow
    from pyhudi.table.imports import import_table
    from pyhudi.table.merge_builder import Merge
    from pyhudi.table.metadata import MetadataStats, TableMetadata
    from pyhudi.table.reports import TableDiff, TableStats
    from pyhudi.table.scan import Scan

__version__ = "0.1.0"

__all__ = [
    "AddColumn",
    "ArchiveResult",
    "ChangeType",
    "Checkpoint",
    "CleanResult",
    "ClusteringResult",
    "CompactionResult",
    "ConfigError",
    "CorruptFile",
    "CreateArguments",
    "DamagedLog",
    "Difference",
    "DropColumn",
    "DropNotNull",
    "DuckDbSession",
    "ExportedFile",
    "History",
    "HistoryEntry",
    "HudiDataset",
    "HudiError",
    "HudiOptionWarning",
    "HudiTable",
    "IndexInfo",
    "IndexList",
    "Instant",
    "KeyGenError",
    "LockTimeout",
    "Merge",
    "MetadataRebuild",
    "MetadataStats",
    "MoveColumn",
    "PropertiesChange",
    "RangeNotReadable",
    "RenameColumn",
    "RepairResult",
    "RestoreResult",
    "RollbackResult",
    "RowArguments",
    "Savepoint",
    "Savepoints",
    "Scan",
    "SchemaMismatch",
    "SetComment",
    "SqlResult",
    "StorageError",
    "TableAt",
    "TableConfig",
    "TableCopy",
    "TableDescription",
    "TableDiff",
    "TableError",
    "TableExists",
    "TableHealth",
    "TableMetadata",
    "TableNotFound",
    "TableStats",
    "TaskFailed",
    "Timeline",
    "TtlResult",
    "TypeChange",
    "UnsupportedTable",
    "ValidationFailed",
    "VersionChange",
    "WriteArguments",
    "WriteConflict",
    "WriteResult",
    "__version__",
    "bootstrap",
    "call",
    "disable",
    "enable",
    "flush_metrics",
    "follow",
    "import_table",
    "metrics",
    "show_progress",
    "sql",
    "write_batches_to",
    "write_hudi",
]

_HOME = {
    "TableStats": "pyhudi.table.reports",
    "TableDiff": "pyhudi.table.reports",
    "Checkpoint": "pyhudi.table.change",
    "MetadataStats": "pyhudi.table.metadata",
    "TypeChange": "pyhudi.services.table_type",
    "PropertiesChange": "pyhudi.services.properties",
    "RepairResult": "pyhudi.services.repair.result",
    "AddColumn": "pyhudi.schema.changes",
    "ArchiveResult": "pyhudi.services.archive.archiving",
    "ChangeType": "pyhudi.schema.changes",
    "CleanResult": "pyhudi.services.clean.runs",
    "ClusteringResult": "pyhudi.services.results",
    "CompactionResult": "pyhudi.services.results",
    "CreateArguments": "pyhudi.table.arguments",
    "Difference": "pyhudi.queries.statistics_validation",
    "DropColumn": "pyhudi.schema.changes",
    "DropNotNull": "pyhudi.schema.changes",
    "DuckDbSession": "pyhudi.sql.duckdb_session",
    "History": "pyhudi.queries.history",
    "HistoryEntry": "pyhudi.queries.history",
    "HudiOptionWarning": "pyhudi.model.options",
    "HudiTable": "pyhudi.table",
    "IndexInfo": "pyhudi.services.indexes",
    "IndexList": "pyhudi.services.indexes",
    "Instant": "pyhudi.model.instant",
    "Merge": "pyhudi.table.merge_builder",
    "MetadataRebuild": "pyhudi.services.metadata_table",
    "MoveColumn": "pyhudi.schema.changes",
    "RenameColumn": "pyhudi.schema.changes",
    "RestoreResult": "pyhudi.actions.undo.restore_result",
    "RollbackResult": "pyhudi.actions.undo.restore_result",
    "RowArguments": "pyhudi.table.arguments",
    "Savepoint": "pyhudi.services.savepoint",
    "Savepoints": "pyhudi.services.savepoint",
    "HudiDataset": "pyhudi.table.dataset",
    "Scan": "pyhudi.table.scan",
    "SetComment": "pyhudi.schema.changes",
    "SqlResult": "pyhudi.sql.duckdb_frames",
    "TableAt": "pyhudi.table.at",
    "TableConfig": "pyhudi.model.table_config",
    "TableCopy": "pyhudi.table.exports",
    "ExportedFile": "pyhudi.table.exports",
    "TableDescription": "pyhudi.table.description",
    "TableHealth": "pyhudi.services.health",
    "TableMetadata": "pyhudi.table.metadata",
    "Timeline": "pyhudi.model.timeline",
    "TtlResult": "pyhudi.services.partition_ttl",
    "VersionChange": "pyhudi.services.versions.upgrade",
    "WriteArguments": "pyhudi.table.arguments",
    "WriteResult": "pyhudi.actions.result",
    "bootstrap": "pyhudi.table.bootstrap",
    "call": "pyhudi.sql.procedures.registry",
    "disable": "pyhudi.session.enable",
    "enable": "pyhudi.session.enable",
    "flush_metrics": "pyhudi.listeners.metrics",
    "follow": "pyhudi.table.follow",
    "import_table": "pyhudi.table.imports",
    "metrics": "pyhudi.listeners.metrics",
    "write_batches_to": "pyhudi.session.stream_sink",
    "show_progress": "pyhudi.progress_line",
    "write_hudi": "pyhudi.table",
}
_OTHER_NUMPY = (
    "PyHudi needs a PyArrow and a NumPy that go together, found: {}. The extras of PySpark 3.5 ask for NumPy 1. With "
    "them: pip install 'pyhudi[spark35]', which brings a PyArrow that takes it; otherwise: pip install 'numpy>=2'."
)
_NEED_PYSPARK = ("disable", "enable", "write_batches_to")


name_driver_python()


def __getattr__(name: str) -> object:
    if name == "sql":
        return import_module("pyhudi.sql")  # a package that can be called
    if name not in _HOME:
        raise AttributeError(f"module 'pyhudi' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOME[name]), name)
    except ImportError as error:
        if name in _NEED_PYSPARK and (error.name or "").partition(".")[0] == "pyspark":
            return _needs_pyspark(name)
        if "pyarrow requires NumPy" in str(error):
            raise ImportError(_OTHER_NUMPY.format(error), name=error.name) from error
        raise


def _needs_pyspark(name: str) -> object:
    """The stand-in for a function without PySpark: `help(pyhudi)` and completion read every name."""

    def function(*arguments: object, **named: object) -> NoReturn:
        raise ConfigError(f"pyhudi.{name} needs PySpark, which is not installed: pip install 'pyhudi[spark]'.")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} needs PySpark, which is not installed: pip install 'pyhudi[spark]'."
    return function


def __dir__() -> list[str]:
    return __all__
