"""Updates that write the changed columns only, and when whole rows are written in their place."""

from __future__ import annotations

import pytest

from tests.support.tables.changed import Changed, blocks, row


@pytest.mark.parametrize(("version", "ordering"), [(9, "ts"), (9, None), (8, "ts")])
def test_an_update_of_a_merge_on_read_table_writes_the_changed_columns_only(version: int, ordering: str | None):
    changed = Changed("MERGE_ON_READ", version, ordering)
    changed.upsert(*(row(number) for number in range(8)))

    result = changed.table.update("v >= 6", set={"note": None})

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
    changed = Changed("MERGE_ON_READ", version, ordering)
    changed.upsert(*(row(number) for number in range(8)))
    changed.update("v = 6", lambda row: row["v"] == 6, {"note": "six"}, note="six")
    assert [block.is_partial for block in blocks(changed.table)] == [False]
    changed.check()


def test_whole_rows_go_to_the_log_when_partial_updates_are_switched_off():
    changed = Changed("MERGE_ON_READ", 9, "ts")
    changed.upsert(*(row(number) for number in range(8)))
    changed.options = {**changed.options, "hoodie.spark.sql.merge.into.partial.updates": "false"}
    changed.update("v = 6", lambda row: row["v"] == 6, {"note": "six"}, note="six")
    changed.merge([{**row(7, 9), "gone": False}])
    assert [block.is_partial for block in blocks(changed.table)] == [False, False]
    changed.check()


def test_log_compaction_keeps_partial_updates_partial():
    changed = Changed("MERGE_ON_READ", 9, "ts")
    changed.upsert(*(row(number) for number in range(8)))
    for value in ("a", "b", "c"):
        changed.update("p = 'x'", lambda row: row["p"] == "x", {"note": value}, note=value)
        changed.update("v = 2", lambda row: row["v"] == 2, {"tags": [value]}, tags=[value])
    changed.table.log_compact(options={"hoodie.log.compaction.blocks.threshold": "2"})
    changed.check()
    changed.table.compact()
    changed.check()


def test_an_update_with_a_lower_ordering_value_changes_nothing():
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        changed = Changed(table_type, 9, "ts")
        changed.upsert(row(1, ts=10))
        changed.update(None, lambda row: True, {"ts": 5, "note": "late"}, ts=5, note="late")
        assert changed.table.to_arrow(["note"]).column(0).to_pylist() == ["n1"]
        changed.update(None, lambda row: True, {"ts": 10, "note": "tie"}, note="tie")
        changed.check()


@pytest.mark.parametrize("block_format", ["avro", "parquet"])
def test_an_update_does_not_revive_values_of_a_version_that_came_late(block_format: str):
    changed = Changed("MERGE_ON_READ", 9, "ts", block_format)
    changed.upsert(*(row(number) for number in range(8)))
    changed.upsert(row(0, ts=0, v=1000))

    changed.table.update("id IN ('k0', 'k2')", set={"tags": ["new"]}, options=changed.options)

    changed.change(lambda row: row["id"] in ("k0", "k2"), tags=["new"])
    changed.check()
    assert sorted(block.is_partial for block in blocks(changed.table)) == [False, False, True]


@pytest.mark.parametrize("block_format", ["avro", "parquet"])
def test_an_update_that_lost_by_its_ordering_value_lends_nothing_to_the_next(block_format: str):
    changed = Changed("MERGE_ON_READ", 9, "ts", block_format)
    changed.upsert(*(row(number) for number in range(8)))

    changed.table.update("id = 'k0'", set={"ts": 5, "v": 1000}, options=changed.options)
    changed.table.update("id = 'k0'", set={"tags": ["new"]}, options=changed.options)

    changed.change(lambda row: row["id"] == "k0", tags=["new"])
    changed.check()
