"""`python -m bench.large_index_bench --keys 10000000`: a record index of many random keys, built and asked, no Spark.

    build     the index of a table of so many random keys, in a process of its own: its peak memory, bytes of a key,
              and whether it has exactly the keys of the table (their number, and the sum of a hash of each)
    lookup    ten keys and 100,000, other ones each time: the metadata table is opened anew for each
    compact   the metadata table after ten commits of 1,000 new keys, whose base files are patched; and written anew

Wall and processor seconds, median of the repeats. Memory is that of Linux's /proc.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa

from bench.memory import peak_bytes
from bench.metadata_bench import shown, timed
from pyhudi import HudiTable, write_hudi
from pyhudi.formats.hfile.patching import HFilePatch
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.compaction import compact_if_due
from pyhudi.metadata.table import MetadataTable
from pyhudi.storage.local import LocalStorage

OPTIONS = {
    "hoodie.table.name": "large",
    "hoodie.datasource.write.recordkey.field": "key",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.index.column.stats.enable": "false",
}
A_COMMIT = 2_500_000
FEW, MANY = 10, 100_000
_HASHES = 2**64
_KEY_BYTES = 32


def keys_of(numbers: np.ndarray) -> pa.Array:
    """Random keys of 32 hexadecimal digits, one for each number: as UUIDs without hyphens."""
    mixed = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    other = (mixed ^ np.uint64(0x5851F42D4C957F2D)) * np.uint64(0x94D049BB133111EB)
    text = np.stack([mixed, other], axis=1).astype(">u8").tobytes().hex().encode()
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(text))


def batch(numbers: np.ndarray) -> pa.Table:
    return pa.table({"key": keys_of(numbers), "ts": pa.array(np.zeros(len(numbers), np.int64)), "v": pa.array(numbers)})


def hashes(keys: pa.Array) -> int:
    """The sum of a hash of each key, by 64 bits."""
    start, stop = keys.offset, keys.offset + len(keys)
    offsets = np.frombuffer(keys.buffers()[1], np.int32)[start : stop + 1]
    assert (np.diff(offsets) == _KEY_BYTES).all(), "keys have 32 characters"
    words = np.frombuffer(keys.buffers()[2], np.uint64, len(keys) * _KEY_BYTES // 8, int(offsets[0])).reshape(-1, 4)
    mixed = words[:, 0].copy()
    for column in range(1, 4):
        mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15) + words[:, column]
    return int(((mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)).sum(dtype=np.uint64))


def make(path: Path, count: int) -> None:
    for start in range(0, count, A_COMMIT):
        write_hudi(str(path), batch(np.arange(start, min(start + A_COMMIT, count))), options=OPTIONS, mode="append")


def build(path: Path) -> dict[str, float]:
    """Called in a process of its own: what it takes to build the index, and the most memory that it has."""
    before = peak_bytes()
    wall, processor = timed(lambda: HudiTable.open(str(path)).indexes.create("record_index"))
    return {"wall_s": wall, "processor_s": processor, "peak_mb": peak_bytes() / 1e6, "before_mb": before / 1e6}


def check(path: Path, count: int) -> dict[str, object]:
    """Are there exactly the keys of the table, each once? File groups hold their keys in order, each its own."""
    table = MetadataTable.open(MetaClient.load(LocalStorage(str(path))))
    assert table is not None
    total, found = 0, 0
    for file_slice in table.slices("record_index"):
        for piece in table.reader(file_slice).runs():
            keys = piece.column("key")
            found += len(keys.unique())
            total += sum(hashes(chunk) for chunk in keys.chunks)
    wanted = sum(hashes(keys_of(np.arange(start, min(start + A_COMMIT, count)))) for start in range(0, count, A_COMMIT))
    size = sum(file.stat().st_size for file in (path / ".hoodie/metadata/record_index").iterdir())
    return {"keys": found, "the_tables": total % _HASHES == wanted % _HASHES, "bytes_a_key": size / count}


def lookup(path: Path, count: int, repeats: int) -> None:
    spread = np.random.default_rng(3)
    for wanted in (FEW, MANY):
        times = []
        for _ in range(repeats + 1):
            keys = keys_of(spread.choice(count, wanted, replace=False)).to_pylist()

            def find(keys: list[str] = keys) -> None:
                table = MetadataTable.open(MetaClient.load(LocalStorage(str(path))))
                assert table is not None
                assert table.lookup("record_index", keys).num_rows == len(keys)

            times.append(timed(find))
        shown(f"{wanted:,} of {count:,} keys in the record index", times[1:])


def compaction(path: Path, count: int, turns: int = 2) -> None:
    """In turns, each after commits of its own."""
    times: dict[str, list[tuple[float, float]]] = {"patched": [], "written anew": []}
    never = {"hoodie.metadata.compact.max.delta.commits": "1000"}
    for turn in range(2 * turns):
        for commit in range(10):
            first = count + (10 * turn + commit) * 1000
            options = {**OPTIONS, **never, "hoodie.datasource.write.operation": "insert"}
            write_hudi(str(path), batch(np.arange(first, first + 1000)), options=options, mode="append")
        table = MetadataTable.open(MetaClient.load(LocalStorage(str(path))))
        assert table is not None
        if turn % 2:
            with mock.patch.object(HFilePatch, "of", return_value=None):
                times["written anew"].append(timed(partial(compact_if_due, table, 1)))
        else:
            times["patched"].append(timed(partial(compact_if_due, table, 1)))
    for way, found in times.items():
        shown(f"compaction of the metadata table, base files {way}", found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--work", help="folder for data (default: the system's temporary folder)")
    parser.add_argument("--build", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.build:
        print(json.dumps(build(Path(given.build))))
        return
    with tempfile.TemporaryDirectory(prefix="pyhudi-large-", dir=given.work) as name:
        path = Path(name) / "table"
        make(path, given.keys)
        command = [sys.executable, "-m", "bench.large_index_bench", "--build", str(path)]
        built = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        print(f"built: {json.loads(built.stdout)}", flush=True)
        print(f"in it: {check(path, given.keys)}", flush=True)
        print("| what | wall s | processor s |\n|---|---|---|")
        lookup(path, given.keys, given.repeats)
        compaction(path, given.keys)


if __name__ == "__main__":
    main()
