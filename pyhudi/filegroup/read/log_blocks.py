"""The blocks of a slice's log files that count, in merge order, and log files that lack bytes of completed writes.

A write stat records how many bytes its write put into a log file. No bytes are missing if the complete blocks of that
instant add up to this size, anywhere in the file. Otherwise committed rows or deletes are lost. No stat names the
blocks of a writer that never completed, so its incomplete blocks are no damage.

Source: docs/formats/file-names.md, "Visible slices"; docs/formats/log.md, "Which blocks count", "Damaged log files";
docs/formats/timeline.md, "Commit metadata".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa

from pyhudi.engine.base import EngineOf, FrameT, TaskContext
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import CorruptFile, DamagedLog
from pyhudi.formats.damage import as_corrupt
from pyhudi.formats.log.envelope import CorruptRange
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.model.file_group import CommittedBytes, FileSlice, LogFile
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options.files import READ_DAMAGED_LOGS, REWRITE_DAMAGED_LOGS
from pyhudi.model.table_format import TableFormat
from pyhudi.storage.base import Storage
from pyhudi.warnings import warn_caller

__all__ = [
    "READING",
    "REWRITING",
    "BlockRules",
    "DamageRules",
    "FindDamage",
    "LogTotals",
    "blocks_of",
    "blocks_to_merge",
    "check_columns",
    "find_damage",
    "report_damage",
    "scan_slice",
]


@dataclass(frozen=True, slots=True)
class BlockRules:
    """The rules that decide which blocks count.

    `is_committed`: tells if a block's instant is completed, or older than the active timeline. Called only below table
    version 8; from 8 on whole files have already been left out. `latest_instant`: blocks of later instants do not count
    (time travel); None: all do. `instants`: only their blocks count (incremental reads); None: all.
    `committed_columns`: returns the data columns in the schema of an instant's commit, None if unknown.
    """

    table_version: int
    is_committed: Callable[[str], bool]
    latest_instant: str | None = None
    instants: frozenset[str] | None = None
    committed_columns: Callable[[str], frozenset[str] | None] | None = None

    def counts(self, instant_time: str) -> bool:
        """True if data and delete blocks of this instant count."""
        if self.latest_instant is not None and instant_time > self.latest_instant:
            return False
        if self.instants is not None and instant_time not in self.instants:
            return False
        return TableFormat(self.table_version).has_own_log_files or self.is_committed(instant_time)


def check_columns(
    block: LogBlock, missing: Collection[str], known: Collection[str], rules: BlockRules, *, has_meta: bool
) -> None:
    """Raise CorruptFile if a data block has a column with a damaged name: the block lacks a column that its commit has,
    and has one that the commit does not have. Blocks that are older than a column rightly lack it.

    Args:    missing: columns to read that the block lacks; known: those of the table; has_meta: rows have meta columns.
    """
    meta = frozenset(META_COLUMNS) if has_meta else frozenset[str]()
    strangers = _names_of(block) - set(known) - frozenset(META_COLUMNS)
    if not strangers:
        return
    committed = None if rules.committed_columns is None else rules.committed_columns(block.instant_time)
    expected = frozenset(missing) & (meta | (committed or frozenset()))
    unknown = strangers - (committed or frozenset())
    if expected and unknown:
        missing_names, unknown_names = (", ".join(sorted(names)) for names in (expected, unknown))
        raise CorruptFile(
            f"{block.where}: the commit {block.instant_time} has the column {missing_names!r:.200}; found "
            f"{unknown_names!r:.200}. A name is damaged, and the column would be null. Restore the file from a copy."
        )


def _names_of(block: LogBlock) -> frozenset[str]:
    with as_corrupt(block.where, "the schema in the header"):
        return frozenset(str(field["name"]) for field in json.loads(block.schema_json)["fields"])


@dataclass(frozen=True, slots=True)
class LogTotals:
    """Totals of the log files of a slice. `records`: rows and deletes in the `blocks` that count; `instants`: the
    instants that wrote them, oldest first.
    """

    blocks: int = 0
    records: int = 0
    instants: tuple[str, ...] = ()
    corrupt_blocks: int = 0
    rollback_blocks: int = 0


def blocks_to_merge(storage: Storage, log_files: Sequence[LogFile], rules: BlockRules) -> tuple[LogBlock, ...]:
    """Data and delete blocks of one slice, oldest first; rolled-back, uncommitted and compacted ones are left out.

    Args:    log_files: of the slice, in their order (instant, version, token), without change logs.
    Raises:  CorruptFile, UnsupportedTable.
    """
    return blocks_of((part for log in log_files for part in scan_log(storage, log.path)), rules)


def blocks_of(parts: Iterable[LogBlock | CorruptRange], rules: BlockRules) -> tuple[LogBlock, ...]:
    """Like `blocks_to_merge`, for scanned blocks."""
    by_place: dict[int, LogBlock] = {}
    places: dict[str, list[int]] = {}  # of an instant's blocks: avoids a scan of all blocks for each rollback
    for place, block in enumerate(parts):
        if isinstance(block, CorruptRange):
            continue
        target = block.rollback_target
        if target is not None:
            for earlier in places.pop(target, ()):
                del by_place[earlier]
        elif (block.is_data or block.is_delete) and rules.counts(block.instant_time):
            by_place[place] = block
            places.setdefault(block.instant_time, []).append(place)
    blocks = tuple(by_place.values())
    if any(block.compacted_instants for block in blocks):
        return _without_compacted(blocks)
    return blocks


def _without_compacted(blocks: Sequence[LogBlock]) -> tuple[LogBlock, ...]:
    """The blocks without those that a log compaction merged; its block replaces the newest of them."""
    by_instant: dict[str, list[LogBlock]] = {}
    for block in blocks:
        by_instant.setdefault(block.instant_time, []).append(block)
    replaced_by: dict[str, str] = {}
    emitted: set[str] = set()
    newest_first: list[list[LogBlock]] = []
    for instant, group in reversed(list(by_instant.items())):
        members = [time for block in group for time in block.compacted_instants]
        final = replaced_by.get(instant, instant)
        if members:
            for member in members:
                replaced_by[member] = final
            continue
        if final not in emitted:
            emitted.add(final)
            newest_first.append(by_instant[final])
    return tuple(block for group in reversed(newest_first) for block in group)


DAMAGE = pa.schema([("damage", pa.string())])
# Each header needs some reads: a few hundred files take this process less time than a Spark job of some 100 ms.
_LOGS_HERE_MAX = 256
_LOGS_OF_TASK = 8
_SCAN_THREADS = 8  # headers are small: scanning is bound by the store, not by the processor

READING = f"Its rows are read without them; {READ_DAMAGED_LOGS}=fail makes that an error."
REWRITING = (
    "Rewritten, its rows would lack them permanently. Restore the file from a copy and try again, or accept the loss "
    f"with {REWRITE_DAMAGED_LOGS}=true."
)


@dataclass(frozen=True, slots=True)
class DamageRules:
    """The reaction to a damaged log file. Picklable.

    `raises`: damage is an error, else a warning; `advice`: the last sentence of either. `archived`: returns the bytes
    that archived writes put into a log file; called only if the file is empty or holds bytes outside blocks.
    """

    raises: bool
    advice: str
    archived: Callable[[LogFile], tuple[CommittedBytes, ...]] | None = None

    def report(self, damage: str) -> None:
        """Warn of the damage that `find_damage` returned, or raise DamagedLog."""
        text = f"{damage} {self.advice}"
        if self.raises:
            raise DamagedLog(text)
        warn_caller(text)


def _scan(storage: Storage, log: LogFile) -> list[LogBlock | CorruptRange]:
    """The parts of a log file (`scan_log`); a missing file has none. Raises CorruptFile, UnsupportedTable."""
    return [] if log.is_missing else list(scan_log(storage, log.path))


def scan_slice(storage: Storage, file_slice: FileSlice, rules: DamageRules | None) -> list[LogBlock | CorruptRange]:
    """The blocks of a slice's log files; `rules` report their damage first. Raises like `DamageRules.report`."""
    scanned: list[LogBlock | CorruptRange] = []
    for log in file_slice.log_files:
        parts = _scan(storage, log)
        damage = None if rules is None else find_damage(storage, log, parts, rules)
        if rules is not None and damage is not None:
            rules.report(damage)
        scanned += parts
    return scanned


