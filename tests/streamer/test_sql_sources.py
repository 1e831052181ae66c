"""Queries over Hudi tables as a source: each round runs them, and no checkpoint is noted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, Streamer, write_hudi
from pyhudi.actions.streamer_checkpoints import newest_checkpoint
from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.storage import open_storage

pytest.importorskip("duckdb")
SQL = "hoodie.streamer.source.sql."


def config(tmp_path: Path, text: str, *, in_file: bool = False, **more: object) -> dict[str, Any]:
    if not (tmp_path / "s").exists():
        write_hudi(tmp_path / "s", [{"id": 1, "v": 2}, {"id": 2, "v": 3}], record_key="id")
    text = text.replace("<s>", f"hudi.`{tmp_path}/s`")
    (tmp_path / "q.sql").write_text(text)
    source = {f"{SQL}file": str(tmp_path / "q.sql")} if in_file else {f"{SQL}sql.query": text}
    name = "SqlFileBasedSource" if in_file else "SqlSource"
    return {"target-base-path": str(tmp_path / "t"), "record_key": "id", "source-class": name, **source, **more}


def rows(tmp_path: Path, name: str = "t") -> list[tuple[Any, ...]]:
    found = HudiTable.open(tmp_path / name).scan(meta_columns=False).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def checkpoint(tmp_path: Path) -> str | None:
    found = newest_checkpoint(MetaClient.load(open_storage(str(tmp_path / "t"))))
    return None if found is None else found.text


def test_a_query_brings_its_rows_in_each_run_and_the_checkpoint_of_the_tables_pipeline_remains(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 7, "v": 7}')
    files = {"target-base-path": str(tmp_path / "t"), "record_key": "id"}
    Streamer({**files, "hoodie.streamer.source.dfs.root": str(tmp_path / "in")}).run()
    before = checkpoint(tmp_path)
    settings = config(tmp_path, "SELECT * FROM <s> WHERE v > 2")

    done = Streamer(settings).run(until_empty=True)
    assert (done.rows, done.commits, done.checkpoint) == (1, 1, None)
    assert Streamer(settings).run().rows == 1
    assert rows(tmp_path) == [(2, 3), (7, 7)]
    assert checkpoint(tmp_path) == before is not None


def test_statements_of_a_file_run_one_after_the_other_and_the_last_one_is_the_query(tmp_path: Path) -> None:
    text = "-- a; comment\nCREATE OR REPLACE TEMPORARY VIEW w AS SELECT id, 'a;b' AS t FROM <s>;\nSELECT * FROM w;\n"

    assert Streamer(config(tmp_path, text, in_file=True)).run().rows == 2
    assert rows(tmp_path) == [(1, "a;b"), (2, "a;b")]
    assert checkpoint(tmp_path) is None


def test_a_file_of_statements_notes_the_time_as_its_checkpoint_where_the_options_say_so(tmp_path: Path) -> None:
    settings = config(tmp_path, "SELECT id FROM <s>", in_file=True, **{f"{SQL}checkpoint.emit": True})

    done = Streamer(settings).run(until_empty=True)
    assert done.rounds == 1
    assert checkpoint(tmp_path) == done.checkpoint
    assert done.checkpoint is not None
    assert done.checkpoint.isdecimal()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("WITH x AS (SELECT 7 AS id, 8 AS v) INSERT INTO <s> SELECT * FROM x", "expected a query"),
        ("DELETE FROM <s>; SELECT 1 AS id", "DELETE FROM .*: expected a query; statements before it may be SET"),
        ("SELECT * FROM <s>; DROP TABLE w", "expected a query"),
        (" ; ", "the source has no query"),
    ],
)
def test_a_statement_that_writes_is_refused_before_any_runs(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        Streamer(config(tmp_path, text, in_file=True)).run()
    assert rows(tmp_path, "s") == [(1, 2), (2, 3)]
    assert not (tmp_path / "t").exists()


def test_what_would_be_ignored_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"source-limit would leave rows.*LIMIT"):
        Streamer(config(tmp_path, "SELECT 1 AS id", **{"source-limit": 3}))
    with pytest.raises(ConfigError, match=r"checkpoint and ignore-checkpoint: SqlSource reads all rows"):
        Streamer(config(tmp_path, "SELECT 1 AS id", checkpoint="1"))
    with pytest.raises(ConfigError, match=r"sql\.query is missing"):
        Streamer({"target-base-path": str(tmp_path / "t"), "source-class": "SqlSource"})
