"""PyHudi: Apache Hudi's tables in Python, on PySpark or without it.

    import pyhudi

    pyhudi.enable(spark)                                  # df.write.format("hudi") and spark.read.format("hudi")
    pyhudi.write_hudi(path, data, record_key="id")        # Arrow, pandas or Spark data
    pyhudi.HudiTable.open(path).scan().to_arrow()

Results of calls are in `pyhudi.results`, changes of columns in `pyhudi.schema`, errors also in `pyhudi.errors`.
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
    from pyhudi.listeners.metrics import flush_metrics, metrics
    from pyhudi.model.options import HudiOptionWarning
    from pyhudi.progress_line import show_progress
    from pyhudi.session.enable import disable, enable
    from pyhudi.session.stream_sink import write_batches_to
    from pyhudi.sql.duckdb_session import DuckDbSession, sql
    from pyhudi.sql.procedures.registry import call
    from pyhudi.streamer.streamer import Streamer
    from pyhudi.table.at import TableAt
    from pyhudi.table.change_events.apply_changes import apply_changes
    from pyhudi.table.dataset import HudiDataset
    from pyhudi.table.follow import follow
    from pyhudi.table.groups.repairs import repair_properties
    from pyhudi.table.hudi_table import HudiTable
    from pyhudi.table.imports.bootstrap import bootstrap
    from pyhudi.table.imports.rows import import_table
    from pyhudi.table.merge_builder import Merge
    from pyhudi.table.scan import Scan
    from pyhudi.table.write_call import write_hudi

__version__ = "0.1.0"

__all__ = [
    "ConfigError",
    "CorruptFile",
    "DamagedLog",
    "DuckDbSession",
    "HudiDataset",
    "HudiError",
    "HudiOptionWarning",
    "HudiTable",
    "KeyGenError",
    "LockTimeout",
    "Merge",
    "RangeNotReadable",
    "Scan",
    "SchemaMismatch",
    "StorageError",
    "Streamer",
    "TableAt",
    "TableError",
    "TableExists",
    "TableNotFound",
    "TaskFailed",
    "UnsupportedTable",
    "ValidationFailed",
    "WriteConflict",
    "WriteResult",
    "__version__",
    "apply_changes",
    "bootstrap",
    "call",
    "disable",
    "enable",
    "flush_metrics",
    "follow",
    "import_table",
    "metrics",
    "repair_properties",
    "show_progress",
    "sql",
    "write_batches_to",
    "write_hudi",
]

_HOME = {
    "DuckDbSession": "pyhudi.sql.duckdb_session",
    "HudiDataset": "pyhudi.table.dataset",
    "HudiOptionWarning": "pyhudi.model.options",
    "HudiTable": "pyhudi.table.hudi_table",
    "Merge": "pyhudi.table.merge_builder",
    "Scan": "pyhudi.table.scan",
    "Streamer": "pyhudi.streamer.streamer",
    "TableAt": "pyhudi.table.at",
    "WriteResult": "pyhudi.actions.result",
    "apply_changes": "pyhudi.table.change_events.apply_changes",
    "bootstrap": "pyhudi.table.imports.bootstrap",
    "call": "pyhudi.sql.procedures.registry",
    "disable": "pyhudi.session.enable",
    "enable": "pyhudi.session.enable",
    "flush_metrics": "pyhudi.listeners.metrics",
    "follow": "pyhudi.table.follow",
    "import_table": "pyhudi.table.imports.rows",
    "metrics": "pyhudi.listeners.metrics",
    "repair_properties": "pyhudi.table.groups.repairs",
    "show_progress": "pyhudi.progress_line",
    "write_batches_to": "pyhudi.session.stream_sink",
    "write_hudi": "pyhudi.table.write_call",
}
_OTHER_NUMPY = (
    "PyHudi needs a PyArrow and a NumPy that go together, found: {}. The extras of PySpark 3.5 ask for NumPy 1. With "
    "them: pip install 'pyhudi[spark35]', which brings a PyArrow that takes it; otherwise: pip install 'numpy>=2'."
)
_NEED_PYSPARK = ("disable", "enable", "write_batches_to")


name_driver_python()


def __getattr__(name: str) -> object:
    if name in ("results", "schema", "sql"):
        return import_module(f"pyhudi.{name}")  # `sql` is a package that can be called
    if name not in _HOME:
        raise AttributeError(f"module 'pyhudi' has no attribute {name!r}{_where_now(name)}")
    try:
        return getattr(import_module(_HOME[name]), name)
    except ImportError as error:
        if name in _NEED_PYSPARK and (error.name or "").partition(".")[0] == "pyspark":
            return _needs_pyspark(name)
        if "pyarrow requires NumPy" in str(error):
            raise ImportError(_OTHER_NUMPY.format(error), name=error.name) from error
        raise


def _where_now(name: str) -> str:
    """Where a name of earlier releases is: `pyhudi.WriteConflict` stayed, `pyhudi.CleanResult` went to `results`."""
    for module in ("results", "schema"):
        if name in import_module(f"pyhudi.{module}").__all__:
            return f". It is pyhudi.{module}.{name} now."
    return ""


def _needs_pyspark(name: str) -> object:
    """The stand-in for a function without PySpark: `help(pyhudi)` and completion read every name."""

    def function(*arguments: object, **named: object) -> NoReturn:
        raise ConfigError(f"pyhudi.{name} needs PySpark, which is not installed: pip install 'pyhudi[spark]'.")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} needs PySpark, which is not installed: pip install 'pyhudi[spark]'."
    return function


def __dir__() -> list[str]:
    return __all__
