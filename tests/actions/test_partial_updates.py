"""Updates that write the changed columns only, and when whole rows are written in their place."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.sql.duckdb_session import DuckDbSession
from tests.support.tables.changed import SCHEMA, Changed, blocks, row


@pytest.mark.parametrize(("version", "ordering", "in_part"), [(9, "ts", True), (9, None, None), (8, "ts", True)])
def test_an_update_of_a_merge_on_read_table_writes_the_changed_columns_only(
    version: int, ordering: str | None, in_part: bool | None
):
    changed = Changed("MERGE_ON_READ", version, ordering, partial_updates=in_part)
    changed.upsert(*(row(number) for number in range(8)))

    result = changed.table.update("v >= 6", set={"note": None}, options=changed.options)

    assert (result.operation, result.updated, result.files_rewritten, result.log_files_written) == ("UPDATE", 2, 0, 2)
    written = blocks(changed.table)
    assert [block.is_partial for block in written] == [True, True]
    for block in written:
        data = [name for name in block.rows().column_names if not name.startswith("_hoodie_")]
        assert data == ["ts", "note"] if ordering else ["note"]  # the ordering value says which row wins
    assert changed.table.to_arrow(["note"], "v >= 6").column(0).to_pylist() == [None, None]


@pytest.mark.parametrize(("version", "ordering"), [(8, None), (6, "ts"), (6, None)])
def test_whole_rows_go_to_the_log_where_hudi_of_the_tables_version_reads_no_partial_ones(
    version: int, ordering: str | None
):
    changed = Changed("MERGE_ON_READ", version, ordering, partial_updates=True)
    changed.upsert(*(row(number) for number in range(8)))
    changed.update("v = 6", lambda row: row["v"] == 6, {"note": "six"}, note="six")
    assert [block.is_partial for block in blocks(changed.table)] == [False]
    changed.check()


def test_a_row_is_once_in_a_log_file_that_takes_whole_rows_and_updates_of_some_columns():
    changed = Changed("MERGE_ON_READ", 9, None)
    changed.options |= {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    changed.upsert(row(0), row(2))
    rows = [{**row(0), "v": 70}, row(4)]

    merge = changed.table.merge(rows, options=changed.options).when_matched_update({"v": "source.v"})
    result = merge.when_not_matched_insert("*").execute()

    newest = blocks(changed.table)[-2:]
    assert [(block.is_partial, len(block.rows())) for block in newest] == [(True, 1), (False, 1)]
    assert (result.inserted + result.updated, result.log_files_written) == (2, 1)
    assert changed.table.to_arrow(["v"], "id = 'k0'").to_pylist() == [{"v": 70}]


def test_whole_rows_go_to_the_log_when_partial_updates_are_switched_off():
    changed = Changed("MERGE_ON_READ", 9, None, partial_updates=False)
    changed.upsert(*(row(number) for number in range(8)))
    changed.update("v = 6", lambda row: row["v"] == 6, {"note": "six"}, note="six")
    changed.merge([{**row(7, 9), "gone": False}])
    assert [block.is_partial for block in blocks(changed.table)] == [False, False]
    changed.check()


def test_whole_rows_go_to_the_log_of_writers_that_do_not_wait_for_each_other():
    changed = Changed("MERGE_ON_READ", 9, None)
    changed.options |= {
        "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": "IN_PROCESS",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
    }
    changed.upsert(row(0), row(2))
    changed.update("v = 2", lambda row: row["v"] == 2, {"note": "two"}, note="two")
    assert not any(block.is_partial for block in blocks(changed.table))
    changed.check()


def update_by_call(table: HudiTable) -> None:
    table.update("id = 'k0'", set={"v": 82})


def update_by_merge(table: HudiTable) -> None:
    table.merge([{"id": "k0", "p": "x", "v": 82}]).when_matched_update({"v": "source.v"}).execute()


def update_by_sql(table: HudiTable) -> None:
    DuckDbSession(tables={"t": table.path}).sql("UPDATE t SET v = 82 WHERE id = 'k0'")


def update_by_sql_merge(table: HudiTable) -> None:
    source = "(SELECT 'k0' AS id, 'x' AS p, 82 AS v) AS s"
    on = "t.id = s.id AND t.p = s.p"
    DuckDbSession(tables={"t": table.path}).sql(
        f"MERGE INTO t USING {source} ON {on} WHEN MATCHED THEN UPDATE SET v = s.v"
    )


@pytest.mark.parametrize("change", [update_by_call, update_by_merge, update_by_sql, update_by_sql_merge])
@pytest.mark.parametrize("version", [9, 8, 6])
def test_a_row_that_comes_late_takes_no_column_of_a_changed_row(version: int, change: Callable[[HudiTable], None]):
    found = []
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        changed = Changed(table_type, version, "ts")
        changed.upsert(row(0, ts=8, v=1, note="eight"))
        change(changed.table)
        changed.table.upsert(pa.Table.from_pylist([row(0, ts=4, v=0, note="four")], SCHEMA), options=changed.options)
        found.append(changed.table.to_arrow(["ts", "v", "note"]).to_pylist())
        if table_type == "MERGE_ON_READ":
            assert changed.table.compact().runs
            found.append(changed.table.to_arrow(["ts", "v", "note"]).to_pylist())
    assert found == [[{"ts": 8, "v": 82, "note": "eight"}]] * 3


@pytest.mark.thorough
def test_log_compaction_keeps_partial_updates_partial():
    changed = Changed("MERGE_ON_READ", 9, "ts", partial_updates=True)
    changed.upsert(*(row(number) for number in range(8)))
    for value in ("a", "b", "c"):
        changed.update("p = 'x'", lambda row: row["p"] == "x", {"note": value}, note=value)
        changed.update("v = 2", lambda row: row["v"] == 2, {"tags": [value]}, tags=[value])
    changed.table.maintenance.log_compact(options={"hoodie.log.compaction.blocks.threshold": "2"})
    changed.check()
    changed.table.compact()
    changed.check()


def test_an_update_with_a_lower_ordering_value_changes_nothing():
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        changed = Changed(table_type, 9, "ts", partial_updates=True)
        changed.upsert(row(1, ts=10))
        changed.update(None, lambda row: True, {"ts": 5, "note": "late"}, ts=5, note="late")
        assert changed.table.to_arrow(["note"]).column(0).to_pylist() == ["n1"]
        changed.update(None, lambda row: True, {"ts": 10, "note": "tie"}, note="tie")
        changed.check()


@pytest.mark.parametrize("block_format", ["avro", "parquet"])
def test_an_update_does_not_revive_values_of_a_version_that_came_late(block_format: str):
    changed = Changed("MERGE_ON_READ", 9, "ts", block_format, partial_updates=True)
    changed.upsert(*(row(number) for number in range(8)))
    changed.upsert(row(0, ts=0, v=1000))

    changed.table.update("id IN ('k0', 'k2')", set={"tags": ["new"]}, options=changed.options)

    changed.change(lambda row: row["id"] in ("k0", "k2"), tags=["new"])
    changed.check()
    assert sorted(block.is_partial for block in blocks(changed.table)) == [False, False, True]


@pytest.mark.parametrize("block_format", ["avro", "parquet"])
def test_an_update_that_lost_by_its_ordering_value_lends_nothing_to_the_next(block_format: str):
    changed = Changed("MERGE_ON_READ", 9, "ts", block_format, partial_updates=True)
    changed.upsert(*(row(number) for number in range(8)))

    changed.table.update("id = 'k0'", set={"ts": 5, "v": 1000}, options=changed.options)
    changed.table.update("id = 'k0'", set={"tags": ["new"]}, options=changed.options)

    changed.change(lambda row: row["id"] == "k0", tags=["new"])
    changed.check()
