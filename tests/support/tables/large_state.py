"""The state of a large table without its data: many commits, each of which names many files, all of one byte."""

from __future__ import annotations

from pathlib import Path
from random import Random
from uuid import UUID

from pyhudi.formats.timeline.instant_files import encode_commit
from pyhudi.model.commit import CommitMetadata, WriteStat
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.new_table import NewTable, new_table_properties
from pyhudi.storage.clock import FixedClock
from pyhudi.storage.local import LocalStorage
from pyhudi.timeline.table_properties import create_table
from pyhudi.transaction.instants import TimelineWriter

_SCHEMA = '{"type":"record","name":"t","fields":[{"name":"id","type":"string"},{"name":"day","type":"string"}]}'
_ROWS = 1000  # of each file


def make_large_state(folder: Path, commits: int, files: int, partitions: int = 300) -> None:
    """A copy-on-write table of version 9 without a metadata table: so many commits, and files spread over them."""
    clock = FixedClock(1_700_000_000_000)
    storage = LocalStorage(str(folder))
    new = NewTable("large", "COPY_ON_WRITE", 9, ("id",), ("day",), create_schema=_SCHEMA)
    config = create_table(storage, new_table_properties(new), clock)
    timeline = TimelineWriter(storage, config)
    for number in range(partitions):
        path = folder / _day(number)
        path.mkdir()
        (path / ".hoodie_partition_metadata").write_bytes(b"commitTime=0\npartitionDepth=1\n")
    made, ids = 0, Random(7)
    for number in range(commits):
        begun = _time(number, 0)
        stats: dict[str, list[WriteStat]] = {}
        while made < (number + 1) * files // commits:
            day = _day(made % partitions)
            file_id = f"{UUID(int=ids.getrandbits(128))}-0"
            name = f"{file_id}_{made % 97}-{number}-{made}_{begun}.parquet"
            (folder / day / name).write_bytes(b"x")
            stats.setdefault(day, []).append(
                WriteStat(
                    file_id,
                    f"{day}/{name}",
                    day,
                    num_writes=_ROWS,
                    num_inserts=_ROWS,
                    total_write_bytes=40_000 + made % 5000,
                    file_size_in_bytes=1,
                )
            )
            made += 1
        body = CommitMetadata(
            {day: tuple(listed) for day, listed in stats.items()}, {"schema": _SCHEMA}, operation_type="INSERT"
        )
        instant = timeline.start(timeline.request(begun, ActionKind.COMMIT))
        timeline.complete(
            instant or Instant(begun, ActionKind.COMMIT, State.INFLIGHT),
            _time(number, 5 + number % 40),
            encode_commit(body, ActionKind.COMMIT, 9),
        )


def _day(number: int) -> str:
    return f"2023-{number // 28 % 12 + 1:02d}-{number % 28 + 1:02d}"


def _time(number: int, seconds: int) -> str:
    return f"2024{number // 672 % 12 + 1:02d}{number // 24 % 28 + 1:02d}{number % 24:02d}00{seconds:02d}000"
