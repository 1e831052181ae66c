"""Every command does what it says, and `--json` keeps to the schema of its answer. Source: docs/cli.md."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, call, write_hudi
from pyhudi.cli.commands import COMMANDS, command_of
from pyhudi.cli.main import main
from pyhudi.table.exports import EXPORTED_ACTIONS
from tests.support.golden.cases import golden_names
from tests.support.golden.folder import GoldenTable
from tests.support.json_schema import schema_of

ROWS = pa.table({"id": ["a", "b", "c"], "city": ["rome", "oslo", "rome"], "fare": [1.0, 2.0, 3.0]})
Run = Callable[..., Any]
Golden = Callable[[str, str], GoldenTable]
READING = ("table describe", "table schema", "table history", "table files", "table partitions", "config list", "head",
           "timeline", "table stats", "checkpoint get", "savepoint list", "index list", "metadata validate",
           "metadata stats", "clean", "archive", "locks audit status", "locks audit validate",
           "table health", "compact", "cluster", "log-compact", "ttl")  # fmt: skip
REPAIRS = tuple(f"repair {name}" for name in ("orphans", "duplicates", "partition-metadata", "empty-instants",
                                              "properties", "deprecated-partition", "log-checksums"))  # fmt: skip
PLANS = ("clean", "archive", "compact", "cluster", "log-compact", "ttl")
GOLDEN = (("0.15.0", "cow_operations"), ("0.15.0", "g2_compaction_pending"), ("0.15.0", "mdt_all_mor"),
          ("1.0.2", "cow_operations"), ("1.0.2", "g2_compaction_pending"), ("1.0.2", "mdt_all_cow"),
          ("1.2.0", "cow_operations"), ("1.2.0", "g2_compaction_pending"), ("1.2.0", "mdt_all_mor"))  # fmt: skip


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("table describe", path)`: the value of a command's JSON, checked against its schema."""

    def called(words: str, *more: object, code: int | tuple[int, ...] = 0) -> Any:
        tokens = [*words.split(), *map(str, more), "--json"]
        ended = main(tokens)
        out, err = capsys.readouterr()
        assert ended in (code if isinstance(code, tuple) else (code,)), f"{tokens}: exit code {ended}\n{err}"
        if not out:
            return err
        named = command_of(tokens)
        assert named is not None
        jsonschema.validate(value := json.loads(out), schema_of(named[0]))
        return value

    return called


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    """A table of two commits: three rows, of which one was updated."""
    write_hudi(tmp_path / "rides", ROWS, record_key="id", ordering="fare")
    write_hudi(tmp_path / "rides", ROWS.slice(0, 1))
    return HudiTable.open(tmp_path / "rides")


def look(run: Run, path: Path, words: Sequence[str]) -> None:
    """Run commands that change nothing; they leave every file as it is."""
    before = sorted((file, file.stat().st_mtime_ns) for file in path.rglob("*") if file.is_file())

    for one in words:
        # A plan is refused for a copy-on-write table, for damaged log files, and while a writer may be at work.
        code = (0, 1, 4) if one in PLANS else (0, 3)
        run(one, path, *(["--dry-run"] if one in PLANS or one.startswith("repair ") else []), code=code)

    assert sorted((file, file.stat().st_mtime_ns) for file in path.rglob("*") if file.is_file()) == before


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "name"), GOLDEN)
def test_commands_that_look_answer_on_tables_of_every_version_in_the_form_of_their_schema(
    run: Run, golden: Golden, version: str, name: str
) -> None:
    path, _ = golden(version, name)

    look(run, path, READING)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "name"), [*golden_names("cow"), *golden_names("mor")])
