"""The measured cases of merge-on-read: `python -m bench --only mor`. Each gives PyHudi, a floor, and their ratio."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

import pyhudi
from bench import cases, compaction_bench, data
from bench.cases import Result, Setting, seconds
from bench.filegroup_bench import generate
from pyhudi.formats.avro.schema import avro_from_arrow
from pyhudi.formats.log.blocks import avro_data, parquet_data
from pyhudi.spark import merged

DELTA_COMMITS = 5
QUIET = {"hoodie.compact.inline": "false"}
BLOCK_ROWS = 100_000


def run(setting: Setting, report: Callable[[Result], None]) -> None:
    """All cases, each reported as soon as it is done."""
    mor, cow = str(setting.folder / "mor"), str(setting.folder / "cow")
    source = data.source(setting.spark, setting.staged, setting.rows)
    for path, kind in ((mor, "MERGE_ON_READ"), (cow, "COPY_ON_WRITE")):
        options = {**data.HUDI, **QUIET, "hoodie.datasource.write.table.type": kind}
        source.write.format("hudi").options(
            **options, **{"hoodie.datasource.write.operation": "bulk_insert"}
        ).mode("append").save(path)  # fmt: skip
    warm_up(setting)
    report(upsert(setting, mor, cow))
    for work, what in ((cases.scan_aggregate, "4-column aggregate"), (cases.scan_all, "all columns")):
        report(read_by_spark(setting, mor, what, work))
        report(rows_leave(setting, mor, what, work))
    for columns, what in ((["status", "quantity", "price", "ts"], "4 columns"), (None, "all columns")):
        report(read_by_arrow(setting, mor, what, columns))
    report(small_commit(setting, mor))
    report(compaction(setting))
    report(parquet_blocks(setting))
    report(avro_blocks(setting))


def warm_up(setting: Setting) -> None:
    path = str(setting.folder / "warm-mor")
    options = {**data.HUDI, **QUIET, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    frame = data.source(setting.spark, setting.staged, 20_000)
    frame.write.format("hudi").options(
        **options, **{"hoodie.datasource.write.operation": "bulk_insert"}
    ).mode("overwrite").save(path)  # fmt: skip
    write(setting, path, data.batch(setting.spark, setting.staged, 20_000, 0.1, 2))
    cases.scan_aggregate(setting.spark.read.format("hudi").load(path))
    cases.scan_all(setting.spark.read.format("hudi").load(path))


def write(setting: Setting, path: str, frame: DataFrame) -> Any:
    return pyhudi.write_hudi(path, frame, operation="upsert", spark=setting.spark, options=QUIET)


def upsert(setting: Setting, mor: str, cow: str) -> Result:
    """(a) The same upsert of 1 % into both types of table; leaves five delta commits."""
    result = Result("a", f"MoR upsert of 1 % of {setting.rows:,} keys, spread over all file groups",
                    "the same upsert into a copy-on-write table", aim="<= 0.25")  # fmt: skip
    for turn in range(DELTA_COMMITS):
        frame = data.batch(setting.spark, setting.staged, setting.rows, 0.01, 20 + turn)
        phases: dict[str, float] = {}

        def ours(frame: DataFrame = frame, phases: dict[str, float] = phases) -> None:
            phases.update(write(setting, mor, frame).seconds)

        result.ours_s.append(seconds(ours))
        result.notes = {"phases_s": phases}
        if turn < setting.repeats:
            result.floor_s.append(seconds(lambda frame=frame: write(setting, cow, frame)))
    return result


def read_by_spark(setting: Setting, mor: str, what: str, work: Callable[[DataFrame], Any]) -> Result:
    """(b) A snapshot with five delta commits against the base files alone, by Spark."""
    result = Result(f"b spark {what}", f"snapshot with {DELTA_COMMITS} delta commits, {what}",
                    "spark.read.parquet of the base files", aim="<= 2.5" if what[0] == "4" else "<= 3")  # fmt: skip
    files = cases.current_files(mor)
    for turn in range(setting.repeats + 1):
        ours = seconds(lambda: work(setting.spark.read.format("hudi").load(mor)))
        floor = seconds(lambda: work(setting.spark.read.parquet(*files)))
        if turn:
            result.ours_s.append(ours)
            result.floor_s.append(floor)
    return result


def rows_leave(setting: Setting, mor: str, what: str, work: Callable[[DataFrame], Any]) -> Result:
    """(b) Replaced base rows leave by flags, against an anti join on their numbers: frames that exist already."""
    result = Result(f"b leave {what}", f"replaced rows leave by flags, {what}", "by their numbers", aim="<= 0.83")
    flagged = setting.spark.read.format("hudi").load(mor)
    flags, merged._FLAGS = merged._FLAGS, -1
    merged._SPLITS.clear()
    try:
        numbered = setting.spark.read.format("hudi").load(mor)
    finally:
        merged._FLAGS = flags
        merged._SPLITS.clear()
    for turn in range(setting.repeats + 1):
        ours, floor = seconds(partial(work, flagged)), seconds(partial(work, numbered))
        if turn:
            result.ours_s.append(ours)
            result.floor_s.append(floor)
    return result


def read_by_arrow(setting: Setting, mor: str, what: str, columns: list[str] | None) -> Result:
    """(b) The same without Spark, batch by batch."""
    result = Result(f"b arrow {what}", f"snapshot with {DELTA_COMMITS} delta commits, {what}, by HudiTable.scan",
                    "the same scan, read-optimised", aim="<= 2.5" if columns else "<= 3")  # fmt: skip
    table = pyhudi.HudiTable.open(mor)

    def drain(query_type: str) -> int:
        return sum(len(batch) for batch in table.scan(columns=columns, query_type=query_type).to_batches())

    for _ in range(setting.repeats):
        result.ours_s.append(seconds(lambda: drain("snapshot")))
        result.floor_s.append(seconds(lambda: drain("read_optimized")))
    return result


def small_commit(setting: Setting, mor: str) -> Result:
    """(e) 1,000 rows into one partition, warm session."""
    result = Result("e", "MoR upsert of 1,000 rows into one partition, warm", "0.3 s", aim="<= 0.3 s")
    for turn in range(setting.repeats + 2):
        frame = data.batch_of_one_partition(setting.spark, setting.staged, setting.rows, 1000, 100 + turn)
        began = time.perf_counter()
        written = write(setting, mor, frame)
        if turn:
            result.ours_s.append(time.perf_counter() - began)
            result.floor_s.append(0.3)
        result.notes = {"phases_s": dict(written.seconds)}
    return result


def compaction(setting: Setting) -> Result:
    """(d) Compaction without Spark against reading and writing the base files; see `bench.compaction_bench`."""
    result = Result("d", "compaction of five delta commits of 1 %", "pyarrow reads and writes the base files",
                    aim="<= 1.5")  # fmt: skip
    folder = setting.folder / "compaction"
    folder.mkdir()
    found = compaction_bench.measure(max(setting.rows // 2, 50_000), 8, setting.repeats, setting.cores, folder)
    result.ours_s, result.floor_s = [found["wall_s"]["compaction"]], [found["wall_s"]["floor"]]
    result.notes = {"cpu_ratio": found["cpu_s"]["ratio"], "phases_s": found["phases_s"]}
    return result


def parquet_blocks(setting: Setting) -> Result:
    """(c) A Parquet block's content against a Parquet file with the same rows."""
    result = Result("c parquet", f"decoding a Parquet block of {BLOCK_ROWS:,} rows", "pyarrow reads such a file",
                    aim="<= 1.3")  # fmt: skip
    rows = generate(BLOCK_ROWS, 1)
    batch = rows.combine_chunks().to_batches()[0]
    schema = avro_from_arrow(batch.schema, "bench", with_meta=False)
    content = parquet_data.encode(batch, schema)
    path = Path(setting.folder / "block.parquet")
    pq.write_table(rows, path, compression="zstd", compression_level=1, store_schema=False)
    plain = path.read_bytes()
    for _ in range(max(5, setting.repeats)):
        result.ours_s.append(seconds(lambda: parquet_data.decode(content, schema)))
        result.floor_s.append(seconds(lambda: pq.ParquetFile(pa.BufferReader(plain)).read()))
    return result


def avro_blocks(setting: Setting) -> Result:
    """(c) An Avro block's content as Arrow, against fastavro record by record and pyarrow's table of its dicts."""
    result = Result("c avro", f"decoding an Avro block of {BLOCK_ROWS:,} rows", "fastavro and Table.from_pylist",
                    aim="<= 0.1")  # fmt: skip
    batch = generate(BLOCK_ROWS, 1).combine_chunks().to_batches()[0]
    schema = avro_from_arrow(batch.schema, "bench", with_meta=False)
    content = avro_data.encode(batch, schema)
    parsed = fastavro.parse_schema(json.loads(schema))

    def by_fastavro() -> None:
        stream = io.BytesIO(content)
        stream.seek(8)
        rows = []
        for _ in range(batch.num_rows):
            stream.read(4)
            rows.append(fastavro.schemaless_reader(stream, parsed, None))
        pa.Table.from_pylist(rows, batch.schema)

    for _ in range(max(3, setting.repeats)):
        result.ours_s.append(seconds(lambda: avro_data.decode(content, schema)))
        result.floor_s.append(seconds(by_fastavro))
    return result
