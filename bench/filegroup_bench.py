"""`python -m bench.filegroup_bench`: one task, one file group, no Spark: what making and rewriting a file cost.

Each contender runs in a process of its own, in turns with the others; time is wall and CPU seconds (all threads),
memory is the process's peak. The floor is pyarrow at its best: the same columns and codec, dictionaries only where
they pay, strings of few values kept as dictionaries between reading and writing, no bloom filter, no footer, no
merging."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.engine.base import TaskContext
from pyhudi.filegroup.write.merge import merge_file
from pyhudi.filegroup.write.new_files import create_files, write_partitioned
from pyhudi.filegroup.write.spec import BaseFileOptions, WriteSpec
from pyhudi.formats.base import BASE_FORMATS
from pyhudi.formats.bloom import BloomFilter
from pyhudi.merge import merge_mode
from pyhudi.model.file_group import BaseFile
from pyhudi.model.keys import IS_DELETE, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from pyhudi.storage.clock import SystemClock
from pyhudi.storage.local import LocalStorage

TASK = TaskContext(0, 1, 2)
FIRST, SECOND = "20240101000000000", "20240102000000000"
GROUP_ROWS = 122_880
BATCH_ROWS = 10_000  # as Spark hands them over
PARTITIONS = 30


def generate(rows: int, seed: int, keys: pa.Array | None = None) -> pa.Table:
    """20 data columns, about 220 Arrow bytes a row, 110 bytes in zstd Parquet."""
    random = np.random.default_rng(seed)
    hexadecimal = np.frombuffer(b"0123456789abcdef", "S1")

    def text(length: int) -> pa.Array:
        chars = hexadecimal[random.integers(0, 16, (rows, length))].view(f"S{length}").ravel()
        return pa.array(chars.astype(f"U{length}"))

    def words(stem: str, count: int) -> pa.Array:
        return pa.array([f"{stem}-{number}" for number in range(count)]).take(pa.array(random.integers(0, count, rows)))

    ints = {f"i{n}": pa.array(random.integers(0, 10**n, rows)) for n in (3, 6, 9)}
    doubles = {f"d{n}": pa.array(random.integers(0, 10**6, rows) / 64) for n in range(3)}
    cents = pa.array(random.integers(0, 10**8, rows)).cast(pa.decimal128(21, 0))
    return pa.table(
        {
            "id": text(36) if keys is None else keys,
            "ts": pa.array(random.integers(0, 1000, rows) + seed * 1000),
            **ints, **doubles,
            "status": words("status", 6), "country": words("country", 200), "product": words("product", 20_000),
            "city": words("city", 3000), "comment": text(20), "note": text(12),
            "flag": pa.array(random.integers(0, 2, rows) == 1),
            "created": pa.array(random.integers(0, 10**15, rows)).cast(pa.timestamp("us", "UTC")),
            "due": pa.array(random.integers(0, 20_000, rows).astype(np.int32)).cast(pa.date32()),
            "total": pc.cast(pc.divide(cents, pa.scalar(100, pa.decimal128(3, 0))), pa.decimal128(12, 2), safe=False),
            "score": pa.array((random.integers(0, 1000, rows) / 10).astype(np.float32)),
            "month": words("2024", 12),
        }
    )  # fmt: skip


def keyed(table: pa.Table, partitions: int = 1) -> pa.Table:
    """The rows as a write carries them."""
    names = pa.array([f"p{n:02d}" for n in range(partitions)])
    paths = names.take(pa.array(np.random.default_rng(1).integers(0, partitions, len(table))))
    return table.append_column(RECORD_KEY, table.column("id")).append_column(PARTITION_PATH, paths)


def spec(folder: Path, instant_time: str, schema: pa.Schema, **changes: Any) -> WriteSpec:
    data = pa.schema([field for field in schema if field.name not in (RECORD_KEY, PARTITION_PATH, IS_DELETE)])
    return WriteSpec(
        LocalStorage(str(folder)), instant_time, "bench", 9, data, merge_mode="EVENT_TIME_ORDERING",
        ordering_fields=("ts",), file=BaseFileOptions(max_file_size_bytes=1 << 40, **changes),
    )  # fmt: skip


def batches_of(path: Path) -> Iterator[pa.RecordBatch]:
    """Rows of a staged file in Spark's batch size, streamed."""
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        yield from file.iter_batches(BATCH_ROWS, row_groups=[group])


