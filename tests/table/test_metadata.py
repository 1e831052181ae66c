"""`table.metadata`: tables of real Hudi are right, and what is wrong is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError
from tests.support.golden.folder import Golden

_TABLES = [
    ("0.15.0", "mdt_all_cow"),
    ("0.15.0", "mdt_all_mor"),
    ("0.15.0", "mdt_compacted_a"),
    ("1.0.2", "secondary_a"),
    ("1.2.0", "mdt_all_cow"),
    ("1.2.0", "mdt_all_mor"),
    ("1.2.0", "mdt_all_mor_prli"),
    ("1.2.0", "mdt_compacted_a"),
    ("1.2.0", "skipping_a_cow"),
]


@pytest.mark.parametrize(("hudi", "name"), _TABLES)
def test_the_metadata_tables_of_hudi_are_found_to_be_right(hudi: str, name: str, golden: Golden) -> None:
    path, _ = golden(hudi, name)
    assert HudiTable.open(path).metadata.validate() == ()


def test_a_file_that_changed_its_size_is_found(golden: Golden) -> None:
    path, _ = golden("1.2.0", "mdt_compacted_a")
    file = next(path.rglob("*.parquet"))
    file.write_bytes(file.read_bytes() + b"more")
    found = HudiTable.open(path).metadata.validate()
    assert [(d.partition, d.where) for d in found if d.partition == "files"] == [("files", str(file.relative_to(path)))]


def test_a_lost_block_of_the_record_index_is_found_by_the_keys_that_miss(golden: Golden, tmp_path: Path) -> None:
    path, _ = golden("1.2.0", "mdt_all_mor")
    index = path / ".hoodie" / "metadata" / "record_index"
    for log in index.glob(".record-index-*_20261121055018525.log.*"):
        log.unlink()
    found = HudiTable.open(path).metadata.validate()
    assert {d.partition for d in found} == {"record_index"}
    assert any("no entry" in d.found for d in found)


def test_a_partition_that_is_not_there_is_refused_by_name(golden: Golden) -> None:
    path, _ = golden("1.2.0", "mdt_compacted_a")
    metadata = HudiTable.open(path).metadata
    assert "files" in metadata.partitions
    with pytest.raises(ConfigError, match="no partition 'expr_index_x'; it has bloom_filters, column_stats, files"):
        metadata.partition("expr_index_x")


def test_records_are_looked_up_by_their_keys(golden: Golden) -> None:
    path, _ = golden("1.2.0", "mdt_compacted_a")
    index = HudiTable.open(path).metadata.partition("record_index")
    everything = index.to_arrow()
    keys = everything.column("key").to_pylist()
    assert sorted(index.lookup([*keys[:3], "nobody"]).column("key").to_pylist()) == sorted(keys[:3])
    assert index.with_prefixes([keys[0]]).num_rows >= 1


@pytest.mark.parametrize(
    ("name", "partition"),
    [("mdt_all_mor_prli", "record_index"), ("secondary_a", None), ("mdt_all_mor", "secondary_index_by_s")],
)
def test_every_key_of_an_index_is_looked_up_whatever_its_file_groups_go_by(
    name: str, partition: str | None, golden: Golden
) -> None:
    path, _ = golden("1.2.0", name)
    metadata = HudiTable.open(path).metadata
    names = [n for n in metadata.partitions if n == partition or (partition is None and n.startswith("secondary_"))]
    assert names
    for index in map(metadata.partition, names):
        keys = sorted(index.to_arrow().column("key").to_pylist())
        assert keys
        assert sorted(index.lookup(keys).column("key").to_pylist()) == keys
