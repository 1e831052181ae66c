"""Other readers of Iceberg find our rows in exported tables: DuckDB, Iceberg on Spark, and those of a REST catalog."""

from __future__ import annotations

import json
import random
import subprocess
import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.schema import AddColumn, ChangeType, DropColumn, RenameColumn
from tests.support.exports.iceberg import Lake, by_pyhudi, rows
from tests.support.golden.folder import shared_folder
from tests.support.judge.hudi_on_s3 import judges_python
from tests.support.source import ROOT
from tests.support.sweeps import SEED
from tests.support.tables.random_life import EMPHASES, RandomLife

OFF = {"hoodie.metadata.enable": "false"}
ONE_FILE_EACH = {**OFF, "hoodie.parquet.small.file.limit": "0"}
STEPS = 20
MOMENT = datetime(2026, 11, 28, 1, 2, 3, 4000, tzinfo=timezone.utc)


def started(service: str, folder: Path) -> dict[str, str]:
    """What a shared service's `start` tells; the test is skipped where it does not start."""
    start = shared_folder() / "services" / service / "start"
    if not start.exists():
        pytest.skip(f"../shared/services/{service} is not there")
    told = subprocess.run([str(start), str(folder)], capture_output=True, text=True, timeout=600, check=False)
    if told.returncode:
        pytest.skip(f"{service} can't be started: {told.stderr[-300:]}")
    return dict(line.partition("=")[::2] for line in told.stdout.splitlines() if "=" in line)


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """`python` and `jars` of the environment with the readers."""
    return started("exports", tmp_path_factory.mktemp("readers"))


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """The address of a REST catalog."""
    folder = tmp_path_factory.mktemp("rest")
    yield started("iceberg-rest", folder)
    subprocess.run([str(shared_folder() / "services" / "iceberg-rest" / "stop"), str(folder)], check=False)


def by_duckdb(readers: Mapping[str, str], folder: Path, *lakes: Lake) -> list[list[str]]:
    files = [folder / f"{number}.parquet" for number in range(len(lakes))]
    command = [readers["python"], str(ROOT / "tests" / "support" / "judge" / "iceberg_readers.py")]
    for lake, file in zip(lakes, files, strict=True):
        command += [lake.table().metadata_location, str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return [rows(pq.read_table(file)) for file in files]


def encoded(path: Path, lake: Lake) -> None:
    data = pa.table({"id": range(5), "p": ["a b", "c%d", "e=f/g?", None, "ü"], "n": [1, 2, 3, None, 5]})
    options = {
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }
    write_hudi(str(path), data, record_key="id", partition_by=["p", "n"], options={**OFF, **options})


def days(path: Path, lake: Lake) -> None:
    data = pa.table({"id": range(3), "day": [date(2026, 11, 28), date(1969, 1, 2), None]})
    write_hudi(str(path), data, record_key="id", partition_by="day", options=OFF)


def dropped(path: Path, lake: Lake) -> None:
    options = {**OFF, "hoodie.datasource.write.drop.partition.columns": "true"}
    write_hudi(
        str(path), pa.table({"id": range(2), "p": ["x", "y"]}), record_key="id", partition_by="p", options=options
    )


def changed(path: Path, lake: Lake) -> None:
    """Columns that were renamed, dropped, widened, added, and moments in milliseconds."""
    kind = pa.struct([("a", pa.int32()), ("b", pa.string())])
    data = pa.table(
        {
            "id": ["a", "b"],
            "n": pa.array([1, 2], pa.int32()),
            "gone": ["x", "y"],
            "s": pa.array([{"a": 1, "b": "x"}, None], kind),
            "l": pa.array([[{"a": 1, "b": "x"}], []], pa.list_(kind)),
            "at": pa.array([MOMENT] * 2, pa.timestamp("ms", "UTC")),
        }
    )
    write_hudi(str(path), data, record_key="id", options=OFF)
    table = HudiTable.open(path)
    lake.export(table)
    table.alter(RenameColumn("n", "number"), DropColumn("gone"), AddColumn("note", pa.string()))
    table.alter(ChangeType("number", pa.int64()), RenameColumn("s.b", "text"), AddColumn("l.element.c", pa.int32()))
    more = {"id": "c", "number": 2**40, "note": "x", "s": {"a": 2, "text": "z"}, "l": [], "at": MOMENT}
    table.insert([more], options=ONE_FILE_EACH)


MADE: dict[str, Callable[[Path, Lake], None]] = {one.__name__: one for one in (encoded, days, dropped, changed)}


def made(folder: Path, more: Mapping[str, str] | None = None) -> dict[str, Lake]:
    """Each table, exported."""
    lakes = {name: Lake(folder, f"lake.{name}", other=more or {}) for name in MADE}
    for name, make in MADE.items():
        make(folder / name, lakes[name])
        lakes[name].export(HudiTable.open(folder / name))
    return lakes


def test_duckdb_reads_every_form_of_partitions_and_changed_columns(readers: Mapping[str, str], tmp_path: Path) -> None:
    lakes = made(tmp_path)
    read = by_duckdb(readers, tmp_path, *lakes.values())
    assert dict(zip(MADE, read, strict=True)) == {name: by_pyhudi(HudiTable.open(tmp_path / name)) for name in MADE}


def test_a_rest_catalog_takes_exports(rest: Mapping[str, str], readers: Mapping[str, str], tmp_path: Path) -> None:
    lakes = made(tmp_path, {"type": "rest", "uri": rest["uri"]})
    for name, lake in lakes.items():
        lake.assert_equal(HudiTable.open(tmp_path / name))
    assert len(lakes["changed"].instants()) == 4
    lake, table = lakes["days"], HudiTable.open(tmp_path / "days")
    table.upsert(pa.table({"id": [0, 7], "day": [date(2026, 11, 28)] * 2}), options=OFF)
    lake.export(table)
    lake.assert_equal(table)
    assert by_duckdb(readers, tmp_path, lake) == [by_pyhudi(table)]


@pytest.mark.parametrize("number", range(3))
def test_duckdb_reads_what_a_random_life_leaves(readers: Mapping[str, str], number: int, tmp_path: Path) -> None:
    seed = SEED + number
    life, choice = RandomLife(seed, EMPHASES[seed % len(EMPHASES)], str(tmp_path / "t")), random.Random(seed)
    lake = Lake(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for _ in range(STEPS):
            life.step()
            if life.rows_at and choice.random() < 0.3:
                lake.export(life.table)
                assert by_duckdb(readers, tmp_path, lake) == [by_pyhudi(life.table)], life.story


def test_iceberg_on_spark_reads_them_too(readers: Mapping[str, str], tmp_path: Path) -> None:
    lakes = made(tmp_path)
    script = ROOT / "tests" / "support" / "judge" / "iceberg_on_spark.py"
    command = [judges_python(), script, readers["jars"], *(lake.table().metadata_location for lake in lakes.values())]
    ran = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]

    read = dict(zip(MADE, map(json.loads, ran.stdout.splitlines()), strict=True))
    for name in MADE:
        table = HudiTable.open(tmp_path / name).to_arrow(meta_columns=True)
        assert read[name] == rows(table.drop_columns([one for one in ("at",) if one in table.column_names])), name
