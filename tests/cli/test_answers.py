"""What commands answer where there is little to do or to say. Source: docs/cli.md."""

from __future__ import annotations

import inspect
import io
import re
import shlex
from operator import attrgetter
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.cli.calls import command_for, in_commands
from pyhudi.cli.command import Command, load
from pyhudi.cli.commands import COMMANDS, command_of
from pyhudi.cli.main import main
from pyhudi.cli.page import cli_page
from pyhudi.cli.reply import JsonColumns, Reply, rows_of, show
from tests.support.commands import command_lines


@pytest.fixture
def table(tmp_path: Path) -> str:
    write_hudi(tmp_path / "t", {"id": [1, 2, 3], "v": [1, 2, 3]}, record_key="id", table_type="MERGE_ON_READ")
    return str(tmp_path / "t")


def test_commands_refuse_options_that_they_have_no_use_for(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert [one.words for one in COMMANDS if one.has_options is not uses_options(one, table)] == []
    assert main(["table", "files", table, "--option", "hoodie.x=1"]) == 1
    assert "`pyhudi table files` takes no --option: it has no use for 'hoodie.x=1'" in capsys.readouterr().err


def uses_options(command: Command, table: str) -> bool:
    """Does the function of a command, or else its method, take Hudi's options?"""
    if command.own:
        return bool(re.search(r"common\.(options|settings)", inspect.getsource(load(command.own))))
    return "options" in inspect.signature(attrgetter(command.method)(HudiTable.open(table))).parameters


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
        (["index", "drop", "{}", "column_stats"], "would drop column_stats; these would remain"),
        (["rollback", "{}"], "would roll back"),
        (["change-type", "{}", "--to", "cow"], "would become"),
    ],
)
def test_a_dry_run_says_would(table: str, words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*(word.format(table) for word in words), "--dry-run"]) == 0

    assert told in capsys.readouterr().out


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("words", "plan"),
    [
        (["rollback", "{}"], "would roll back"),
        (["savepoint", "delete", "{}", "{saved}"], "these would remain"),
        (["config", "set", "{}", "my.key=1"], "my.key"),
        (["checkpoint", "set", "{}", "7"], "now: no checkpoint"),
        (["table", "drop", "{}"], "would drop this table"),
    ],
)
def test_a_plan_is_carried_out_after_a_yes_and_only_then(
    table: str, words: list[str], plan: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = HudiTable.open(table).state().timeline.commits().instants[0].requested_time
    if "{saved}" in words:
        assert main(["savepoint", "create", table]) == 0
    tokens = [word.format(table, saved=saved) for word in words]
    before = sorted((file, file.stat().st_mtime_ns) for file in Path(table).rglob("*"))
    capsys.readouterr()

    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert main(tokens) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert plan in err
    assert err.endswith("? [y/N] pyhudi: Declined: Nothing was changed.\n")
    assert sorted((file, file.stat().st_mtime_ns) for file in Path(table).rglob("*")) == before
    monkeypatch.setattr("sys.stdin", Terminal("Yes\n"))
    assert main(tokens) == 0
    assert sorted((file, file.stat().st_mtime_ns) for file in Path(table).rglob("*")) != before


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
        ("table.indexes.create('column_stats')", "pyhudi index create '/my lake/t' column_stats"),
        ("table.metadata.rebuild()", "pyhudi metadata rebuild '/my lake/t'"),
        ("table.maintenance.repair.empty_instants()", "pyhudi repair empty-instants '/my lake/t'"),
        ("", ""),
    ],
)
def test_health_names_commands(call: str, command: str) -> None:
    assert command_for(call, "/my lake/t") == command
    assert not command or command_of(command.split()[1:]) is not None


