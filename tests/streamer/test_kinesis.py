"""Kinesis as a source: shards by Hudi's checkpoints, through splits and merges; none is lost or comes twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, Streamer
from pyhudi.errors import ConfigError, SchemaMismatch, StorageError
from pyhudi.storage.clock import FixedClock
from pyhudi.streamer.sources.kinesis import source as kinesis
from pyhudi.streamer.sources.kinesis.positions import positions_of, text_of_positions
from tests.support.kinesis import Kinesis, refusal

pytest.importorskip("botocore")

KINESIS = "hoodie.streamer.source.kinesis."
CHECKPOINT = "deltastreamer.checkpoint.key"


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Kinesis:
    made = Kinesis()
    monkeypatch.setattr(kinesis, "aws_client", lambda *given: made)
    return made


def config(tmp_path: Path, starts: str = "TRIM_HORIZON", **more: object) -> dict[str, object]:
    name = {f"{KINESIS}stream.name": "orders", f"{KINESIS}starting.position": starts}
    source = {"target-base-path": str(tmp_path / "t"), "record_key": "id", "source-class": "JsonKinesisSource"}
    return {**source, "op": "INSERT", **name, **more}


def run(settings: dict[str, object], **given: Any) -> Any:
    return Streamer(settings, clock=FixedClock(1_700_000_000_000, 1000)).run(**given)


def ids(tmp_path: Path) -> list[int]:
    return sorted(HudiTable.open(tmp_path / "t").scan(["id"], meta_columns=False).to_arrow()["id"].to_pylist())


def checkpoint(tmp_path: Path) -> str:
    return HudiTable.open(tmp_path / "t").history()[0].extra[CHECKPOINT]


def aggregate(*rows: bytes, keys: Sequence[str] = ("a", "b")) -> bytes:
    """As Amazon's producer library writes it."""
    content = b"".join(b"\x0a" + bytes([len(key)]) + key.encode() for key in keys)
    for number, row in enumerate(rows):
        record = b"\x08" + bytes([number % 2]) + b"\x1a" + bytes([len(row)]) + row
        content += b"\x1a" + bytes([len(record)]) + record
    return b"\xf3\x89\x9a\xc2" + content + hashlib.md5(content).digest()


def test_records_come_from_where_the_checkpoint_of_each_shard_is(tmp_path: Path, stream: Kinesis) -> None:
    one, other = stream.opened(), stream.opened()
    stream.put(one, {"id": 1}, {"id": 2})
    stream.put(other, {"id": 3}, b"  ", ms=1_700_000_000_123)
    settings = config(tmp_path)

    assert run(settings).rows == 3
    last = {name: shard.records[-1]["SequenceNumber"] for name, shard in stream.shards.items()}
    ends = {shard: at.sequence for shard, at in positions_of(checkpoint(tmp_path), "orders").items()}
    assert ends == last
    assert f"{other}:{last[other]}@1700000000123" in checkpoint(tmp_path)
    assert run(settings).rounds == 0
    stream.put(other, {"id": 4})
    assert run(settings).rows == 1
    assert ids(tmp_path) == [1, 2, 3, 4]


def test_a_limit_is_dealt_over_the_shards_and_the_next_batch_goes_on(tmp_path: Path, stream: Kinesis) -> None:
    one, other = stream.opened(), stream.opened()
    stream.put(one, *({"id": number} for number in range(10)))
    stream.put(other, {"id": 100}, {"id": 101})
    settings = config(tmp_path, **{"source-limit": 6, f"{KINESIS}max.records.per.request": 2})

    assert run(settings).rows == 6
    assert ids(tmp_path) == [0, 1, 2, 3, 100, 101]
    assert run(settings, until_empty=True).rows == 6
    assert ids(tmp_path) == [*range(10), 100, 101]


def test_the_children_of_a_split_or_merge_are_read_after_their_parents_and_none_is_lost(
    tmp_path: Path, stream: Kinesis
) -> None:
    parent = stream.opened()
    stream.put(parent, {"id": 1, "v": 1}, {"id": 2, "v": 1})
    settings = config(tmp_path, op="UPSERT", **{"source-limit": 2})
    assert run(settings).rows == 2

    stream.put(parent, {"id": 1, "v": 2}, {"id": 2, "v": 2}, {"id": 3, "v": 2})
    left, right = stream.split(parent)
    stream.put(left, {"id": 1, "v": 3})
    merged = stream.merged(left, right)
    stream.put(merged, {"id": 1, "v": 4})

    assert run(settings).rows == 2
    assert set(positions_of(checkpoint(tmp_path), "orders")) == {parent}
    assert run(settings, until_empty=True).rows == 3
    found = HudiTable.open(tmp_path / "t").scan(meta_columns=False).to_arrow().to_pylist()
    assert {row["id"]: row["v"] for row in found} == {1: 4, 2: 2, 3: 2}
    at = positions_of(checkpoint(tmp_path), "orders")
    assert [shard for shard in at if at[shard].is_at_end] == [parent, left, right]
    assert not at[merged].is_at_end
    assert run(settings).rounds == 0


