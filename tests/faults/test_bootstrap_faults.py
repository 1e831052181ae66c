"""A process dies at any storage call of a bootstrap: there is no row or every row, and the next call begins anew."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import write_hudi
from pyhudi.errors import TableExists
from pyhudi.formats.bootstrap import BASE_PATH_KEY, FILE_INDEX_PATH, PARTITION_INDEX_PATH
from pyhudi.queries.validation import validate
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.table_properties import load_table_config, table_exists
from tests.support.tables.small import TestTable
from tests.support.writers.dying import READING, dies, places_to_die

COLUMNS = ["id", "ts", "p"]
ROWS = [("a", 1, "x"), ("b", 2, "x"), ("c", 3, "y")]
NEW = {"id": "n", "ts": 9, "p": "y"}
VERSIONS = ["6", "9"]
MIXED = "MIXED"  # the rows of p=x stay, those of p=y are copied


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for p in ("x", "y"):
        rows = [{"id": key, "ts": ts} for key, ts, part in ROWS if part == p]
        (tmp_path / f"p={p}").mkdir()
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"p={p}" / "a.parquet")
    return tmp_path


def bootstrap(source: Path, storage: MemoryStorage, mode: str, version: str) -> object:
    options = {"hoodie.write.table.version": version, "hoodie.table.name": "t"}
    regex = "p=x" if mode == MIXED else None
    mode = "METADATA_ONLY" if mode == MIXED else mode
    return pyhudi.bootstrap(source, storage, record_key="id", ordering="ts", mode=mode, regex=regex, options=options)


def rows(storage: MemoryStorage) -> list[tuple[object, ...]]:
    return TestTable(storage).rows(COLUMNS) if table_exists(storage) else []


def deaths_of(source: Path, mode: str, version: str) -> list[tuple[MemoryStorage, str]]:
    whole = MemoryStorage()
    bootstrap(source, whole, mode, version)
    left = []
    for kind, n in places_to_die(whole.log):
        table = TestTable(MemoryStorage())
        verb, path = whole.log[n - 1]
        died = dies(table, lambda: bootstrap(source, table.memory, mode, version), kind, n)  # noqa: B023
        if not (died and verb in READING):
            left.append((table.memory, f"{kind} call {n}: {verb} {path}"))
    return left


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mode", ["METADATA_ONLY", "FULL_RECORD", MIXED])
def test_the_next_bootstrap_starts_over(source: Path, mode: str, version: str) -> None:
    outcomes = set()
    for storage, where in deaths_of(source, mode, version):
        found = rows(storage)
        assert found in ([], ROWS), where
        outcomes.add(bool(found))
        if found:
            with pytest.raises(TableExists):
                bootstrap(source, storage, mode, version)
        else:
            bootstrap(source, storage, mode, version)
        assert rows(storage) == ROWS, where
        meta = TestTable(storage).meta
        assert not meta.timeline.pending().instants, where
        assert validate(meta) == (), where
    assert outcomes == {True, False}


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["METADATA_ONLY", MIXED])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_writer_without_options_undoes_a_dead_bootstrap(source: Path, mode: str, version: str) -> None:
    pending = 0
    for storage, where in deaths_of(source, mode, version):
        found = rows(storage)
        if not table_exists(storage) or found:
            continue
        pending += bool(TestTable(storage).meta.timeline.pending().instants)
        TestTable(storage).write_as_is("upsert", pa.Table.from_pylist([NEW]))
        assert rows(storage) == [tuple(NEW[name] for name in COLUMNS)], where
        meta = TestTable(storage).meta
        assert not meta.timeline.pending().instants, where
        assert storage.stat(FILE_INDEX_PATH) is None, where
        assert validate(meta) == (), where
    assert pending


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["METADATA_ONLY", MIXED])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_next_writer_finds_nothing_of_a_dead_bootstrap(source: Path, mode: str, version: str) -> None:
    for storage, where in deaths_of(source, mode, version):
        found = rows(storage)
        options = {"hoodie.write.table.version": version, "hoodie.table.name": "t"}
        write_hudi(storage, [NEW], record_key="id", partition_by="p", ordering="ts", options=options)
        expected = sorted([*found, tuple(NEW[name] for name in COLUMNS)], key=repr)
        assert sorted(rows(storage), key=repr) == expected, where
        meta = TestTable(storage).meta
        assert not meta.timeline.pending().instants, where
        assert validate(meta) == (), where
        has_index = [storage.stat(path) is not None for path in (FILE_INDEX_PATH, PARTITION_INDEX_PATH)]
        assert has_index == [bool(found)] * 2, where
        assert (BASE_PATH_KEY in load_table_config(storage).properties) == bool(found), where
