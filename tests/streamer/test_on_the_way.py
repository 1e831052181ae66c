"""Rows on their way: transformers one after the other, schemas of providers, deletes, operations."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, Streamer, write_hudi
from pyhudi.errors import ConfigError, SchemaMismatch, StorageError
from pyhudi.streamer.sources.files.source import JsonFiles
from tests.support.source import ROOT

AVRO = {
    "type": "record",
    "name": "o",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
    ],
}


def config(tmp_path: Path, *rows: object, **more: object) -> dict[str, Any]:
    (tmp_path / "in").mkdir(exist_ok=True)
    number = len(list((tmp_path / "in").iterdir()))
    if rows:
        (tmp_path / "in" / f"f{number}").write_text("\n".join(map(json.dumps, rows)))
    root = {"hoodie.streamer.source.dfs.root": str(tmp_path / "in"), "record_key": "id"}
    return {"target-base-path": str(tmp_path / "t"), **root, **more}


def rows(tmp_path: Path) -> list[dict[str, Any]]:
    found = HudiTable.open(tmp_path / "t").scan(meta_columns=False).to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def doubled(batch: pa.Table) -> Any:
    return [{**row, "v": row["v"] * 2} for row in batch.to_pylist()]


def test_transformers_run_one_after_the_other_sql_in_sparks_words_flattening_and_functions(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    sql = "SELECT id, where.city AS city, where, v FROM <SRC> WHERE v > 1"
    (tmp_path / "more.sql").write_text("SELECT *, concat(city, '!') AS loud FROM <SRC>;\n")
    names = f"SqlQueryBasedTransformer,FlatteningTransformer,{__name__}:doubled,SqlFileBasedTransformer"
    settings = config(
        tmp_path,
        {"id": 1, "v": 1, "where": {"city": "rome"}},
        {"id": 2, "v": 2, "where": {"city": "oslo"}},
        **{
            "transformer-class": names,
            "hoodie.streamer.transformer.sql": sql.replace("where.", "place.").replace(" where,", " place,"),
            "hoodie.streamer.transformer.sql.file": str(tmp_path / "more.sql"),
        },
    )
    text = (tmp_path / "in" / "f0").read_text().replace('"where"', '"place"')
    (tmp_path / "in" / "f0").write_text(text)

    assert Streamer(settings).run().rows == 1
    assert rows(tmp_path) == [{"id": 2, "city": "oslo", "place_city": "oslo", "v": 4, "loud": "oslo!"}]


def test_a_batch_without_rows_makes_no_table_of_columns_that_a_transformer_changes(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    more = {"transformer-class": "SqlQueryBasedTransformer", "source-class": "ParquetDFSSource"}
    settings = config(tmp_path, **more, **{"hoodie.streamer.transformer.sql": "SELECT key AS id FROM <SRC>"})
    pq.write_table(pa.table({"key": pa.array([], pa.int64())}), tmp_path / "in" / "a")
    done = Streamer(settings).run()
    assert (done.rows, done.commits) == (0, 0)
    pq.write_table(pa.table({"key": [1]}), tmp_path / "in" / "b")

    assert Streamer(settings).run().rows == 1
    assert rows(tmp_path) == [{"id": 1}]


def test_a_transformer_that_has_no_query_or_gives_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"transformer\.sql is missing"):
        Streamer(config(tmp_path, **{"transformer-class": "SqlQueryBasedTransformer"}))
    query = {"transformer-class": "SqlQueryBasedTransformer", "hoodie.streamer.transformer.sql": "SELECT 1"}
    with pytest.raises(ConfigError, match="does not name <SRC>"):
        Streamer(config(tmp_path, **query))
    with pytest.raises(ConfigError, match="returned None"):
        Streamer(config(tmp_path, {"id": 1}, **{"transformer-class": "builtins:print"})).run()


def test_a_schema_of_a_file_gives_decimals_and_dates_their_types_and_leaves_other_fields_out(tmp_path: Path) -> None:
    (tmp_path / "o.avsc").write_text(json.dumps(AVRO))
    schema = {
        "schemaprovider-class": "org.apache.hudi.utilities.schema.FilebasedSchemaProvider",
        "hoodie.streamer.schemaprovider.source.schema.file": str(tmp_path / "o.avsc"),
    }
    settings = config(
        tmp_path, {"id": 1, "price": 12.10, "x": 1}, {"id": 2, "price": "3", "day": "2026-01-02"}, **schema
    )

    Streamer(settings).run()
    table = HudiTable.open(tmp_path / "t").scan(meta_columns=False).to_arrow()
    assert table.schema.field("price").type == pa.decimal128(10, 2)
    assert [str(row["price"]) for row in rows(tmp_path)] == ["12.10", "3.00"]
    assert [str(row["day"]) for row in rows(tmp_path)] == ["None", "2026-01-02"]
    assert table.schema.names == ["id", "price", "day"]


def test_times_are_texts_or_numbers_in_the_unit_of_the_column_and_decimals_keep_their_digits(tmp_path: Path) -> None:
    types = [("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("d", pa.decimal128(20, 4))]
    HudiTable.create(tmp_path / "t", pa.schema(types), record_key="id")
    noon = "2026-01-02T12:00:00Z"
    settings = config(
        tmp_path,
        {"id": 1, "at": noon, "day": "2026-01-02", "d": "9007199254740993.1234"},
        {"id": 2, "at": 1767355200000000, "day": 20455, "d": 1.5},
        {"id": 3, "at": "noon"},
        **{"commit-on-errors": True, "hoodie.pyhudi.streamer.quarantine.max.share": 0.5, "ignore-checkpoint": "x"},
    )
    lines: list[str] = []

    assert Streamer(settings).run(told=lines.append).rejected == 1
    assert lines[0].startswith("left out: f0:3: ")
    first, second = rows(tmp_path)
    assert (first["at"], first["day"]) == (second["at"], second["day"])
    assert (str(first["d"]), str(second["d"])) == ("9007199254740993.1234", "1.5000")


def test_a_new_column_comes_in_although_its_name_is_nearly_that_of_another(tmp_path: Path) -> None:
    Streamer(config(tmp_path, {"id": 1, "address1": "a"})).run()
    Streamer(config(tmp_path, {"id": 2, "address2": "b"})).run()
    assert rows(tmp_path)[1] == {"id": 2, "address1": None, "address2": "b"}


def test_columns_that_come_later_are_added_and_those_that_rows_lack_are_null_however_batches_are_cut(
    tmp_path: Path,
) -> None:
    Streamer(config(tmp_path, {"id": 1, "v": 1}, {"id": 2, "v": 2})).run()
    Streamer(config(tmp_path, {"id": 2, "n": {"a": [1]}, "when": "2026-01-02T03:04:05"})).run()
    Streamer(config(tmp_path, {"id": 3, "v": None, "late": None, "none": []})).run()

    assert rows(tmp_path) == [
        {"id": 1, "v": 1, "n": None, "when": None},
        {"id": 2, "v": None, "n": {"a": [1]}, "when": "2026-01-02T03:04:05"},
        {"id": 3, "v": None, "n": None, "when": None},
    ]


def test_deletes_reach_the_table_of_both_types_through_a_transformer(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    sql = {
        "transformer-class": "SqlQueryBasedTransformer",
        "hoodie.streamer.transformer.sql": "SELECT id, ts, op = 'd' AS _hoodie_is_deleted FROM <SRC>",
    }
    for kind in ("cow", "mor"):
        place = tmp_path / kind
        place.mkdir()
        more = {**sql, "table-type": kind, "ordering": "ts"}
        Streamer(config(place, {"id": 1, "ts": 1, "op": "c"}, {"id": 2, "ts": 1, "op": "c"}, **more)).run()
        Streamer(config(place, {"id": 1, "ts": 2, "op": "d"}, **more)).run()
        assert [row["id"] for row in rows(place)] == [2]


def test_rows_that_the_table_has_are_filtered_and_an_overwrite_without_rows_replaces_nothing(tmp_path: Path) -> None:
    insert = {"op": "INSERT", "filter-dupes": True}
    Streamer(config(tmp_path, {"id": 1, "v": 1}, **insert)).run()
    Streamer(config(tmp_path, {"id": 1, "v": 2}, {"id": 2, "v": 2}, **insert)).run()
    assert [row["v"] for row in rows(tmp_path)] == [1, 2]
    (tmp_path / "in" / "f2").write_text("\n \n")
    assert Streamer(config(tmp_path, op="INSERT_OVERWRITE_TABLE")).run().commits == 1
    assert len(rows(tmp_path)) == 2


def test_two_writers_of_other_kinds_beside_the_streamer_cost_nothing(tmp_path: Path) -> None:
    Streamer(config(tmp_path, {"id": 1, "v": 1})).run()
    writers = [
        threading.Thread(target=write_hudi, args=(tmp_path / "t", [{"id": number, "v": 0}])) for number in (50, 51)
    ]
    for writer in writers:
        writer.start()
    Streamer(config(tmp_path, {"id": 2, "v": 2})).run()
    for writer in writers:
        writer.join()
    assert [row["id"] for row in rows(tmp_path)] == [1, 2, 50, 51]


def test_a_source_that_is_away_for_a_while_is_tried_again_if_the_options_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, failures = JsonFiles.read, [0]

    def flaky(self: JsonFiles, *arguments: Any) -> Any:
        failures[0] += 1
        if failures[0] < 3:
            raise StorageError("the store is away")
        return read(self, *arguments)

    monkeypatch.setattr(JsonFiles, "read", flaky)
    settings = config(tmp_path, {"id": 1})
    with pytest.raises(StorageError, match="away"):
        Streamer(settings).run()
    more = {"retry-on-source-failures": True, "retry-interval-seconds": 0}
    assert Streamer({**settings, **more}).run().rows == 1


def test_a_row_without_its_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatch, match=r"1 of 2 rows .*without a value in its key id"):
        Streamer(config(tmp_path, {"id": 1, "v": 1}, {"v": 2})).run()


def ended_by_sigterm(tmp_path: Path, *words: str, settings: Mapping[str, object]) -> tuple[int, str, str]:
    """`pyhudi stream`, with SIGTERM behind its first batch: its exit code, and what it prints."""
    path = tmp_path / "p.properties"
    path.write_text("\n".join(f"{key}={value}" for key, value in settings.items()))
    command = [sys.executable, "-m", "pyhudi.cli", "stream", str(path), *words]
    running = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert running.stderr is not None
    line = running.stderr.readline()
    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=60)
    assert "1 rows," in line, line + err
    return running.returncode, out, err


def test_sigterm_ends_a_continuous_run_after_its_batch_with_exit_code_0(tmp_path: Path) -> None:
    code, out, err = ended_by_sigterm(
        tmp_path, "--option", "hoodie.streamer.continuous=true", settings=config(tmp_path, {"id": 1, "v": 1})
    )

    assert code == 0, err
    assert out.startswith("1 rows in 1 commits")


def files_of_three_times(tmp_path: Path) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for number in range(3):
        settings = config(tmp_path, {"id": number})
        os.utime(tmp_path / "in" / f"f{number}", (1000 + number, 1000 + number))
    return settings


def test_sigterm_that_cuts_a_run_until_empty_short_is_its_exit_code(tmp_path: Path) -> None:
    settings = {**files_of_three_times(tmp_path), "source-limit": 1, "min-sync-interval-seconds": 1}
    code, _, err = ended_by_sigterm(tmp_path, "--until-empty", settings=settings)

    assert code == 143, err
    assert "ended by SIGTERM" in err
    assert "don't run" not in err
    assert HudiTable.open(tmp_path / "t").scan().count() < 3


def test_a_program_does_not_go_on_as_if_a_run_that_sigterm_cut_short_were_complete(tmp_path: Path) -> None:
    handed_on: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: handed_on.append(number))
    try:
        streamer = Streamer({**files_of_three_times(tmp_path), "source-limit": 1})

        assert streamer.run(until_empty=True, told=lambda line: signal.raise_signal(signal.SIGTERM)).rounds == 1
        assert handed_on == [signal.SIGTERM]
        assert streamer.run(told=lambda line: signal.raise_signal(signal.SIGTERM)).rounds == 1
        assert handed_on == [signal.SIGTERM]  # a single round is complete
        assert streamer.run(until_empty=True).rounds == 1
    finally:
        signal.signal(signal.SIGTERM, before)