@pytest.mark.parametrize(
    ("call", "command"),
    [
        ("HudiTable.open(path).maintenance.upgrade()", "`pyhudi upgrade TABLE`"),
        ("HudiTable.maintenance.upgrade", "`pyhudi upgrade TABLE`"),
        ("table.clean()", "`pyhudi clean TABLE`"),
        ("table.inspect.health()", "`pyhudi table health TABLE`"),
        ("table.maintenance.repair.empty_instants()", "`pyhudi repair empty-instants TABLE`"),
        ("table.maintenance.repair.orphans(dry_run=False)", "`pyhudi repair orphans TABLE`"),
        ("table.maintenance.repair.rename_partition('a b', 'c')", "`pyhudi repair rename-partition TABLE 'a b' c`"),
        ("pyhudi.repair_properties('/t', dry_run=False)", "`pyhudi repair properties /t`"),
        ("table.compact(schedule_only=True)", "`pyhudi compact TABLE --schedule`"),
        ("table.savepoints.create(instant_time='2026')", "`pyhudi savepoint create TABLE 2026`"),
        ("table.maintenance.lock_audit.cleanup(days=1)", "`pyhudi locks audit cleanup TABLE --days 1`"),
        ("table.rollback('20260101000000000')", "`pyhudi rollback TABLE 20260101000000000`"),
        ("table.alter(AddColumn('fare', ...))", '`pyhudi query "ALTER TABLE … ADD COLUMNS (fare …)"`'),
        ("table.alter(ChangeType('n', pa.int64()))", '`pyhudi query "ALTER TABLE … ALTER COLUMN n TYPE …"`'),
        ("table.alter(DropNotNull('n'))", '`pyhudi query "ALTER TABLE … ALTER COLUMN n DROP NOT NULL"`'),
        ("table.alter(...)", '`pyhudi query "ALTER TABLE … …"`'),
        ("table.bulk_insert(HudiTable.open(path).scan(columns))", "`pyhudi write TABLE FILES --operation bulk_insert`"),
        ("write_hudi(mode='replace')", "`pyhudi write TABLE FILES --mode replace`"),
        ("pyhudi.import_table", "`pyhudi import KIND SOURCE TABLE`"),
        ("table.constraints.drop('c')", "in Python table.constraints.drop('c')"),
        ("schema_mode='overwrite'", "--option hoodie.pyhudi.schema.mode=overwrite"),
        ("(overwrite=True)", "(--overwrite)"),
        ("mode='append'", "--mode append"),
        ("hoodie.table.name", "hoodie.table.name"),
        ("a stable.clean() call", "a stable.clean() call"),
    ],
)
def test_a_message_names_commands_in_the_place_of_calls(call: str, command: str) -> None:
    assert in_commands(f"Use {call}, then again.", []) == f"Use {command}, then again."
    assert in_commands(call, ["--where", f"x {call}"]) == call


def test_errors_of_a_run_name_commands(table: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text('{"id": 4, "v": 1, "new": 2}')

    assert main(["write", table, str(tmp_path / "rows.json"), "--mode", "error"]) == 1
    said = capsys.readouterr().err
    assert "use --mode append to add to it" in said
    strict = ["--option", "hoodie.pyhudi.schema.mode=strict"]
    assert main(["write", table, str(tmp_path / "rows.json"), *strict]) == 1
    said = capsys.readouterr().err
    assert '`pyhudi query "ALTER TABLE … ADD COLUMNS (new …)"`' in said
    assert "table.alter" not in said


def test_a_row_of_a_table_of_the_page_is_one_line() -> None:
    rows = [line for line in cli_page().splitlines() if line.startswith("| `")]

    assert [row for row in rows if not row.endswith(" |")] == []


def test_rows_of_spark_have_their_columns_even_where_there_is_none() -> None:
    batch = pa.record_batch({"a": [1]})

    assert list(rows_of(JsonColumns.of_arrow(["a"], [batch])) or ()) == [{"a": 1}]
    assert list(rows_of(JsonColumns.of_arrow(["a"], [])) or ()) == []


def test_a_terminal_needs_no_rich_for_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyhudi.cli.reply.find_spec", lambda name: None)
    show(Reply(JsonColumns(["a", "b"], [[[1, 2], [None, [3]]]])), "text", out := Terminal())

    assert [line.split() for line in out.getvalue().splitlines()] == [["a", "b"], ["-", "---"], ["1"], ["2", "[3]"]]


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