def base_file(folder: Path) -> BaseFile:
    (path,) = (folder / "p00").glob(f"*_{FIRST}.parquet")
    return BaseFile(f"p00/{path.name}", "p00", path.name.partition("_")[0], FIRST, path.stat().st_size)


def prepare(folder: Path, rows: int) -> None:
    """Stage rows, base file, and batches of 1 and 10 per cent: updates, a twentieth deletes, and a tenth inserts."""
    table = keyed(generate(rows, 1))
    pq.write_table(table, folder / "rows.parquet", row_group_size=GROUP_ROWS, compression="lz4")
    pq.write_table(
        keyed(generate(rows, 1), PARTITIONS), folder / "many.parquet", row_group_size=GROUP_ROWS, compression="lz4"
    )
    list(
        create_files(spec(folder, FIRST, table.schema), TASK, "p00", table.to_batches(BATCH_ROWS), clock=SystemClock())
    )
    for share in (1, 10):
        count = rows * share // 100
        at = np.random.default_rng(share).choice(rows, count, replace=False)
        keys = table.column("id").take(pa.array(at)).combine_chunks()
        fresh = generate(count // 10, 77).column("id").combine_chunks()
        changes = keyed(generate(count + len(fresh), 2, pa.concat_arrays([keys, fresh])))
        deletes = (np.arange(len(changes)) % 20 == 0) & (np.arange(len(changes)) < count)
        pq.write_table(changes.append_column(IS_DELETE, pa.array(deletes)), folder / f"batch-{share}.parquet")
        neighbours = pa.concat_arrays([table.column("id").slice(0, count).combine_chunks(), fresh])
        clustered = keyed(generate(count + len(fresh), 2, neighbours)).append_column(IS_DELETE, pa.array(deletes))
        pq.write_table(clustered, folder / f"clustered-{share}.parquet")


def low_cardinality(path: Path) -> list[str]:
    group = pq.ParquetFile(path).metadata.row_group(0)
    chunks = (group.column(index) for index in range(group.num_columns))
    return [c.path_in_schema for c in chunks if c.has_dictionary_page and c.physical_type == "BYTE_ARRAY"]


def dictionaries(path: Path) -> list[str]:
    group = pq.ParquetFile(path).metadata.row_group(0)
    chunks = (group.column(index) for index in range(group.num_columns))
    return [c.path_in_schema for c in chunks if c.has_dictionary_page]


def floor_rewrite(folder: Path) -> None:
    path = folder / base_file(folder).path
    source = pq.ParquetFile(path, read_dictionary=low_cardinality(path))
    writer: pq.ParquetWriter | None = None
    for group in range(source.num_row_groups):
        table = source.read_row_group(group)
        writer = writer or pq.ParquetWriter(
            folder / "floor.parquet", table.schema, compression="zstd", compression_level=1,
            use_dictionary=dictionaries(path), store_schema=False,
        )  # fmt: skip
        writer.write_table(table, row_group_size=len(table))
    assert writer is not None
    writer.close()


def floor_write(folder: Path) -> None:
    """Write the staged rows with five more columns, as cheap as they can be."""
    path = folder / base_file(folder).path
    waiting: list[pa.RecordBatch] = []
    writer: pq.ParquetWriter | None = None

    def write() -> None:
        nonlocal writer, waiting
        rows = pa.Table.from_batches(waiting)
        waiting = []
        one = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(rows), np.int32)), pa.array(["x" * 40]))
        seqno = pc.binary_join_element_wise(f"{FIRST}_0_", pa.array(np.arange(len(rows))).cast(pa.string()), "")
        meta = [one, seqno, rows.column(RECORD_KEY), one, one]
        data = rows.drop_columns([RECORD_KEY, PARTITION_PATH])
        table = pa.Table.from_arrays([*meta, *data.columns], names=[*META_COLUMNS, *data.column_names])
        writer = writer or pq.ParquetWriter(
            folder / "floor.parquet", table.schema, compression="zstd", compression_level=1,
            use_dictionary=dictionaries(path), store_schema=False,
        )  # fmt: skip
        writer.write_table(table, row_group_size=len(table))

    for batch in batches_of(folder / "rows.parquet"):
        waiting.append(batch)
        if sum(map(len, waiting)) >= GROUP_ROWS:
            write()
    if waiting:
        write()
    assert writer is not None
    writer.close()


