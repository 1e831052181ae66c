"""A process dies at any storage call while it replaces a table: one of both tables is whole, at every moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import HudiTable, write_hudi
from pyhudi.errors import TableNotFound
from pyhudi.meta_client import MetaClient
from pyhudi.queries.validation import validate
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.staged_table import StagedTable
from pyhudi.table.save import create
from tests.support.tables.small import TestTable
from tests.support.writers.dying import READING, dies, places_to_die

Act = Callable[[MemoryStorage], object]
Rows = list[tuple[object, ...]]
OLD = [("a", "x", 1), ("b", "y", 1)]
NEW = [("c", "x", 2), ("d", "z", 2)]
NO_METADATA = {"hoodie.metadata.enable": "false"}


def rows_of(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(("id", "p", "v"), row, strict=True)) for row in rows])


def old_table(version: str, **options: str) -> MemoryStorage:
    storage = MemoryStorage()
    given = {"hoodie.write.table.version": version, **options}
    write_hudi(storage, rows_of(OLD[:1]), record_key="id", partition_by="p", table_name="t", options=given)
    write_hudi(storage, rows_of(OLD[1:]), options=options)
    return storage


def read(storage: MemoryStorage) -> Rows:
    try:
        table = HudiTable(MetaClient.load(storage))
    except TableNotFound:
        return [("no table",)]
    return sorted(tuple(row.values()) for row in table.scan(columns=["id", "p", "v"]).to_arrow().to_pylist())


def replaced(version: str, options: dict[str, str], **more: object) -> Act:
    given = {"hoodie.write.table.version": version, **options}

    def act(storage: MemoryStorage) -> object:
        return write_hudi(storage, rows_of(NEW), mode="replace", record_key="id", table_name="t", options=given, **more)

    return act


def survives_every_death(old: MemoryStorage, act: Act, after: Rows, next_row: dict[str, object]) -> None:
    counted = old.clone()
    act(counted)
    assert read(counted) == after
    left = [path for path in counted.paths() if path.startswith((".hoodie/.temp/", ".hoodie/.heartbeat/"))]
    assert not left
    outcomes, staged = set(), 0
    for kind, n in places_to_die(counted.log):
        storage = old.clone()
        verb, path = counted.log[n - 1]
        died = dies(TestTable(storage), lambda: act(storage), kind, n)  # noqa: B023
        where = f"{kind} call {n}: {verb} {path}"
        if verb in READING:
            continue
        found = read(storage)
        assert found in (OLD, after), where
        assert died or found == after, where
        outcomes.add(found == after)
        staged += isinstance(MetaClient.load(storage).storage, StagedTable)

        write_hudi(storage, [next_row], operation="insert")
        meta = MetaClient.load(storage)
        assert meta.storage is storage, where
        assert read(storage) == sorted([*found, tuple(next_row.values())]), where
        assert not meta.timeline.pending().instants, where
        assert validate(meta) == (), where
        ours = {".hoodie/.temp/", ".hoodie/.heartbeat/"}
        assert not [path for path in storage.paths() if path.startswith(tuple(ours))], where
    assert outcomes == {True, False}
    assert staged


ROW = {"id": "n", "p": "x", "v": 9}
CASES = {
    "9 by 9": ("9", "9", {}, {"partition_by": "p"}),
    "6 by 6": ("6", "6", NO_METADATA, {"partition_by": "p"}),
    "6 by 9, without partitions": ("6", "9", NO_METADATA, {}),
    "9 by 6, merge on read": ("9", "6", NO_METADATA, {"partition_by": "p", "table_type": "MERGE_ON_READ"}),
}


@pytest.mark.parametrize("name", list(CASES))
def test_a_replaced_table_is_the_old_one_or_the_new_one(name: str) -> None:
    before, after, options, more = CASES[name]
    survives_every_death(old_table(before, **options), replaced(after, options, **more), NEW, ROW)


@pytest.mark.parametrize("mode", ["METADATA_ONLY", "FULL_RECORD"])
def test_a_bootstrap_over_a_table_leaves_the_old_one_or_the_new_one(mode: str, tmp_path: Path) -> None:
    for row in NEW:
        (tmp_path / f"p={row[1]}").mkdir()
        pq.write_table(rows_of([row]).drop_columns("p"), tmp_path / f"p={row[1]}" / "a.parquet")

    def act(storage: MemoryStorage) -> object:
        options = {"hoodie.table.name": "t", **NO_METADATA}
        return pyhudi.bootstrap(tmp_path, storage, record_key="id", mode=mode, overwrite=True, options=options)

    survives_every_death(old_table("9", **NO_METADATA), act, NEW, ROW)


def test_an_empty_table_in_the_place_of_another_one_comes_whole_or_not_at_all() -> None:
    schema = rows_of(NEW).schema
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id", **NO_METADATA}

    def act(storage: MemoryStorage) -> object:
        return create(storage, schema, options, None, replaces_table=True)

    survives_every_death(old_table("9", **NO_METADATA), act, [], ROW)
