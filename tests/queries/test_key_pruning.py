"""A query for some keys opens the file groups that have them, and returns what it returned without an index."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi.expressions.binding import bind
from pyhudi.expressions.where import parse_where
from pyhudi.metadata.table import MetadataTable
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.schema import read_schema
from pyhudi.queries.skip import keys as key_pruning
from pyhudi.queries.skip.keys import MAX_KEYS, exact_keys
from pyhudi.queries.snapshot import read_batches
from tests.support.sweeps import examples
from tests.support.tables.merge_on_read import MergeOnRead
from tests.support.tables.small import TestTable

ON = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "false",
}
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}


def table_of(**options: str) -> TestTable:
    """Twelve keys in twelve file groups of three partitions."""
    table = TestTable(options={**ON, "hoodie.parquet.small.file.limit": "0", **options})
    for n in range(12):
        table.insert((f"k{n:02}", f"p{n % 3}", 1, n))
    return table


def found(table: TestTable, where: str, *, use_metadata: bool = True, **more: Any) -> tuple[list[Any], int]:
    """The rows of a query, sorted, and how many slices it opened."""
    how = {"unique_keys": True, **more}
    plan = plan_snapshot(table.meta, Query(where=where, use_metadata=use_metadata, **how))
    rows = pa.Table.from_batches(read_batches(plan, table.storage), plan.schema)
    return sorted(zip(rows.column("id").to_pylist(), rows.column("v").to_pylist(), strict=True)), len(plan.slices)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("where", "keys", "opened"),
    [
        ("id = 'k03'", ["k03"], 1),
        ("_hoodie_record_key = 'k03'", ["k03"], 1),
        ("id IN ('k03', 'k04', 'nobody')", ["k03", "k04"], 2),
        ("id = 'k03' OR id = 'k05' OR _hoodie_record_key IN ('k07')", ["k03", "k05", "k07"], 12),
        ("id = 'k03' OR id = 'k05'", ["k03", "k05"], 2),
        ("(id = 'k03' OR id = 'k05') AND v > 4", ["k05"], 2),
        ("id IN ('k03', 'k04') AND id = 'k04'", ["k04"], 1),
        ("id = 'k03' AND p = 'p1'", [], 0),
        ("id = 'nobody'", [], 0),
        ("id = 'k03' OR v = 4", ["k03", "k04"], 12),
        ("NOT id = 'k03' AND v < 5", ["k00", "k01", "k02", "k04"], 12),
        ("id <> 'k03' AND v < 2", ["k00", "k01"], 12),
        ("id LIKE 'k0%' AND v < 2", ["k00", "k01"], 12),
    ],
)
def test_only_file_groups_that_have_one_of_the_keys_are_opened(where: str, keys: list[str], opened: int) -> None:
    rows, slices = found(one_table(), where)
    assert [key for key, _ in rows] == keys
    assert slices == opened
    assert rows == found(one_table(), where, use_metadata=False)[0]


@cache
def one_table() -> TestTable:
    return table_of()


@pytest.mark.thorough
def test_keys_of_several_fields_are_made_as_the_table_makes_them() -> None:
    options = {
        "hoodie.datasource.write.recordkey.field": "id,v",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    }
    table = table_of(**options)
    assert found(table, "id = 'k03' AND v = 3") == ([("k03", 3)], 1)
    assert found(table, "id IN ('k03', 'k04') AND v IN (3, 4, 5)") == ([("k03", 3), ("k04", 4)], 2)
    assert found(table, "id = 'k03'") == ([("k03", 3)], 12), "of keys by one of their fields nothing is known"


@pytest.mark.thorough
def test_keys_of_one_field_are_found_in_either_form_of_complex_keys() -> None:
    table = table_of(**{"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"})
    assert found(table, "id = 'k03'") == ([("k03", 3)], 1)


@pytest.mark.thorough
def test_queries_of_the_past_and_of_base_files_alone_go_without_the_index() -> None:
    table = table_of(**MERGE_ON_READ)
    before = table.meta.timeline.commits().instants[-1].requested_time
    table.delete(("k03", "p0"))

    assert found(table, "id = 'k03'") == ([], 0)
    assert found(table, "id = 'k03'", as_of=before)[0] == [("k03", 3)]
    assert found(table, "id = 'k03'", query_type="read_optimized")[0] == [("k03", 3)]


@pytest.mark.thorough
def test_an_index_that_is_newer_than_the_table_as_it_was_loaded_is_not_asked() -> None:
    """Between the two another writer may have moved the key to a file group that was there already."""
    table = table_of(**{"hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX"})
    meta = table.meta
    table.upsert(("k03", "p1", 2, 33), record_index_update_partition_path="true", parquet_small_file_limit="1000000")
    known = MetadataTable.open(meta)
    assert known is not None

    assert key_pruning.groups_with_keys(known, frozenset({"k03"})) is None
    now = MetadataTable.open(table.meta)
    assert now is not None
    assert len(key_pruning.groups_with_keys(now, frozenset({"k03"})) or ()) == 1


def test_too_many_keys_are_not_looked_up() -> None:
    meta = one_table().meta
    schema = read_schema(meta, None)
    many = ", ".join(f"'{n}'" for n in range(500))
    few = bind(parse_where(f"id IN ({many})"), schema)
    assert len(exact_keys(few, meta.config, schema) or ()) >= 500
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_pruning, "MAX_KEYS", 499)
        assert exact_keys(few, meta.config, schema) is None
    assert MAX_KEYS >= 500


KEYS = st.sampled_from([f"k{n:02}" for n in range(8)])
TERM = st.one_of(
    KEYS.map(lambda key: f"id = '{key}'"),
    st.lists(KEYS, min_size=1, max_size=3).map(lambda keys: "id IN ({})".format(", ".join(f"'{k}'" for k in keys))),
    st.integers(0, 8).map(lambda v: f"v < {v}"),
    KEYS.map(lambda key: f"NOT id = '{key}'"),
)
WHERE = st.recursive(
    TERM, lambda inner: st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda t: f"({' '.join(t)})")
)


@pytest.mark.thorough
@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(where=WHERE)
def test_whatever_is_asked_the_rows_are_those_of_a_query_without_the_index(where: str) -> None:
    assert found(changed(), where)[0] == found(changed(), where, use_metadata=False)[0]


@cache
def changed() -> TestTable:
    """Some keys are in log files, some were deleted there, some are back."""
    table = MergeOnRead(**{key.removeprefix("hoodie.").replace(".", "_"): text for key, text in ON.items()})
    for n in range(8):
        table.insert((f"k{n:02}", f"p{n % 2}", 1, n), parquet_small_file_limit="0")
    table.delete(("k01", "p1"), ("k02", "p0"))
    table.upsert(("k02", "p0", 5, 22), ("k03", "p1", 5, 33))
    return table


@pytest.mark.thorough
def test_all_rows_of_a_key_in_several_file_groups_are_found_unless_keys_are_said_to_be_unique() -> None:
    table = table_of()
    table.insert(("k03", "p0", 2, 99))  # an insert does not look for the key
    rows, _ = found(table, "id = 'k03'", unique_keys=False)
    assert rows == [("k03", 3), ("k03", 99)]
    assert len(found(table, "id = 'k03'")[0]) == 1