def ours_merge(folder: Path, share: int) -> Callable[[], None]:
    changes = pq.read_table(folder / f"batch-{share}.parquet")  # its rows would come over the wire
    merge_mode("EVENT_TIME_ORDERING", ["ts"])
    BASE_FORMATS.load("PARQUET")

    def merge() -> None:
        merge_file(spec(folder, SECOND, changes.schema), TASK, base_file(folder), changes, SystemClock())

    return merge


def ours_clustered(folder: Path, share: int) -> Callable[[], None]:
    """As `ours_merge`, with updates of neighbouring rows: the keys of one end of the file."""
    changes = pq.read_table(folder / f"clustered-{share}.parquet")
    merge_mode("EVENT_TIME_ORDERING", ["ts"])
    BASE_FORMATS.load("PARQUET")

    def merge() -> None:
        merge_file(spec(folder, SECOND, changes.schema), TASK, base_file(folder), changes, SystemClock())

    return merge


def ours_create(folder: Path) -> None:
    schema = pq.read_schema(folder / "rows.parquet")
    batches = batches_of(folder / "rows.parquet")
    list(create_files(spec(folder / "new", FIRST, schema), TASK, "p00", batches, clock=SystemClock()))


def ours_partitioned(folder: Path) -> None:
    schema = pq.read_schema(folder / "many.parquet")
    batches = batches_of(folder / "many.parquet")
    list(write_partitioned(spec(folder / "new", FIRST, schema), TASK, batches, SystemClock()))


def bloom(folder: Path) -> None:
    keys = pq.read_table(folder / "rows.parquet", columns=["id"]).column(0)
    BloomFilter(60_000, 1e-9).add(keys)


def only_read_keys(folder: Path) -> None:
    pq.read_table(folder / "rows.parquet", columns=["id"])


CASES: dict[str, Callable[[Path], Callable[[], None]]] = {
    "floor rewrite": lambda folder: partial(floor_rewrite, folder),
    "merge 1 %": lambda folder: ours_merge(folder, 1),
    "merge 10 %": lambda folder: ours_merge(folder, 10),
    "clustered 1 %": lambda folder: ours_clustered(folder, 1),
    "clustered 10 %": lambda folder: ours_clustered(folder, 10),
    "floor write": lambda folder: partial(floor_write, folder),
    "create": lambda folder: partial(ours_create, folder),
    "partitioned": lambda folder: partial(ours_partitioned, folder),
    "bloom": lambda folder: partial(bloom, folder),
    "bloom floor": lambda folder: partial(only_read_keys, folder),
}
FLOOR_OF = {
    "merge 1 %": "floor rewrite",
    "merge 10 %": "floor rewrite",
    "clustered 1 %": "floor rewrite",
    "clustered 10 %": "floor rewrite",
    "create": "floor write",
    "partitioned": "floor write",
}


def measure(case: str, folder: Path) -> None:
    """Run one case in this process and print its figures."""
    work = CASES[case](folder)
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    # Not getrusage: its peak starts with the parent's.
    peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024
    print(json.dumps({"wall_s": wall, "cpu_s": cpu, "peak_mib": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        measure(given.case, given.folder)
        return
    found: dict[str, list[dict[str, float]]] = {case: [] for case in given.only}
    with tempfile.TemporaryDirectory(prefix="pyhudi-bench-") as name:
        folder = Path(name)
        prepare(folder, given.rows)
        size = base_file(folder).size_bytes
        for _ in range(given.repeats):
            for case in given.only:
                command = [sys.executable, "-m", "bench.filegroup_bench", "--case", case, "--folder", name]
                answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                found[case].append(json.loads(answer))
    print(f"{given.rows} rows, base file of {size / 2**20:.0f} MiB\n")
    print("| case | wall s | CPU s | peak MiB | CPU ratio to its floor |\n|---|---|---|---|---|")
    median = {
        case: {key: statistics.median(run[key] for run in runs) for key in runs[0]} for case, runs in found.items()
    }
    for case, figures in median.items():
        floor = median.get(FLOOR_OF.get(case, ""))
        ratio = f"{figures['cpu_s'] / floor['cpu_s']:.2f}" if floor else ""
        print(f"| {case} | {figures['wall_s']:.2f} | {figures['cpu_s']:.2f} | {figures['peak_mib']:.0f} | {ratio} |")
    if "bloom" in median and "bloom floor" in median:
        spent = median["bloom"]["cpu_s"] - median["bloom floor"]["cpu_s"]
        print(f"\nbloom filter: {spent / given.rows * 1e9:.0f} ns a key")


if __name__ == "__main__":
    main()
