"""Files that queries do not open, step by step: never one with a row that is wanted, and each step says how many."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable
from pyhudi.expressions.predicates import And, Column, Compare, In, IsNull, Like, Not, Or, Predicate
from pyhudi.meta_client import MetaClient
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from tests.support.sweeps import examples
from tests.support.tables.clustered import Clustered
from tests.support.values.predicates import PREDICATES, SCHEMA, VALUES

NESTED = pa.struct([("x", pa.int32()), ("text", pa.string())])
KEYS = [f"k{number:02d}" for number in range(12)]
PLACES = ("Ü", "y", "z")
ALL = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), *((f.name, f.type) for f in SCHEMA), ("n", NESTED)]
)
OPTIONS = {
    "metadata_enable": "true",
    "metadata_index_bloom_filter_enable": "true",
    "metadata_global_record_level_index_enable": "true",
    "metadata_global_record_level_index_min_filegroup_count": "2",
    "metadata_index_column_stats_column_list": ",".join((*SCHEMA.names, "id", "p", "n.x", "n.text")),
    "index_type": "GLOBAL_RECORD_LEVEL_INDEX",
}


def rows(keys: list[str], ts: int, chance: random.Random) -> pa.Table:
    """Few different values in one write, so that files differ."""
    some = {name: chance.sample([*values, None], 2) for name, values in VALUES.items()}
    found: list[dict[str, Any]] = []
    for key in keys:
        row = {name: chance.choice(values) for name, values in some.items()}
        nested = chance.choice([None, {"x": ts, "text": chance.choice([None, "ß", "a"])}])
        found.append({"id": key, "p": PLACES[KEYS.index(key) % 3], "ts": ts, **row, "n": nested})
    return pa.Table.from_pylist(found, ALL)


@lru_cache
def table_of(version: str, kind: str, seed: int) -> MetaClient:
    """A table of a few writes: some rows updated, some deleted, in log files where its type has them."""
    chance = random.Random(f"{version} {kind} {seed}")
    table = Clustered(version, kind, **OPTIONS)
    for start in range(0, len(KEYS), 4):
        table.write("insert", rows(KEYS[start : start + 4], 1, chance))
    for ts in range(2, 5):
        table.write("upsert", rows(chance.sample(KEYS, 3), ts, chance))
        gone = chance.choice(KEYS)
        table.delete((gone, PLACES[KEYS.index(gone) % 3]))
    return table.meta


def kept(meta: MetaClient, where: Predicate, *, by_metadata: bool) -> tuple[list[dict[str, Any]], int]:
    """The rows by key, and how many files were skipped."""
    plan = plan_snapshot(
        meta, Query(columns=("id", "ts"), where=where, use_metadata=by_metadata, unique_keys=by_metadata)
    )
    found = [row for batch in read_batches(plan, meta.storage) for row in batch.to_pylist()]
    return sorted(found, key=lambda row: str(row["id"])), plan.files_skipped


COMPARISONS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
OWN = st.one_of(
    st.builds(Compare, st.just(Column(("n", "x"))), COMPARISONS, st.integers(0, 5)),
    st.builds(Compare, st.just(Column(("n", "text"))), COMPARISONS, st.sampled_from(["ß", "a", ""])),
    st.builds(IsNull, st.sampled_from([Column(("n", "x")), Column(("n",)), Column(("id",))])),
    st.builds(Compare, st.just(Column(("id",))), COMPARISONS, st.sampled_from([*KEYS, "nobody"])),
    st.builds(In, st.just(Column(("id",))), st.lists(st.sampled_from(KEYS), max_size=3).map(tuple), st.booleans()),
    st.builds(Like, st.just(Column(("p",))), st.sampled_from(["Ü%", "_", "y"])),
    st.builds(lambda low, high: And((Compare(Column(("i",)), ">=", low), Compare(Column(("i",)), "<=", high))),
              st.sampled_from(VALUES["i"]), st.sampled_from(VALUES["i"])),
)  # fmt: skip
EVERY = st.one_of(
    PREDICATES,
    OWN,
    st.builds(lambda one, other: And((one, other)), OWN, PREDICATES),
    st.builds(lambda one, other: Or((one, other)), OWN, PREDICATES),
    st.builds(lambda one: Not(one), OWN),
)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", ["6", pytest.param("8", marks=pytest.mark.slow), "9"])
@settings(max_examples=examples(15), deadline=None)
@given(where=EVERY, seed=st.integers(0, 1))
def test_the_pruned_scan_returns_the_rows_of_the_unpruned_one(
    version: str, kind: str, where: Predicate, seed: int
) -> None:
    meta = table_of(version, kind, seed)
    assert repr(kept(meta, where, by_metadata=True)[0]) == repr(kept(meta, where, by_metadata=False)[0])


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_every_step_says_how_many_files_it_skipped_and_by_what(kind: str) -> None:
    table = Clustered("9", kind, **{name: text for name, text in OPTIONS.items() if "column_list" not in name})
    table.insert(("a", "x", 1, 1), ("b", "y", 1, 2))
    table.insert(("c", "x", 1, 30), ("d", "y", 1, 200))
    table.upsert(("a", "x", 2, 3))
    found = HudiTable(table.meta)

    def steps(where: str, **options: str) -> list[str]:
        given = {f"hoodie.{name.replace('_', '.')}": text for name, text in options.items()}
        lines = found.scan(where=where, options=given).explain().splitlines()
        return [" ".join(line.split()[1:]) for line in lines if line.startswith("  skipped")]

    assert steps("v >= 0") == []
    assert steps("v = 30") == ["3 by column statistics (column v)"]
    assert steps("v > 150 AND ts < 5") == [
        "2 by statistics of partitions (columns ts, v)",
        "1 by column statistics (columns ts, v)",
    ]
    assert steps("p = 'x'") == ["2 by the paths of partitions (1 pruned)"]
    unique = {"pyhudi_read_unique_keys": "true"}
    assert steps("id IN ('a', 'b')", **unique) == ["2 by the record index (column id)"]
    assert steps("p = 'x' AND id = 'a'", **unique) == [
        "2 by the paths of partitions (1 pruned)",
        "1 by the record index (columns id, p)",
    ]
    found.indexes.create("by_v", columns="v")
    found = HudiTable(table.meta)
    assert steps("v = 30", **unique) == ["3 by secondary indexes (column v)"]
