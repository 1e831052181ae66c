"""Keys are found by the record index where the files have them; where it is wrong or absent, by the files."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.index.record_index import RecordIndexIgnored
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.locations import RecordLookup, open_record_lookup
from pyhudi.model.filenames import METADATA_TABLE_FOLDER
from pyhudi.model.keys import RECORD_KEY
from pyhudi.storage.local import LocalStorage
from tests.support.golden.folder import SHARED
from tests.support.remote_engine import RemoteEngine
from tests.support.tables.record_indexed import GLOBAL, ON, PARTITIONED, RECORDS, live_rows, table_of, tagged
from tests.support.tables.small import TestTable

TABLES = [
    *(("0.15.0", name) for name in ("mdt_all_cow", "mdt_all_mor", "mdt_compacted_a", "hfile_blocks")),
    *(("1.0.2", name) for name in ("mdt_all_cow", "secondary_a", "hfile_blocks")),
    *(("1.2.0", name) for name in ("mdt_all_cow", "mdt_all_mor", "mdt_all_mor_prli", "mdt_compacted_a", "secondary_a")),
    *(("1.2.0", name) for name in ("hfile_blocks", "upgrade_a_mor_6_v6", "upgrade_a_mor_5_v8", "upgrade_a_mor_4_v9")),
]  # fmt: skip

pytestmark = pytest.mark.skipif(not SHARED.exists(), reason="needs tables that Apache Hudi wrote")


@pytest.mark.parametrize("engine", [LocalEngine, RemoteEngine])
@pytest.mark.parametrize(("release", "name"), TABLES)
def test_rows_of_hudis_tables_are_found_where_the_files_have_them(
    release: str, name: str, engine: type, golden: Callable[[str, str], tuple[Path, dict[str, Any]]]
) -> None:
    folder, _ = golden(release, name)
    meta = MetaClient.load(LocalStorage(str(folder)))
    records = open_record_lookup(meta)
    assert isinstance(records, RecordLookup), records
    rows = live_rows(meta)
    kind, usual = (PARTITIONED, "SIMPLE") if records.is_partitioned else (GLOBAL, "GLOBAL_SIMPLE")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RecordIndexIgnored)
        found = tagged(meta, rows, kind, engine())

    assert found == tagged(meta, rows, usual, LocalEngine())
    assert all(place[3] is not None for place in found)
    assert len(found) == len(rows) > 0


@pytest.mark.thorough
@pytest.mark.parametrize("index_type", [GLOBAL, PARTITIONED])
def test_keys_do_not_come_to_the_planner_of_a_remote_engine(index_type: str) -> None:
    table, engine = table_of(index_type), RemoteEngine()
    rows = live_rows(table.meta)
    found = tagged(table.meta, pa.concat_tables([rows, rows.slice(0, 7)]), index_type, engine)

    assert len(found) == 37
    assert all(place[3] is not None for place in found)
    assert [columns for columns in engine.collected if RECORD_KEY in columns] == engine.collected[-1:], (
        "all but the last"
    )


@pytest.mark.thorough
@pytest.mark.parametrize("index_type", [GLOBAL, PARTITIONED])
def test_of_the_files_none_is_opened(index_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(index_type)
    rows = live_rows(table.meta)

    def opened(*_: object) -> None:
        raise AssertionError("a base file was opened")

    monkeypatch.setattr("pyhudi.index.key_lookup.open_base_file", opened)
    monkeypatch.setattr("pyhudi.index.stored_keys.open_base_file", opened)
    assert all(place[3] is not None for place in tagged(table.meta, rows, index_type, LocalEngine()))
    with pytest.raises(AssertionError, match="was opened"):
        tagged(table.meta, rows, "SIMPLE", LocalEngine())


@pytest.mark.thorough
def test_the_other_kind_of_record_index_is_named_and_the_files_are_read() -> None:
    table = table_of()
    rows = live_rows(table.meta)
    with pytest.warns(RecordIndexIgnored, match="it lacks file groups for each partition"):
        found = tagged(table.meta, rows, PARTITIONED, LocalEngine())
    assert found == tagged(table.meta, rows, "SIMPLE", LocalEngine())


@pytest.mark.thorough
@pytest.mark.parametrize("engine", [LocalEngine, RemoteEngine])
@pytest.mark.parametrize("fault", ["stale", "damaged", "another table's", "none"])
def test_a_record_index_that_is_not_to_be_trusted_loses_and_doubles_no_row(fault: str, engine: type) -> None:
    table = table_of()
    rows = live_rows(table.meta)
    expected = tagged(table.meta, rows, "GLOBAL_SIMPLE", LocalEngine())
    if fault == "none":
        table = TestTable(table.storage)
        table.upsert(("k000", "p0", 2, 1), metadata_enable="false")
    elif fault == "stale":
        times = [i.requested_time for i in table.meta.timeline.commits()]
        for entry in table.storage.list(f"{METADATA_TABLE_FOLDER}/.hoodie/timeline"):
            if entry.name.startswith(times[-1]):
                table.storage.delete(entry.path)
    elif fault == "another table's":
        other = table_of()
        for folder in ("p0", "p1", "p2"):
            for entry in table.storage.list(folder):
                table.storage.delete(entry.path)
            for entry in other.storage.list(folder):
                table.storage.write(entry.path, other.storage.read(entry.path))
        time, own = (t.meta.timeline.commits().instants[0] for t in (table, other))
        assert time != own
    else:
        for entry in table.storage.list(f"{METADATA_TABLE_FOLDER}/record_index"):
            if entry.size_bytes > 100:
                table.storage.delete(entry.path)
                table.storage.write(entry.path, b"#" * entry.size_bytes)
    with pytest.warns(RecordIndexIgnored):
        found = tagged(table.meta, rows, GLOBAL, engine())

    assert found == tagged(table.meta, rows, "GLOBAL_SIMPLE", LocalEngine())
    if fault != "another table's":
        assert found == expected


@pytest.mark.thorough
@pytest.mark.parametrize(("ordering", "place"), [(5, "x"), (7, "x"), (9, "y")])
def test_a_row_moves_to_another_partition_when_it_is_newer_than_the_stored_one_with_its_log_files(
    ordering: int, place: str
) -> None:
    options = {
        **ON,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.compact.inline": "false",
        RECORDS[GLOBAL]: "true",
        "hoodie.record.index.update.partition.path": "true",
        "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    }
    table = TestTable(options=options, metadata_by_default=True)
    table.upsert(("a", "x", 3, 1), ("b", "x", 3, 1))
    table.upsert(("a", "x", 8, 2))
    table.upsert(("a", "y", ordering, 3))

    assert [row[:3] for row in table.rows() if row[0] == "a"] == [("a", place, max(ordering, 8))]
