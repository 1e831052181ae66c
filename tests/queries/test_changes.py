"""Queries of changes: what commits did to rows, with the rows before and after."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable, RangeNotReadable
from pyhudi.errors import ConfigError, CorruptFile
from pyhudi.model.change_logs import LOGGING_MODES
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options.queries import IncrementalOptions
from pyhudi.queries.change_files import changes_of_commits
from pyhudi.queries.incremental import plan_incremental
from pyhudi.queries.incremental_range import incremental_range
from pyhudi.queries.plan import ReadPlan
from pyhudi.queries.snapshot import count_rows, read_batches
from pyhudi.timeline.table_properties import update_table_config
from tests.support.golden.folder import SHARED, GoldenTable
from tests.support.tables.clustered import TYPES, Clustered
from tests.support.tables.model import ROWS
from tests.support.tables.small import Row, TestTable, rows_of

Golden = Callable[[str, str], GoldenTable]
VERSIONS = ("6", "8", "9")
CDC = IncrementalOptions(format="cdc")
LATEST = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
FIELDS = ("id", "p", "ts", "v")
Image = tuple[Any, ...]
Change = tuple[str, Image | None, Image | None]


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


def logged(
    version: str,
    table_type: str = "COPY_ON_WRITE",
    mode: str = "DATA_BEFORE_AFTER",
    *,
    small: bool = False,
    **more: str,
) -> Clustered:
    """A table with change logs. `small`: inserts fill up small files."""
    cdc = {"table_cdc_enabled": "true", "table_cdc_supplemental_logging_mode": mode}
    table = Clustered(version, table_type, **{**cdc, **more})
    if small:
        table.options = {key: text for key, text in table.options.items() if key != "hoodie.parquet.small.file.limit"}
    return table


def plan(table: TestTable, begin: str = "earliest", end: str | None = None, **query: Any) -> ReadPlan:
    wanted = incremental_range(table.meta, "incremental", begin, end, options=CDC)
    assert wanted is not None
    return plan_incremental(table.meta, wanted, **query)


def image(text: str | None) -> Image | None:
    row = None if text is None else json.loads(text)
    return None if row is None else tuple(row[name] for name in FIELDS)


def changes(table: TestTable, begin: str = "earliest", end: str | None = None) -> list[Change]:
    """(op, before, after) in the order in which they come, images as (id, p, ts, v)."""
    planned = plan(table, begin, end)
    rows = pa.Table.from_batches(read_batches(planned, table.storage), planned.schema).to_pylist()
    assert count_rows(planned, table.storage) == len(rows)
    return [(row["op"], image(row["before"]), image(row["after"])) for row in rows]


def replayed(target: dict[Image, Image], found: list[Change]) -> None:
    """Do to a dict what the changes say. Each must find the row that it says was there before."""
    for op, before, after in found:
        key = (before or after or ())[:2]
        assert target.get(key) == before, (op, before, after)
        assert (before is None, after is None) == {"i": (True, False), "u": (False, False), "d": (False, True)}[op]
        if after is None:
            del target[key]
        else:
            assert after[:2] == key
            target[key] = after


def times(table: TestTable) -> list[str]:
    """Of the commits, in the order of ranges."""
    meta = table.meta
    by_completion = meta.config.table_version >= 8
    return sorted((i.completion_time or "") if by_completion else i.requested_time for i in meta.timeline.commits())


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


A1, B1, C1, A2, B2 = ("a", "x", 1, 1), ("b", "x", 1, 1), ("c", "x", 1, 1), ("a", "x", 2, 2), ("b", "x", 2, 2)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("mode", LOGGING_MODES)
def test_every_operation_is_told_with_the_rows_before_and_after(version: str, table_type: str, mode: str) -> None:
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

    assert sorted(changes(table, first)) == [("d", A1, None), ("i", None, ("a", "y", 2, 2))]


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
def test_files_that_were_cleaned_are_an_error_that_names_the_oldest_begin(mode: str) -> None:
    table = logged("9", mode=mode)
    table.insert(A1)
    table.upsert(A2)
    table.upsert(("a", "x", 3, 3))
    first, second, _ = times(table)
    body = table.meta.commits.metadata(table.meta.timeline.commits().instants[1])
    (path,) = body.stats()[0].cdc_stats or {}
    table.storage.delete(path)

    with pytest.raises(RangeNotReadable, match=rf"deleted by cleaning.*oldest begin that can be read is {second}"):
        changes(table, first)
    assert changes(table, second) == [("u", A2, ("a", "x", 3, 3))]


def test_a_base_file_that_a_change_needs_is_missed_by_name() -> None:
    table = logged("6", mode="OP_KEY_ONLY")
    table.insert(A1)
    table.upsert(A2)
    body = table.meta.commits.metadata(table.meta.timeline.commits().instants[0])
    table.storage.delete(body.stats()[0].path or "")
    with pytest.raises(RangeNotReadable, match="deleted by cleaning"):
        changes(table, times(table)[0])


def test_commits_of_before_the_table_logged_changes_are_an_error_that_says_where_to_begin() -> None:
    table = Clustered("9")
    table.insert(A1)
    table.upsert(A2)
    second = times(table)[-1]
    with pytest.raises(ConfigError, match=r"does not log changes \(hoodie.table.cdc.enabled=false\)"):
        plan(table)
    update_table_config(table.storage, {"hoodie.table.cdc.enabled": "true"})
    table.options = {**table.options, "hoodie.table.cdc.enabled": "true"}
    table.upsert(("a", "x", 3, 3))

    with pytest.raises(RangeNotReadable, match=rf"without a change log.*Begin at {second}"):
        changes(table)
    assert changes(table, second) == [("u", A2, ("a", "x", 3, 3))]


def test_a_damaged_change_log_is_an_error() -> None:
    table = logged("9")
    table.insert(A1)
    table.upsert(A2)
    (path,) = (info.path for info in table.storage.walk("") if info.path.endswith(".cdc"))
    whole = table.storage.read(path)
    table.storage.write(path, whole[:-9])
    with pytest.raises(CorruptFile, match="expected a change log"):
        changes(table)


@pytest.mark.parametrize(
    "path",
    ["../x", "y/.f-0_1.log.1_0-1-0.cdc", "x/.f-0_20240101000000000.log.1_0-1-0.cdc", ".hoodie/hoodie.properties"],
)
def test_a_commit_that_names_a_file_of_somebody_else_is_not_believed(path: str) -> None:
    table = logged("9")
    table.insert(A1)
    table.upsert(A2)
    newest = table.meta.timeline.last_commit()
    assert newest is not None
    (stat,) = table.meta.commits.metadata(newest).stats()
    forged = CommitMetadata({"x": (replace(stat, cdc_stats={path: 1}),)}, operation_type="UPSERT")
    with pytest.raises(CorruptFile, match="which it is not"):
        changes_of_commits(table.meta, [(newest, forged)])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"query_type": "cdc"}, "incremental_format='cdc'"),
        ({"incremental_format": "cdc"}, "with a query of type snapshot: give query_type='incremental'"),
        ({"query_type": "incremental", "begin": "earliest", "incremental_format": "avro"}, "expected 'latest_state'"),
        (
            {
                "query_type": "incremental",
                "begin": "earliest",
                "incremental_format": "cdc",
                "options": {"hoodie.datasource.query.incremental.format": "latest_state"},
            },
            "is given twice",
        ),
    ],
)
def test_what_can_not_be_meant_is_refused(tmp_path: Path, arguments: dict[str, Any], says: str) -> None:
    table = HudiTable.create(tmp_path / "t", pa.schema([("id", pa.string())]), record_key="id", cdc=True)
    with pytest.raises(ConfigError, match=says):
        table.scan(**arguments)


OPERATIONS = st.sampled_from(["upsert", "insert", "delete", "insert_overwrite", "mark", "compact", "cluster"])
LIFE = st.lists(st.tuples(OPERATIONS, ROWS), min_size=2, max_size=6)


def live(table: Clustered, operation: str, rows: list[Row]) -> None:
    """One step of a table's life."""
    if operation == "compact":
        if table.meta.config.is_merge_on_read:
            table.compact_now()
    elif operation == "cluster":
        table.cluster()
    elif operation == "delete":
        table.delete(*{row[:2] for row in rows})
    elif operation == "mark":
        table.mark_deleted(*rows)
    else:
        known = {(row[0], row[1]) for row in table.rows()} if operation == "insert" else set()
        fresh = [row for row in rows if (row[0], row[1]) not in known]
        if fresh:
            table.write(operation, rows_of(*fresh))