def test_commands_that_look_answer_on_every_table_of_real_hudi(
    run: Run, golden: Golden, tmp_path: Path, version: str, name: str
) -> None:
    path, _ = golden(version, name)
    table = HudiTable.open(path)
    first, newest = next(iter(table.state().timeline.commits())).requested_time, table.state().timeline.last_commit()
    assert newest is not None

    look(run, path, [*READING, *REPAIRS])
    run("table diff", path, first, newest.requested_time)
    run("report", path, tmp_path / "page.html")
    instants = run("export", path, tmp_path / "instants", "--instants")
    rows = run("export", path, tmp_path / "rows.parquet")

    assert instants["items"] == len(
        [one for one in table.state().timeline.completed() if one.action.value in EXPORTED_ACTIONS]
    )
    assert rows["items"] == pq.read_metadata(tmp_path / "rows.parquet").num_rows == table.count()


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.2.0"])
def test_properties_and_counts_are_those_that_real_hudi_shows(run: Run, golden: Golden, version: str) -> None:
    path, description = golden(version, "cow_operations")
    shown = description["expected"]["metadata"]

    properties = {row["key"]: row["value"] for row in run("config list", path)}
    commits = {row["instant_time"]: row for row in run("table history", path) if row["operation"]}

    assert properties == shown["hoodie.properties"]
    assert sorted(commits) == sorted(commit["requested"] for commit in shown["commits"])
    for commit in shown["commits"]:
        stats = [stat for stats in commit["partitionToWriteStats"].values() for stat in stats]
        entry = commits[commit["requested"]]
        assert entry["operation"] == commit["operationType"]
        assert entry["rows_inserted"] == sum(stat["numInserts"] for stat in stats)
        assert entry["rows_updated"] == sum(stat["numUpdateWrites"] for stat in stats)
        assert entry["rows_deleted"] == sum(stat["numDeletes"] for stat in stats)
        assert entry["files"] == len(stats)


def test_files_are_those_of_real_hudis_metadata_table(run: Run, golden: Golden) -> None:
    path, description = golden("1.2.0", "mdt_all_cow")
    partitions = description["expected"]["metadata"]["files"]
    sizes = {name: info["size"] for row in partitions for name, info in row["filesystemMetadata"]}

    files = run("table files", path)

    assert files
    assert {row["path"].rpartition("/")[2]: row["size_bytes"] for row in files}.items() <= sizes.items()


