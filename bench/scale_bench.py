"""`python -m bench.scale_bench [curve ...] [--quick]`: time and memory as one thing of a table grows, without Spark.

Each measure of each size runs in a process of its own: processor seconds of all its threads, and its peak memory. The
exponent of a curve is that of a power of the size, fitted over the last factor of ten: 1 is linear. Points are added to
the file of `--points`; `--svg` draws all that are in it.

Curves `files` and `partitions` list files that are not there: nothing but names, so that the figures are the planner's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa

from bench.memory import peak_bytes
from bench.plot import Growth, growth_curves
from pyhudi import HudiTable, write_hudi
from pyhudi.formats.log.blocks.delete import CONTENT_VERSION, encode
from pyhudi.formats.log.envelope import BlockType, HeaderKey, encode_block
from pyhudi.formats.protobuf import varint
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.build import build
from pyhudi.model.keys import PARTITION_PATH, RECORD_KEY
from pyhudi.model.options import WriteOptions
from pyhudi.storage.base import FileInfo
from pyhudi.storage.local import LocalStorage
from pyhudi.table.input import TableInput

OPTIONS = {
    "hoodie.table.name": "scale",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.pyhudi.storage.sync": "false",  # processor seconds are measured, not the disk's
}
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
WITHOUT_SERVICES = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
ONE_GROUP = {"hoodie.datasource.write.partitionpath.field": ""}
PIECE_ROWS = 100_000
A_BLOCK = 1_000_000  # deletes
DAYS = 20
FEW_ROWS = 1000
COMMIT_ROWS = 10
TURN_COMMITS = 100


# ---- the curves


def load_rows(path: Path, count: int) -> None:
    write(path, stream(count), "bulk_insert")


def upsert_few(path: Path, count: int) -> None:
    numbers = np.linspace(0, count - 1, FEW_ROWS).astype(np.int64)
    write(path, rows(numbers, version=1), "upsert")


def read_all(path: Path, count: int) -> None:
    with HudiTable.open(path).scan().to_batches() as batches:
        assert sum(len(batch) for batch in batches) == count


def make_target(path: Path, count: int) -> None:
    write(path, stream(1_000_000), "bulk_insert", MERGE_ON_READ)


def upsert_batch(path: Path, count: int) -> None:
    write(path, stream(count, version=1), "upsert", MERGE_ON_READ)


def make_wide(path: Path, count: int) -> None:
    write(path, wide(np.arange(FEW_ROWS), count), "upsert")


def upsert_wide(path: Path, count: int) -> None:
    write(path, wide(np.array([7]), count), "upsert")


def read_wide(path: Path, count: int) -> None:
    assert HudiTable.open(path).to_arrow(meta_columns=False).shape == (FEW_ROWS, count)


def make_slice(path: Path, count: int) -> None:
    """A file group whose log file deletes so many keys that the base file lacks, in blocks of a million."""
    write(path, rows(np.arange(FEW_ROWS + 1)), "bulk_insert", {**MERGE_ON_READ, **ONE_GROUP})
    HudiTable.open(path).delete(rows(np.arange(1)))
    (log,) = path.glob(".*.log.*")
    committed = log.name.split("_")[1].partition(".")[0]
    with log.open("ab") as file:
        for first in range(0, count, A_BLOCK):
            content = deletes_of(np.arange(first, min(first + A_BLOCK, count)) + 10**6)
            file.write(encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: committed}, content))


def deletes_of(numbers: np.ndarray) -> bytes:
    """The content of a delete block: as `encode` makes it of one key, with other keys in its place."""
    key = pa.table({RECORD_KEY: ["9" * 13], PARTITION_PATH: [""]}).to_batches()[0]
    one = encode(key)[8 + 1 : -1]  # without version and length, the count of the list's only block, and its end
    records = np.tile(np.frombuffer(one, np.uint8), (len(numbers), 1))
    at = one.index(b"9" * 13)
    records[:, at : at + 13] = (numbers + 10**12).astype("S13").view(np.uint8).reshape(-1, 13)
    body = varint(2 * len(numbers)) + records.tobytes() + b"\0"
    return struct.pack(">ii", CONTENT_VERSION, len(body)) + body


def read_slice(path: Path, count: int) -> None:
    assert HudiTable.open(path).to_arrow().num_rows == FEW_ROWS


def make_listed(path: Path, count: int) -> None:
    write(path, rows(np.arange(DAYS)), "bulk_insert", {"hoodie.metadata.enable": "false", **WITHOUT_SERVICES})


def plan_by_listing(storage: LocalStorage, count: int) -> None:
    scan = HudiTable(MetaClient.load(storage)).scan(options={"hoodie.metadata.enable": "false"})
    assert scan.files().num_rows >= count


def make_metadata_table(storage: LocalStorage, count: int) -> None:
    build(MetaClient.load(storage), ("files",), WriteOptions.parse(OPTIONS).metadata)


def plan_by_metadata_table(storage: LocalStorage, count: int) -> None:
    scan = HudiTable(MetaClient.load(storage)).scan()
    assert scan.files().num_rows >= count


def insert_beside(storage: LocalStorage, count: int) -> None:
    statistics_off = {"hoodie.metadata.index.column.stats.enable": "false"}
    write(storage, rows(np.arange(DAYS)), "insert", {**WITHOUT_SERVICES, **statistics_off})


@dataclass(frozen=True)
class ListedStorage(LocalStorage):
    """A table whose partitions hold base files that are not there, `folders`: how many of them in each."""

    folders: Mapping[str, int] = field(default_factory=dict)
    instant: str = ""

    def list(self, path: str) -> tuple[FileInfo, ...]:
        listed = super().list(path)
        if path == "":
            return (*listed, *(FileInfo(name, 0, 0, is_dir=True) for name in self.folders))
        if path not in self.folders:
            return listed
        return (FileInfo(f"{path}/.hoodie_partition_metadata", 96, 0), *self._files(path))

    def _files(self, path: str) -> Iterator[FileInfo]:
        first = int(path[1:]) << 40
        for number in range(first, first + self.folders[path]):
            yield FileInfo(f"{path}/{UUID(int=number)}-0_0-0-0_{self.instant}.parquet", 120_000_000, 0)


Place = Callable[[Path, int], Path | LocalStorage]


def folder_of(path: Path, count: int) -> Path:
    return path


def listed(files_each: int, path: Path, count: int) -> LocalStorage:
    newest = MetaClient.load(LocalStorage(str(path))).timeline.last_commit()
    assert newest is not None
    folders = {f"p{number:06d}": files_each for number in range(count // files_each)}
    return ListedStorage(str(path), folders=folders, instant=newest.requested_time)


@dataclass(frozen=True)
class Curve:
    """What is made for a size, and what is measured then, one after the other, each in a process of its own."""

    grows: str
    sizes: Sequence[int]
    quick: Sequence[int]
    make: Callable[[Path, int], None] | None
    measures: Mapping[str, Callable[..., None]]
    place: Place = folder_of


LISTED = {
    "plan, by listing": plan_by_listing,
    "build the metadata table": make_metadata_table,
    "plan, by the metadata table": plan_by_metadata_table,
    "insert 20 rows": insert_beside,
}
DELETES = (1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
FILES, PARTITIONS = (100_000, 300_000, 1_000_000), (10_000, 30_000, 100_000)
CURVES = {
    "rows": Curve(
        "rows",
        (1_000_000, 3_000_000, 10_000_000, 20_000_000, 50_000_000),
        (20_000, 60_000),
        None,
        {"bulk insert": load_rows, "read all rows": read_all, "upsert 1,000 rows": upsert_few},
    ),
    "batch": Curve(
        "rows in a batch",
        (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000),
        (20_000, 60_000),
        make_target,
        {"upsert the batch": upsert_batch},
    ),
    "columns": Curve(
        "columns",
        (100, 200, 500, 1000, 2000, 3000),
        (20, 60),
        make_wide,
        {"upsert 1 row": upsert_wide, "read all columns": read_wide},
    ),
    "deletes": Curve("deletes in a slice", DELETES, (10_000, 30_000), make_slice, {"read the slice": read_slice}),
    "files": Curve("files", FILES, (10_000, 30_000), make_listed, LISTED, partial(listed, 1000)),
    "partitions": Curve("partitions", PARTITIONS, (1000, 3000), make_listed, LISTED, partial(listed, 1)),
}
COMMITS = {"commits": MERGE_ON_READ, "commits-cow": {}}


# ---- their rows


def pieces(count: int) -> Iterator[np.ndarray]:
    for first in range(0, count, PIECE_ROWS):
        yield np.arange(first, min(first + PIECE_ROWS, count))


def rows(numbers: np.ndarray, version: int = 0) -> pa.Table:
    """Keys in the order of their numbers, so that sizes differ in nothing but their number."""
    texts = pa.array(numbers + 10**12).cast(pa.string())
    days = pa.array([f"2024-01-{day + 1:02d}" for day in range(DAYS)])
    measures = {f"m{n}": pa.array((numbers * (n + 3) + version) % 1009 / 8) for n in range(4)}
    day = days.take(pa.array(numbers // 1000 % DAYS))
    return pa.table({"id": texts, "day": day, "ts": pa.array(np.full(len(numbers), version)), **measures})


def stream(count: int, version: int = 0) -> pa.RecordBatchReader:
    batches = (batch for piece in pieces(count) for batch in rows(piece, version).to_batches())
    return pa.RecordBatchReader.from_batches(rows(np.arange(1)).schema, batches)


def wide(numbers: np.ndarray, columns: int) -> pa.Table:
    """A table of so many columns."""
    table = rows(numbers)
    values = pa.array(numbers * 0.5)
    more = [values] * (columns - table.num_columns)
    names = [*table.column_names, *(f"c{number}" for number in range(len(more)))]
    return pa.table([*table.columns, *more], names=names)


def write(
    path: Path | LocalStorage, data: TableInput, operation: str, options: Mapping[str, str] | None = None
) -> None:
    write_hudi(path, data, operation, options={**OPTIONS, **(options or {})})


# ---- measuring


@dataclass(frozen=True)
class Point:
    curve: str
    measure: str
    size: int
    processor_s: float
    peak_mb: float


def measure(name: str, measure: str, path: Path, size: int) -> Point:
    """Called in a process of its own."""
    curve = CURVES[name]
    place = curve.place(path, size)
    began_s = time.process_time()
    curve.measures[measure](place, size)
    return Point(name, measure, size, time.process_time() - began_s, peak_bytes() / 1e6)


def grow(name: str, size: int, folder: Path) -> Iterator[Point]:
    """All measures of a curve at one size."""
    curve = CURVES[name]
    path = folder / f"{name}-{size}"
    if curve.make is not None:
        curve.make(path, size)
    for step in curve.measures:
        command = [sys.executable, "-m", "bench.scale_bench", name, "--one", step, str(path), str(size)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        yield Point(**json.loads(printed))


def commits(name: str, count: int, folder: Path) -> Iterator[Point]:
    """One table, written again and again with its services; a point for each turn of commits, of all commits so far."""
    options = {**COMMITS[name], "hoodie.compact.inline": "true"}
    path, total_s, turns_s = folder / name, 0.0, list[float]()
    write(path, rows(np.arange(FEW_ROWS)), "upsert", options)
    for number in range(1, count + 1):
        changed = rows(np.arange(number, number + COMMIT_ROWS) * 7 % FEW_ROWS, number)
        began_s = time.process_time()
        write(path, changed, "upsert", options)
        total_s += time.process_time() - began_s
        if number % TURN_COMMITS == 0:
            turns_s.append(total_s - sum(turns_s))
            yield Point(name, "upsert 10 rows, with services", number, total_s, peak_bytes() / 1e6)
    print(f"{name}: the last {TURN_COMMITS} commits take {turns_s[-1] / turns_s[0]:.2f} of the first", file=sys.stderr)


# ---- the results


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The power of the size by which values grow, fitted over the last factor of ten: 1 for twice as much of twice."""
    last = [(size, value) for size, value in zip(sizes, values, strict=True) if size * 10 >= max(sizes)]
    if len(last) < 2:
        return float("nan")
    return statistics.linear_regression([np.log(size) for size, _ in last], [np.log(value) for _, value in last]).slope


