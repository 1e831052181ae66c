"""Queries of changes: what commits did to rows, with the rows before and after."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError
from pyhudi.model.change_logs import LOGGING_MODES
from pyhudi.model.keys import META_COLUMNS
from pyhudi.queries.incremental_range import incremental_range
from pyhudi.queries.snapshot import read_batches
from tests.support.golden.folder import SHARED, GoldenTable
from tests.support.tables.change_logs import (
    A1,
    A2,
    B1,
    B2,
    C1,
    FIELDS,
    VERSIONS,
    Change,
    changes,
    image,
    logged,
    plan,
    times,
)
from tests.support.tables.clustered import TYPES
from tests.support.tables.small import rows_of

Golden = Callable[[str, str], GoldenTable]


def golden_names() -> Iterator[tuple[str, str]]:
    for path in sorted((SHARED / "golden").glob("*/*.zip")):
        if json.loads(path.with_suffix(".json").read_text())["expected"].get("cdc"):
            yield path.parent.name, path.stem


def comparable(rows: list[dict[str, Any]]) -> list[str]:
    """Rows with their images parsed; the text `null` is not the same as null."""
    images = [(row["before"], row["after"]) for row in rows]
    parsed = [[None if text is None else [json.loads(text)] for text in pair] for pair in images]
    return sorted(
        json.dumps([row["op"], row["ts_ms"], *pair], sort_keys=True) for row, pair in zip(rows, parsed, strict=True)
    )


@pytest.mark.parametrize(("version", "name"), list(golden_names()))
def test_change_logs_of_real_hudi_return_what_real_hudi_returns(golden: Golden, version: str, name: str) -> None:
    path, description = golden(version, name)
    table = HudiTable.open(path)
    for query in description["expected"]["cdc"]:
        found = table.changes(query["begin"], query["end"], format="cdc").to_arrow().to_pylist()
        assert comparable(found) == comparable(query["rows"]), query
        if version == "1.2.0":  # older releases print columns of inferred rows in the order of a hash table
            assert sorted(map(repr, found)) == sorted(map(repr, query["rows"])), "to the letter"


def test_tables_without_meta_columns_tell_what_real_hudi_tells() -> None:
    """The texts are those of real Hudi 1.2.0 after the same writes (tests/judge/test_change_logs.py asks it again)."""
    table = logged("9", small=True, populate_meta_fields="false", index_type="SIMPLE")
    table.upsert(*((f"k{n}", f"p{n % 2}", 1, n) for n in range(3)))
    table.upsert(("k0", "p0", 2, 100), ("k9", "p0", 2, 9))
    table.delete(("k1", "p1"))
    planned = plan(table)
    found = pa.Table.from_batches(read_batches(planned, table.storage), planned.schema).to_pylist()

    assert [(row["op"], row["before"], row["after"]) for row in found] == [
        ("i", None, '{"id":"k0","p":"p0","ts":1,"v":0}'),
        ("i", None, '{"id":"k2","p":"p0","ts":1,"v":2}'),
        ("i", None, '{"id":"k1","p":"p1","ts":1,"v":1}'),
        ("u", '{"id": "k0", "p": "p0", "ts": 1, "v": 0}', '{"id": "k0", "p": "p0", "ts": 2, "v": 100}'),
        ("i", "null", '{"id": "k9", "p": "p0", "ts": 2, "v": 9}'),
        ("d", '{"id": "k1", "p": "p1", "ts": 1, "v": 1}', "null"),
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("mode", LOGGING_MODES)
def test_changes_of_a_table_without_meta_columns_are_those_of_one_with_them(
    version: str, table_type: str, mode: str
) -> None:
    def all_changes(**more: str) -> list[Change]:
        table = logged(version, table_type, mode, small=True, index_type="SIMPLE", **more)
        table.insert(A1, B1)
        table.upsert(B2, A2, C1)
        table.delete(("b", "x"), ("nobody", "x"))
        table.write("insert_overwrite", rows_of(B1))
        return changes(table)

    assert all_changes(populate_meta_fields="false") == all_changes()


def test_rows_of_a_range_need_commit_times_which_tables_without_meta_columns_lack() -> None:
    """As in real Hudi: "Incremental queries are not supported when meta fields are disabled"."""
    for more, instead in (({}, r"changes \(format='cdc'\)"), ({"table_cdc_enabled": "false"}, "Take a snapshot")):
        table = logged("9", **{"populate_meta_fields": "false", "index_type": "SIMPLE", **more})
        table.insert(A1)
        with pytest.raises(ConfigError, match=rf"needs the commit time of each row.*{instead}"):
            incremental_range(table.meta, "incremental", "earliest", None)


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("mode", LOGGING_MODES)
def test_every_operation_is_reported_with_the_rows_before_and_after(version: str, table_type: str, mode: str) -> None:
    table = logged(version, table_type, mode)
    table.insert(A1, B1)
    table.upsert(B2, A2, C1)
    table.delete(("b", "x"), ("nobody", "x"))
    table.write("insert_overwrite", rows_of(B1))
    table.write_as_is(
        "delete_partition",
        rows_of(),
        {"hoodie.datasource.write.partitions.to.delete": "x", "hoodie.compact.inline": "false"},
    )
    first, second, third, fourth, fifth = times(table)

    def between(begin: str, end: str | None = None) -> list[Change]:
        return sorted(changes(table, begin, end), key=repr)

    assert between("earliest", first) == [("i", None, A1), ("i", None, B1)]
    assert between(first, second) == [("i", None, C1), ("u", A1, A2), ("u", B1, B2)]
    assert between(second, third) == [("d", B2, None)]
    assert between(third, fourth) == [("d", A2, None), ("d", C1, None), ("i", None, B1)]
    assert between(fourth) == between(fourth, fifth) == [("d", B1, None)]
    assert between(fifth) == []
    assert plan(table, fifth).checkpoint == fifth


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mode", LOGGING_MODES)
def test_inserts_into_a_small_file_and_rows_that_lose_change_nothing_else(version: str, mode: str) -> None:
    table = logged(version, mode=mode, small=True)
    table.insert(A2, B1)
    table.insert(C1)
    table.upsert(("a", "x", 1, 9))
    one, two, _ = times(table)

    assert changes(table, one, two) == [("i", None, C1)]
    late = [("u", A2, ("a", "x", 1, 9))] if version == "6" else []  # Hudi 0.x lets the row win that comes last
    assert changes(table, two) == late


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
def test_rows_before_and_after_are_those_of_the_moment(version: str, table_type: str) -> None:
    """Also when log files and base files have gone on since; compaction and clustering change no rows."""
    table = logged(version, table_type)
    table.insert(A1, B1)
    table.upsert(A2)
    if table_type == "MERGE_ON_READ":
        table.compact_now()
    table.upsert(("a", "x", 3, 3), C1)
    table.cluster()
    table.upsert(("a", "x", 4, 4))
    table.delete(("a", "x"))

    history = [A1, A2, ("a", "x", 3, 3), ("a", "x", 4, 4)]
    of_a = [change for change in changes(table) if (change[1] or change[2] or ())[0] == "a"]
    assert of_a == [
        ("i", None, history[0]),
        *(("u", old, new) for old, new in pairwise(history)),
        ("d", history[-1], None),
    ]


def test_log_files_tell_only_what_changed_the_table() -> None:
    """A row that loses against the stored one, and a delete that does, leave no trace."""
    table = logged("9", "MERGE_ON_READ")
    table.insert(("a", "x", 5, 1), ("b", "x", 5, 1))
    before = times(table)[-1]
    table.upsert(("a", "x", 4, 9), ("b", "x", 6, 2))
    table.mark_deleted(("a", "x", 3, 0))
    table.delete(("b", "x"))
    assert changes(table, before) == [("u", ("b", "x", 5, 1), ("b", "x", 6, 2)), ("d", ("b", "x", 6, 2), None)]


@pytest.mark.parametrize("table_type", TYPES)
def test_a_row_that_moves_goes_in_one_partition_and_comes_in_the_other(table_type: str) -> None:
    table = logged("9", table_type)
    moving = {"index_type": "GLOBAL_SIMPLE", "simple_index_update_partition_path": "true"}
    table.insert(A1, B1, ("z", "y", 1, 1), **moving)
    first = times(table)[-1]
    table.upsert(("a", "y", 2, 2), **moving)

    assert changes(table, first) == [("d", A1, None), ("i", None, ("a", "y", 2, 2))]


@pytest.mark.parametrize("mode", LOGGING_MODES)
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("version", VERSIONS)
def test_deletes_come_before_inserts_in_a_commit_in_which_rows_change_places(
    version: str, table_type: str, mode: str
) -> None:
    table = logged(version, table_type, mode, small=True)
    moving = {"index_type": "GLOBAL_SIMPLE", "simple_index_update_partition_path": "true"}
    table.insert(A1, B1, ("c", "y", 1, 1), ("d", "y", 1, 1), **moving)
    first = times(table)[-1]

    table.upsert(("a", "y", 2, 2), B2, ("c", "x", 2, 2), ("d", "y", 2, 2), ("e", "x", 1, 1), **moving)

    ops = changes(table, first)
    assert [op for op, _, _ in ops][:2] == ["d", "d"]
    assert sorted(ops, key=repr) == sorted(
        [
            ("d", A1, None),
            ("d", ("c", "y", 1, 1), None),
            ("i", None, ("a", "y", 2, 2)),
            ("i", None, ("c", "x", 2, 2)),
            ("i", None, ("e", "x", 1, 1)),
            ("u", B1, B2),
            ("u", ("d", "y", 1, 1), ("d", "y", 2, 2)),
        ],
        key=repr,
    )


@pytest.mark.parametrize("mode", LOGGING_MODES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_row_that_stays_in_its_partition_has_the_value_there_that_the_snapshot_shows(version: str, mode: str) -> None:
    table = logged(version, mode=mode)
    staying = {"index_type": "GLOBAL_SIMPLE", "simple_index_update_partition_path": "false"}
    table.insert(A1, B1, **staying)
    first = times(table)[-1]
    table.upsert(("a", "y", 2, 2), **staying)
    table.upsert(("a", "z", 3, 3), **staying)
    assert [row["p"] for row in table.read().sort_by("id").to_pylist()] == ["x", "x"]

    table.delete(("a", "x"), **staying)

    assert changes(table, first) == [
        ("u", A1, ("a", "x", 2, 2)),
        ("u", ("a", "x", 2, 2), ("a", "x", 3, 3)),
        ("d", ("a", "x", 3, 3), None),
    ]


def test_images_of_base_files_have_meta_columns_and_those_of_change_logs_have_none() -> None:
    table = logged("9")
    table.insert(A1)
    table.upsert(A2)
    planned = plan(table)
    inserted, updated = pa.Table.from_batches(read_batches(planned, table.storage)).to_pylist()
    assert list(json.loads(inserted["after"])) == [*META_COLUMNS, *FIELDS]
    assert inserted["before"] is None
    assert list(json.loads(updated["before"])) == list(FIELDS)


def test_filters_and_columns_are_those_of_changes() -> None:
    table = logged("9")
    table.insert(A1, B1)
    table.upsert(A2)
    planned = plan(table, where="op = 'u'", columns=["after", "op"])
    rows = pa.Table.from_batches(read_batches(planned, table.storage)).to_pylist()
    assert [(row["op"], image(row["after"])) for row in rows] == [("u", A2)]
    assert list(rows[0]) == ["after", "op"]
    with pytest.raises(ConfigError, match="names 'v', which the table does not have"):
        plan(table, columns=["v"])


@pytest.mark.parametrize("mode", LOGGING_MODES)
@pytest.mark.parametrize(
    "options",
    [
        {"table_base_file_format": "ORC"},
        {"datasource_write_drop_partition_columns": "true", "datasource_write_hive_style_partitioning": "true"},
        {"datasource_write_payload_class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"},
    ],
)
def test_changes_of_tables_of_other_layouts_lead_to_the_snapshot(mode: str, options: dict[str, str]) -> None:
    table = logged("9", mode=mode, **options)
    table.insert(A1, B1, C1)
    table.upsert(A2, B2)
    table.delete(("c", "x"))
    rows = pa.Table.from_batches(read_batches(plan(table), table.storage)).to_pylist()
    after = {row["after"] and json.loads(row["after"])["id"]: row for row in rows if row["op"] == "u"}
    assert sorted(row["op"] for row in rows) == ["d", "i", "i", "i", "u", "u"]
    assert {key: json.loads(row["after"])["v"] for key, row in after.items()} == {"a": 2, "b": 2}
    assert {key: json.loads(row["before"])["v"] for key, row in after.items()} == {"a": 1, "b": 1}


def test_rows_of_before_a_column_was_added_are_those_of_their_time() -> None:
    """A change log keeps the schema of its commit; what is looked up in base files has the newest columns."""
    table = logged("9")
    table.insert(A1)
    table.upsert(A2)
    table.upsert_with(("a", "x", 3, 3), more="m")
    updates = pa.Table.from_batches(read_batches(plan(table), table.storage)).to_pylist()[1:]
    assert [sorted(json.loads(row["after"])) for row in updates] == [sorted(FIELDS), sorted([*FIELDS, "more"])]
    assert json.loads(updates[1]["before"])["more"] is None