def test_a_shard_that_was_read_to_its_end_may_expire_and_one_that_was_not_is_said(
    tmp_path: Path, stream: Kinesis
) -> None:
    parent = stream.opened()
    stream.put(parent, {"id": 1}, {"id": 2})
    settings = config(tmp_path)
    run(settings)
    child, other = stream.split(parent)
    stream.put(child, {"id": 3})
    stream.put(other, {"id": 4})
    run(settings)
    del stream.shards[parent]

    told: list[str] = []
    stream.put(child, {"id": 5})
    assert run(settings, told=told.append).rows == 1
    assert not any("lost" in line for line in told)
    del stream.shards[child]
    with pytest.raises(ConfigError, match=rf"{child}: the shard expired before .*Nothing was written"):
        run(config(tmp_path, **{f"{KINESIS}fail.on.data.loss.enable": True}))
    run(settings, told=told.append)
    assert HudiTable.open(tmp_path / "t").history()[0].extra[kinesis.LOST_SHARDS] == child
    assert run(settings).rounds == 0
    assert ids(tmp_path) == [1, 2, 3, 4, 5]


def test_a_record_that_kinesis_has_no_longer_is_said_or_refused_and_the_shard_goes_on_with_its_oldest(
    tmp_path: Path, stream: Kinesis
) -> None:
    shard, other = stream.opened(), stream.opened()
    stream.put(shard, {"id": 1})
    stream.put(other, {"id": 10})
    settings = config(tmp_path)
    run(settings)
    stream.put(shard, {"id": 2}, {"id": 3})
    stream.put(other, {"id": 11})
    stream.trim(shard, 2)

    with pytest.raises(ConfigError, match=r"is gone.*fail\.on\.data\.loss\.enable=true"):
        run({**settings, f"{KINESIS}enable.failOnDataLoss": True})
    told: list[str] = []
    assert run(settings, told=told.append).rows == 2
    assert f"'orders' (here), {shard}: its record" in told[0]
    assert ids(tmp_path) == [1, 3, 10, 11]


def test_latest_begins_at_the_time_of_the_first_round_also_for_shards_that_were_idle_then(
    tmp_path: Path, stream: Kinesis
) -> None:
    shard, idle = stream.opened(), stream.opened()
    stream.put(shard, {"id": 1}, ms=1_600_000_000_000)
    stream.put(idle, {"id": 2}, ms=1_600_000_000_000)
    streamer = Streamer(config(tmp_path, "LATEST"), clock=FixedClock(1_700_000_000_000, 10))
    assert streamer.run().rows == 0
    stream.put(shard, {"id": 3}, ms=1_700_000_000_500)
    assert streamer.run().rows == 1

    stream.put(idle, {"id": 4}, ms=1_700_000_001_000)
    assert run(config(tmp_path, "LATEST")).rows == 1
    assert ids(tmp_path) == [3, 4]


def test_a_checkpoint_by_hand_is_hudis_text_or_a_time(tmp_path: Path, stream: Kinesis) -> None:
    shard = stream.opened()
    stream.put(shard, {"id": 1}, ms=1_700_000_000_100)
    stream.put(shard, {"id": 2}, ms=1_700_000_000_900)
    first = stream.shards[shard].records[0]["SequenceNumber"]

    for text in ("1700000000500", f"orders,{shard}:{first}", f"orders,{shard}:{first}@1700000000100"):
        stream.calls.clear()
        settings = config(tmp_path, op="UPSERT", checkpoint=text)
        assert run(settings).rows == 1
    assert ids(tmp_path) == [2]
    for text, said in (
        ("others,a:1", "of the stream 'others'"),
        ("1764b", "not one of Kinesis"),
        ("orders,a:x", "not one"),
    ):
        with pytest.raises(ConfigError, match=said):
            run(config(tmp_path, checkpoint=text))


