"""`table.metadata`: tables of real Hudi are right, and what is wrong is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import ConfigError
from pyhudi.formats.column_stats import ColumnRange
from pyhudi.formats.stored_ranges import stats_rows
from pyhudi.metadata.delta_commit import write_delta_commit
from pyhudi.metadata.locations import RecordLocation, location_records
from pyhudi.metadata.partitions.base import PartitionUpdate, nothing_deleted
from pyhudi.metadata.partitions.stats_updates import partition_stats_update
from pyhudi.metadata.schema import partitioned_prefix
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileGroupId
from pyhudi.queries.validation import validate
from tests.support.golden.folder import Golden
from tests.support.tables.small import TestTable

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


@pytest.mark.thorough
def test_a_file_that_changed_its_size_is_found(golden: Golden) -> None:
    path, _ = golden("1.2.0", "mdt_compacted_a")
    file = next(path.rglob("*.parquet"))
    file.write_bytes(file.read_bytes() + b"more")
    found = HudiTable.open(path).metadata.validate()
    assert [(d.partition, d.where) for d in found if d.partition == "files"] == [("files", str(file.relative_to(path)))]


@pytest.mark.thorough
def test_a_lost_block_of_the_record_index_is_found_by_the_keys_that_miss(golden: Golden, tmp_path: Path) -> None:
    path, _ = golden("1.2.0", "mdt_all_mor")
    index = path / ".hoodie" / "metadata" / "record_index"
    for log in index.glob(".record-index-*_20261121055018525.log.*"):
        log.unlink()
    found = HudiTable.open(path).metadata.validate()
    assert {d.partition for d in found} == {"record_index"}
    assert any("no entry" in d.found for d in found)


def _with_everything(**options: str) -> TestTable:
    table = TestTable(
        options={
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.index.bloom.filter.enable": "true",
            **{f"hoodie.{name.replace('_', '.')}": text for name, text in options.items()},
        }
    )
    table.insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 1, 30))
    table.upsert(("a", "x", 2, 12), ("d", "y", 1, 40))
    return table


def _instead(table: TestTable, partition: str, records: pa.Table) -> None:
    """Put these records of a partition over those that there are."""
    found = MetadataTable.open(table.meta)
    assert found is not None
    update = PartitionUpdate(records, nothing_deleted())
    write_delta_commit(found, table.meta.timeline.latest_time or "", {partition: update})


@pytest.mark.thorough
def test_ranges_of_partitions_that_do_not_hold_all_rows_are_found() -> None:
    table = _with_everything()
    found = MetadataTable.open(table.meta)
    assert found is not None
    assert validate(table.meta) == ()
    wide = {"p": (stats_rows(9, "f", [ColumnRange("v", pa.int64(), 13, 20, 3, 0)]), ["f"])}
    narrow = partition_stats_update(9, ["v"], {"x": wide["p"]}).records
    _instead(table, "partition_stats", narrow)
    differences = validate(table.meta)
    assert [(d.partition, d.where, d.found) for d in differences] == [("partition_stats", "x, column 'v'", "13 to 20")]


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX"])
def test_partition_values_of_rows_that_stay_are_compared_as_the_files_hold_them(
    tmp_path: Path, table_type: str, index: str
) -> None:
    by_record = index == "RECORD_INDEX"
    stays = {f"hoodie.{name}.index.update.partition.path": False for name in ("simple", "bloom", "record")}
    options = {"hoodie.index.type": index, "hoodie.metadata.record.index.enable": by_record, **stays}
    rows = pa.table({"id": ["a", "b", "c"], "p": ["x", "x", "z"]})
    write_hudi(tmp_path / "t", rows, record_key="id", partition_by="p", table_type=table_type, options=options)
    write_hudi(tmp_path / "t", pa.table({"id": ["a", "b"], "p": ["y", "y"]}), options=options)
    table = HudiTable.open(tmp_path / "t")
    if by_record:
        table.indexes.create("of_p", columns="p")

    assert table.scan(["id", "p"]).to_arrow().sort_by("id").to_pylist() == rows.to_pylist()
    assert "partition_stats" in table.metadata.partitions
    assert table.metadata.validate() == ()
    assert table.metadata.validate(sample=1) == ()
    table.metadata.rebuild()
    assert table.metadata.validate() == ()


@pytest.mark.thorough
def test_bloom_filters_that_are_not_those_of_the_files_are_found() -> None:
    table = _with_everything()
    found = MetadataTable.open(table.meta)
    assert found is not None
    rows = found.records("bloom_filters").to_pylist()
    for row in rows:  # some are of files that the newest ones have replaced
        row["BloomFilterMetadata"]["bloomFilter"] = b"AAAA"
    _instead(table, "bloom_filters", pa.Table.from_pylist(rows, found.records("bloom_filters").schema))
    difference, *_ = validate(table.meta)
    assert difference.partition == "bloom_filters"
    assert difference.found == "a filter of type DYNAMIC_V0 with 4 characters"
    assert difference.where.endswith(".parquet")


@pytest.mark.thorough
def test_an_index_of_each_partition_is_compared_partition_by_partition() -> None:
    table = TestTable(
        options={
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.record.level.index.enable": "true",
            "hoodie.index.type": "RECORD_LEVEL_INDEX",
        }
    )
    table.upsert(("a", "x", 1, 10), ("a", "y", 1, 20))
    assert validate(table.meta) == ()
    group = FileGroupId("y", "00000000-0000-0000-0000-000000000000-0")
    wrong = location_records(9, pa.array(["a"]), [RecordLocation("y", group.file_id, 1)], np.array([0], np.int32))
    found = MetadataTable.open(table.meta)
    assert found is not None
    nothing = PartitionUpdate(wrong.slice(0, 0), nothing_deleted())
    update = replace(nothing, of_groups={partitioned_prefix("y"): PartitionUpdate(wrong, nothing_deleted())})
    write_delta_commit(found, table.meta.timeline.latest_time or "", {"record_index": update})
    (difference,) = validate(table.meta)
    assert (difference.partition, difference.where) == ("record_index", "key 'a'")
    assert difference.found == f"y/{group.file_id}"


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_sample_looks_at_some_file_groups_only_and_finds_what_is_wrong_there(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _with_everything(
        datasource_write_table_type=kind,
        metadata_global_record_level_index_enable="true",
        index_type="GLOBAL_RECORD_LEVEL_INDEX",
    )
    HudiTable(table.meta).indexes.create("by_v", columns="v")
    table.upsert(("a", "x", 3, 13))
    assert validate(table.meta, sample=1) == ()
    found = MetadataTable.open(table.meta)
    assert found is not None
    nothing = found.records("record_index").slice(0, 0)
    write_delta_commit(
        found, table.meta.timeline.latest_time or "", {"record_index": PartitionUpdate(nothing, pa.array(["c"]))}
    )

    def sampled(path: str) -> list[str]:
        with monkeypatch.context() as patch:
            patch.setattr(
                "random.sample", lambda slices, count: [s for s in slices if s.group.partition_path == path][:count]
            )
            return [f"{d.where}: {d.found}" for d in validate(table.meta, sample=1)]

    assert sampled("x") == []
    assert sampled("y") == ["key 'c': no entry"]
    with pytest.raises(ConfigError, match="1 or more"):
        validate(table.meta, sample=0)


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