def find_damage(
    storage: Storage, log: LogFile, parts: Sequence[LogBlock | CorruptRange], rules: DamageRules
) -> str | None:
    """A message's beginning that says which bytes a log file lacks; None if it has all bytes of completed writes.

    Args:    log: the file, with the bytes of completed writes; parts: its blocks and corrupt ranges, from `scan_log`.
    """
    corrupt = [part for part in parts if isinstance(part, CorruptRange)]
    committed = log.committed
    if rules.archived is not None and (corrupt or not parts):
        active = {write.instant_time for write in committed}
        committed = (*(write for write in rules.archived(log) if write.instant_time not in active), *committed)
    complete_bytes: Counter[str] = Counter()
    for part in parts:
        if isinstance(part, LogBlock):
            complete_bytes[part.instant_time] += part.frame.end - part.frame.offset
    committed_bytes: Counter[str] = Counter()
    for write in committed:
        committed_bytes[write.instant_time] += write.size_bytes
    gaps = [
        f"of {written_bytes:,} bytes that {instant_time} put into it "
        f"{max(0, written_bytes - complete_bytes[instant_time]):,} are in no whole block"
        for instant_time, written_bytes in sorted(committed_bytes.items())
        if complete_bytes[instant_time] < written_bytes
    ]
    if not gaps:
        return None
    return f"{storage.root}: the log file {log.path} is damaged: {'; '.join(gaps)} ({_where(log, parts, corrupt)})."


