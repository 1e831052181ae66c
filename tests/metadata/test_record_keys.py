"""Keys and file groups of metadata records against what the classes of Apache Hudi compute."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.metadata.keys import (
    bloom_filter_key,
    column_stats_key,
    partition_stats_key,
    secondary_key,
    secondary_parts,
    shards,
    stored_partition,
)
from pyhudi.metadata.schema import partitioned_file_group_id
from tests.support.golden.folder import SHARED

_PATH = SHARED / "golden" / "record-index-cases.json"

pytestmark = pytest.mark.skipif(not _PATH.exists(), reason="needs the cases that Apache Hudi computed")


@pytest.fixture(scope="module")
def cases() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_PATH.read_text())
    return found


def test_every_key_belongs_to_the_file_group_that_hudi_says(cases: dict[str, Any]) -> None:
    for case in cases["shard_of_key"]:
        found = {count: int(shards(pa.array([case["key"]]), int(count))[0]) for count in case["shards"]}
        assert found == case["shards"], case["key"]


def test_keys_of_statistics_and_bloom_filters_are_those_of_hudi(cases: dict[str, Any]) -> None:
    for case in cases["column_stats_key"]:
        assert column_stats_key(case["column"], case["partition"], case["file"]) == case["key"]
    for case in cases["bloom_filter_key"]:
        assert bloom_filter_key(case["partition"], case["file"]) == case["key"]
    for case in cases["partition_stats_key"]:
        assert partition_stats_key(case["column"], stored_partition(case["partition"])) == case["key"]


def test_secondary_keys_and_their_file_groups_of_both_versions_are_those_of_hudi(cases: dict[str, Any]) -> None:
    for case in cases["secondary_index_key"]:
        key = secondary_key(case["secondary"], case["record_key"])
        assert key == case["index_key"]
        assert secondary_parts(key) == (case["secondary"], case["record_key"])
        for by_value, name in ((True, "shard_v2"), (False, "shard_v1")):
            found = {n: int(shards(pa.array([key]), int(n), by_secondary_value=by_value)[0]) for n in case[name]}
            assert found == case[name], (key, name)


def test_file_groups_of_a_partitioned_record_index_have_the_names_that_hudi_gives(cases: dict[str, Any]) -> None:
    for case in cases["partitioned_record_index_file_id"]:
        assert partitioned_file_group_id(case["data_partition"], 3) == case["file_id_3"]


def test_many_keys_are_spread_as_each_alone() -> None:
    keys = pa.array([f"key-{n}" for n in range(1000)] + ["polygenelubricants", "\U0001f600"])
    together = shards(keys, 10)
    alone = np.array([shards(keys.slice(n, 1), 10)[0] for n in range(len(keys))])
    assert np.array_equal(together, alone)
    assert together[-2:].tolist() == [8, 9]
