"""HudiTable: the public API. A method describes a query or a write and passes it on; nothing more happens here.

table = HudiTable.create(path, schema, record_key="id", partition_by="day", ordering="updated_at")
table.upsert(rows)                                          # Arrow, pandas, polars, a Spark DataFrame
table.scan(columns=["id"], where="day >= '2024-01-01'").to_arrow()
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import merged_options
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.altering import TableAltering
from pyhudi.table.calls import Options, open_place
from pyhudi.table.indexes import TableIndexes
from pyhudi.table.lifecycle import TableLifecycle
from pyhudi.table.merge_builder import Merge, delete_where, update
from pyhudi.table.overwrites import TableOverwrites
from pyhudi.table.reads import TableReads
from pyhudi.table.services import TableServices
from pyhudi.table.write import create, write
from pyhudi.text_table import html_pairs
from pyhudi.timeline.table_properties import table_exists

if TYPE_CHECKING:
    import pyarrow as pa

    from pyhudi.actions.result import WriteResult
    from pyhudi.queries.filters import Where
    from pyhudi.spark.names import SparkSession, StructType
    from pyhudi.table.input import TableInput

__all__ = ["HudiTable", "write_hudi"]

PathLike = str | os.PathLike[str]
_MERGER_KEYS = (
    "hoodie.write.record.merge.custom.implementation.classes",
    "hoodie.datasource.write.record.merger.impls",
)


class HudiTable(TableReads, TableOverwrites, TableServices, TableLifecycle, TableIndexes, TableAltering):
    """One Hudi table. Every call looks at the table as it is then; a `Scan` keeps the moment it was made at."""

    def __init__(
        self, table: MetaClient | PathLike, spark: SparkSession | None = None, options: Options | None = None
    ) -> None:
        """`HudiTable(path)` is `HudiTable.open(path)`."""
        if not isinstance(table, MetaClient):
            table = type(self).open(table, spark, options=options)._meta
        self._meta = table
        self._spark = spark
        self._mergers = {key: value for key, value in (options or {}).items() if key in _MERGER_KEYS}

    @classmethod
    def open(
        cls,
        path: PathLike,
        spark: SparkSession | None = None,
        *,
        storage_options: Mapping[str, str] | None = None,
        options: Options | None = None,
    ) -> HudiTable:
        """Open an existing table.

        Args:
            path: folder or URI (`s3://`, `gs://`, `abfss://`, `hdfs://`, `memory://`).
            spark: a session for `to_spark` and for session-wide options: `spark.hoodie.*`, and `spark.hadoop.fs.*`
                for remote stores; not needed otherwise.
            storage_options: Hadoop's keys for remote stores.
            options: what all reads and writes through this object use:
                `hoodie.write.record.merge.custom.implementation.classes` for a table with a custom merger.
        Raises: TableNotFound, UnsupportedTable, CorruptFile, ConfigError for other options.
        """
        other = sorted(set(options or {}) - set(_MERGER_KEYS))
        if other:
            raise ConfigError(f"open takes the option {_MERGER_KEYS[0]} only, found {', '.join(other)}.")
        return cls(MetaClient.load(open_place(path, storage_options, spark)), spark, options)

    @classmethod
    def create(
        cls,
        path: PathLike,
        schema: pa.Schema | StructType,
        *,
        record_key: str | Sequence[str] | None = None,
        partition_by: str | Sequence[str] | None = None,
        ordering: str | Sequence[str] | None = None,
        table_name: str | None = None,
        table_type: str | None = None,
        spark: SparkSession | None = None,
        storage_options: Mapping[str, str] | None = None,
        options: Options | None = None,
        **more: object,
    ) -> HudiTable:
        """Make an empty table.

        Args:
            schema: the data columns: a `pyarrow.Schema`, or a Spark StructType.
            record_key, partition_by, ordering: column names; no record key: Hudi's generated keys.
            table_name: None: the folder's name. table_type: COPY_ON_WRITE.
            options: Hudi's own keys; `more`: Python names of options (docs/options.md), or Hudi's keys by `**{...}`.
        Raises: TableExists, ConfigError, SchemaMismatch.
        """
        keywords = {
            "record_key": record_key,
            "partition_by": partition_by,
            "ordering": ordering,
            "table_name": table_name,
            "table_type": table_type,
            **more,
        }
        storage = open_place(path, storage_options, spark)
        given = merged_options(options, keywords)
        create(storage, schema, given, spark)
        return cls(MetaClient.load(storage), spark, given)

    @staticmethod
    def exists(path: PathLike, *, storage_options: Mapping[str, str] | None = None) -> bool:
        """True when there is a Hudi table at the path."""
        return table_exists(open_storage(path, storage_options or {}))

    # ---- writing

    def upsert(self, data: TableInput, *, options: Options | None = None, **more: object) -> WriteResult:
        """Insert new keys, replace rows of known ones. For `data` and options see `write_hudi`."""
        return self._write(data, "upsert", options, more)

    def insert(self, data: TableInput, *, options: Options | None = None, **more: object) -> WriteResult:
        """Add rows without looking for their keys; small files are filled up."""
        return self._write(data, "insert", options, more)

    def bulk_insert(self, data: TableInput, *, options: Options | None = None, **more: object) -> WriteResult:
        """Add many rows at once, optionally sorted, without index lookup and without filling small files."""
        return self._write(data, "bulk_insert", options, more)

    def delete(
        self, data: TableInput | None = None, *, where: Where = None, options: Options | None = None, **more: object
    ) -> WriteResult:
        """Delete rows: those whose keys are in `data`, or those that pass `where` (see `scan`).

        `data` needs the key and partition columns only; without the partition columns its keys are deleted wherever
        they are. Its result says how many keys were not found; when nothing was deleted there is no commit, unless
        `hoodie.allow.empty.commit` is set to true. Raises ConfigError unless just one of the two is given.
        """
        if (data is None) == (where is None):
            raise ConfigError("delete takes rows with the keys to delete, or where=; give one of them.")
        if isinstance(data, str):
            raise ConfigError(
                f"delete takes rows with the keys to delete, found a text; delete(where={data!r}) filters."
            )
        if where is not None:
            return delete_where(self._meta.storage, where, self._options(options, more), self._spark)
        assert data is not None
        return self._write(data, "delete", options, more)

    def delete_where(self, where: Where, *, options: Options | None = None, **more: Any) -> WriteResult:
        """`delete(where=...)`."""
        return self.delete(where=where, options=options, **more)

    def update(
        self, where: Where = None, *, set: Mapping[str, object], options: Options | None = None, **more: object
    ) -> WriteResult:
        """Change columns of the rows that pass `where` (see `scan`; None: of all rows).

        Args:
            set: column → its new value: a constant; a `pyarrow.compute` expression over the table's columns
                (`pc.field("fare") * 2`); or a function that is given rows as a `pyarrow.Table` and returns an array.
        Raises: ConfigError for key and partition columns and for values that don't fit; WriteConflict when another
            write changed the same file groups meanwhile.
        """
        return update(self._meta.storage, where, set, self._options(options, more), self._spark)

    def merge(
        self,
        source: TableInput,
        on: str | Sequence[str] | None = None,
        *,
        options: Options | None = None,
        **more: object,
    ) -> Merge:
        """Describe a merge of other rows into the table; nothing happens before its `execute`.

        Args:
            source: rows as for `upsert`; with the table's key and partition columns, each key once.
            on: the columns that rows meet by: the record key (the default), with the partition columns or without.
        """
        return Merge(self._meta.storage, source, on, self._options(options, more), self._spark)

    def _write(self, data: TableInput, operation: str, options: Options | None, more: Options) -> WriteResult:
        given = self._options(options, {**more, "operation": operation})
        result = write(self._meta.storage, data, given, "append", self._spark)
        assert result is not None
        return result

    def __repr__(self) -> str:
        config = self._meta.config
        keys = ", ".join(config.record_key_fields) or "generated keys"
        partitions = f", partitioned by {', '.join(config.partition_fields)}" if config.partition_fields else ""
        return (
            f"HudiTable({config.table_name!r} at {self.path}: {config.table_type}, version {config.table_version}, "
            f"key {keys}{partitions})"
        )

    def _repr_html_(self) -> str:
        config = self._meta.config
        last = self._meta.timeline.last_commit()
        shown = {
            "table": config.table_name,
            "path": self.path,
            "type": f"{config.table_type}, version {config.table_version}",
            "record key": ", ".join(config.record_key_fields) or "generated",
            "partitioned by": ", ".join(config.partition_fields) or "nothing",
            "last commit": last.requested_time if last else "none yet",
        }
        return html_pairs(shown.items())


def write_hudi(
    path: PathLike | Storage,
    data: TableInput,
    operation: str | None = None,
    *,
    mode: str = "append",
    spark: SparkSession | None = None,
    storage_options: Mapping[str, str] | None = None,
    options: Options | None = None,
    **more: object,
) -> WriteResult | None:
    """Write rows to a table, which is made when there is none.

    Args:
        data: a Spark DataFrame; pyarrow Table, RecordBatch, RecordBatchReader or Dataset; pandas DataFrame; an object
            with `__arrow_c_stream__`; a list of dicts.
        operation: upsert, insert, bulk_insert, delete, insert_overwrite, insert_overwrite_table or delete_partition;
            None: what the options say, else upsert (without a record key
            bulk_insert).
        mode: append; overwrite (an insert_overwrite_table: all rows of a table that is there are replaced in one
            commit, which `restore` can undo); replace (a new table in its place; the history goes); ignore or error
            when there is a table already. Spark's `df.write.mode("overwrite")` makes a new table, as in Hudi.
        options: Hudi's own keys; `more`: Python names of options (`record_key=`, `partition_by=`, `ordering=`, ...; see
            docs/options.md), or Hudi's keys by `**{...}`.
    Returns: what was done; None when mode is ignore and there is a table.
    Raises:  errors of the family; unless the call returns, nothing became visible.
    """
    session = spark if spark is not None else getattr(data, "sparkSession", None)
    storage = path if isinstance(path, Storage) else open_place(path, storage_options, session)
    given = merged_options(options, {**more, "operation": operation})
    return write(storage, data, given, mode, spark, keeps_history=True)
