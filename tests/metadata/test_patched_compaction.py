"""Compactions that patch base files keep the same records as those that write all of them anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyhudi.errors import HudiError
from pyhudi.formats.hfile import HFileReader
from pyhudi.formats.hfile.patching import HFilePatch
from pyhudi.metadata.compaction import compact_if_due
from pyhudi.model.instant import ActionKind
from pyhudi.queries.validation import validate
from tests.support.golden.metadata_tables import plain
from tests.support.sweeps import SAMPLED
from tests.support.tables.patched import patch_always
from tests.support.tables.record_indexed import GLOBAL, RECORDS
from tests.support.tables.small import TestTable
from tests.support.tables.with_metadata import ON, metadata_of
from tests.support.writers.dying import on_clone

INDEXED = {
    **ON,
    RECORDS[GLOBAL]: "true",
    "hoodie.index.type": GLOBAL,
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "1",
    "hoodie.metadata.global.record.level.index.max.filegroup.count": "1",
    "hoodie.metadata.index.column.stats.column.list": "id",
}


def indexed(rows: int, version: str = "9", kind: str = "MERGE_ON_READ", **more: str) -> TestTable:
    options = {**INDEXED, "hoodie.write.table.version": version, "hoodie.datasource.write.table.type": kind, **more}
    table = TestTable(options=options)
    table.bulk_insert(*((f"k{n:05}", f"p{n % 3}", 1, n) for n in range(rows)))
    return table


@pytest.fixture
def patches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many keys were changed in each base file that was patched."""
    found: list[int] = []
    write = HFilePatch.write

    def noted(self: HFilePatch, sink: Any) -> tuple[int, int]:
        found.append(len(self.keys))
        return write(self, sink)

    monkeypatch.setattr(HFilePatch, "write", noted)
    return found


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    patch_always(monkeypatch)


def compacted(table: TestTable) -> dict[str, list[Any]]:
    after = compact_if_due(metadata_of(table), 1)
    assert not any(found.log_files for name in after.partitions for found in after.slices(name))
    return {name: plain(after.records(name)) for name in after.partitions}


def test_few_writes_into_a_large_index_patch_its_base_file(patches: list[int]) -> None:
    table = indexed(4000)
    compacted(table)
    assert not patches  # there was nothing to patch
    (before,) = metadata_of(table).slices("record_index")
    table.upsert(("k00007", "p1", 2, 70), ("new-1", "p0", 2, 1), ("k00007x", "p1", 2, 2))
    table.delete(("k00100", "p1"))
    found = compacted(table)
    assert patches == [3]  # the new keys and the deleted one: the other is where it was
    (after,) = metadata_of(table).slices("record_index")
    assert before.base_file is not None
    assert after.base_file is not None
    assert len(found["record_index"]) == 4001
    storage = metadata_of(table).meta.storage
    first, second = (storage.open_input(file.path) for file in (before.base_file, after.base_file))
    old, new = (
        [stored[:16] + stored[24:] for stored, _ in HFileReader(source, "x").stored_blocks()]
        for source in (first, second)
    )
    assert len(old) > 8
    assert len(set(old) - set(new)) <= 3
    assert validate(table.meta) == ()


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind"), [("6", "COPY_ON_WRITE"), ("8", "MERGE_ON_READ"), ("9", "MERGE_ON_READ")])
def test_any_writes_leave_the_records_of_compactions_that_rewrite_all(
    version: str, kind: str, always: None, patches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    random, table = np.random.default_rng(7), indexed(40, version, kind)
    compacted(table)
    for step in range(12):
        numbers = random.choice(60, 6, replace=False).tolist()
        if step % 3 == 2:
            table.delete(*((f"k{n:05}", f"p{n % 3}") for n in numbers[:3]))
        else:
            table.upsert(*((f"k{n:05}", f"p{n % 3}", 2 + step, n) for n in numbers))
        if step % 4 == 3:
            other = on_clone(table)
            with monkeypatch.context() as patch:
                patch.setattr(HFilePatch, "of", lambda *_: None)
                expected = compacted(other)
            before = len(patches)
            assert compacted(table) == expected, step
            assert len(patches) >= before + 3  # the list of files, statistics, the index
            assert validate(table.meta) == ()
            assert table.rows() == other.rows()


@pytest.mark.thorough
def test_a_death_in_a_compaction_that_patches_leaves_the_table_as_it_was(always: None) -> None:
    table = indexed(40, **{"hoodie.metadata.compact.max.delta.commits": "2"})
    table.upsert(("k00001", "p1", 2, 1))
    row = ("new-1", "p1", 3, 5)
    rehearsal = on_clone(table)
    rehearsal.upsert(row)
    calls = [n for n, (verb, path) in enumerate(rehearsal.memory.log, 1) if path.endswith(".hfile")]
    assert metadata_of(rehearsal).meta.timeline.completed().of([ActionKind.COMMIT]).instants
    for call in calls[:: 4 if SAMPLED else 1]:
        dying = on_clone(table)
        dying.memory.fail_at(call)
        with pytest.raises(HudiError):
            dying.upsert(row)
        dying.memory.reset_faults()
        assert len(dying.rows()) == 40
        dying.upsert(row)
        assert len(dying.rows()) == 41
        assert validate(dying.meta) == ()
