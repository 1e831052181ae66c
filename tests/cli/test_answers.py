"""What commands answer where there is little to do or to say. Source: docs/cli.md."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import write_hudi
from pyhudi.cli.main import main
from pyhudi.cli.page import cli_page
from pyhudi.cli.registry import COMMANDS, WITHOUT_OPTIONS, command_of
from pyhudi.cli.reply import ArrowRows, rows_of
from pyhudi.cli.table import _command_of
from tests.support.commands import command_lines


@pytest.fixture
def table(tmp_path: Path) -> str:
    write_hudi(tmp_path / "t", {"id": [1, 2, 3], "v": [1, 2, 3]}, record_key="id", table_type="MERGE_ON_READ")
    return str(tmp_path / "t")


def test_commands_refuse_options_that_they_have_no_use_for(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    uses = {one.words: "common.options" in inspect.getsource(one.function()) for one in COMMANDS}

    assert {words for words, is_used in uses.items() if not is_used} == WITHOUT_OPTIONS
    assert main(["table", "files", table, "--option", "hoodie.x=1"]) == 1
    assert "`pyhudi table files` takes no --option: it has no use for 'hoodie.x=1'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["clean", "{}"],
        ["ttl", "{}", "--option", "hoodie.partition.ttl.strategy.days.retain=30"],
        ["upgrade", "{}"],
        ["downgrade", "{}", "--to", "9"],
        ["change-type", "{}", "--to", "mor"],
        ["config", "unset", "{}", "my.key"],
        ["locks", "audit", "cleanup", "{}"],
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_nobody_is_asked_where_there_is_nothing_to_do(
    table: str, words: list[str], form: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.format(table) for word in [*words, *form]]) == 0

    out, err = capsys.readouterr()
    assert out
    assert err == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["table", "drop", "{}"], "would drop this table"),
        (["config", "set", "{}", "my.key=1"], "would change .hoodie/hoodie.properties"),
        (["checkpoint", "set", "{}", "5"], "would set 5"),
        (["metadata", "drop", "{}"], "would drop column_stats, files"),
        (["index", "drop", "{}", "column_stats"], "would drop column_stats; these would stay"),
        (["rollback", "{}"], "would roll back"),
        (["change-type", "{}", "--to", "cow"], "would become"),
    ],
)
def test_a_dry_run_says_would(table: str, words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*(word.format(table) for word in words), "--dry-run"]) == 0

    assert told in capsys.readouterr().out


@pytest.mark.parametrize("flag", ["-n", "--limit", "--rows"])
def test_the_number_of_rows_has_the_names_that_people_type(
    table: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["head", table, flag, "2", "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize(
    ("call", "command"),
    [
        ("table.cluster()", "pyhudi cluster '/my lake/t'"),
        ("table.rollback('20260101000000000')", "pyhudi rollback '/my lake/t' 20260101000000000"),
        ("table.create_index('column_stats')", "pyhudi index create '/my lake/t' column_stats"),
        ("table.metadata.rebuild()", "pyhudi metadata rebuild '/my lake/t'"),
        ("table.repair.empty_instants()", "pyhudi repair empty-instants '/my lake/t'"),
        ("", ""),
    ],
)
def test_health_names_commands(call: str, command: str) -> None:
    assert _command_of(call, "/my lake/t") == command
    assert not command or command_of(command.split()[1:]) is not None


def test_a_row_of_a_table_of_the_page_is_one_line() -> None:
    rows = [line for line in cli_page().splitlines() if line.startswith("| `")]

    assert [row for row in rows if not row.endswith(" |")] == []


def test_rows_of_spark_have_their_columns_even_where_there_is_none() -> None:
    batch = pa.record_batch({"a": [1]})

    assert list(rows_of(ArrowRows(["a"], [batch])) or ()) == [{"a": 1}]
    assert list(rows_of(ArrowRows(["a"], [])) or ()) == []


def test_the_first_lines_of_the_pages_run_as_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    for path in ("rides", "lake/rides"):
        write_hudi(path, {"id": ["a"], "city": ["rome"], "fare": [1.0]}, record_key="id")
    lines = command_lines()

    assert len(lines) == 4
    for line in lines:
        assert main(shlex.split(line)[1:]) == 0, line
        assert "rome" in capsys.readouterr().out or "describe" in line


def test_a_query_leaves_the_meta_columns_out_unless_it_names_them(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb")

    assert main(["query", "SELECT * FROM t WHERE id = 1", "--table", f"t={table}", "--csv"]) == 0
    assert capsys.readouterr().out == "id,v\n1,1\n"
    assert main(["query", "SELECT _hoodie_record_key AS k FROM t WHERE id = 1", "--table", f"t={table}", "--csv"]) == 0
    assert capsys.readouterr().out == "k\n1\n"