def growths(points: Iterable[Point]) -> list[Growth]:
    """A growth for each measure, in the order of its first point; of points of the same size the newest counts."""
    newest = {(point.curve, point.measure, point.size): point for point in points}
    lines: dict[tuple[str, str], list[Point]] = {}
    for point in sorted(newest.values(), key=lambda point: point.size):
        lines.setdefault((point.curve, point.measure), []).append(point)
    order = list(dict.fromkeys((curve, step) for curve, step, _ in newest))
    return [_growth(name, step, lines[name, step]) for name, step in order if len(lines[name, step]) > 1]


def _growth(name: str, step: str, line: Sequence[Point]) -> Growth:
    sizes, seconds = [point.size for point in line], [point.processor_s for point in line]
    grows = CURVES[name].grows if name in CURVES else "commits"
    peaks = [point.peak_mb for point in line]
    return Growth(grows, step, sizes, seconds, peaks, exponent(sizes, seconds), exponent(sizes, peaks))


def table(lines: Iterable[Growth]) -> str:
    head = "| what grows | measured | from | to | exponent of time | of memory | largest, s | peak, MB |"
    body = [
        f"| {line.grows} | {line.measure} | {line.sizes[0]:,} | {line.sizes[-1]:,} | {line.exponent:.2f} | "
        f"{line.memory_exponent:.2f} | {line.seconds[-1]:.3g} | {line.peaks_mb[-1]:,.0f} |"
        for line in lines
    ]
    return "\n".join([head, "|---|---|---|---|---|---|---|---|", *body])


