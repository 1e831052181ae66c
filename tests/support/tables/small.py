"""A small table in memory (or wherever a storage is) for tests of writing: write rows, read them back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from pyhudi.actions.result import WriteResult
from pyhudi.actions.undo.restore import roll_back
from pyhudi.actions.undo.restore_result import RollbackResult
from pyhudi.engine.local import LocalEngine
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.calls import serve
from pyhudi.table.write import write_table
from pyhudi.timeline.table_properties import table_exists

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
DEFAULTS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "50",  # small filters make small files, and fast tests
    "hoodie.bloom.index.filter.dynamic.max.entries": "200",
    "hoodie.index.bloom.fpp": "0.001",
    "hoodie.write.num.retries.on.conflict.failures": "0",  # a conflict is seen as what it is
}

NO_METADATA = {"hoodie.metadata.enable": "false"}  # a new table without one keeps none, and is made faster

Row = tuple[str, str, int, int]


def rows_of(*rows: Row) -> pa.Table:
    """Rows (id, p, ts, v) as a table."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


@dataclass
class TestTable:
    """A table that tests write to.

    `metadata_by_default`: it is made as users' tables are; False: without a metadata table, unless options say
    otherwise.
    """

    __test__ = False

    storage: Storage = field(default_factory=MemoryStorage)
    options: Mapping[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=SystemClock)
    engine: LocalEngine = field(default_factory=lambda: LocalEngine(2))
    failed_writes_policy: str | None = None  # None: what the options say
    metadata_by_default: bool = False

    def write(self, operation: str, data: Any, **options: str) -> WriteResult:
        """One write; keyword options have "_" for ".", behind "hoodie."."""
        config = self.meta.config if table_exists(self.storage) else None
        new = NO_METADATA if config is None and not self.metadata_by_default else {}
        given = {**new, **DEFAULTS, **self.options, "hoodie.datasource.write.operation": operation}
        given |= {"hoodie." + name.replace("_", "."): text for name, text in options.items()}
        parsed = WriteOptions.parse(given, table=config)
        if self.failed_writes_policy is not None:
            parsed = replace(parsed, failed_writes_policy=self.failed_writes_policy)
        return write_table(self.storage, data, self.engine, parsed, clock=self.clock)

    def write_as_is(self, operation: str, data: Any, options: Mapping[str, str] | None = None) -> WriteResult:
        """A write that takes everything else from the table."""
        given = {"hoodie.datasource.write.operation": operation, **(options or {})}
        parsed = WriteOptions.parse(given, table=self.meta.config)
        return write_table(self.storage, data, self.engine, parsed, clock=self.clock)

    def upsert(self, *rows: Row, **options: str) -> WriteResult:
        return self.write("upsert", rows_of(*rows), **options)

    def insert(self, *rows: Row, **options: str) -> WriteResult:
        return self.write("insert", rows_of(*rows), **options)

    def bulk_insert(self, *rows: Row, **options: str) -> WriteResult:
        return self.write("bulk_insert", rows_of(*rows), **options)

    def delete(self, *keys: tuple[str, str], **options: str) -> WriteResult:
        table = pa.table(
            {"id": pa.array([k for k, _ in keys], pa.string()), "p": pa.array([p for _, p in keys], pa.string())}
        )
        return self.write("delete", table, **options)

    @property
    def memory(self) -> MemoryStorage:
        """The storage of a table in memory: its log of calls, its faults, copies of it."""
        assert isinstance(self.storage, MemoryStorage), self.storage
        return self.storage

    @property
    def meta(self) -> MetaClient:
        return MetaClient.load(self.storage)

    def read(self, as_of: str | None = None) -> pa.Table:
        """The snapshot, meta columns included."""
        meta = self.meta
        plan = plan_snapshot(meta, Query(as_of=as_of))
        return pa.Table.from_batches(list(read_batches(plan, meta.storage)), plan.schema)

    def rows(self, columns: Sequence[str] = SCHEMA.names, as_of: str | None = None) -> list[tuple[Any, ...]]:
        """The snapshot's rows, sorted."""
        table = self.read(as_of)
        if not table.num_rows:
            return []  # a table without commits has no columns yet
        table = table.select(list(columns))
        return sorted(zip(*(table.column(name).to_pylist() for name in columns), strict=True), key=repr)


def rollback_write(storage: Storage, instant_time: str, options: WriteOptions, engine: LocalEngine) -> RollbackResult:
    """Undo a write as `HudiTable.rollback` does."""
    return serve(storage, partial(roll_back, instant_time=instant_time), options, engine)


def sorted_rows(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)
