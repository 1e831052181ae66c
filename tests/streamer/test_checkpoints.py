"""Checkpoints: a batch comes in with its own in one commit, once, whoever else writes; and they are found again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, Streamer, write_hudi
from pyhudi.actions.streamer_checkpoints import CheckpointMoved, newest_checkpoint
from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.storage import open_storage
from pyhudi.streamer import pipeline as pipelines
from tests.support.source import ROOT

V1, V2 = "deltastreamer.checkpoint.key", "streamer.checkpoint.key.v2"


class Numbers:
    """Rows 0, 1, 2 … up to `until`, `step` a batch."""

    until, step = 40, 10

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings

    def read(self, checkpoint: str | None, limit: int | None) -> tuple[Any, str] | None:
        first = int(checkpoint or 0)
        last = min(first + (limit or self.step), self.until)
        return None if first >= last else ({"id": list(range(first, last))}, str(last))


def config(tmp_path: Path, **more: object) -> dict[str, object]:
    source = {"source-class": f"{__name__}:Numbers", "op": "INSERT"}
    return {"target-base-path": str(tmp_path / "t"), "record_key": "id", **source, **more}


def ids(tmp_path: Path) -> list[int]:
    return sorted(HudiTable.open(tmp_path / "t").scan(["id"], meta_columns=False).to_arrow()["id"].to_pylist())


def noted(tmp_path: Path, key: str, text: str) -> None:
    """A commit without rows that notes a checkpoint, as another writer of Hudi's leaves it."""
    options = {"hoodie.datasource.write.commitmeta.key.prefix": key, key: text, "hoodie.allow.empty.commit": "true"}
    write_hudi(tmp_path / "t", pa.table({"id": pa.array([], pa.int64())}), "bulk_insert", options=options)


def test_a_batch_and_its_checkpoint_are_one_commit_and_the_next_run_goes_on_there(tmp_path: Path) -> None:
    done = Streamer(config(tmp_path)).run()
    extra = HudiTable.open(tmp_path / "t").history()[0].extra

    assert (done.rows, done.commits, done.checkpoint) == (10, 1, "10")
    assert extra[V1] == "10"
    assert V2 not in extra
    assert Streamer(config(tmp_path)).run(until_empty=True).rows == 30
    assert ids(tmp_path) == list(range(40))
    assert Streamer(config(tmp_path)).run() == Streamer(config(tmp_path)).run()
    assert len(HudiTable.open(tmp_path / "t").history()) == 4


def test_a_second_streamer_that_read_the_same_checkpoint_is_refused_and_reads_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Streamer(config(tmp_path)).run()
    other = Streamer(config(tmp_path))
    write, conflicts = pipelines.write, []

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(pipelines, "write", write)
        assert other.run().rows == 10  # comes between the reading and the writing of the first
        try:
            return write(*arguments)
        except CheckpointMoved as error:
            conflicts.append(str(error))
            raise

    monkeypatch.setattr(pipelines, "write", late)
    done = Streamer(config(tmp_path)).run()

    assert "another Streamer writes to the table" in conflicts[0]
    assert (done.rows, done.checkpoint) == (10, "30")
    assert ids(tmp_path) == list(range(30))


