"""Records of metadata tables that Apache Hudi wrote, against what Hudi itself returns for them."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from pyhudi.meta_client import MetaClient
from pyhudi.metadata.keys import shards
from pyhudi.metadata.schema import MetadataKind, RecordType
from pyhudi.metadata.table import MetadataTable
from pyhudi.storage import open_storage
from tests.support.golden.folder import SHARED, Golden

_RECORD_TYPES = {
    "all_partitions": RecordType.ALL_PARTITIONS,
    "files": RecordType.FILES,
    "column_stats": RecordType.COLUMN_STATS,
    "bloom_filters": RecordType.BLOOM_FILTERS,
    "record_index": RecordType.RECORD_INDEX,
    "partition_stats": RecordType.PARTITION_STATS,
    "secondary_index": RecordType.SECONDARY_INDEX,
}


def _tables(version: str, *, by_function: bool) -> list[str]:
    """Golden tables whose records Hudi returned by its table function, or by its Java classes."""
    found = []
    for path in sorted((SHARED / "golden" / version).glob("*.json")):
        expected = json.loads(path.read_text()).get("expected")
        metadata = expected.get("metadata") if isinstance(expected, dict) else None
        how = metadata.get("_how") if isinstance(metadata, dict) else None
        if how is not None and ("null members dropped" in how) is by_function:
            found.append(path.stem)
    return found


def _open(path: Path) -> MetadataTable:
    table = MetadataTable.open(MetaClient.load(open_storage(str(path))))
    assert table is not None
    return table


def _plain(value: Any) -> Any:
    """As the descriptions of golden tables have values: without nulls, maps as pairs in order."""
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        pairs = [[pair[0], _plain(pair[1])] if isinstance(pair, (tuple, list)) else _plain(pair) for pair in value]
        return sorted(pairs, key=str)
    if isinstance(value, bytes):
        return "b64:" + base64.b64encode(value).decode()
    if isinstance(value, decimal.Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    return value


@pytest.mark.thorough
@pytest.mark.parametrize("hudi", ["0.15.0", "1.0.2", "1.2.0"])
def test_all_records_of_every_partition_are_those_that_hudi_shows(hudi: str, golden: Golden) -> None:
    for name in _tables(hudi, by_function=True):
        path, description = golden(hudi, name)
        table = _open(path)
        found: dict[int, list[dict[str, Any]]] = {}
        for partition in table.partitions:
            for row in table.records(partition).to_pylist():
                found.setdefault(row["type"], []).append(_plain(row))
        for part, expected in description["expected"]["metadata"].items():
            if not isinstance(expected, list):
                continue
            ours = sorted(found.get(_RECORD_TYPES[part].value, []), key=json.dumps)
            if hudi == "0.15.0" and part == "column_stats":
                ours = sorted(map(_by_first_branch, ours), key=json.dumps)
            theirs = sorted((_plain(row) for row in expected), key=json.dumps)
            assert ours == theirs, (name, part)


def _by_first_branch(record: dict[str, Any]) -> dict[str, Any]:
    """As Spark shows unions of 0.15.0: the first branch of the same form, an int for dates, bytes for decimals."""
    stats = dict(record["ColumnStatsMetadata"])
    for bound in stats.keys() & {"minValue", "maxValue"}:
        ((member, wrapped),) = stats[bound].items()
        if member == "member7":
            stats[bound] = {"member1": wrapped}
        elif member == "member8":
            unscaled = int(decimal.Decimal(wrapped["value"]).scaleb(15))
            content = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
            stats[bound] = {"member5": {"value": "b64:" + base64.b64encode(content).decode()}}
    return {**record, "ColumnStatsMetadata": stats}


@pytest.mark.thorough
@pytest.mark.parametrize("name", _tables("0.15.0", by_function=False))
def test_records_of_version_6_are_those_that_hudi_shows(name: str, golden: Golden) -> None:
    path, description = golden("0.15.0", name)
    table, expected = _open(path), description["expected"]["metadata"]
    files = {row["key"]: row["filesystemMetadata"] for row in table.records("files").to_pylist()}
    partitions = sorted(name for name, _ in files.pop("__all_partitions__"))
    if "partitions" in expected:
        assert partitions == expected["partitions"]
        listed = {
            key: sorted([n, e["size"]] for n, e in entries if not e["isDeleted"]) for key, entries in files.items()
        }
        assert {key: entries for key, entries in listed.items() if entries} == {
            key: sorted(entries) for key, entries in expected["files"].items() if entries
        }
    if "record_index" in expected and isinstance(expected["record_index"], dict):
        for row in table.records("record_index").to_pylist():
            if row["key"] in expected["record_index"]:
                place = expected["record_index"][row["key"]]
                found = row["recordIndexMetadata"]
                assert (found["partitionName"], _file_id(found)) == (place["partition"], place["file_id"])
    if "bloom_filters" in expected:
        found_filters = {row["key"]: row["BloomFilterMetadata"] for row in table.records("bloom_filters").to_pylist()}
        assert len(found_filters) == len(expected["bloom_filters"])
        texts = {filter_["bloomFilter"].decode() for filter_ in found_filters.values()}
        assert texts == {filter_["serialized"] for filter_ in expected["bloom_filters"]}
    for stats in expected.get("column_stats", ()):
        rows = [row["ColumnStatsMetadata"] for row in table.records("column_stats").to_pylist()]
        same = [row for row in rows if (row["fileName"], row["columnName"]) == (stats["file"], stats["column"])]
        counts = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
        assert [[row[count] for count in counts] for row in same] == [[stats[count] for count in counts]]


def _file_id(place: dict[str, Any]) -> str:
    bits = (place["fileIdHighBits"] % 2**64 << 64) | place["fileIdLowBits"] % 2**64
    return f"{uuid.UUID(int=bits)}-{place['fileIndex']}"


def test_records_are_found_by_their_keys_and_by_prefixes(golden: Golden) -> None:
    path, _ = golden("1.2.0", "hfile_blocks")
    table = _open(path)
    everything = table.records("record_index")
    keys = everything.column("key").to_pylist()
    wanted = [*keys[:: len(keys) // 50], "nobody"]
    found = table.lookup("record_index", wanted)
    assert sorted(found.to_pylist(), key=str) == sorted(
        (row for row in everything.to_pylist() if row["key"] in set(wanted)), key=str
    )
    prefix = keys[0][:-1]
    assert sorted(table.with_prefixes("record_index", [prefix]).column("key").to_pylist()) == sorted(
        key for key in keys if key.startswith(prefix)
    )
    assert table.lookup("record_index", ["nobody"]).num_rows == 0


@pytest.mark.thorough
def test_every_record_is_in_the_file_group_that_its_key_says(golden: Golden) -> None:
    path, _ = golden("1.2.0", "mdt_all_mor")
    table = _open(path)
    for partition in table.partitions:
        readers = list(table._readers(partition))
        for number, reader in enumerate(readers):
            keys = reader.all().column("key").combine_chunks()
            by_value = partition.startswith(MetadataKind.SECONDARY_INDEX.value.prefix)
            assert set(shards(keys, len(readers), by_secondary_value=by_value).tolist()) <= {number}, partition


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["mdt_all_cow", "mdt_all_mor"])
def test_a_prefix_that_no_record_has_is_not_found_next_to_deletes(name: str, golden: Golden) -> None:
    path, _ = golden("1.2.0", name)
    table = _open(path)
    for partition in table.partitions:
        assert table.with_prefixes(partition, ["nobody"]).num_rows == 0


def test_records_from_before_and_after_an_upgrade_are_read_together(golden: Golden) -> None:
    path, _ = golden("1.2.0", "upgrade_a_mor_4_v9")
    rows = _open(path).records("column_stats").to_pylist()
    stats = [row["ColumnStatsMetadata"] for row in rows]
    assert {None, 7} <= {one["valueType"] and one["valueType"]["typeOrdinal"] for one in stats}
    assert all(one["minValue"]["member6"]["value"] for one in stats if one["columnName"] == "_hoodie_commit_time")


@pytest.mark.parametrize(
    ("hudi", "name"), [("0.15.0", "mdt_all_mor"), ("1.0.2", "mdt_all_cow"), ("1.2.0", "mdt_all_mor")]
)
def test_partitions_looked_for_together_have_the_slices_that_each_has_alone(
    hudi: str, name: str, golden: Golden
) -> None:
    path, _ = golden(hudi, name)
    together = _open(path)

    together.load_slices(together.partitions)

    assert len(together.partitions) > 3
    assert {one: together.slices(one) for one in together.partitions} == {
        one: _open(path).slices(one) for one in together.partitions
    }
