"""Batches of a stream, known again by the extra metadata of their commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import CorruptFile, HudiTable, WriteConflict
from pyhudi.actions import runner
from pyhudi.actions.stream_batches import last_batch
from pyhudi.meta_client import MetaClient
from pyhudi.model.options.streaming import BATCH_ID, IDENTIFIER, SINK_CHECKPOINT

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64())])
ROW = [{"id": 1, "ts": 1}]


@pytest.fixture(params=["9", "6"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> HudiTable:
    options = {"hoodie.write.table.version": request.param}
    return HudiTable.create(tmp_path / "t", SCHEMA, record_key="id", ordering="ts", options=options)


def last(table: HudiTable, identifier: str = "default_single_writer") -> int | None:
    return last_batch(MetaClient.load(table._meta.storage), identifier)


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
    meta = MetaClient.load(table._meta.storage)
    newest = meta.timeline.last_commit()
    assert newest is not None
    assert meta.commits.metadata(newest).extra_metadata[SINK_CHECKPOINT] == '{"default_single_writer":"0"}'


def test_a_batch_is_found_when_others_have_archived_its_commit(table: HudiTable) -> None:
    archiving = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5", "hoodie.clean.commits.retained": "3"}
    table.upsert(ROW, options={BATCH_ID: "3", **archiving})
    for _ in range(9):
        table.upsert(ROW, options=archiving)
    active = MetaClient.load(table._meta.storage)
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
    assert len(table.timeline.commits()) == 1
    table.upsert(ROW, options={BATCH_ID: "6"})
    assert last(table) == 6


@pytest.mark.parametrize("text", ["{", "[1]", '{"default_single_writer": "x"}', '{"default_single_writer": []}'])
def test_a_note_that_is_none_is_an_error(table: HudiTable, text: str) -> None:
    table.upsert(ROW, options={SINK_CHECKPOINT: text})
    with pytest.raises(CorruptFile, match=SINK_CHECKPOINT):
        last(table)