@settings(max_examples=25)
@given(LIFE, st.sampled_from(VERSIONS), st.sampled_from(TYPES), st.sampled_from(LOGGING_MODES), st.data())
def test_a_table_that_follows_the_changes_is_always_equal(
    life: list[tuple[str, list[Row]]], version: str, table_type: str, mode: str, data: st.DataObject
) -> None:
    """Changes of any cut of the timeline, replayed in order: each finds the row that it says was there before."""
    table = logged(version, table_type, mode, small=data.draw(st.booleans()), datasource_write_payload_class=LATEST)
    target: dict[Image, Image] = {}
    begin = "earliest"
    for operation, rows in [("upsert", [("first", "x", 0, 0)]), *life]:
        live(table, operation, rows)
        if data.draw(st.booleans()):
            planned = plan(table, begin)
            replayed(target, changes(table, begin))
            begin = planned.checkpoint or begin
            assert sorted(target.values()) == sorted(table.rows())
    replayed(target, changes(table, begin))
    assert sorted(target.values()) == sorted(table.rows())


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("mode", LOGGING_MODES)
def test_changes_by_filters_and_merges_are_found_too(tmp_path: Path, table_type: str, mode: str) -> None:
    """On merge-on-read tables these write the changed columns only."""
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
    more = {"cdc": True, "cdc_logging_mode": mode, "table_type": table_type, "partition_by": "p"}
    table = HudiTable.create(tmp_path / "t", schema, record_key="id", ordering="ts", **more)
    table.insert(rows_of(A1, B1, C1))
    table.update("id = 'a'", set={"v": 9})
    table.merge([{"id": "b", "p": "x", "v": 5}, {"id": "n", "p": "x", "v": 6}]).when_matched_update(
        {"v": "source.v"}
    ).when_not_matched_insert({"v": "source.v", "ts": 1}).execute()
    table.delete(where="id = 'c'")

    target: dict[Image, Image] = {}
    found = table.changes("earliest", format="cdc").to_arrow().to_pylist()
    replayed(target, [(row["op"], image(row["before"]), image(row["after"])) for row in found])
    assert sorted(target.values()) == [("a", "x", 1, 9), ("b", "x", 1, 5), ("n", "x", 1, 6)]
    assert len(found) == 7


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
