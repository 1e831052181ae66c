"""Update, delete by a filter and merge: the table ends like a dict that was changed in the same way."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable
from pyhudi.errors import ConfigError
from tests.support.tables.changed import NAMES, OPTIONS, SCHEMA, Changed, row

KINDS = [
    (table_type, version, ordering)
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ")
    for version in (6, 8, 9)
    for ordering in ("ts", None)
]
NUMBERS = st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True)
VALUES = st.integers(0, 1000)
STEPS = st.one_of(
    st.tuples(st.just("upsert"), NUMBERS, st.integers(0, 20), VALUES),
    st.tuples(st.just("update"), NUMBERS, st.integers(0, 20), VALUES),
    st.tuples(st.just("reorder"), NUMBERS, st.integers(0, 20), VALUES),
    st.tuples(st.just("delete"), NUMBERS, st.integers(0, 20), VALUES),
    st.tuples(st.just("merge"), NUMBERS, st.integers(0, 20), VALUES),
    st.tuples(st.just("compact"), NUMBERS, st.integers(0, 20), VALUES),
)


@pytest.mark.thorough
@pytest.mark.parametrize(("table_type", "version", "ordering"), KINDS)
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, min_size=2, max_size=7), block_format=st.sampled_from(["avro", "parquet"]))
def test_random_changes_end_like_a_dict(
    table_type: str, version: int, ordering: str | None, steps: list[Any], block_format: str
):
    changed = Changed(table_type, version, ordering, block_format)
    changed.upsert(*(row(number) for number in range(8)))
    for word, numbers, ts, value in steps:
        names = ", ".join(f"'k{number}'" for number in numbers)
        keys = {f"k{number}" for number in numbers}
        if word == "upsert":
            changed.upsert(*(row(number, ts, value + number) for number in numbers))
        elif word == "update":
            new: Any = lambda row: row["v"] * 2  # noqa: E731
            changed.update(f"v < {value}", lambda row, value=value: row["v"] < value, {"v": pc.field("v") * 2}, v=new)
        elif word == "reorder":
            values = {"ts": ts, "tags": [str(value)]}
            changed.update(f"id IN ({names})", lambda row, keys=keys: row["id"] in keys, values, **values)
        elif word == "delete":
            changed.delete(f"id IN ({names})", lambda row, keys=keys: row["id"] in keys)
        elif word == "merge":
            changed.merge([{**row(number, ts, value + number), "gone": number % 3 == 0} for number in numbers])
        elif table_type == "MERGE_ON_READ":
            changed.table.compact()
            changed.partly.clear()
        changed.check()
    if table_type == "MERGE_ON_READ":
        changed.table.compact()
        changed.check()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_files_without_matching_rows_stay_as_they_are(table_type: str):
    changed = Changed(table_type, 9, "ts")
    changed.upsert(*(row(number) for number in range(8)))
    before = changed.table.inspect.files()
    result = changed.table.update("v > 100", values={"note": "x"})
    assert (result.updated, result.files_rewritten, result.log_files_written) == (0, 0, 0)
    assert changed.table.inspect.files() == before
    assert changed.table.delete(where="v = 3").partitions == ("y",)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_that_the_source_of_a_merge_does_not_have_are_deleted(table_type: str):
    changed = Changed(table_type, 9, "ts")
    changed.upsert(*(row(number) for number in range(8)))
    source = pa.Table.from_pylist([row(1), row(6)], SCHEMA)

    merge = changed.table.merge(source, options=changed.options)
    result = merge.when_not_matched_by_source_delete("v < 5").execute()

    assert result.deleted == 4
    assert sorted(changed.table.to_arrow(["v"])["v"].to_pylist()) == [1, 5, 6, 7]


@pytest.mark.thorough
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "BUCKET", "BLOOM"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_changes_go_with_every_index(table_type: str, index: str):
    changed = Changed(table_type, 9, "ts")
    changed.options |= {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"}
    changed.upsert(*(row(number) for number in range(8)))
    changed.update("v > 4", lambda row: row["v"] > 4, {"note": "u"}, note="u")
    changed.merge([{**row(number, 11, number * 2), "gone": number == 3} for number in range(2, 12)])
    changed.delete("v = 8", lambda row: row["v"] == 8)
    changed.check()


def test_with_a_global_index_a_merge_leaves_rows_in_their_partition():
    changed = Changed("COPY_ON_WRITE", 9, "ts")
    options = {"hoodie.index.type": "GLOBAL_SIMPLE"}
    changed.table.upsert(pa.Table.from_pylist([row(1), row(2)], SCHEMA), options=options)
    source = pa.Table.from_pylist([row(1, 11, 100, p="elsewhere"), row(3, p="new")], SCHEMA)
    merge = changed.table.merge(source, options=options).when_matched_update_all().when_not_matched_insert_all()
    result = merge.execute()
    assert (result.operation, result.inserted, result.updated) == ("MERGE", 1, 1)
    found = changed.table.to_arrow(["id", "p", "v"]).sort_by("id").to_pylist()
    assert found == [
        {"id": "k1", "p": "y", "v": 100},
        {"id": "k2", "p": "x", "v": 2},
        {"id": "k3", "p": "new", "v": 3},
    ]


def test_rows_of_a_table_with_generated_keys_can_be_updated_and_deleted():
    table = HudiTable.create(f"memory://changes-{next(NAMES)}", SCHEMA, table_name="t", options=OPTIONS)
    table.insert(pa.Table.from_pylist([row(number) for number in range(4)], SCHEMA))
    assert table.update("id = 'k1'", values={"note": "u"}).updated == 1
    assert table.delete(where="id = 'k2'").deleted == 1
    found = table.to_arrow(["id", "note"]).sort_by("id").to_pylist()
    assert found == [{"id": "k0", "note": "n0"}, {"id": "k1", "note": "u"}, {"id": "k3", "note": "n3"}]
    with pytest.raises(ConfigError, match="no key fields"):
        table.merge([{"id": "k0", "note": "x"}]).when_matched_update_all().execute()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_tables_without_meta_columns_are_changed_by_their_computed_keys(table_type: str):
    options = {"hoodie.populate.meta.fields": "false", **OPTIONS}
    table = HudiTable.create(
        f"memory://changes-{next(NAMES)}", SCHEMA, record_key="id", partition_by="p", table_name="t",
        table_type=table_type, options=options,
    )  # fmt: skip
    table.insert(pa.Table.from_pylist([row(number) for number in range(4)], SCHEMA))
    table.update("v >= 2", values={"note": "u"})
    table.delete(where="v = 3")
    merge = table.merge([{"id": "k0", "p": "x", "v": 50}]).when_matched_update({"v": "source.v"})
    merge.execute()
    found = table.to_arrow(["id", "v", "note"]).sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in found] == [("k0", 50, "n0"), ("k1", 1, "n1"), ("k2", 2, "u")]