def test_two_streamers_that_make_one_table_at_once_bring_each_row_once(tmp_path: Path) -> None:
    streamers = [Streamer(config(tmp_path)) for _ in range(2)]
    threads = [threading.Thread(target=one.run, kwargs={"until_empty": True}) for one in streamers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ids(tmp_path) == list(range(40))


def test_a_batch_that_dies_before_its_commit_is_read_again_and_one_after_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = pipelines.write

    def dies_before(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    def dies_after(*arguments: Any) -> Any:
        write(*arguments)
        raise KeyboardInterrupt

    for death in (dies_before, dies_after, dies_before, dies_after):
        monkeypatch.setattr(pipelines, "write", death)
        with pytest.raises(KeyboardInterrupt):
            Streamer(config(tmp_path)).run()
    monkeypatch.setattr(pipelines, "write", write)

    assert Streamer(config(tmp_path)).run(until_empty=True).rows == 20
    assert ids(tmp_path) == list(range(40))


def test_the_checkpoint_is_found_behind_commits_of_others_and_in_the_archive(tmp_path: Path) -> None:
    Streamer(config(tmp_path)).run()
    archiving = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}
    for number in range(6):
        write_hudi(tmp_path / "t", pa.table({"id": [1000 + number]}), "upsert", options=archiving)
    noted(tmp_path, V1, "")  # an empty one is none
    first = HudiTable.open(tmp_path / "t").history()[-1]

    assert first.is_archived
    assert Streamer(config(tmp_path)).run().rows == 10
    assert [one for one in ids(tmp_path) if one < 1000] == list(range(20))


def test_of_both_forms_in_one_commit_the_second_counts_and_a_later_commit_before_both(tmp_path: Path) -> None:
    Streamer(config(tmp_path)).run()
    storage = open_storage(tmp_path / "t")
    noted(tmp_path, V2, "25")
    newest = newest_checkpoint(MetaClient.load(storage))
    assert newest is not None
    assert (newest.text, newest.is_v2) == ("25", True)
    assert Streamer(config(tmp_path)).run().checkpoint == "35"
    assert HudiTable.open(tmp_path / "t").history()[0].extra[V1] == "35"
    noted(tmp_path, V1, "38")
    assert Streamer(config(tmp_path)).run().rows == 2


def test_a_checkpoint_by_hand_is_applied_once_and_a_new_text_to_ignore_starts_over_once(tmp_path: Path) -> None:
    Streamer(config(tmp_path)).run()

    assert Streamer(config(tmp_path, checkpoint="35")).run().checkpoint == "40"
    assert HudiTable.open(tmp_path / "t").history()[0].extra["deltastreamer.checkpoint.reset_key"] == "35"
    assert Streamer(config(tmp_path, checkpoint="35")).run().rows == 0
    again = config(tmp_path, op="UPSERT", **{"ignore-checkpoint": "once"})
    assert Streamer(again).run().checkpoint == "10"
    assert Streamer(again).run().checkpoint == "20"


def test_a_table_with_commits_and_no_checkpoint_is_refused_until_something_is_said(tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", pa.table({"id": [1000]}), record_key="id", table_name="another")

    with pytest.raises(ConfigError, match=r"none has a checkpoint.*ignore-checkpoint"):
        Streamer(config(tmp_path)).run()
    assert Streamer(config(tmp_path, checkpoint="30")).run().rows == 10
    assert ids(tmp_path) == [*range(30, 40), 1000]


def test_services_after_the_batch_leave_the_checkpoint_alone(tmp_path: Path) -> None:
    services = {
        "table-type": "mor",
        "op": "UPSERT",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": 1,
        "hoodie.clustering.inline": "true",
        "hoodie.clustering.inline.max.commits": 1,
    }
    assert Streamer(config(tmp_path, **services)).run(until_empty=True).rows == 40
    assert ids(tmp_path) == list(range(40))


def test_a_run_ends_after_its_batch_when_asked(tmp_path: Path) -> None:
    streamer = Streamer(config(tmp_path, continuous=True))
    lines: list[str] = []

    def told(line: str) -> None:
        lines.append(line)
        streamer.stop()

    done = streamer.run(told=told)
    assert (done.rounds, done.rows) == (1, 10)
    assert lines[0].startswith(f"{tmp_path}/t: 10 rows,")


def test_check_shows_five_rows_and_writes_nothing(tmp_path: Path) -> None:
    checked = Streamer(config(tmp_path)).check()

    assert (checked.waiting, checked.columns) == (40, {"id": "int64"})
    assert json.loads(checked.to_json())["rows"] == [{"id": number} for number in range(5)]
    assert "nothing was written" in str(checked)
    with pytest.raises(ConfigError, match="uuid"):
        Streamer(config(tmp_path, record_key="uuid")).check()
    assert not (tmp_path / "t").exists()
    assert pyhudi.results.StreamerCheck is type(checked)


@pytest.mark.thorough
def test_processes_that_are_killed_at_any_moment_two_at_once_bring_each_row_once(tmp_path: Path) -> None:
    path = tmp_path / "p.properties"
    path.write_text("\n".join(f"{key}={value}" for key, value in config(tmp_path).items()))
    command = [sys.executable, "-m", "pyhudi.cli", "stream", "--until-empty", str(path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for wait_s in (2.0, 2.7):
        running = [subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) for _ in range(2)]
        threading.Event().wait(wait_s)
        for one in running:
            one.kill()
            one.wait()
    Streamer(config(tmp_path)).run(until_empty=True)

    assert ids(tmp_path) == list(range(40))


def test_a_run_that_is_stopped_while_another_brings_its_batch_ends_without_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streamer, write = Streamer(config(tmp_path)), pipelines.write

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(pipelines, "write", write)
        Streamer(config(tmp_path)).run()
        streamer.stop()
        return write(*arguments)

    monkeypatch.setattr(pipelines, "write", late)
    assert streamer.run().rows == 0
    assert ids(tmp_path) == list(range(10))


def test_a_batch_that_is_taken_back_comes_again_as_its_checkpoint_went_with_it(tmp_path: Path) -> None:
    for _ in range(2):
        Streamer(config(tmp_path)).run()
    HudiTable.open(tmp_path / "t").rollback()
    assert ids(tmp_path) == list(range(10))

    Streamer(config(tmp_path)).run(until_empty=True)
    assert ids(tmp_path) == list(range(40))


class Whole(Numbers):
    """All rows in each round."""

    reads_all: object = True

    def read(self, checkpoint: str | None, limit: int | None) -> tuple[Any, str] | None:
        assert checkpoint is None
        return {"id": [100, 101]}, None  # type: ignore[return-value]


def test_a_class_that_reads_all_rows_in_each_round_notes_no_checkpoint_and_leaves_that_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Streamer(config(tmp_path)).run()
    whole = config(tmp_path, op="UPSERT", **{"source-class": f"{__name__}:Whole"})

    first, second = Streamer(whole).run(until_empty=True), Streamer(whole).run()

    assert [(one.rounds, one.rows, one.checkpoint) for one in (first, second)] == [(1, 2, None)] * 2
    assert Streamer(config(tmp_path)).run().checkpoint == "20"
    assert ids(tmp_path) == [*range(20), 100, 101]
    for more, words in (
        ({"checkpoint": "5"}, "Whole reads all rows in each round"),
        ({"source-limit": 5}, "source-limit would leave rows out, as .*:Whole reads all rows in each round"),
    ):
        with pytest.raises(ConfigError, match=words):
            Streamer({**whole, **more})
    monkeypatch.setattr(Whole, "reads_all", "yes")
    with pytest.raises(ConfigError, match=r"Whole\.reads_all: expected True or False, found 'yes'"):
        Streamer(whole)
