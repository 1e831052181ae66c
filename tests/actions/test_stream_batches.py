"""Batches of a stream, known again by the extra metadata of their commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import ConfigError, CorruptFile, HudiTable, WriteConflict
from pyhudi.actions import runner
from pyhudi.actions.stream_batches import is_written, last_batch
from pyhudi.meta_client import MetaClient
from pyhudi.model.options.streaming import BATCH_ID, IDENTIFIER, SINK_CHECKPOINT, StreamOptions

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64())])
ROW = [{"id": 1, "ts": 1}]


@pytest.fixture(params=["9", "6"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> HudiTable:
    options = {"hoodie.write.table.version": request.param}
    return HudiTable.create(tmp_path / "t", SCHEMA, record_key="id", ordering="ts", options=options)


def last(table: HudiTable, identifier: str = "default_single_writer") -> int | None:
    return last_batch(MetaClient.load(table.state().storage), identifier)


def test_the_newest_commit_that_names_the_stream_has_its_last_batch(table: HudiTable) -> None:
    assert last(table) is None
    table.upsert(ROW, options={BATCH_ID: "0"})
    table.upsert(ROW, options={BATCH_ID: "7", IDENTIFIER: "other"})
    table.upsert(ROW, options={BATCH_ID: "1"})
    table.upsert(ROW)
    table.delete([{"id": 9}])
    assert (last(table), last(table, "other"), last(table, "none")) == (1, 7, None)


def test_the_commit_says_it_as_real_hudi_does(table: HudiTable) -> None:
    """Real Hudi 0.15.0 and 1.2.0 write this text for the batches of a stream."""
    table.upsert(ROW, options={BATCH_ID: "0", "hoodie.datasource.write.commitmeta.key.prefix": "x"})
    meta = MetaClient.load(table.state().storage)
    newest = meta.timeline.last_commit()
    assert newest is not None
    assert meta.commits.metadata(newest).extra_metadata[SINK_CHECKPOINT] == '{"default_single_writer":"0"}'


@pytest.mark.thorough
def test_a_batch_is_found_when_others_have_archived_its_commit(table: HudiTable) -> None:
    archiving = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5", "hoodie.clean.commits.retained": "3"}
    table.upsert(ROW, options={BATCH_ID: "3", **archiving})
    for _ in range(9):
        table.upsert(ROW, options=archiving)
    active = MetaClient.load(table.state().storage)
    assert all(not active.commits.metadata(i).extra_metadata.get(SINK_CHECKPOINT) for i in active.timeline.commits())
    assert last(table) == 3


def test_of_two_writers_of_one_batch_the_second_gives_way(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one was believed dead: its stream was started again on another machine."""
    complete = runner._complete
    second = HudiTable.open(table.path)

    def overtaken(*args: Any) -> Any:
        monkeypatch.setattr(runner, "_complete", complete)
        second.upsert(ROW, options={BATCH_ID: "5", "hoodie.clean.failed.writes.policy": "LAZY"})
        return complete(*args)

    monkeypatch.setattr(runner, "_complete", overtaken)
    with pytest.raises(WriteConflict, match="has brought batch 5"):
        table.upsert(ROW, options={BATCH_ID: "5", "hoodie.clean.failed.writes.policy": "LAZY"})
    assert len(table.state().timeline.commits()) == 1
    table.upsert(ROW, options={BATCH_ID: "6"})
    assert last(table) == 6


@pytest.mark.parametrize("text", ["{", "[1]", '{"default_single_writer": "x"}', '{"default_single_writer": []}'])
def test_a_note_that_is_none_is_an_error(table: HudiTable, text: str) -> None:
    table.upsert(ROW, options={SINK_CHECKPOINT: text})
    with pytest.raises(CorruptFile, match=SINK_CHECKPOINT):
        last(table)


QUERY = "hoodie.pyhudi.streaming.query.id"


def written(table: HudiTable, batch_id: int, query: str | None, identifier: str = "default_single_writer") -> bool:
    stream = StreamOptions(batch_id=batch_id, identifier=identifier, query=query)
    return is_written(MetaClient.load(table.state().storage), stream, batch_id)


def test_streams_without_a_name_are_distinguished_by_their_queries(table: HudiTable) -> None:
    table.upsert(ROW, options={BATCH_ID: "0", QUERY: "a"})
    assert written(table, 0, "a")
    assert not written(table, 0, "b"), "another source, or a new checkpoint"
    table.upsert(ROW, options={BATCH_ID: "0", QUERY: "b"})
    table.upsert(ROW, options={BATCH_ID: "1", QUERY: "a"})
    assert written(table, 0, "b")
    assert not written(table, 1, "b")
    assert written(table, 1, "a")
    with pytest.raises(ConfigError, match=r"begins batch 0, but the table has its batch 1"):
        written(table, 0, "a")


def test_notes_of_older_releases_count_for_every_query(table: HudiTable) -> None:
    table.upsert(ROW, options={BATCH_ID: "3"})
    assert written(table, 3, "a")
    assert not written(table, 4, "a")
    with pytest.raises(ConfigError, match="begins batch 0, but the table has its batch 3"):
        written(table, 0, "b")
    table.upsert(ROW, options={BATCH_ID: "4", QUERY: "a"})
    assert written(table, 4, "a")
    assert not written(table, 5, "a")


def test_where_nothing_tells_whose_the_first_batch_is_it_is_refused(table: HudiTable) -> None:
    table.upsert(ROW, options={BATCH_ID: "0", QUERY: "writer:1"})
    assert written(table, 0, "writer:1")
    with pytest.raises(ConfigError, match="begins batch 0, but the table has its batch 0"):
        written(table, 0, "writer:2")
    table.upsert(ROW, options={BATCH_ID: "1", QUERY: "writer:1"})
    assert written(table, 1, "writer:2"), "a restart knows no more than the number"


def test_a_name_of_a_stream_counts_whatever_its_query_is(table: HudiTable) -> None:
    """As in Hudi: the name is the stream."""
    table.upsert(ROW, options={BATCH_ID: "2", QUERY: "a", IDENTIFIER: "mine"})
    assert written(table, 2, "b", "mine")
    assert not written(table, 3, "b", "mine")
    assert not written(table, 0, "b", "other")
    with pytest.raises(ConfigError, match="begins batch 1, but the table has its batch 2"):
        written(table, 1, "b", "mine")


def test_two_queries_write_the_same_number_at_the_same_time(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    complete = runner._complete
    second = HudiTable.open(table.path)

    def overtaken(*args: Any) -> Any:
        monkeypatch.setattr(runner, "_complete", complete)
        second.upsert(
            [{"id": 2, "ts": 1}], options={BATCH_ID: "0", QUERY: "b", "hoodie.clean.failed.writes.policy": "LAZY"}
        )
        return complete(*args)

    monkeypatch.setattr(runner, "_complete", overtaken)
    table.insert(ROW, options={BATCH_ID: "0", QUERY: "a", "hoodie.clean.failed.writes.policy": "LAZY"})
    assert sorted(HudiTable.open(table.path).to_arrow()["id"].to_pylist()) == [1, 2]
