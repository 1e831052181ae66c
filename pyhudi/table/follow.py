"""Several tables followed at once: `follow` returns steps, each with the changes of all tables up to one moment.

        <n>.step    the range of each table in step n         made before the first of its rows is read
        <n>.done    step n has been processed                 made by commit()

A step is repeated unchanged until it is committed, even if the tables have changed. Source: docs/streaming.md,
"Several tables"; docs/formats/incremental.md, "The range".
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from pyhudi.errors import ConfigError, CorruptFile, PathExists, WriteConflict
from pyhudi.formats.json_text import parse_json
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import format_instant_time
from pyhudi.model.options import ReadOptions, canonical_keys
from pyhudi.model.options.queries import BEGIN, END, IncrementalOptions
from pyhudi.queries.follow import LATEST, end_of_batch, first_begin
from pyhudi.queries.incremental_range import time_of_range
from pyhudi.queries.query import EARLIEST, AsOf
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.table.calls import Options, open_place
from pyhudi.table.hudi_table import HudiTable
from pyhudi.table.scan import Scan

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession

__all__ = ["ChangeFeed", "ChangeStep", "follow"]

_FILE = re.compile(r"(\d{1,18})\.(step|done)", re.ASCII)
_TIME = re.compile(r"\d{0,17}", re.ASCII)
_STEPS_KEPT = 10  # committed steps that are kept for inspection
_LOADS_MAX = 5  # attempts to load the tables without a write in between
_FORMAT = "hoodie.datasource.query.incremental.format"
_HOLES = "hoodie.read.timeline.holes.resolution.policy"
_SYSTEM_CLOCK = SystemClock()
_Ranges = dict[str, tuple[str, str]]  # name of a table → begin, "" for the first commit on, and end


def follow(
    tables: Mapping[str, str | os.PathLike[str]],
    *,
    checkpoint: str | os.PathLike[str],
    since: AsOf = EARLIEST,
    format: str | None = None,
    spark: SparkSession | None = None,
    storage_options: Mapping[str, object] | None = None,
    options: Options | None = None,
    clock: Clock = _SYSTEM_CLOCK,
) -> ChangeFeed:
    """Follow several tables with one checkpoint.

    Args:
        tables: a name for each table → its path.
        checkpoint: a separate folder that stores the steps; one process at a time may use it.
        since: the begin of a table that the checkpoint doesn't know yet: "earliest", "latest", or a moment as `begin`
            of `HudiTable.scan`.
        format, options: as `format` and `options` of `HudiTable.changes`.
        spark: a session for `to_spark` of the changes. storage_options: Hadoop's keys for remote stores.
    Raises: TableNotFound, ConfigError.
    """
    if not tables:
        raise ConfigError("follow takes the path of at least one table, by name: {'orders': path, ...}. Found none.")
    read_options = dict(options or {})
    if _HOLES not in canonical_keys(read_options):
        read_options[_HOLES] = "BLOCK"  # wait for the write to complete, as streams do
    if format is not None:
        read_options[_FORMAT] = format
    hudi_tables = {
        name: HudiTable.open(path, spark=spark, storage_options=storage_options) for name, path in tables.items()
    }
    return ChangeFeed(hudi_tables, open_place(checkpoint, storage_options, spark), since, read_options, clock)


class ChangeStep(Mapping[str, Scan]):
    """The changes of a step: name of a table → its changes, for the tables that have new commits.

    `number`: of the step, from 0; a repeated step has the same number.
    """

    def __init__(self, number: int, changes: Mapping[str, Scan], feed: ChangeFeed) -> None:
        self.number = number
        self._changes, self._feed = dict(changes), feed

    def __getitem__(self, name: str) -> Scan:
        return self._changes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._changes)

    def __len__(self) -> int:
        return len(self._changes)

    def commit(self) -> None:
        """Mark the step as processed: the next one begins where it ends. Raises WriteConflict."""
        self._feed._commit(self.number)

    def __repr__(self) -> str:
        return f"ChangeStep({self.number}, {self._changes!r})"


class ChangeFeed:
    """The result of `follow`. Iterate over its steps; the iteration ends when there are no new commits."""

    def __init__(
        self, tables: Mapping[str, HudiTable], checkpoint: Storage, since: AsOf, options: Options, clock: Clock
    ) -> None:
        self._tables, self._checkpoint, self._since = dict(tables), checkpoint, since
        self._options, self._clock = dict(options), clock
        self._incremental: IncrementalOptions = ReadOptions.parse(options).incremental

    def next(self) -> ChangeStep | None:
        """The step that is not committed, else a new one; None if there are no new commits.

        Raises: ConfigError when the checkpoint knows of a table that is not followed, or a table does not allow
            changes; CorruptFile for a damaged checkpoint.
        """
        files = self._files()
        last = max((number for number, kind in files if kind == "step"), default=None)
        earlier = {} if last is None else self._read(last)
        if last is not None and (last, "done") not in files:
            return self._step(last, earlier)
        ranges = self._new_ranges({name: end for name, (_, end) in earlier.items()})
        if all(begin == end for begin, end in ranges.values()):
            return None
        number = 0 if last is None else last + 1
        try:
            self._checkpoint.create_synced(f"{number}.step", _text(ranges))
        except PathExists:
            ranges = self._read(number)
        return self._step(number, ranges)

    def __iter__(self) -> Iterator[ChangeStep]:
        """Iterate over new steps. Raises ConfigError if a step was not committed before the next one is requested."""
        before = -1
        while (step := self.next()) is not None:
            if step.number == before:
                raise ConfigError(f"Step {step.number} was not committed: call step.commit() before the next one.")
            before = step.number
            yield step

    def _step(self, number: int, ranges: _Ranges) -> ChangeStep:
        new_ranges = {name: times for name, times in ranges.items() if times[0] != times[1]}
        scans = {name: self._scan(name, begin, end) for name, (begin, end) in new_ranges.items()}
        return ChangeStep(number, scans, self)

    def _scan(self, name: str, begin: str, end: str) -> Scan:
        if name not in self._tables:
            raise ConfigError(
                f"{self._checkpoint.root}: the checkpoint follows the table {name!r}, which is not among "
                f"{', '.join(sorted(self._tables))}. Follow it, too, or begin a new checkpoint."
            )
        # As options, because the times of a step are the table's own and must not be resolved.
        times = {BEGIN: begin or EARLIEST, END: end}
        return self._tables[name].scan(query_type="incremental", options={**self._options, **times})

    def _commit(self, number: int) -> None:
        try:
            self._checkpoint.create_synced(f"{number}.done", b"")
        except PathExists as error:
            raise WriteConflict(
                f"{self._checkpoint.root}: step {number} is committed already: another process follows with the same "
                "checkpoint, or commit was called twice. Its changes may have been processed twice."
            ) from error
        for old, kind in self._files():
            if old < number - _STEPS_KEPT:
                self._checkpoint.delete(f"{old}.{kind}")

    # ---- where a step ends

    def _new_ranges(self, begins: Mapping[str, str]) -> _Ranges:
        """All tables as they were at one moment.

        If no table has changed before the last one was loaded, that is such a moment. If tables change all the time, it
        is the time before the first load, by the clocks of the writers.
        """
        now_ms = self._clock.now_ms()
        for _ in range(_LOADS_MAX):
            metas = {name: MetaClient.load(table._handle.storage) for name, table in self._tables.items()}
            if len(metas) == 1 or all(meta.is_current() for meta in metas.values()):
                return {name: self._range(name, meta, begins, None) for name, meta in metas.items()}
        return {name: self._range(name, meta, begins, now_ms) for name, meta in metas.items()}

    def _range(self, name: str, meta: MetaClient, begins: Mapping[str, str], until_ms: int | None) -> tuple[str, str]:
        earlier = begins.get(name)
        begin = self._first_begin(meta) if earlier is None else earlier
        until = None
        if until_ms is not None:
            moment = datetime.fromtimestamp(until_ms / 1000, timezone.utc)
            until = format_instant_time(moment, meta.config.timeline_zone)
            if until <= begin:
                return begin, begin
        return begin, end_of_batch(meta, begin, self._incremental, None, until)

    def _first_begin(self, meta: MetaClient) -> str:
        since = self._since
        if not (isinstance(since, str) and since.strip().lower() == LATEST):
            since = time_of_range("since", since, meta, self._incremental)
        return first_begin(meta, since, self._incremental)

    # ---- the checkpoint

    def _files(self) -> frozenset[tuple[int, str]]:
        matches = (_FILE.fullmatch(entry.name) for entry in self._checkpoint.list(""))
        return frozenset((int(match[1]), match[2]) for match in matches if match is not None)

    def _read(self, number: int) -> _Ranges:
        where = f"{self._checkpoint.root}: {number}.step"
        expected = "a JSON object: name of a table to begin and end"
        begins = parse_json(self._checkpoint.read(f"{number}.step"), where, expected)
        ranges: _Ranges = {}
        if isinstance(begins, dict):
            for name, times in begins.items():
                if not (isinstance(times, list) and len(times) == 2 and all(map(_is_time, times))):
                    break
                ranges[name] = (times[0], times[1])
            else:
                return ranges
        raise CorruptFile(f"{where}: expected {expected}, found {begins!r:.200}. Begin a new checkpoint.")


def _text(ranges: _Ranges) -> bytes:
    return json.dumps(ranges, indent=1).encode()


def _is_time(value: object) -> bool:
    return isinstance(value, str) and _TIME.fullmatch(value) is not None
