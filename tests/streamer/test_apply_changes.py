"""Pipelines of change events: a batch, its checkpoint and what is remembered are one commit, by SCD type 1 and 2."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pyhudi import ConfigError, HudiTable, Streamer, apply_changes
from pyhudi.actions.applied_changes import newest_changes
from pyhudi.actions.streamer_checkpoints import newest_checkpoint
from pyhudi.meta_client import MetaClient
from pyhudi.storage import open_storage
from pyhudi.streamer import pipeline as pipelines
from tests.support.source import ROOT

_PREFIX = "hoodie.pyhudi.streamer.apply.changes."
# Batches: the second has no column op, the last has an event without a key.
BATCHES: list[list[dict[str, Any]]] = [
    [{"id": 1, "v": "a", "ts": 1, "op": "u"}, {"id": 2, "v": "b", "ts": 5, "op": "d"}],
    [{"id": 1, "v": "c", "ts": 4}, {"id": 2, "v": "late", "ts": 3}],
    [],
    [{"id": 1, "v": "late", "ts": 2, "op": "u"}, {"id": None, "v": "x", "ts": 9, "op": "u"}],
]
NEWEST = [{"id": 1, "v": "c", "ts": 4}]
HISTORY = [(1, "a", 1, 2), (1, "late", 2, 4), (1, "c", 4, None), (2, "late", 3, 5)]


class Events:
    """The batches, one a round; the checkpoint is the number of the next."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings

    def read(self, checkpoint: str | None, limit: int | None) -> tuple[Any, str] | None:
        at = int(checkpoint or 0)
        return None if at >= len(BATCHES) else (BATCHES[at], str(at + 1))


def config(tmp_path: Path, scd_type: int, **more: object) -> dict[str, object]:
    left_out = "op" if scd_type == 1 else "op,ts"
    words = {"keys": "id", "sequence.by": "ts", "as.deletes": "op = 'd'", "except.column.list": left_out}
    return {
        "target-base-path": str(tmp_path / "t"),
        "source-class": f"{__name__}:Events",
        **{_PREFIX + name: text for name, text in words.items()},
        f"{_PREFIX}scd.type": scd_type,
        "hoodie.streamer.commit-on-errors": True,
        "hoodie.pyhudi.streamer.quarantine.max.share": 0.5,
        **more,
    }


def rows(tmp_path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = HudiTable.open(tmp_path / "t").scan(meta_columns=False).to_arrow().to_pylist()
    return found


def history(tmp_path: Path) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in rows(tmp_path)), key=lambda row: (row[0], row[2]))


@pytest.mark.parametrize("scd_type", [1, 2])
def test_batches_of_events_are_applied_each_with_its_checkpoint_in_one_commit(tmp_path: Path, scd_type: int) -> None:
    streamer = Streamer(config(tmp_path, scd_type))
    done = streamer.run(until_empty=True)
    streamer.close()

    assert (rows(tmp_path) == NEWEST) if scd_type == 1 else (history(tmp_path) == HISTORY)
    meta = MetaClient.load(open_storage(tmp_path / "t"))
    note, checkpoint = newest_changes(meta), newest_checkpoint(meta)
    assert note is not None
    assert checkpoint is not None
    assert (note.instant_time, note.type) == (checkpoint.instant_time, scd_type)
    assert checkpoint.text == "4"
    assert len(HudiTable.open(tmp_path / "t").history()) == 4  # the batch without events is the checkpoint alone
    assert done.rows == 5


@pytest.mark.parametrize("scd_type", [1, 2])
def test_a_batch_that_another_streamer_has_applied_meanwhile_is_not_applied_twice(
    tmp_path: Path, scd_type: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = vars(pipelines)["apply_events"]
    first = Streamer(config(tmp_path, scd_type))
    first.run()

    def slow(*arguments: Any) -> Any:
        monkeypatch.setattr(pipelines, "apply_events", real)
        Streamer(config(tmp_path, scd_type)).run()
        apply_changes(
            [{"id": 7, "v": "other", "ts": 1, "op": "u"}], tmp_path / "t", keys="id", sequence_by="ts",
            except_column_list="op" if scd_type == 1 else ["op", "ts"], scd_type=scd_type,
        )  # fmt: skip
        return real(*arguments)

    monkeypatch.setattr(pipelines, "apply_events", slow)
    first.run(until_empty=True)

    texts = [entry.extra.get("deltastreamer.checkpoint.key") for entry in HudiTable.open(tmp_path / "t").history()]
    assert sorted(text for text in texts if text) == ["1", "2", "3", "4"]
    assert [row for row in history(tmp_path) if row[0] != 7] == (
        [tuple(row.values()) for row in NEWEST] if scd_type == 1 else HISTORY
    )


def test_a_check_looks_at_the_events_and_writes_nothing(tmp_path: Path) -> None:
    assert Streamer(config(tmp_path, 2)).check().waiting == 2
    assert not (tmp_path / "t").exists()
    with pytest.raises(ConfigError, match="stores the sequence"):
        Streamer(config(tmp_path, 1, **{f"{_PREFIX}except.column.list": "ts"})).check()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({f"{_PREFIX}keys": ""}, "apply.changes.keys is missing"),
        ({f"{_PREFIX}sequence.by": ""}, "apply.changes.sequence.by is missing"),
        ({f"{_PREFIX}scd.type": "3"}, "scd.type"),
        ({f"{_PREFIX}as.deletes": "op =="}, "op =="),
        ({f"{_PREFIX}column.list": "v"}, "are both given"),
        ({"op": "INSERT"}, "as the events say"),
        ({"record_key": "v"}, "leave it out"),
        ({"op": "INSERT", "filter-dupes": True}, "filter-dupes"),
        ({f"{_PREFIX}key": "id"}, "Did you mean"),
        ({"source-class": "PostgresDebeziumSource"}, "has its own merging"),
    ],
)
def test_words_that_do_not_go_together_are_refused_before_anything_starts(
    tmp_path: Path, more: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        Streamer(config(tmp_path, 1, **more)).run()
    assert not (tmp_path / "t").exists()


def test_the_pipeline_of_the_page_runs(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```", (ROOT / "docs" / "apply-changes.md").read_text(), re.M | re.S)
    assert len(text.splitlines()) <= 15
    events = [{"id": 1, "city": "Oslo", "ts": 1, "op": "c"}, {"id": 1, "city": "Rome", "ts": 2, "op": "u"}]
    (tmp_path / "incoming" / "customers").mkdir(parents=True)
    (tmp_path / "incoming" / "customers" / "a.json").write_text("\n".join(map(json.dumps, events)))
    (tmp_path / "p.toml").write_text(re.sub(r'"/(lake|incoming)', rf'"{tmp_path}/\1', text))

    assert Streamer(tmp_path / "p.toml").run(until_empty=True).rows == 2
    assert HudiTable.open(tmp_path / "lake" / "customers").scan(where="__END_AT IS NULL").count() == 1
