"""Other readers of Delta find our own reader's rows in exported tables: DuckDB's `delta_scan`, and Delta on Spark."""

from __future__ import annotations

import json
import os
import random
import subprocess
import warnings
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.schema.changes import AddColumn, ChangeType
from pyhudi.storage.stores.other_libraries import pyiceberg_properties
from tests.support.exports.delta import assert_equal, by_pyhudi
from tests.support.exports.iceberg import Lake
from tests.support.golden.folder import shared_folder
from tests.support.judge.hudi_on_s3 import judges_python
from tests.support.judge.real_hudi import HUDI_OF_TABLE_VERSION, Judge
from tests.support.servers.object_stores import object_store_server
from tests.support.source import ROOT
from tests.support.sweeps import SEED
from tests.support.tables.random_life import EMPHASES, RandomLife

OFF = {"hoodie.metadata.enable": "false"}
ENCODED = {
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
STEPS = 20
Readers = dict[str, str]


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Readers:
    """`python` and `jars` of the environment with the readers."""
    start = shared_folder() / "services" / "exports" / "start"
    if not start.exists():
        pytest.skip("../shared/services/exports is not there")
    told = subprocess.run(
        [str(start), str(tmp_path_factory.mktemp("readers"))], capture_output=True, text=True, timeout=600, check=False
    )
    if told.returncode:
        pytest.skip(f"the readers can't be started: {told.stderr[-300:]}")
    return dict(line.partition("=")[::2] for line in told.stdout.splitlines() if "=" in line)


def by_duckdb(readers: Readers, *paths: Path) -> list[list[str]]:
    command = [readers["python"], ROOT / "tests" / "support" / "judge" / "delta_readers.py", *paths]
    ran = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return [json.loads(line.replace("<UTC>", "zoneinfo.ZoneInfo(key='UTC')")) for line in ran.stdout.splitlines()]


def test_duckdb_finds_by_filters_what_it_finds_without_the_statistics_of_the_log(
    tmp_path: Path, readers: Readers
) -> None:
    times = [datetime(2026, 1, 1, 0, 0, 0, 999_999 + n, timezone.utc) for n in range(-999_999, 1)]
    texts = ["x" * 32, "x" * 32 + "a", "x" * 31 + "y", "", None]
    for number, text in enumerate(texts):
        rows = {
            "id": number,
            "text": text,
            "day": date(1969 + number, 1, 1),
            "moment": times[-1 - number],
            "amount": Decimal(number).scaleb(-2),
            "big": 2**53 + number,
        }
        write_hudi(str(tmp_path), [rows], record_key="id", operation="bulk_insert", options=OFF)
    HudiTable.open(tmp_path).export_metadata("delta")
    literals = {
        "text": [f"'{one}'" for one in texts if one is not None],
        "day": ["date '1969-01-01'", "date '1971-06-01'"],
        "moment": [f"timestamptz '{one.isoformat()}'" for one in times[-5:]],
        "amount": ["0.00", "0.01", "0.04"],
        "big": [str(2**53 + n) for n in range(5)],
    }
    # A filter that is no plain comparison skips no files.
    pairs = [
        (f"{name} {sign} {value}", f"(case when {name} {sign} {value} then random() >= 0 else false end)")
        for name, values in literals.items()
        for value in values
        for sign in ("=", "<>", "<", "<=", ">", ">=")
    ]
    command = [readers["python"], ROOT / "tests" / "support" / "judge" / "delta_readers.py", "--where", tmp_path]
    ran = subprocess.run(
        [*map(str, command), *(one for pair in pairs for one in pair)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(lines) == 2 * len(pairs)
    for pair, by_filter, by_all in zip(pairs, lines[::2], lines[1::2], strict=True):
        assert by_filter == by_all, pair[0]
    assert any(lines)


def test_duckdb_reads_both_exports_of_a_table_on_s3(tmp_path: Path, readers: Readers) -> None:
    with object_store_server("s3", tmp_path) as server:
        storage = server.table("rides")
        write_hudi(storage, [{"id": 1, "p": "a"}, {"id": 2, "p": "b"}], record_key="id", partition_by="p", options=OFF)
        table = HudiTable.open(storage.root, storage_options=dict(server.options))
        catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": "s3://lake/wh"}
        lake = Lake(tmp_path, other=catalog)
        for id in (3, 4):
            table.export_metadata("delta")
            lake.export(table)
            table.upsert([{"id": id, "p": "a"}], options=OFF)
        reader = Lake(tmp_path, other={**catalog, **pyiceberg_properties(storage)})
        command = [readers["python"], str(ROOT / "tests" / "support" / "judge" / "exports_on_s3.py")]
        command += [server.options["fs.s3a.endpoint"].removeprefix("http://"), storage.root.replace("s3a:", "s3:")]
        command += [reader.table().metadata_location]
        keys = {"AWS_ACCESS_KEY_ID": "fs.s3a.access.key", "AWS_SECRET_ACCESS_KEY": "fs.s3a.secret.key"}
        given = {**os.environ, **{name: server.options[key] for name, key in keys.items()}}
        ran = subprocess.run(command, capture_output=True, text=True, check=False, env=given)

    assert ran.returncode == 0, ran.stderr[-2000:]
    assert [json.loads(line) for line in ran.stdout.splitlines()] == [[1, 2, 3], [1, 2, 3]]


def odd_partitions(path: Path) -> None:
    rows = pa.table({"id": range(5), "p": ["a b", "c%d", "e=f/g", None, "ü"], "n": [1, 2, 3, None, 5]})
    write_hudi(str(path), rows, record_key="id", partition_by=["p", "n"], options={**OFF, **ENCODED})


def days(path: Path) -> None:
    rows = pa.table({"id": range(3), "day": [date(2026, 11, 28), date(1969, 1, 2), None]})
    write_hudi(str(path), rows, record_key="id", partition_by="day", options=OFF)


def dropped(path: Path) -> None:
    options = {**OFF, "hoodie.datasource.write.drop.partition.columns": "true"}
    rows = pa.table({"id": range(2), "p": ["x", "y"]})
    write_hudi(str(path), rows, record_key="id", partition_by="p", options=options)


def formatted_times(path: Path) -> None:
    options = {
        **OFF,
        "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    }
    rows = pa.table({"id": range(2), "at": [1_700_000_000_000, 1_800_000_000_000]})
    write_hudi(str(path), rows, record_key="id", partition_by="at", options=options)


def changed_columns(path: Path) -> None:
    moment = datetime(2026, 11, 28, 1, 2, 3, tzinfo=timezone.utc)
    at = pa.array([moment] * 2, pa.timestamp("us", "UTC"))
    rows = pa.table({"id": ["a", "b"], "n": pa.array([1, 2], pa.int32()), "at": at})
    write_hudi(str(path), rows, record_key="id", options=OFF)
    table = HudiTable.open(path)
    table.export_metadata("delta")
    table.alter(AddColumn("note", pa.string()))
    table.alter(ChangeType("n", pa.int64()))
    table.insert(
        [{"id": "c", "n": 2**40, "at": moment, "note": "x"}], options={**OFF, "hoodie.parquet.small.file.limit": "0"}
    )


MADE: dict[str, Callable[[Path], None]] = {
    one.__name__: one for one in (odd_partitions, days, dropped, formatted_times, changed_columns)
}


def test_duckdb_reads_every_form_of_partitions_and_changed_columns(readers: Readers, tmp_path: Path) -> None:
    for name, make in MADE.items():
        make(tmp_path / name)
        HudiTable.open(tmp_path / name).export_metadata("delta")

    read = by_duckdb(readers, *(tmp_path / name for name in MADE))

    assert dict(zip(MADE, read, strict=True)) == {name: by_pyhudi(HudiTable.open(tmp_path / name)) for name in MADE}


@pytest.mark.parametrize("number", range(3))
def test_duckdb_reads_what_a_random_life_leaves(readers: Readers, number: int, tmp_path: Path) -> None:
    seed = SEED + number
    life, choice = RandomLife(seed, EMPHASES[seed % len(EMPHASES)], str(tmp_path / "t")), random.Random(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for _ in range(STEPS):
            life.step()
            if life.rows_at and choice.random() < 0.3:
                life.table.export_metadata("delta")
                assert by_duckdb(readers, tmp_path / "t") == [by_pyhudi(life.table)], life.story


@pytest.mark.slow
def test_delta_on_spark_reads_them_too(readers: Readers, tmp_path: Path) -> None:
    for name, make in MADE.items():
        make(tmp_path / name)
        table = HudiTable.open(tmp_path / name)
        if make is changed_columns:
            table.cluster()  # Spark 3.5 reads no files of INT32 for a column of bigint: it raises an error
        table.export_metadata("delta")
    script = ROOT / "tests" / "support" / "judge" / "delta_on_spark.py"
    command = [judges_python(), script, readers["jars"], *(tmp_path / name for name in MADE)]
    ran = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]

    lines = [line for line in ran.stdout.splitlines() if line.startswith("[")]  # VACUUM writes some of its own
    read = dict(zip(MADE, map(json.loads, lines), strict=True))
    for name in MADE:
        rows = HudiTable.open(tmp_path / name).to_arrow()
        rows = rows.drop_columns([one for one in ("at",) if one in rows.column_names])
        assert read[name] == sorted(repr(sorted(row.items())) for row in rows.to_pylist()), name


@pytest.mark.parametrize("version", [6, 8, 9])
def test_real_hudi_reads_and_writes_a_table_that_has_an_export(judge: Judge, version: int, tmp_path: Path) -> None:
    options = {**OFF, "hoodie.write.table.version": str(version)}
    rows = pa.table({"id": ["a", "b", "c"], "p": ["x", "x", "y"], "ts": [1, 1, 1]})
    write_hudi(str(tmp_path / "t"), rows, record_key="id", partition_by="p", ordering="ts", options=options)
    table, hudi = HudiTable.open(tmp_path / "t"), HUDI_OF_TABLE_VERSION[version]
    before = judge.rows(tmp_path / "t", hudi)
    table.export_metadata("delta")

    assert sorted(map(str, judge.rows(tmp_path / "t", hudi))) == sorted(map(str, before))
    kept = tmp_path / "kept"
    judge.check(tmp_path / "t", hudi, steps=["read", "upsert", "delete", "clean"], keep=str(kept))

    HudiTable.open(kept).export_metadata("delta")
    assert_equal(HudiTable.open(kept))