def test_records_that_the_producer_library_put_together_are_taken_apart(tmp_path: Path, stream: Kinesis) -> None:
    shard = stream.opened()
    stream.put(shard, aggregate(b'{"id": 1}', b'{"id": 2}', b'{"id": 3}'), {"id": 4})
    settings = config(tmp_path, **{f"{KINESIS}append.offsets": True})

    assert run(settings).rows == 4
    found = HudiTable.open(tmp_path / "t").scan(meta_columns=False).to_arrow().sort_by("id").to_pylist()
    assert [row["_hoodie_kinesis_source_partition_key"] for row in found] == ["a", "b", "a", "k"]
    assert {row["_hoodie_kinesis_source_shard_id"] for row in found} == {shard}
    assert len({row["_hoodie_kinesis_source_sequence_number"] for row in found}) == 2
    stream.put(shard, aggregate(b'{"id": 5}'))
    assert run(settings).rows == 1


def test_a_damaged_aggregate_and_a_record_that_is_no_json_are_named(tmp_path: Path, stream: Kinesis) -> None:
    shard = stream.opened()
    stream.put(shard, aggregate(b'{"id": 1}', keys=()), {"id": 2}, b"no", aggregate(b'{"id": 3}')[:-1] + b"?")
    quarantine = {"hoodie.errortable.enable": True, "hoodie.errortable.base.path": str(tmp_path / "q")}
    settings = config(tmp_path, **quarantine, **{"hoodie.pyhudi.streamer.quarantine.max.share": 1})

    with pytest.raises(SchemaMismatch, match=rf"3 of 4 rows .*orders/{shard}@\d+: an aggregate that is damaged"):
        run(config(tmp_path))
    assert run(settings).rejected == 3
    with pytest.raises(SchemaMismatch, match="no JSON"):
        run(config(tmp_path / "u", **{f"{KINESIS}enable.deaggregation": False}))


def test_requests_that_are_too_many_are_made_again_after_pauses_until_the_time_is_over(
    tmp_path: Path, stream: Kinesis
) -> None:
    shard = stream.opened()
    stream.put(shard, {"id": 1}, {"id": 2})
    busy = [refusal("ProvisionedThroughputExceededException")] * 3
    stream.failures = {"get_records": [*busy, refusal("ExpiredIteratorException")], "list_shards": list(busy)}
    stream.empty = 3
    assert run(config(tmp_path)).rows == 2

    stream.failures = {"get_records": busy * 50}
    with pytest.raises(StorageError, match=r"refused get_records: Provisioned.*Nothing was written"):
        run(config(tmp_path, **{f"{KINESIS}retry.throttle.timeout.ms": 5000}))
    stream.failures = {"list_shards": [refusal("ResourceNotFoundException", "ListShards")]}
    with pytest.raises(ConfigError, match=r"stream 'orders' .*ResourceNotFoundException"):
        run(config(tmp_path))


def test_the_text_of_a_checkpoint_is_hudis() -> None:
    for text in ("s,a:1,b:2@3|4", "s,", "s,a:5@6,b:7|7"):
        assert text_of_positions("s", positions_of(text, "s")) == text
    assert positions_of("s,a:10|9", "s")["a"].is_at_end
    assert not positions_of("s,a:9|10", "s")["a"].is_at_end


def test_a_real_client_reads_a_stream_of_moto(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    boto = pytest.importorskip("boto3")
    with pytest.importorskip("moto").mock_aws():
        client = boto.client("kinesis", region_name="eu-west-1")
        client.create_stream(StreamName="orders", ShardCount=2)
        for number in range(7):
            client.put_record(StreamName="orders", Data=json.dumps({"id": number}), PartitionKey=str(number))
        settings = config(tmp_path, **{f"{KINESIS}region": "eu-west-1", f"{KINESIS}max.records.per.request": 2})

        assert run(settings, until_empty=True).rows == 7
        assert run(settings).rounds == 0
        with pytest.raises(ConfigError, match="ResourceNotFoundException"):
            run({**settings, f"{KINESIS}stream.name": "other", "checkpoint": "other,"})


def test_the_configuration_is_checked_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"kinesis\.stream\.name is missing"):
        Streamer(config(tmp_path, **{f"{KINESIS}stream.name": None}))
    with pytest.raises(ConfigError, match="belong together"):
        Streamer(config(tmp_path, **{f"{KINESIS}access.key": "x"}))
    with pytest.raises(ConfigError, match="one of LATEST, EARLIEST, TRIM_HORIZON"):
        Streamer(config(tmp_path, "AT_TIMESTAMP"))
