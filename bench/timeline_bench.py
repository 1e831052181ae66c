"""Opening a table with a long history: python -m bench.timeline_bench [folder]

    active      the timeline with 100 active instants                    < 30 ms
    times       the archived history of 10,000 instants, times only      < 32 ms
    metadata    the same with the bytes of all bodies                    < 150 ms
    plan        a range of one hour in a history of 1,000,000 instants

A commit's body has 5 kB, as one of some files has; files are as archiving and compaction with Hudi's defaults make
them. The best of several runs counts, with warm file caches.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyhudi import HudiTable
from pyhudi.formats.timeline.history_files import HISTORY_SCHEMA, read_history_file, write_history_file
from pyhudi.formats.timeline.instant_files import encode_commit
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata, WriteStat
from pyhudi.model.instant import ActionKind, format_instant_time
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.timeline.archived_timeline import lsm_history
from pyhudi.timeline.listing import load_timeline
from pyhudi.timeline.lsm_manifest import HistoryFile, Manifest, write_manifest
from pyhudi.transaction.instants import TimelineWriter

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
RUN_INSTANTS = 10  # archived at once: 30 commits become 20
BATCH = 10


def time_of(number: int, offset_ms: int = 0) -> str:
    """The instant time of a commit a minute."""
    return format_instant_time(START + timedelta(minutes=number, milliseconds=offset_ms), timezone.utc)


def body(number: int) -> bytes:
    """The body of a commit that wrote six files."""
    random.seed(number)
    stats = tuple(
        WriteStat(
            f"{random.getrandbits(128):032x}-0",
            f"2024-01-01/{random.getrandbits(128):032x}-0_{n}-1-1_{time_of(number)}.parquet",
            "2024-01-01",
            time_of(number - 1),
            num_writes=random.randrange(10**6),
            file_size_in_bytes=random.randrange(10**8),
        )
        for n in range(6)
    )
    extra = {"schema": '{"type":"record","name":"trip","fields":[]}' + " " * 2000}
    return encode_commit(CommitMetadata({"2024-01-01": stats}, extra, "UPSERT"), ActionKind.COMMIT, 9)


def history_rows(first: int, count: int, data: bytes) -> pa.Table:
    """Archived commits `first` to `first + count`."""
    return pa.table(
        {
            "instantTime": [time_of(n) for n in range(first, first + count)],
            "completionTime": [time_of(n, 900) for n in range(first, first + count)],
            "action": ["commit"] * count,
            "metadata": pa.array([data[n % 97 :] + data[: n % 97] for n in range(count)], pa.binary()),
            "plan": pa.nulls(count, pa.binary()),
            "version": pa.array([1] * count, pa.int32()),
        },
        schema=HISTORY_SCHEMA,
    )


def make_history(storage: Storage, config_folder: str, instants: int) -> None:
    """Files of the levels that archiving ten instants a time would have left."""
    data, files, done = body(1), list[HistoryFile](), 0
    levels = [level for level in range(9, -1, -1) if RUN_INSTANTS * BATCH**level < instants]
    for level in levels:
        size = RUN_INSTANTS * BATCH**level
        for _ in range(BATCH - 1 if level else BATCH):
            name = HistoryFile.name_of(time_of(done), time_of(done + size - 1), level)
            parts = (history_rows(at, min(1000, size), data) for at in range(done, done + size, 1000))
            files.append(HistoryFile(name, write_history_file(storage, f"{config_folder}/{name}", parts)))
            done += size
    assert done == instants, done
    write_manifest(storage, config_folder, Manifest(1, tuple(files)))


def best_ms(run: Callable[[], object], runs: int = 7) -> float:
    """The fastest of several runs, in milliseconds."""
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        found.append((time.perf_counter() - start) * 1000)
    return min(found)


def tell(name: str, value_ms: float, limit_ms: float | None = None, note: str = "") -> bool:
    """Print a line; False when the limit was missed."""
    missed = limit_ms is not None and value_ms > limit_ms
    limit = f"  limit {limit_ms:,.0f} ms{'  MISSED' if missed else ''}" if limit_ms is not None else ""
    print(f"{name:<46} {value_ms:9.2f} ms{limit}  {note}".rstrip(), flush=True)
    return not missed


def main(folder: Path) -> int:
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    HudiTable.create(folder / "t", schema, record_key="id", options={"hoodie.table.timeline.timezone": "UTC"})
    storage = open_storage(folder / "t")
    meta = MetaClient.load(storage)
    writer = TimelineWriter(storage, meta.config)
    for n in range(100):
        instant = writer.start(writer.request(time_of(n), ActionKind.COMMIT), body(n))
        writer.complete(instant, time_of(n, 900), body(n))
    good = tell("timeline of 100 active instants", best_ms(lambda: load_timeline(storage, meta.config)), 30)
    good &= tell("  with properties, as a table is opened", best_ms(lambda: MetaClient.load(storage)))

    history = lsm_history(storage, meta.config)
    make_history(storage, history.folder, 10_000)
    files = len(history.files())
    assert len(history.times()) == 10_000

    def scan(columns: Sequence[str] | None) -> list[Any]:
        return [read_history_file(storage, f"{history.folder}/{file.name}", columns) for file in history.files()]

    times = ("instantTime", "completionTime", "action")
    note = f"{files} files"
    good &= tell("history of 10,000 instants, times as columns", best_ms(lambda: scan(times)), 32, note)
    good &= tell("  as instants", best_ms(history.times), 32)
    good &= tell("  metadata as columns", best_ms(lambda: scan(None)), 150)
    good &= tell("  as instants with bodies", best_ms(lambda: list(history.instants()), 3), 150)
    good &= tell("  one instant with its body", best_ms(lambda: list(history.instants(time_of(5000), time_of(5000)))))

    make_history(storage, history.folder, 1_000_000)
    since, until = time_of(700_000), time_of(700_060)
    good &= tell("1,000,000 instants: files of one hour", best_ms(lambda: history.files(since, until)))
    good &= tell("  times of one hour", best_ms(lambda: history.times(since, until)))
    good &= tell("  bodies of one hour", best_ms(lambda: list(history.instants(since, until)), 3))
    good &= tell(
        "  newest 100 with bodies", best_ms(lambda: [next(i) for i in [history.instants()] for _ in range(100)], 3)
    )
    return 0 if good else 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(main(Path(sys.argv[1])))
    with tempfile.TemporaryDirectory() as made:
        sys.exit(main(Path(made)))