def read_points(path: Path) -> list[Point]:
    return [Point(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curves", nargs="*", help=f"of {', '.join([*CURVES, *COMMITS])}; none: all")
    parser.add_argument("--quick", action="store_true", help="two small sizes of each")
    parser.add_argument("--largest", type=int, default=sys.maxsize, help="leave out sizes above this one")
    parser.add_argument("--points", type=Path, help="JSON lines that points are added to")
    parser.add_argument("--svg", type=Path, help="write the picture of all points here")
    parser.add_argument("--work", help="folder for data (default: the system's temporary folder)")
    parser.add_argument("--show", action="store_true", help="measure nothing")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        step, path, size = given.one
        print(json.dumps(vars(measure(given.curves[0], step, Path(path), int(size)))))
        return
    points = read_points(given.points) if given.points else []
    for name in [] if given.show else given.curves or [*CURVES, *COMMITS]:
        for point in measured(name, given.quick, given.largest, given.work):
            points.append(point)
            if given.points:
                with given.points.open("a") as file:
                    file.write(json.dumps(vars(point)) + "\n")
    lines = growths(points)
    print(table(lines))
    if given.svg:
        given.svg.write_text(growth_curves(lines))


def measured(name: str, quick: bool, largest: int, work: str | None) -> Iterator[Point]:
    if name in COMMITS:
        with tempfile.TemporaryDirectory(prefix="pyhudi-scale-", dir=work) as folder:
            yield from commits(name, min(largest, 2 * TURN_COMMITS if quick else 10_000), Path(folder))
        return
    curve = CURVES[name]
    for size in [size for size in (curve.quick if quick else curve.sizes) if size <= largest]:
        with tempfile.TemporaryDirectory(prefix="pyhudi-scale-", dir=work) as folder:
            yield from grow(name, size, Path(folder))


if __name__ == "__main__":
    main()
