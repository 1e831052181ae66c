"""The power fails while an action runs; what readers and the next writer find when it is back."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pyhudi.errors import TableNotFound
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import META_FOLDER, BaseFileName, LogFileName
from pyhudi.model.instant import ActionKind
from pyhudi.schema.internal import decode_internal_schema, load_schema_history
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.timeline.table_properties import table_exists
from tests.support.storages.power import PowerStorage
from tests.support.tables.small import TestTable
from tests.support.writers.every_fault import Rows, in_order

Table = TypeVar("Table", bound=TestTable)


@dataclass
class Recorded:
    """An action that ran on a table to its end, and what may be seen of it in between."""

    table: TestTable
    states: list[Rows]  # before, perhaps on the way, after
    ways_on: list[Rows] = field(default_factory=list)  # what the next writer may have made of it, too

    @property
    def storage(self) -> PowerStorage:
        assert isinstance(self.table.storage, PowerStorage)
        return self.table.storage


def on(table: Table, storage: PowerStorage) -> Table:
    """The same table with another storage, and the options that go with its version."""
    other = copy.copy(table)
    other.storage = storage
    if table_exists(storage):
        version = str(MetaClient.load(storage).config.table_version)
        other.options = {**table.options, "hoodie.write.table.version": version}
    return other


def record(table: Table, act: Callable[[Table], object], states: Sequence[Rows] = ()) -> Recorded:
    """Run an action on a copy of the table that is all on the disk."""
    begin = read(table)
    copied = on(table, PowerStorage(table.memory))
    act(copied)
    after = read(copied)
    return Recorded(copied, [begin, *map(in_order, states), after], [after])


def read(table: TestTable) -> Rows:
    try:
        return TestTable.rows(table)
    except TableNotFound:
        return []


def cut(recorded: Recorded, chance: random.Random, where: str) -> tuple[TestTable, str]:
    """Let the power fail at some moment of the action, and look. The table as it is then, and which moment it was."""
    events = recorded.storage.events
    # An action that has returned must stay: its end is one moment of many, and the most important one.
    moment = chance.choice((len(events), chance.randint(0, len(events)), chance.randint(0, len(events))))
    last = f" ({events[moment - 1].verb} {events[moment - 1].path})" if moment else ""
    where = f"{where}, power cut after event {moment} of {len(events)}{last}"
    table = on(recorded.table, recorded.storage.after_cut(moment, chance))
    found = read(table)
    assert found in recorded.states, where
    assert moment < len(events) or found == recorded.states[-1], where
    check_whole(table, where)
    return table, where


def survive_a_cut(recorded: Recorded, chance: random.Random, where: str) -> None:
    """Let the power fail at some moment of the action; look; let the next writer write, and the power fail again."""
    table, where = cut(recorded, chance, where)
    go_on(table, recorded, [read(table), *recorded.ways_on], chance, where)


def go_on(table: TestTable, began: Recorded, states: list[Rows], chance: random.Random, where: str) -> TestTable:
    """The next writer writes a row, during which the power may fail again, and the writer after it another one.

    Args:    states: what the table may be when the next writer has put things right.
    """
    late = ("late", "y", 9, chance.randint(0, 99))
    table.upsert(late)
    found = read(table)
    assert found in [in_order([*state, late]) for state in states], where
    check_whole(table, where)
    check_no_strays(table, where)
    assert isinstance(table.storage, PowerStorage)
    moment = chance.randint(0, len(table.storage.events))
    where += f", again after event {moment} of {len(table.storage.events)}"
    second = on(table, table.storage.after_cut(moment, chance))
    left = read(second)
    assert left in [*began.states, *states, found], where
    check_whole(second, where)
    second.upsert(("last", "y", 9, 1))
    assert read(second) in [in_order([*rows, ("last", "y", 9, 1)]) for rows in (left, *states, found)], where
    check_whole(second, where)
    check_no_strays(second, where)
    return second


def check_whole(table: TestTable, where: str) -> None:
    """Every file that a completed instant names is there with its size, or was cleaned; the schema that the last one
    names is the newest of the history.
    """
    if not table_exists(table.storage):
        return
    meta = table.meta
    archived = load_archived_timeline(meta.storage, meta.config).times()
    cleaned = set()
    for instant in meta.timeline.of([ActionKind.CLEAN]):
        if instant.is_completed:
            by_path = {path: found.deleted for path, found in meta.reader.clean_metadata(instant).partitions.items()}
        else:
            plan = meta.reader.clean_plan(instant)
            by_path = dict(plan.files) if plan is not None else {}
        cleaned |= {(path, name) for path, names in by_path.items() for name in names}
    for instant in meta.timeline.commits():
        for stat in meta.commits.metadata(instant).stats():
            if stat.path is None or (stat.partition_path or "", stat.path.rpartition("/")[2]) in cleaned:
                continue
            entry = meta.storage.stat(stat.path)
            if entry is None and archived:
                continue  # cleaned by a clean that was archived, perhaps; what is read is compared anyway
            assert entry is not None, f"{where}: {instant.requested_time} names {stat.path}, which is gone"
            assert entry.size_bytes == stat.file_size_in_bytes, f"{where}: {stat.path} has {entry.size_bytes} bytes"
    last = meta.timeline.last_commit()
    named = None if last is None else meta.commits.metadata(last).extra_metadata.get("latest_schema")
    if named is not None:
        history = load_schema_history(meta.storage, meta.config, meta.timeline)
        versions = [schema.version_id for schema in history]
        assert versions[:1] == [decode_internal_schema(named).version_id], f"{where}: the history has {versions}"


def check_no_strays(table: TestTable, where: str) -> None:
    """No data file is of an instant that nobody knows: it would count as committed when the timeline has moved on.
    Nothing is pending but plans that wait.
    """
    meta = table.meta
    known = {instant.requested_time for instant in meta.timeline}
    known |= {instant.requested_time for instant in load_archived_timeline(meta.storage, meta.config).times()}
    for entry in table.storage.walk(""):
        name = BaseFileName.parse(entry.name) or LogFileName.parse(entry.name)
        if name is not None and not entry.path.startswith(META_FOLDER):
            assert name.instant_time in known, f"{where}: {entry.path} is of no instant"
    failed = [i for i in meta.timeline.pending() if i.action.is_commit or i.action.is_undoing]
    assert not [i for i in failed if meta.reader.clustering_plan(i) is None], f"{where}: {failed}"
