"""TableAt: a table as of one moment, for reading. Made by `HudiTable.at`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from pyhudi.errors import ConfigError, TableError
from pyhudi.model.instant import Instant
from pyhudi.queries.filters import Where
from pyhudi.queries.query import AsOf, check_not_cleaned, commit_at
from pyhudi.table.calls import Options, TableHandle, in_session_zone
from pyhudi.table.scan import Scan, scan

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

    from pyhudi.spark.names import SparkDataFrame, SparkSession
    from pyhudi.table.dataset import HudiDataset

__all__ = ["TableAt"]

_WRITES = frozenset(
    [
        "add_constraint",
        "add_files",
        "alter",
        "archive",
        "build_indexes",
        "bulk_insert",
        "clean",
        "cluster",
        "compact",
        "create_index",
        "delete",
        "delete_partitions",
        "delete_savepoint",
        "delete_where",
        "downgrade",
        "drop",
        "drop_constraint",
        "drop_index",
        "insert",
        "insert_overwrite",
        "insert_overwrite_table",
        "log_compact",
        "merge",
        "overwrite",
        "restore",
        "rollback",
        "run_ttl",
        "savepoint",
        "truncate",
        "update",
        "upgrade",
        "upsert",
    ]
)


class TableAt:
    """The rows of a table as a reader saw them at one moment. Later writes don't change it; it can't be written."""

    def __init__(self, handle: TableHandle, commit: Instant) -> None:
        """Use `HudiTable.at`. `commit`: the newest commit of then."""
        self._handle = handle
        self._commit = commit

    @classmethod
    def of(cls, handle: TableHandle, moment: AsOf) -> TableAt:
        """`HudiTable.at`."""
        return cls(handle, cls.commit_of(handle, moment))

    @staticmethod
    def commit_of(handle: TableHandle, moment: AsOf | None) -> Instant:
        """The commit that a reader of a moment sees (None: the newest one).

        Raises: TableError without a commit, or when files of then were cleaned.
        """
        meta = handle.fresh()
        if moment is None:
            newest = meta.timeline.last_commit()
            if newest is None:
                raise TableError(f"{meta.storage.root} has no commit yet. Write rows first.")
            return newest
        commit = commit_at(in_session_zone(moment, handle.spark), meta)
        check_not_cleaned(meta, commit.requested_time)
        return commit

    @property
    def path(self) -> str:
        """Where the table is."""
        return self._handle.storage.root

    @property
    def instant_time(self) -> str:
        """The newest commit that the table had at the moment."""
        return self._commit.requested_time

    @property
    def completion_time(self) -> str | None:
        """When that commit was complete; None where the table's version does not store it."""
        return self._commit.completion_time

    @property
    def schema(self) -> pa.Schema:
        """The data columns of then."""
        return self.scan(meta_columns=False).schema

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        *,
        meta_columns: bool = True,
        options: Options | None = None,
    ) -> Scan:
        """A query of the table as of the moment. For the arguments see `HudiTable.scan`."""
        return scan(
            self._handle, columns, where, self.instant_time, None, None, None, None, None, options, meta_columns
        )

    def count(self, where: Where = None) -> int:
        """How many rows there were, or how many that pass `where`."""
        return self.scan(where=where).count()

    def head(self, n: int = 5, *, meta_columns: bool = False) -> pa.Table:
        """The first `n` rows in the order of the files, with the data columns. Files after them are not read."""
        return self.scan(meta_columns=meta_columns).head(n)

    def files(self) -> pa.Table:
        """The files of then: columns of `HudiTable.files`."""
        return self.scan().files()

    def to_batches(
        self, columns: Sequence[str] | None = None, where: Where = None, *, meta_columns: bool = True
    ) -> pa.RecordBatchReader:
        """`scan(...).to_batches()`."""
        return self.scan(columns, where, meta_columns=meta_columns).to_batches()

    def to_arrow(
        self, columns: Sequence[str] | None = None, where: Where = None, *, meta_columns: bool = True
    ) -> pa.Table:
        """`scan(...).to_arrow()`."""
        return self.scan(columns, where, meta_columns=meta_columns).to_arrow()

    def to_pandas(
        self, columns: Sequence[str] | None = None, where: Where = None, *, meta_columns: bool = True
    ) -> pd.DataFrame:
        """`scan(...).to_pandas()`."""
        return self.scan(columns, where, meta_columns=meta_columns).to_pandas()

    def to_polars(
        self, columns: Sequence[str] | None = None, where: Where = None, *, meta_columns: bool = True
    ) -> pl.DataFrame:
        """`scan(...).to_polars()`."""
        return self.scan(columns, where, meta_columns=meta_columns).to_polars()

    def to_duckdb(
        self, columns: Sequence[str] | None = None, where: Where = None, *, meta_columns: bool = True
    ) -> duckdb.DuckDBPyRelation:
        """`scan(...).to_duckdb()`."""
        return self.scan(columns, where, meta_columns=meta_columns).to_duckdb()

    def to_dataset(
        self, columns: Sequence[str] | None = None, where: Where = None, *, meta_columns: bool = True
    ) -> HudiDataset:
        """`scan(...).to_dataset()`."""
        return self.scan(columns, where, meta_columns=meta_columns).to_dataset()

    def to_polars_lazy(
        self, columns: Sequence[str] | None = None, where: Where = None, *, meta_columns: bool = True
    ) -> pl.LazyFrame:
        """`scan(...).to_polars_lazy()`."""
        return self.scan(columns, where, meta_columns=meta_columns).to_polars_lazy()

    def to_spark(self, spark: SparkSession | None = None) -> SparkDataFrame:
        """`scan().to_spark()`."""
        return self.scan().to_spark(spark)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Lets polars, DuckDB and others take the rows."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Writes are refused by name. Raises ConfigError, AttributeError."""
            if name in _WRITES:
                raise ConfigError(
                    f"{self.path} as of {self.instant_time} is for reading; {name} changes the table as it is now: "
                    f"HudiTable.open({self.path!r}).{name}(...)."
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"TableAt({self.path!r}, {self.instant_time!r})"

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_")]
