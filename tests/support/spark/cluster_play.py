"""Plays on a cluster of their own session, each run as a process by test_cluster:

python -m tests.support.spark.cluster_play PLAY TABLE_TYPE MASTER ROOT CONF

PLAY is one of `PLAYS`, ROOT the place of the table, CONF the further settings of the session as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyhudi import HudiTable, enable
from pyhudi.meta_client import MetaClient
from pyhudi.metadata import staged_index
from pyhudi.model.filenames import HEARTBEAT_FOLDER, INDEX_PIECES_FOLDER, META_FOLDER, TEMPORARY_FOLDER, instant_of
from pyhudi.spark import frame_input
from pyhudi.spark.engine import collect_arrow
from pyhudi.spark.session import store_options
from pyhudi.storage import Storage, open_storage
from pyhudi.storage.place import is_local
from pyhudi.table import calls, input
from tests.support.spark.sessions import JVM_OPTIONS
from tests.support.spark.task_faults import arm, is_armed, late_task_ended, let_go
from tests.support.tables.staged_index import blocks_of_index

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.pyhudi.local.max.rows": "100",  # every write here has more
    "hoodie.compact.inline": "false",  # compactions are steps of their own
    "hoodie.parquet.small.file.limit": "0",  # updates go to log files, not into files that take in new rows
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "1",
    "hoodie.metadata.global.record.level.index.max.filegroup.count": "1",
}
OPERATION = "hoodie.datasource.write.operation"


def rows(spark: SparkSession, numbers: range, ts: int) -> DataFrame:
    n = F.col("id")
    return spark.range(numbers.start, numbers.stop, 1, 4).select(
        n.cast("string").alias("id"), (n % 3).cast("string").alias("p"), F.lit(ts).alias("ts"), (n * ts).alias("v")
    )


@dataclass
class Table:
    """A table under test, and the rows that it should have: number → ts."""

    spark: SparkSession
    path: str
    table_type: str
    expected: dict[int, int]

    @property
    def storage(self) -> Storage:
        return open_storage(self.path, store_options(self.spark, {}))

    def open(self) -> HudiTable:
        return HudiTable.open(self.path, spark=self.spark)

    def write(self, operation: str, numbers: range, ts: int, **more: str) -> None:
        options = {**OPTIONS, OPERATION: operation, "hoodie.datasource.write.table.type": self.table_type, **more}
        data = rows(self.spark, numbers, ts)
        data.write.format("hudi").options(**options).mode("append").save(self.path)
        self._expect(operation, numbers, ts)

    def _expect(self, operation: str, numbers: range, ts: int) -> None:
        if operation == "delete":
            self.expected = {n: old for n, old in self.expected.items() if n not in numbers}
        elif operation == "insert_overwrite_table":
            self.expected = dict.fromkeys(numbers, ts)
        else:
            self.expected |= dict.fromkeys(numbers, ts)

    def update(self, numbers: range, ts: int) -> None:
        inside = f"CAST(id AS BIGINT) BETWEEN {numbers.start} AND {numbers.stop - 1}"
        set_to = {"ts": ts, "v": f"CAST(id AS BIGINT) * {ts}"}
        self.open().update(inside, set=set_to, options={"hoodie.compact.inline": "false"})  # a step of its own
        self.expected |= {n: ts for n in self.expected if n in numbers}

    def check(self, moment: str) -> None:
        """The rows are right, and there is nothing but what the commits name."""
        found = self._read().sort_by("n")
        numbers = np.array(sorted(self.expected))
        ts = np.array([self.expected[number] for number in numbers.tolist()])
        expected = {"n": numbers, "p": [str(n % 3) for n in numbers.tolist()], "ts": ts, "v": numbers * ts}
        assert found.to_pydict() == pa.table(expected).to_pydict(), (
            f"{self.path} {moment}: {found.num_rows} rows, or not those expected"
        )
        left = leftovers(self.storage) or self.open().maintenance.repair.orphans().items
        assert not left, f"{self.path} {moment}: {left}"

    def _read(self) -> pa.Table:
        frame = self.spark.read.format("hudi").load(self.path)
        number = F.col("id").cast("bigint").alias("n")
        return collect_arrow(frame.select(number, "p", F.col("ts").cast("bigint").alias("ts"), "v"))


def leftovers(storage: Storage) -> list[str]:
    """Markers, heartbeats, pieces of an index, pending instants, and data files that no commit names."""
    found = [file.path for folder in (TEMPORARY_FOLDER, HEARTBEAT_FOLDER) for file in storage.walk(folder)]
    found += [file.path for file in storage.walk(INDEX_PIECES_FOLDER)]
    meta = MetaClient.load(storage)
    found += [str(instant) for instant in meta.timeline.pending()]
    named = {
        path for instant in meta.timeline.commits() for s in meta.commits.metadata(instant).stats() for path in s.paths
    }
    data = [file.path for file in storage.walk("") if not file.path.startswith(META_FOLDER)]
    found += [path for path in data if instant_of(path.rpartition("/")[2]) and path not in named]
    if is_local(storage):
        found += [str(path) for path in Path(storage.root).rglob("*.tmp")]
    return found


def life(table: Table) -> None:
    """Load, upsert, read, compact, cluster."""
    table.write("bulk_insert", range(6_000), 1)
    assert blocks_of_index(MetaClient.load(table.storage)) == [4]
    table.write("upsert", range(3_000, 8_000), 2)
    table.check("after the upsert")
    opened = table.open()
    if table.table_type == "MERGE_ON_READ":
        assert any(opened.inspect.files().column("log_files").to_pylist()), "the upsert left nothing to compact"
        assert opened.compact().runs[0].file_slices >= 3
        table.check("after compaction")
    (run,) = opened.cluster(options={"hoodie.clustering.plan.strategy.sort.columns": "v"}).runs
    assert run.rows_written == 8_000
    table.check("after clustering")
    opened = table.open()
    assert opened.metadata.partitions == ("column_stats", "files", "partition_stats", "record_index")
    assert opened.metadata.validate() == (), f"the metadata table of {table.path}"


def steps(table: Table) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every kind of write and service whose tasks make files, by its name."""
    yield "bulk insert", lambda: table.write("bulk_insert", range(600), 1)
    yield "upsert", lambda: table.write("upsert", range(300, 900), 2)
    yield "delete", lambda: table.write("delete", range(200, 400), 3)
    yield "insert", lambda: table.write("insert", range(900, 1_200), 4)
    if table.table_type == "MERGE_ON_READ":
        yield (
            "log compaction",
            lambda: table.open().maintenance.log_compact(options={"hoodie.log.compaction.blocks.threshold": 2}),
        )
    yield "update", lambda: table.update(range(400, 700), 5)
    if table.table_type == "MERGE_ON_READ":
        yield "compaction", lambda: table.open().compact()
    yield "clustering", lambda: table.open().cluster(sort_columns=["v"])
    yield "overwrite", lambda: table.write("insert_overwrite_table", range(200, 600), 6)


