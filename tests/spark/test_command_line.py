"""Commands of `pyhudi` with `--spark`: they answer what they answer without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pyhudi
from pyhudi import HudiTable, write_hudi
from pyhudi.cli.commands import COMMANDS
from pyhudi.cli.main import main
from tests.support.spark.sessions import FLAVOUR

ROWS = pa.table({"id": ["a", "b", "c"], "city": ["rome", "oslo", "rome"], "fare": [1.0, 2.0, 3.0]})
# Words → what comes after the table's path. They run one after the other on one table.
LOOKING: dict[str, tuple[str, ...]] = {
    "table describe": (), "table schema": (), "table history": (), "table files": (), "table partitions": (),
    "table stats": (), "table health": (), "head": (), "timeline": (), "savepoint list": (), "index list": (),
    "checkpoint get": (), "config list": (), "metadata validate": (), "metadata stats": (), "locks audit status": (),
    "locks audit validate": (), "repair orphans": ("--dry-run",), "repair duplicates": ("--dry-run",),
    "repair partition-metadata": ("--dry-run",), "repair empty-instants": ("--dry-run",),
    "repair properties": ("--dry-run",), "repair deprecated-partition": ("--dry-run",),
    "repair log-checksums": ("--dry-run",),
}  # fmt: skip
CHANGING: dict[str, tuple[str, ...]] = {
    "compact": (), "log-compact": (), "cluster": (), "clean": ("--yes",), "archive": (), "ttl": ("--dry-run",),
    "savepoint create": (), "config set": ("my.key=1", "--yes"), "config unset": ("my.key", "--yes"),
    "checkpoint set": ("7", "--yes"), "index create": ("record_index",), "index build": (),
    "index drop": ("record_index", "--yes"), "metadata rebuild": (), "metadata drop": ("--yes",),
    "locks audit enable": (), "locks audit disable": (), "locks audit cleanup": ("--yes",),
    "rollback": ("--yes",), "downgrade": ("--to", "8", "--yes"), "upgrade": ("--yes",),
    "change-type": ("--to", "cow", "--yes"),
}  # fmt: skip
Run = Callable[..., Any]
# What a process has that started the server, or a classic session.
_OF_THE_SESSION = {"SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_HOME"}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def called(words: str, *more: object) -> Any:
        ended = main([*words.split(), *map(str, more), "--json"])
        out, err = capsys.readouterr()
        assert ended in (0, 3), f"{words}: exit code {ended}\n{err}"
        return json.loads(out)

    return called


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    path = tmp_path / "lake" / "rides"
    write_hudi(path, ROWS, record_key="id", ordering="fare", table_type="MERGE_ON_READ")
    write_hudi(path, ROWS.slice(0, 2))
    return HudiTable.open(path)


def test_commands_that_look_answer_as_without_spark(spark: SparkSession, run: Run, table: HudiTable) -> None:
    for words, more in LOOKING.items():
        assert run(words, table.path, *more, "--spark", "") == run(words, table.path, *more), words


@pytest.mark.thorough
def test_commands_that_change_a_table_do_it_with_the_session(spark: SparkSession, run: Run, table: HudiTable) -> None:
    for words, more in CHANGING.items():
        run(words, table.path, *more, "--spark", "")

    assert table.state().config.table_type == "COPY_ON_WRITE"
    assert sorted(table.to_arrow(["id"])["id"].to_pylist()) == ["a", "b", "c"]


@pytest.mark.thorough
def test_the_rest_runs_with_a_session_too(spark: SparkSession, run: Run, table: HudiTable, tmp_path: Path) -> None:
    first, second = (commit.requested_time for commit in table.state().timeline.commits())
    (tmp_path / "rows.csv").write_text("id,city,fare\nd,bonn,9\n")

    assert run("table diff", table.path, first, second, "--spark", "")["commits"] == [second]
    assert run("export", table.path, tmp_path / "rows.parquet", "--spark", "")["items"] == 3
    assert run("export", table.path, tmp_path / "copy", "--copy", "--spark", "")["instant_time"] == second
    assert run("report", table.path, tmp_path / "page.html", "--spark", "")["path"]
    assert run("write", table.path, tmp_path / "rows.csv", "--spark", "")["inserted"] == 1
    assert run("restore", table.path, "--to", second, "--yes", "--spark", "")["instant_time"]
    run("table create", tmp_path / "new", "--columns", "id STRING", "--record-key", "id", "--spark", "")
    run("table drop", tmp_path / "new", "--yes", "--spark", "")
    assert not HudiTable.exists(tmp_path / "new")


@pytest.mark.thorough
def test_names_are_those_of_the_session(spark: SparkSession, run: Run, table: HudiTable) -> None:
    pyhudi.enable(spark)
    spark.sql(f"CREATE TABLE cli_rides USING hudi LOCATION '{table.path}'")
    try:
        assert run("table describe", "cli_rides", "--catalog", "spark_catalog", "--spark", "")["path"] == table.path
        total = run("query", "SELECT sum(fare) AS fares FROM cli_rides", "--spark", "")
        assert total == [{"fares": 6.0}]
        assert main(["table", "describe", "none", "--catalog", "spark_catalog", "--spark", ""]) == 1
        assert main(["query", "SELECT 1", "--catalog", str(Path(table.path).parent), "--spark", ""]) == 1
    finally:
        spark.sql("DROP TABLE cli_rides")


@pytest.mark.skipif(FLAVOUR != "connect", reason="needs a server of Spark Connect")
@pytest.mark.parametrize("is_named", [True, False])
def test_the_session_is_that_of_a_server_of_spark_connect(
    spark: SparkSession, table: HudiTable, is_named: bool
) -> None:
    """By its address, or by SPARK_REMOTE. Without a Java the process could not start a session of its own."""
    address = f"sc://localhost:{spark.conf.get('spark.connect.grpc.binding.port')}"
    environment = {key: text for key, text in os.environ.items() if key not in _OF_THE_SESSION}
    environment |= {"JAVA_HOME": "/nowhere", **({} if is_named else {"SPARK_REMOTE": address})}
    by_python = [sys.executable, "-W", "error::UserWarning", "-m", "pyhudi.cli"]

    def run(*words: str) -> Any:
        asked = [*by_python, *words, "--spark", address if is_named else "", "--json"]
        done = subprocess.run(asked, capture_output=True, text=True, env=environment, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    total = run("query", "SELECT sum(fare) AS fares FROM rides", "--table", f"rides={table.path}")
    assert total == [{"fares": 6.0}]
    assert run("head", table.path, "--rows", "1") == [{"id": "a", "city": "rome", "fare": 1.0}]


def test_every_command_that_takes_spark_is_here() -> None:
    named = {*LOOKING, *CHANGING, "table diff", "export", "report", "write", "restore", "table create", "table drop"}
    others = {"query", "savepoint delete", "bootstrap", "import", "completion", "repair rename-partition", "stream"}
    others |= {f"sync {word}" for word in ("hive", "glue", "bigquery", "check")} | {"export delta", "export iceberg"}
    assert {command.words for command in COMMANDS} == named | others
