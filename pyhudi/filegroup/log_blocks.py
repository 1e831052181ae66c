"""Which blocks of a slice's log files count, in the order in which they are merged.

Source: docs/formats/file-names.md, "Visible slices"; docs/formats/log.md, "Which blocks count".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pyhudi.formats.log.envelope import CorruptRange
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.model.file_group import LogFile
from pyhudi.storage.base import Storage

__all__ = ["BlockRules", "LogTotals", "blocks_of", "blocks_to_merge"]


@dataclass(frozen=True, slots=True)
class BlockRules:
    """What makes a block count.

    `is_committed`: is the block's instant completed, or older than the active timeline? Called below table version 8
    only; from 8 on whole files are left out before they get here. `latest_instant`: blocks of later instants do not
    count (time travel); None: all do. `instants`: only blocks of these (incremental reads); None: all.
    """

    table_version: int
    is_committed: Callable[[str], bool]
    latest_instant: str | None = None
    instants: frozenset[str] | None = None

    def counts(self, instant_time: str) -> bool:
        """Does a data or delete block of this instant count?"""
        if self.latest_instant is not None and instant_time > self.latest_instant:
            return False
        if self.instants is not None and instant_time not in self.instants:
            return False
        return self.table_version >= 8 or self.is_committed(instant_time)


@dataclass(frozen=True, slots=True)
class LogTotals:
    """What was found in the log files of a slice. `records`: rows and deletes of the `blocks` that count, `instants`
    those that wrote them, oldest first.
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
    return blocks_of((found for log in log_files for found in scan_log(storage, log.path)), rules)


def blocks_of(found: Iterable[LogBlock | CorruptRange], rules: BlockRules) -> tuple[LogBlock, ...]:
    """`blocks_to_merge` of blocks that were scanned already."""
    kept: dict[int, LogBlock] = {}
    places: dict[str, list[int]] = {}  # of an instant's blocks: a log of commands only must not look at all for each
    for place, block in enumerate(found):
        if isinstance(block, CorruptRange):
            continue
        target = block.rollback_target
        if target is not None:
            for earlier in places.pop(target, ()):
                del kept[earlier]
        elif (block.is_data or block.is_delete) and rules.counts(block.instant_time):
            kept[place] = block
            places.setdefault(block.instant_time, []).append(place)
    blocks = tuple(kept.values())
    if any(block.compacted_instants for block in blocks):
        return _without_compacted(blocks)
    return blocks


def _without_compacted(blocks: Sequence[LogBlock]) -> tuple[LogBlock, ...]:
    """Blocks that a log compaction merged give way to its block, which takes the place of the newest of them."""
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