@pytest.mark.thorough
def test_a_table_is_made_written_from_files_of_every_format_and_read(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t"
    run("table create", path, "--columns", "id STRING, city STRING, fare DOUBLE", "--record-key", "id")
    (tmp_path / "a.csv").write_text("id,city,fare\n1,rome,2\n")
    (tmp_path / "b.json").write_text('[{"id": "2", "city": "oslo", "fare": 3}]')
    (tmp_path / "c.jsonl").write_text('{"id": "3", "fare": 4}\n\n{"id": "4", "city": "bonn"}\n')
    rows = pa.table({"id": ["5"], "city": ["bern"], "fare": [6.0]})
    pa.parquet.write_table(rows, tmp_path / "d.parquet")
    with pa.ipc.new_stream(tmp_path / "e.arrows", rows.schema) as stream:
        stream.write_table(rows.set_column(0, "id", pa.array(["6"])))
    with pa.ipc.new_file(tmp_path / "f.arrow", rows.schema) as file:
        file.write_table(rows.set_column(0, "id", pa.array(["7"])))

    counts = [run("write", path, tmp_path / name)["inserted"] for name in ("a.csv", "b.json", "c.jsonl", "d.parquet")]
    counts.append(run("write", path, tmp_path / "e.arrows", tmp_path / "f.arrow")["inserted"])

    assert counts == [1, 1, 2, 1, 2]
    assert [row["id"] for row in sorted(run("head", path, "--rows", 99), key=lambda row: row["id"])] == list("1234567")
    assert run("head", path, "--where", "id = '1'") == [{"id": "1", "city": "rome", "fare": 2.0}]
    assert [row["operation"] for row in run("table history", path, "--limit", 1)] == ["UPSERT"]


@pytest.mark.thorough
def test_rows_come_from_standard_input(run: Run, table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    given = io.TextIOWrapper(io.BytesIO(b"id,city,fare\nd,bonn,9\n"))
    monkeypatch.setattr("sys.stdin", given)

    assert run("write", table.path, "-", "--format", "csv")["inserted"] == 1
    assert table.count() == 4


def test_a_file_whose_format_nobody_knows_is_refused_before_anything_is_written(run: Run, table: HudiTable) -> None:
    assert "--format" in run("write", table.path, "rows.xyz", code=1)
    assert "There is no file" in run("write", table.path, "rows.csv", code=1)
    assert len(table.state().timeline.commits()) == 2


@pytest.mark.thorough
def test_sql_answers_with_rows(run: Run, table: HudiTable) -> None:
    pytest.importorskip("duckdb")
    text = "SELECT city, sum(fare) AS fares FROM rides GROUP BY city ORDER BY city"
    rows = [{"city": "oslo", "fares": 2.0}, {"city": "rome", "fares": 4.0}]

    assert run("query", text, "--catalog", Path(table.path).parent) == rows
    assert run("query", text, "--table", f"rides={table.path}") == rows


@pytest.mark.thorough
def test_a_plan_is_shown_and_nothing_happens_without_a_yes(run: Run, table: HudiTable, tmp_path: Path) -> None:
    newest, *_ = table.history()
    for words, more in {
        "rollback": [],
        "config set": ["hoodie.x=1"],
        "downgrade": ["--to", "8"],
        "table drop": [],
        "change-type": ["--to", "mor"],
        "metadata drop": [],
    }.items():
        refused = run(words, table.path, *more, code=1)
        assert "Add --yes" in refused
        run(words, table.path, *more, "--dry-run")

    assert next(iter(table.history())) == newest


@pytest.mark.thorough
def test_a_plan_to_take_something_away_is_refused_as_the_call_is(run: Run, table: HudiTable) -> None:
    run("index create", table.path, "record_index")
    saved = run("savepoint create", table.path)["instant_time"]
    table.indexes.create("by_city", columns=["city"])
    before = sorted(table.metadata.partitions)

    for words, more, why in (
        ("index drop", ["by_nothing"], "has no index 'by_nothing'"),
        ("index drop", ["record_index"], "secondary_index_by_city need the record index"),
        ("savepoint delete", ["20200101000000000"], f"has no savepoint; savepoints: {saved}"),
        ("metadata drop", ["--partitions", "nothing"], "has no partition 'nothing'"),
    ):
        for how in ("--dry-run", "--yes"):
            assert why in run(words, table.path, *more, how, code=1)

    stay = [one["name"] for one in run("index drop", table.path, "by_city", "--dry-run")]
    assert "record_index" in stay
    assert "secondary_index_by_city" not in stay
    assert run("savepoint delete", table.path, saved, "--dry-run") == []
    assert run("metadata drop", table.path, "--partitions", "record_index", "--dry-run") == ["record_index"]
    assert sorted(table.metadata.partitions) == before
    assert [one.instant_time for one in table.savepoints.list()] == [saved]
    assert [one["name"] for one in run("index drop", table.path, "by_city", "--yes")] == stay


@pytest.mark.thorough
def test_a_write_is_rolled_back_and_a_savepoint_restored(run: Run, table: HudiTable) -> None:
    first, second = table.state().timeline.commits()
    run("savepoint create", table.path, first.requested_time, "--comment", "before")
    write_hudi(table.path, ROWS.slice(1, 1))

    undone = run("rollback", table.path, "--yes")
    restored = run("restore", table.path, "--to", first.requested_time, "--yes")

    assert len(undone["rolled_back"]) == 1
    assert [one["commit_time"] for one in restored["undone"]["rolled_back"]] == [second.requested_time]
    assert [one["comment"] for one in run("savepoint list", table.path)] == ["before"]
    assert run("savepoint delete", table.path, first.requested_time, "--yes") == []


@pytest.mark.thorough
def test_properties_are_set_with_a_difference_and_a_copy_of_the_file(run: Run, table: HudiTable) -> None:
    properties = Path(table.path, ".hoodie", "hoodie.properties")
    before = properties.read_text()

    changed = run("config set", table.path, "my.key=v=1", "--yes")

    assert changed["differences"] == [{"key": "my.key", "before": None, "after": "v=1"}]
    assert Path(table.path, changed["backup"]).read_text() == before
    assert table.state().config.properties["my.key"] == "v=1"
    assert run("config unset", table.path, "my.key", "--yes")["differences"][0]["after"] is None
    assert "my.key" not in table.state().config.properties
    assert "use change_type" in run("config set", table.path, "hoodie.table.type=X", "--yes", code=1)
    assert "how the table's files are written" in run(
        "config set", table.path, "hoodie.table.recordkey.fields=x", "--yes", code=1
    )


@pytest.mark.thorough
def test_plans_are_left_and_run_by_another_call(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mor"
    write_hudi(path, ROWS, record_key="id", table_type="MERGE_ON_READ")
    write_hudi(path, ROWS.slice(0, 2))

    scheduled = run("compact", path, "--schedule")["scheduled"]

    assert [one["requested_time"] for one in run("timeline", path, "--pending")] == [scheduled]
    assert [one["instant_time"] for one in run("compact", path, "--run", scheduled)["runs"]] == [scheduled]
    assert run("timeline", path, "--pending") == []
    assert "exclude each other" in run("compact", path, "--run", scheduled, "--schedule", code=1)


@pytest.mark.thorough
@pytest.mark.parametrize("words", ["compact", "log-compact", "cluster", "clean"])
def test_a_dry_run_says_which_plans_wait_for_the_call(
    run: Run, tmp_path: Path, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, kind = tmp_path / "t", "MERGE_ON_READ" if "compact" in words else "COPY_ON_WRITE"
    never = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
    for fare in (1.0, 2.0, 3.0):
        rows = ROWS.set_column(2, "fare", pa.array([fare] * 3))
        write_hudi(path, rows, record_key="id", ordering="fare", table_type=kind, options=never)
    more = ["--option", "hoodie.clean.commits.retained=1", "--option", "hoodie.log.compaction.blocks.threshold=1"]
    scheduled = run(words, path, "--schedule", *more)["scheduled"]
    assert scheduled

    planned = run(words, path, "--dry-run", *more)
    main([words, str(path), "--dry-run", *more])

    assert planned["waiting"] == [scheduled]
    assert f"would run the waiting plan {scheduled}" in capsys.readouterr().out
    done = run(words, path, *more, *(["--yes"] if words == "clean" else []))
    assert scheduled in [one["instant_time"] for one in done["runs"]]
    assert run(words, path, "--dry-run", *more)["waiting"] == []


@pytest.mark.thorough
def test_indexes_and_the_metadata_table_are_built_dropped_and_compared(
    run: Run, table: HudiTable, capsys: pytest.CaptureFixture[str]
) -> None:
    run("index create", table.path, "record_index")
    assert "record_index" in {one["name"] for one in run("index list", table.path)}
    assert run("index build", table.path) == []
    assert run("metadata validate", table.path) == []
    assert {one["partition"] for one in run("metadata stats", table.path)} >= {"files", "record_index"}
    assert "record_index" not in {one["name"] for one in run("index drop", table.path, "record_index", "--yes")}
    assert "files" in run("metadata drop", table.path, "--yes")
    assert run("metadata stats", table.path) == []
    assert main(["metadata", "validate", table.path]) == 0
    assert capsys.readouterr().out == "there is no metadata table\n"
    assert "files" in run("metadata rebuild", table.path, "--partitions", "files")["partitions"]


@pytest.mark.thorough
def test_a_metadata_table_that_is_wrong_ends_with_3(run: Run, table: HudiTable) -> None:
    (path,) = (row["path"] for row in run("table files", table.path))
    file = Path(table.path, path)
    file.rename(file.with_name("lost"))

    assert run("metadata validate", table.path, code=3)


@pytest.mark.thorough
def test_versions_go_down_and_up(run: Run, table: HudiTable) -> None:
    planned = run("downgrade", table.path, "--to", 6, "--dry-run")

    assert planned["dry_run"]
    assert [(one["source"], one["target"]) for one in planned["steps"]] == [(9, 8), (8, 6)]
    assert table.state().config.table_version == 9
    assert run("downgrade", table.path, "--to", 6, "--yes")["target"] == 6
    assert table.state().config.table_version == 6
    assert run("upgrade", table.path, "--yes")["target"] == 9


@pytest.mark.thorough
def test_a_page_is_written_and_a_table_dropped(run: Run, table: HudiTable, tmp_path: Path) -> None:
    assert run("report", table.path, tmp_path / "page.html") == {"path": str(tmp_path / "page.html")}
    assert "<html" in (tmp_path / "page.html").read_text()
    assert run("table drop", table.path, "--yes")["name"] == "rides"
    assert not HudiTable.exists(table.path)


@pytest.mark.thorough
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(run: Run, shell: str) -> None:
    text = run("completion", shell)["script"]

    words = {word for command in COMMANDS for word in command.words.split()}
    assert [word for word in sorted(words) if not re.search(rf"\b{re.escape(word)}\b", text)] == []


@pytest.mark.thorough
def test_bash_completes_commands_and_options(run: Run, tmp_path: Path) -> None:
    import subprocess

    (tmp_path / "script").write_text(run("completion", "bash")["script"])
    tries = {"pyhudi ta": "table", "pyhudi table desc": "describe", "pyhudi table history --sin": "--since"}
    tries |= {"pyhudi locks a": "audit", "pyhudi locks audit val": "validate"}
    for line, completed in tries.items():
        words = line.split()
        code = f"source {tmp_path}/script; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _pyhudi; echo $COMPREPLY"
        ended = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
        assert ended.stdout.strip() == completed


@pytest.mark.thorough
def test_two_commits_are_compared(run: Run, table: HudiTable) -> None:
    first, second = (one.requested_time for one in table.state().timeline.commits())
    table.upsert(ROWS.slice(0, 1).append_column("tip", pa.array([1.0])), schema_mode="merge")

    updated = run("table diff", table.path, first, second)
    widened = run("table diff", table.path, second)

    assert (updated["rows_inserted"], updated["rows_updated"], updated["commits"]) == (0, 1, [second])
    assert [(one["files_added"], one["files_removed"]) for one in updated["partitions"]] == [(1, 1)]
    assert widened["columns_added"] == ["tip double"]
    assert "earlier commit to a later one" in run("table diff", table.path, second, first, code=1)


def test_write_amplification_is_that_of_the_procedure(run: Run, table: HudiTable) -> None:
    shown = call("stats_wa", table.path).to_pylist()

    stats = run("table stats", table.path)

    factors = {one["instant_time"]: one["amplification"] or 0 for one in stats["commits"]}
    shown_factors = {row["commit_time"]: float(row["write_amplification_factor"]) for row in shown}
    assert {**factors, "Total": stats["amplification"]} == shown_factors
    assert stats["sizes"]["files"] == 1


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv", "rows.arrow"])
def test_rows_are_exported_as_of_a_commit_and_written_back(
    run: Run, table: HudiTable, tmp_path: Path, name: str
) -> None:
    first = next(iter(table.state().timeline.commits())).requested_time

    run("export", table.path, tmp_path / name, "--as-of", first, "--where", "city = 'rome'")
    written = run("write", tmp_path / "copy", tmp_path / name, "--record-key", "id")

    assert written["inserted"] == 2
    assert [file.name for file in tmp_path.glob("rows.*")] == [name]
    assert ".parquet, .csv and .arrow" in run("export", table.path, tmp_path / "rows.xls", code=1)


def test_instants_are_exported_as_json(run: Run, table: HudiTable, tmp_path: Path) -> None:
    assert run("export", table.path, tmp_path / "instants", "--instants")["items"] == 2

    assert len(list((tmp_path / "instants").iterdir())) == 2


@pytest.mark.thorough
def test_a_table_is_copied_as_of_a_commit(run: Run, table: HudiTable, tmp_path: Path) -> None:
    first = next(iter(table.state().timeline.commits())).requested_time

    copied = run("export", table.path, tmp_path / "copy", "--copy", "--as-of", first)

    assert (copied["items"], copied["instant_time"]) == (1, first)
    assert HudiTable.open(tmp_path / "copy").to_arrow(["fare"])["fare"].to_pylist() == [1.0, 2.0, 3.0]
    assert "TableExists" in run("export", table.path, tmp_path / "copy", "--copy", code=1)
    assert "exclude each other" in run("export", table.path, tmp_path / "x", "--copy", "--where", "id = 'a'", code=1)


@pytest.mark.thorough
def test_a_checkpoint_is_that_of_the_newest_commit_with_one_and_set_by_a_commit_without_rows(
    run: Run, table: HudiTable
) -> None:
    assert run("checkpoint get", table.path, code=3)["value"] is None

    first = run("checkpoint set", table.path, "orders,0:5", "--yes")
    table.upsert(ROWS.slice(0, 1))

    assert (first["key"], first["value"]) == ("deltastreamer.checkpoint.key", "orders,0:5")
    assert run("checkpoint get", table.path) == first
    assert table.count() == 3
    assert run("checkpoint set", table.path, "7", "--key", "my.job", "--yes")["key"] == "my.job"
    assert run("checkpoint get", table.path, "--key", "my.job")["value"] == "7"
    assert run("checkpoint get", table.path)["value"] == "orders,0:5"


@pytest.mark.thorough
def test_an_orphan_is_shown_then_deleted_and_no_row_is_lost(run: Run, table: HudiTable, tmp_path: Path) -> None:
    newest = max((tmp_path / "rides").glob("*.parquet"), key=lambda path: path.stem.rpartition("_")[2])
    time = int(newest.stem.rpartition("_")[2]) - 1
    orphan = newest.with_name(f"0a1b2c3d-0000-4000-8000-000000000001-0_0-1-1_{time}.parquet")
    orphan.write_bytes(newest.read_bytes())
    (item,) = run("repair orphans", tmp_path / "rides", "--dry-run", code=3)["items"]
    assert item["where"] == orphan.name
    assert orphan.exists()
    run("repair orphans", tmp_path / "rides", "--yes")
    assert not orphan.exists()
    assert run("repair orphans", tmp_path / "rides", "--dry-run")["items"] == []
    assert len(HudiTable.open(tmp_path / "rides")) == 3
    repairs = ("duplicates", "partition-metadata", "empty-instants", "deprecated-partition", "log-checksums")
    assert all(run(f"repair {name}", tmp_path / "rides", "--yes")["items"] == [] for name in repairs)


@pytest.mark.thorough
def test_the_lock_is_audited_and_two_holders_at_once_end_with_3(run: Run, table: HudiTable) -> None:
    assert not run("locks audit status", table.path)["enabled"]
    assert run("locks audit enable", table.path)["enabled"]
    table.upsert(ROWS.slice(0, 1), options={"hoodie.write.lock.provider": "STORAGE"})
    files = run("locks audit validate", table.path)["files"]
    folder = Path(table.path, ".hoodie", ".locks", "audit")
    journal = next(folder.iterdir())
    (folder / "second.jsonl").write_bytes(journal.read_bytes())

    (issue,) = run("locks audit validate", table.path, code=3)["issues"]

    assert issue["kind"] == "overlap"
    assert run("locks audit disable", table.path)["files"] == files + 1
    assert "Add --yes" in run("locks audit cleanup", table.path, "--days", 0, code=1)
    assert len(run("locks audit cleanup", table.path, "--days", 0, "--dry-run")["files"]) == files + 1
    run("locks audit cleanup", table.path, "--days", 0, "--yes")
    assert run("locks audit status", table.path)["files"] == 0


def test_a_folder_of_parquet_becomes_a_table_and_an_import_says_what_it_lacks(run: Run, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    pq.write_table(ROWS, tmp_path / "files" / "a.parquet")
    written = run("bootstrap", tmp_path / "files", tmp_path / "rides", "--record-key", "id")
    assert written["inserted"] == 3
    assert [row["id"] for row in run("head", tmp_path / "rides")] == ["a", "b", "c"]
    wrong = run("import", "parquet", tmp_path / "files", tmp_path / "other", code=1)
    assert "iceberg, delta" in wrong
    assert not (tmp_path / "other").exists()
