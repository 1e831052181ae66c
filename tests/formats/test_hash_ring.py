"""Consistent hashing: hashes, rings and their files are real Hudi's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.errors import ConfigError, CorruptFile
from pyhudi.formats.hash_ring import (
    DELETE,
    MAX_HASH,
    REPLACE,
    HashNode,
    decode_nodes,
    decode_ring,
    encode_nodes,
    encode_ring,
    initial_ring,
    places_on_ring,
)
from pyhudi.java.hashes import bucket_text, xx_hash32
from tests.support.golden.folder import GoldenTable

Golden = Callable[[str, str], GoldenTable]
FOLDER = ".hoodie/.bucket_index/consistent_hashing_metadata"


def test_hashes_are_those_of_the_specification() -> None:
    # Test vectors of the reference implementation, and one of real Hudi.
    known = {
        "": 0x02CC5D05,
        "a": 0x550D7456,
        "abc": 0x32D153FF,
        "Nobody inspects the spammish repetition": 0xE2293B2F,
        "TXN-001": 849299051,
    }
    found = xx_hash32(pa.chunked_array([list(known), [None, "a"]]))
    assert (found[:4] == list(known.values())[:4]).all()
    assert int(found[4]) & MAX_HASH == known["TXN-001"]
    assert (found[5:] == [known[""], known["a"]]).all()
    sliced = pa.array(["x", "abc", "a"]).slice(1)
    assert xx_hash32(sliced).tolist() == [known["abc"], known["a"]]


def test_the_first_ring_has_the_ids_that_real_hudi_makes() -> None:
    ring = initial_ring("p1", 4)
    assert [(node.value, node.file_id_prefix) for node in ring.nodes] == [
        (536870912, "c47f2c8e-7d46-3b96-83f5-8eebc912150e"),
        (1073741824, "1213f6bd-782d-3c88-b9d3-02cbd6c52839"),
        (1610612736, "d565737e-2390-3db1-a9a4-a1bfe6c6f87d"),
        (2147483647, "2a5cbbcf-2b87-3237-9643-9e440ea0658b"),
    ]
    assert initial_ring("p1", 1).nodes[0].value == MAX_HASH


@pytest.mark.parametrize("version", ["0.15.0", "1.2.0"])
def test_rings_of_real_hudi_are_read_and_written_byte_by_byte(golden: Golden, version: str) -> None:
    path, _ = golden(version, "g2_bucket_consistent")
    files = sorted(path.glob(f"{FOLDER}/*/*.hashing_meta"))
    assert len(files) == 6
    for file in files:
        ring = decode_ring(file.read_bytes(), file.name)
        assert encode_ring(ring) == file.read_bytes()
        assert (ring.partition_path, ring.instant) == (file.parent.name, file.stem)
        if version != "0.15.0" and ring.sequence == 0:
            assert ring == initial_ring(ring.partition_path, 2)


@pytest.mark.parametrize("version", ["0.15.0", "1.2.0"])
def test_keys_are_in_the_file_groups_that_real_hudi_put_them_in(golden: Golden, version: str) -> None:
    path, expected = golden(version, "g2_bucket_consistent")
    for rows, sequence in ((expected["expected"]["snapshot_before_resize"], 0), (expected["expected"]["snapshot"], 1)):
        for partition in ("a", "b", "c"):
            ring = _ring(path, partition, sequence)
            own = [row for row in rows if row["p"] == partition]
            keys = pa.array([row["_hoodie_record_key"] for row in own])
            places = places_on_ring(keys, ["id"], [node.value for node in ring.nodes])
            assert own
            for row, place in zip(own, places, strict=True):
                assert row["_hoodie_file_name"].startswith(ring.nodes[place].file_id)


def _ring(path: Path, partition: str, sequence: int) -> object:
    rings = [decode_ring(file.read_bytes(), file.name) for file in path.glob(f"{FOLDER}/{partition}/*.hashing_meta")]
    return next(ring for ring in rings if ring.sequence == sequence)


def test_a_resize_changes_the_ring_as_real_hudi_does(golden: Golden) -> None:
    path, _ = golden("1.2.0", "g2_bucket_consistent")
    before, after = _ring(path, "a", 0), _ring(path, "a", 1)
    children = [HashNode(n.value, n.file_id_prefix, REPLACE) for n in after.nodes]  # type: ignore[attr-defined]
    assert before.changed(children, after.instant) == after  # type: ignore[attr-defined]
    merged = before.changed([HashNode(1073741824, None, DELETE)], "1")  # type: ignore[attr-defined]
    assert [node.value for node in merged.nodes] == [MAX_HASH]


def test_values_of_composite_keys_are_joined() -> None:
    keys = pa.array(["id:1,city:sf", "id:__null__,city:__empty__", "plain", "id:a,b:c,city:x"])
    assert bucket_text(keys, ["id", "city"]).to_pylist() == ["1sf", "null", "plain", "ax"]
    assert bucket_text(keys, ["city"]).to_pylist() == ["sf", "", "plain", "x"]
    assert bucket_text(pa.array(["a", "b"]), ["id"]).to_pylist() == ["a", "b"]


def test_a_place_is_the_first_node_that_is_not_below_the_hash() -> None:
    keys = pa.array([f"key{number}" for number in range(200)])
    hashes = (xx_hash32(keys) & np.uint32(MAX_HASH)).tolist()
    values = sorted(hashes)[20:150:10]
    expected = [next((at for at, value in enumerate(values) if value >= found), 0) for found in hashes]
    assert places_on_ring(keys, [], values).tolist() == expected


def test_nodes_of_plans_survive() -> None:
    nodes = (HashNode(1, None, DELETE), HashNode(7, "abc", REPLACE))
    assert decode_nodes(encode_nodes(nodes), "plan") == nodes
    plan = '[ {\n  "value" : 536870911,\n  "fileIdPrefix" : "b229833f",\n  "tag" : "REPLACE"\n} ]'
    assert encode_nodes(decode_nodes(plan, "plan")) == plan


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{}", b'{"nodes": []}', b'{"nodes": [1]}', b'{"nodes": [{"value": -1, "fileIdPrefix": "a"}]}',
        b'{"nodes": [{"value": true, "fileIdPrefix": "a"}]}', b'{"nodes": [{"value": 1, "fileIdPrefix": "../a"}]}',
        b'{"nodes": [{"value": 1, "fileIdPrefix": null}]}',
        b'{"nodes": [{"value": 1, "fileIdPrefix": "a", "tag": "X"}]}',
        b'{"nodes": [{"value": 1, "fileIdPrefix": "a"}, {"value": 1, "fileIdPrefix": "b"}]}', b"[" * 100_000,
        json.dumps({"nodes": [{"value": 1, "fileIdPrefix": "a"}], "seqNo": "x"}).encode(),
    ],
)  # fmt: skip
def test_damaged_files_are_named(body: bytes) -> None:
    with pytest.raises(CorruptFile, match="the file"):
        decode_ring(body, "the file")


def test_buckets_without_number_are_refused() -> None:
    with pytest.raises(ConfigError, match="1 to"):
        initial_ring("p", 0)


@pytest.mark.parametrize(
    "text", ['[{"value":1,"tag":["NORMAL"]}]', '[{"value":1,"fileIdPrefix":"\\ud800"}]', '"\ud800"', "9" * 5000]
)
def test_nodes_of_plans_that_no_ring_has_are_corrupt(text: str) -> None:
    with pytest.raises(CorruptFile, match=r"^plan: "):
        decode_nodes(text, "plan")