def faulted(table: Table, faults: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """The steps by turns with one fault and the other: a step's name and fault when it is done; then it is checked."""
    for step, (name, do) in enumerate(steps(table)):
        fault = faults[step % 2]
        arm(fault)
        do()
        assert not is_armed(fault), f"no task of the {name} met {fault}"
        yield name, fault
        table.check(f"after the {name}, {fault}")


def deaths(table: Table) -> None:
    """In every kind of write and service an executor dies: while it writes a file, or when it has written it."""
    for _ in faulted(table, ("kill-announced", "kill-done")):
        pass


def late_tasks(table: Table) -> None:
    """In every kind of write and service a task is late: its copy does the work, and it goes on when all is over."""
    for name, fault in faulted(table, ("late-before", "late-announced")):
        assert late_task_ended() is None, f"{name}: the late task was waited for"
        let_go()
        assert "WriteConflict" in (late_task_ended() or ""), f"{name}, {fault}: {late_task_ended()}"


def session(master: str, conf: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.master(master)
    for key in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(key, "127.0.0.1")
    for key in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(key, "false")
    builder = builder.config("spark.python.authenticate.socketTimeout", "300s")  # a machine that is busy otherwise
    builder = builder.config("spark.executor.memory", "512m").config("spark.executor.extraJavaOptions", JVM_OPTIONS)
    for key, text in conf.items():
        builder = builder.config(key, text)
    spark = builder.getOrCreate()
    enable(spark)
    return spark


PLAYS: dict[str, Callable[[Table], None]] = {"life": life, "deaths": deaths, "late tasks": late_tasks}


def main(name: str, table_type: str, master: str, root: str, conf: str) -> None:
    no_engine: Any = None
    # Whatever would not go to the cluster fails.
    frame_input.LocalEngine = input.LocalEngine = calls.LocalEngine = no_engine
    staged_index._LEAST_KEYS = 1  # each task writes its part of the record index
    spark = session(master, json.loads(conf))
    PLAYS[name](Table(spark, f"{root}/t", table_type, {}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
