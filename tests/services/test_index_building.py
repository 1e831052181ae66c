"""Indexes that are built while writers go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError, TableError, WriteConflict
from pyhudi.metadata.schema import MetadataKind, kind_of
from pyhudi.metadata.sorted_runs import spilled
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.instant import ActionKind
from pyhudi.model.options import WriteOptions
from pyhudi.model.timeline import Timeline
from pyhudi.queries.validation import validate
from pyhudi.services import index_building
from pyhudi.table.calls import serve
from pyhudi.timeline.heartbeat import Heartbeat
from pyhudi.transaction.instants import TimelineWriter
from tests.support.tables.clustered import Clustered
from tests.support.tables.small import Row

ON = {"metadata_enable": "true", "metadata_index_column_stats_enable": "false"}
RECORD_INDEX = {
    "metadata_global_record_level_index_enable": "true",
    "metadata_global_record_level_index_min_filegroup_count": "2",
    "metadata_global_record_level_index_max_filegroup_count": "2",
}
FEW = {"hoodie." + key.replace("_", "."): text for key, text in RECORD_INDEX.items() if "filegroup" in key}
INDEXES: dict[str, dict[str, Any]] = {
    "record_index": {},
    "column_stats": {"columns": ["v"]},
    "bloom_filters": {},
    "by_v": {"columns": "v"},
    "up": {"expression": "upper(p)"},
}
CASES = [
    (name, version, kind)
    for name in INDEXES
    for version, kind in (("9", "COPY_ON_WRITE"), ("9", "MERGE_ON_READ"), ("8", "COPY_ON_WRITE"))
]


def table_for(name: str, version: str = "9", kind: str = "COPY_ON_WRITE") -> Clustered:
    table = Clustered(version, kind, **ON, **(RECORD_INDEX if name == "by_v" else {}))
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 1, 30))
    return table


def schedule(table: Clustered, name: str) -> None:
    HudiTable(table.meta).indexes.create(name, schedule_only=True, options=FEW, **INDEXES[name])


def build(table: Clustered) -> list[str]:
    return [one.name for one in HudiTable(table.meta).indexes.build(options=FEW)]


def partition(table: Clustered) -> str:
    config = table.meta.config
    listed = (*config.metadata_partitions, *config.metadata_partitions_inflight)
    own = {"files", "record_index"} if any(name.startswith("secondary") for name in listed) else {"files"}
    (found,) = set(listed) - own
    return found


def records(table: Clustered) -> list[str]:
    """What the index knows, without times."""
    found = MetadataTable.open(table.meta)
    assert found is not None
    name = partition(table)
    rows = []
    for record in found.records(name).to_pylist():
        if kind_of(name) is MetadataKind.RECORD_INDEX:
            record["recordIndexMetadata"]["instantTime"] = None
        if kind_of(name) is MetadataKind.BLOOM_FILTERS:
            record["BloomFilterMetadata"]["timestamp"] = None
        rows.append(str(record))
    return sorted(rows)


def check(table: Clustered) -> None:
    """The index is what it would be if it was built now, of all files: none was cleaned."""
    assert validate(table.meta) == ()
    name = partition(table)
    kept = records(table)
    HudiTable(table.meta).metadata.rebuild(partitions=[name], options=FEW)
    again = records(table)
    if kind_of(name) is MetadataKind.EXPRESSION_INDEX:
        again = [text for text in again if "'type': 3" in text]
    assert set(again) <= set(kept)
    if kind_of(name) in (MetadataKind.RECORD_INDEX, MetadataKind.SECONDARY_INDEX):
        assert again == kept


def changes(table: Clustered) -> None:
    table.upsert(("a", "x", 2, 11), ("d", "z", 1, 20))
    table.delete(("b", "x"))
    table.upsert(("c", "y", 5, 31))
    HudiTable(table.meta).rollback()
    table.upsert(("b", "x", 3, 10), ("e", "y", 1, 30))


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "version", "kind"), CASES)
def test_an_index_that_writers_wrote_to_while_it_waited_is_the_one_built_afterwards(
    name: str, version: str, kind: str
) -> None:
    table = table_for(name, version, kind)
    schedule(table, name)
    before = table.meta
    assert partition(table) in before.config.metadata_partitions_inflight
    assert [i.action for i in before.timeline.pending()] == [ActionKind.INDEXING]
    changes(table)
    assert build(table) == [partition(table)]
    assert not table.meta.timeline.pending().instants
    assert partition(table) in table.meta.config.metadata_partitions
    assert not table.meta.config.metadata_partitions_inflight
    check(table)
    table.upsert(("a", "x", 9, 10), ("f", "z", 1, 1))
    check(table)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "version", "kind"), CASES)
def test_what_writers_do_between_reading_the_table_and_the_end_is_in_the_index(
    name: str, version: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_for(name, version, kind)
    acts: list[Callable[[Clustered], object]] = [lambda t: t.upsert(("x", "x", 1, 7)), _rolls_back, changes]
    _between(monkeypatch, table, acts)
    HudiTable(table.meta).indexes.create(name, while_writing=True, options=FEW, **INDEXES[name])
    assert len(acts) == 1  # the second one took back what was read: it is read again, and changes came then
    check(table)


@pytest.mark.thorough
def test_an_index_that_waited_until_what_wrote_to_it_was_archived_is_built_under_the_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = table_for("by_v")
    schedule(table, "by_v")
    changes(table)
    found = MetadataTable.open(table.meta)
    assert found is not None
    assert not index_building._has_archived_logs(found, "secondary_index_by_v")
    first = found.meta.timeline.completed().of([ActionKind.DELTACOMMIT]).instants[-1]
    timeline = Timeline([i for i in found.meta.timeline if i.requested_time != first.requested_time])
    archived = replace(found, meta=replace(found.meta, timeline=timeline), _slices=found._slices)
    found.slices("secondary_index_by_v")
    assert index_building._has_archived_logs(archived, "secondary_index_by_v")
    monkeypatch.setattr(index_building, "_has_archived_logs", lambda *_: True)
    assert build(table) == ["secondary_index_by_v"]
    check(table)


def _rolls_back(table: Clustered) -> None:
    HudiTable(table.meta).rollback()


def _between(monkeypatch: pytest.MonkeyPatch, table: Clustered, acts: list[Callable[[Clustered], object]]) -> None:
    """After each reading of the table, the next of these acts; the first is done before."""
    acts.pop(0)(table)

    def reading(groups: Any, folder: str) -> Any:
        found = spilled(groups, folder)
        if len(acts) > 1:
            acts.pop(0)(table)
        return found

    monkeypatch.setattr(index_building, "spilled", reading)


@pytest.mark.thorough
def test_a_builder_that_died_is_followed_by_the_next_one() -> None:
    table = table_for("by_v")
    schedule(table, "by_v")
    (instant,) = table.meta.timeline.pending()
    plan = instant.requested_time
    heartbeat = Heartbeat(table.storage, plan, table.clock, 60_000)
    TimelineWriter(table.storage, table.meta.config).start(instant)
    heartbeat.beat()
    with pytest.raises(WriteConflict, match="another process is building the index"):
        build(table)
    table.storage.set_modified(f".hoodie/.heartbeat/{plan}", 0)
    table.upsert(("a", "x", 2, 11))
    assert build(table) == ["secondary_index_by_v"]
    check(table)


def test_what_can_t_be_built_while_writers_go_on_is_refused_and_leaves_nothing() -> None:
    table = Clustered("6", "COPY_ON_WRITE", **ON)
    table.bulk_insert(("a", "x", 1, 10))
    with pytest.raises(ConfigError, match="from table version 8 on"):
        schedule(table, "record_index")
    table = table_for("by_v")
    with pytest.raises(ConfigError, match="needs one column, found none"):
        HudiTable(table.meta).indexes.create("by_v", while_writing=True)
    assert not table.meta.timeline.pending().instants
    assert not table.meta.config.metadata_partitions_inflight
    with pytest.raises(TableError, match="no index waits to be built as of 1"):
        serve(table.storage, partial(index_building.run_index_plan, instant_time="1"), WriteOptions(), table.engine)


def test_an_index_that_waits_can_be_dropped_and_is_made_once() -> None:
    table = table_for("up")
    schedule(table, "up")
    with pytest.raises(ConfigError, match="already"):
        schedule(table, "up")
    HudiTable(table.meta).indexes.drop("up")
    assert build(table) == []
    assert not table.meta.timeline.pending().instants
    rows: list[Row] = [("a", "x", 2, 11)]
    table.upsert(*rows)
    assert validate(table.meta) == ()
