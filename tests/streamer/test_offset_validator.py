"""SparkKafkaOffsetValidator: a batch from Kafka that lacks rows is refused, and the table stays as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi import ConfigError, HudiTable, Streamer, ValidationFailed, write_hudi
from pyhudi.actions.offset_validation import offset_problem
from pyhudi.actions.streamer_checkpoints import SET_ASIDE, TEXT_V1
from pyhudi.model.commit import CommitMetadata, WriteStat
from tests.support.mock_kafka import Broker, config

pytest.importorskip("confluent_kafka")

VALIDATOR = {
    "hoodie.precommit.validators": "org.apache.hudi.utilities.streamer.validator.SparkKafkaOffsetValidator",
}
TOLERANCE = "hoodie.precommit.validators.streaming.offset.tolerance.percentage"


@pytest.fixture(scope="module")
def cluster() -> Broker:
    return Broker()


@pytest.fixture
def topic(cluster: Broker, request: pytest.FixtureRequest) -> str:
    name: str = request.node.name[:60]
    cluster.send({"id": 0, "v": 0}, topic=name)
    return name


def losing_one(batch: Any) -> Any:
    return batch.slice(1) if batch.num_rows > 1 else batch


def ids(tmp_path: Path) -> list[int]:
    return sorted(HudiTable.open(tmp_path / "t").scan().to_arrow()["id"].to_pylist())


def test_a_batch_with_a_row_for_each_event_passes_inserts_updates_and_deletes_alike(
    tmp_path: Path,
    cluster: Broker,
    topic: str,
) -> None:
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        place = tmp_path / kind
        place.mkdir()
        more = {**VALIDATOR, "table-type": kind, "hoodie.streamer.source.kafka.topic": f"{topic}{kind}"}
        settings = {**config(place, cluster, topic), **more}
        cluster.send({"id": 1, "v": 1}, {"id": 2, "v": 1}, topic=f"{topic}{kind}")
        Streamer(settings).run()
        cluster.send({"id": 1, "v": 2}, {"id": 3, "v": 2}, topic=f"{topic}{kind}")
        cluster.send({"id": 2, "v": 2, "_hoodie_is_deleted": True}, topic=f"{topic}{kind}", partition=1)
        Streamer(settings).run()
        assert ids(place) == [1, 3]


def test_a_batch_that_lacks_a_row_is_refused_and_the_table_stays_as_it_was(
    tmp_path: Path,
    cluster: Broker,
    topic: str,
) -> None:
    settings = {**config(tmp_path, cluster, topic), **VALIDATOR, "transformer-class": f"{__name__}:losing_one"}
    Streamer(settings).run()
    cluster.send(*({"id": number, "v": 1} for number in range(1, 6)), topic=topic)

    with pytest.raises(ValidationFailed, match=r"5 events lie .*and 4 rows were written: a difference of 20\.00%"):
        Streamer(settings).run()
    assert ids(tmp_path) == [0]
    warned = {**settings, "hoodie.precommit.validators.failure.policy": "WARN_LOG"}
    with pytest.warns(UserWarning, match="4 rows were written"):
        assert Streamer(warned).run().rows == 4
    cluster.send(*({"id": number, "v": 2} for number in range(6)), topic=topic)
    assert Streamer({**settings, TOLERANCE: 20}).run().commits == 1


def test_rows_in_the_quarantine_table_are_no_loss(tmp_path: Path, cluster: Broker, topic: str) -> None:
    more = {"hoodie.errortable.enable": True, "hoodie.errortable.base.path": str(tmp_path / "aside")}
    share = {"hoodie.pyhudi.streamer.quarantine.max.share": 0.5}
    settings = {**config(tmp_path, cluster, topic), **VALIDATOR, **more, **share}
    Streamer(settings).run()
    cluster.send(b"{", {"id": 2, "v": 1}, {"id": 3, "v": 1}, topic=topic)

    assert Streamer(settings).run().rejected == 1
    assert ids(tmp_path) == [0, 2, 3]


def test_the_validator_is_refused_where_a_write_has_no_offsets(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"of the Streamer's batches from Kafka; the checkpoint of this write is ''"):
        write_hudi(tmp_path / "t", [{"id": 1}], record_key="id", options=VALIDATOR)
    assert not (tmp_path / "t" / ".hoodie").exists()


@pytest.mark.parametrize(
    ("before", "now", "rows", "aside", "problem"),
    [
        ("o,0:10,1:5", "o,0:12,1:5", 2, 0, ""),
        ("o,0:10", "o,0:12,1:3", 5, 0, ""),
        ("o,0:10", "o,0:4", 4, 0, ""),
        ("o,0:10", "o,0:10", 0, 0, ""),
        ("o,0:10", "o,0:14", 1, 3, ""),
        ("other,0:10", "o,0:14", 1, 0, ""),
        ("1764000000", "o,0:14", 1, 0, ""),
        ("o,0:10", "o,0:14", 3, 0, "25.00%"),
        ("o,0:10", "o,0:14", 0, 0, "100.00%"),
        ("o,0:10", "o,0:10", 2, 0, "100.00%"),
    ],
)
def test_events_are_counted_by_partition(
    before: str, now: str, rows: int, aside: int, problem: str, tmp_path: Path
) -> None:
    write_hudi(
        tmp_path / "t",
        [{"id": 1}],
        record_key="id",
        options={"hoodie.datasource.write.commitmeta.key.prefix": "deltastreamer.", TEXT_V1: before},
    )
    notes = {TEXT_V1: now, **({SET_ASIDE: str(aside)} if aside else {})}
    body = CommitMetadata({"": (WriteStat(file_id="f", partition_path="", path="f", num_inserts=rows),)}, notes)

    found = offset_problem(0.0, HudiTable.open(tmp_path / "t").state(), body)
    assert problem in found
    assert bool(found) == bool(problem)