def _where(log: LogFile, parts: Sequence[LogBlock | CorruptRange], corrupt: Sequence[CorruptRange]) -> str:
    if log.is_missing:
        return "the file is missing"
    if corrupt:
        return ", ".join(f"bytes {part.offset:,} to {part.end:,}: {part.reason}" for part in corrupt[:3])
    end = max((part.end if isinstance(part, CorruptRange) else part.frame.end for part in parts), default=0)
    return f"it ends at byte {end:,}"


@dataclass(frozen=True, slots=True)
class FindDamage:
    """Fan-out work: return a row of DAMAGE for each log file of a task that lacks bytes."""

    storage: Storage
    rules: DamageRules

    def __call__(self, context: TaskContext, task: Sequence[LogFile]) -> Iterator[pa.RecordBatch]:
        damages = [find_damage(self.storage, log, _scan(self.storage, log), self.rules) for log in task]
        yield pa.RecordBatch.from_arrays([pa.array([text for text in damages if text], pa.string())], schema=DAMAGE)


def report_damage(engine: EngineOf[FrameT], storage: Storage, slices: Iterable[FileSlice], rules: DamageRules) -> None:
    """Check the log files of slices before they are used, and report those that lack bytes.

    Args:    engine: does the check if there are too many files for this process.
    Raises:  DamagedLog instead of a warning, depending on `rules`; CorruptFile, UnsupportedTable.
    """
    logs = [log for file_slice in slices for log in file_slice.log_files]
    if not logs:
        return
    is_local = len(logs) <= _LOGS_HERE_MAX
    tasks = [logs[first : first + _LOGS_OF_TASK] for first in range(0, len(logs), _LOGS_OF_TASK)]
    work = FindDamage(storage, rules)
    for damage in _collected(LocalEngine(_SCAN_THREADS), tasks, work) if is_local else _collected(engine, tasks, work):
        rules.report(damage)


def _collected(engine: EngineOf[FrameT], tasks: Sequence[Sequence[LogFile]], work: FindDamage) -> list[str]:
    rows = engine.collect(engine.fan_out(tasks, work, DAMAGE))
    return cast("list[str]", rows.column(0).to_pylist())
