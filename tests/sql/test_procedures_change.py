"""Procedures that change a table: what it holds afterwards, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import ConfigError, DuckDbSession, HudiTable
from tests.support.catalogs import catalogs_in_memory
from tests.support.golden.folder import Golden

QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def rows(numbers: range, ts: int) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in numbers], "p": [f"p{n % 3}" for n in numbers], "ts": [ts] * len(numbers)})


def made(path: Path, kind: str = "COPY_ON_WRITE", writes: int = 3, options: Mapping[str, str] = QUIET) -> HudiTable:
    for ts in range(writes):
        pyhudi.write_hudi(
            path, rows(range(9), ts), record_key="id", partition_by="p", ordering="ts", table_type=kind, options=options
        )
    return HudiTable.open(path)


def times(table: HudiTable) -> list[str]:
    return [instant.requested_time for instant in table.state().timeline.commits()]


def stored(table: HudiTable) -> set[int]:
    return set(table.to_arrow(["ts"]).column("ts").to_pylist())


def answer(rows: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in rows.to_pylist()]


def test_the_newest_write_is_rolled_back(tmp_path: Path):
    table = made(tmp_path / "t")
    newest = times(table)[-1]
    assert answer(pyhudi.call("rollback_to_instant", table, instant_time=newest)) == [(True,)]
    assert stored(table) == {1}
    ((_, undone, *_),) = answer(pyhudi.call("show_rollbacks", table))
    assert undone == newest


def test_savepoints_are_made_restored_and_given_free(tmp_path: Path):
    table = made(tmp_path / "t")
    first, second, _ = times(table)
    assert answer(pyhudi.call("create_savepoint", table, commit_time=first, user="me", comments="why")) == [(True,)]
    assert table.savepoints.list()[0].comment == "why"
    assert answer(pyhudi.call("create_savepoint", table, commit_time=second)) == [(True,)]
    assert answer(pyhudi.call("show_savepoints", table)) == [(second,), (first,)]
    with pytest.raises(ConfigError, match="no savepoint"):
        pyhudi.call("rollback_to_savepoint", table, instant_time="20200101000000000")
    assert answer(pyhudi.call("rollback_to_savepoint", table)) == [(True,)]
    assert stored(table) == {1}
    assert answer(pyhudi.call("delete_savepoint", table)) == [(True,)]
    assert answer(pyhudi.call("show_savepoints", table)) == [(first,)]


def test_compactions_are_planned_executed_and_named(tmp_path: Path):
    table = made(tmp_path / "t", "MERGE_ON_READ")
    ((time, size, state),) = answer(pyhudi.call("run_compaction", table, op="schedule"))
    assert (size, state) == (3, "REQUESTED")
    assert answer(pyhudi.call("show_compaction", table)) == [(time, 3, "REQUESTED")]
    with pytest.raises(ConfigError, match="for op => 'execute'"):
        pyhudi.call("run_compaction", table, op="schedule", instants=time)
    with pytest.raises(ConfigError, match="pending are"):
        pyhudi.call("run_compaction", table, op="execute", instants="20200101000000000")
    for limit in (0, -1):  # as in Hudi: none of those that are pending
        assert answer(pyhudi.call("run_compaction", table, op="execute", limit=limit)) == []
    done = pyhudi.call("run_compaction", table, op="execute", instants=time, limit=-1)
    assert answer(done) == [(time, 3, "COMPLETED")], "a limit counts where no instants are given"
    assert answer(pyhudi.call("run_compaction", table, op="run")) == []
    assert sum(table.inspect.partitions().column("log_files").to_pylist()) == 0
    with pytest.raises(ConfigError, match="op is one of run"):
        pyhudi.call("run_compaction", table, op="sometime")


def test_a_compaction_is_executed_by_its_timestamp_alone(tmp_path: Path):
    table = made(tmp_path / "t", "MERGE_ON_READ")
    ((time, *_),) = answer(pyhudi.call("run_compaction", table, op="schedule"))
    assert answer(pyhudi.call("run_compaction", table, op="run", timestamp=int(str(time)))) == [(time, 3, "COMPLETED")]


@pytest.mark.thorough
def test_a_clustering_takes_the_partitions_that_a_predicate_names(tmp_path: Path):
    table = made(tmp_path / "t")
    call = {"predicate": "p <= 'p1'", "order": "ts,id", "order_strategy": "z-order", "show_involved_partition": True}
    ((time, size, state, partitions),) = answer(pyhudi.call("run_clustering", table, **call))
    assert (size, state, sorted(str(partitions).split(","))) == (2, "COMPLETED", ["p0", "p1"])
    assert answer(pyhudi.call("show_clustering", table)) == [(time, 2, "COMPLETED", "*")]
    assert answer(pyhudi.call("run_clustering", table, predicate="p = 'nothing'")) == []
    with pytest.raises(ConfigError, match="no column 'nothing'"):
        pyhudi.call("run_clustering", table, order="nothing")
    with pytest.raises(ConfigError, match="linear"):
        pyhudi.call("run_clustering", table, order_strategy="zigzag")


def test_a_clustering_that_waits_is_executed_later(tmp_path: Path):
    table = made(tmp_path / "t")
    ((time, *_),) = answer(pyhudi.call("run_clustering", table, op="schedule", selected_partitions="p2"))
    assert answer(pyhudi.call("show_clustering", table)) == [(time, 1, "REQUESTED", "*")]
    assert answer(pyhudi.call("run_clustering", table, instants=time)) == [(time, 1, "COMPLETED", "*")]


def test_of_two_clusterings_that_wait_only_the_named_one_is_executed(tmp_path: Path):
    table = made(tmp_path / "t")
    planned = [
        answer(pyhudi.call("run_clustering", table, op="schedule", selected_partitions=path))[0][0]
        for path in ("p0", "p1")
    ]
    assert answer(pyhudi.call("run_clustering", table, instants=planned[0])) == [(planned[0], 1, "COMPLETED", "*")]
    assert answer(pyhudi.call("show_clustering", table))[0] == (planned[1], 1, "REQUESTED", "*")


def test_a_clean_deletes_by_the_policy_that_the_call_names(tmp_path: Path):
    table = made(tmp_path / "t")
    call = {"clean_policy": "KEEP_LATEST_FILE_VERSIONS", "file_versions_retained": 1}
    ((_, _, deleted, *_),) = answer(pyhudi.call("run_clean", table, **call))
    assert deleted == 6
    assert len(list((tmp_path / "t").glob("p*/*.parquet"))) == 3
    assert answer(pyhudi.call("run_clean", table, options="hoodie.clean.commits.retained=1")) == []


def test_options_are_a_list_of_keys_and_values(tmp_path: Path):
    table = made(tmp_path / "t")
    with pytest.raises(ConfigError, match="key=value"):
        pyhudi.call("run_clean", table, options="hoodie.clean.commits.retained")


@pytest.mark.thorough
def test_old_instants_are_archived(tmp_path: Path):
    # With a metadata table archiving waits until that is compacted.
    table = made(tmp_path / "t", writes=6, options={**QUIET, "hoodie.metadata.enable": "false"})
    call = {"min_commits": 2, "max_commits": 3, "retain_commits": 1}
    pyhudi.call("run_clean", table, retain_commits=1)
    assert answer(pyhudi.call("archive_commits", table, **call)) == [(0,)]
    assert len(times(table)) < 6
    assert pyhudi.call("show_archived_commits", table).num_rows == 6 - len(times(table))


def test_expired_partitions_go(tmp_path: Path):
    table = made(tmp_path / "t")
    assert answer(pyhudi.call("run_ttl", table, retain_days=1)) == []


def test_markers_of_writes_that_are_done_are_deleted(tmp_path: Path):
    table = made(tmp_path / "t")
    left = tmp_path / "t" / ".hoodie" / ".temp" / "20240101000000000"
    left.mkdir(parents=True)
    (left / "a.marker").touch()
    assert answer(pyhudi.call("delete_marker", table, instant_time="20240101000000000")) == [(True,)]
    assert not left.exists()
    with pytest.raises(ConfigError, match="no instant time"):
        pyhudi.call("delete_marker", table, instant_time="../../p0")


def test_markers_of_a_pending_write_stay_for_its_rollback(golden: Golden):
    path, _ = golden("1.2.0", "failed_write_direct")
    pending = next(instant.requested_time for instant in HudiTable.open(path).state().timeline.pending())
    with pytest.raises(ConfigError, match="Roll it back first"):
        pyhudi.call("delete_marker", path, instant_time=pending)


def test_only_a_pending_service_that_nothing_depends_on_is_taken_back(tmp_path: Path):
    table = made(tmp_path / "t", "MERGE_ON_READ")
    ((time, *_),) = answer(pyhudi.call("run_compaction", table, op="schedule"))
    with pytest.raises(ConfigError, match="no pending compaction"):
        pyhudi.call("run_rollback_inflight_tableservice", table, pending_instant=times(table)[0])
    with pytest.raises(ConfigError, match="run_compaction"):
        pyhudi.call(
            "run_rollback_inflight_tableservice", table, pending_instant=str(time), delete_request_instant_file=True
        )
    with pytest.raises(pyhudi.TableError, match="waits to be run"):
        pyhudi.call("run_rollback_inflight_tableservice", table, pending_instant=str(time))
    assert stored(table) == {2}


def test_a_clustering_that_waits_is_taken_back(tmp_path: Path):
    table = made(tmp_path / "t")
    ((time, *_),) = answer(pyhudi.call("run_clustering", table, op="schedule"))
    ((shown, _),) = answer(pyhudi.call("run_rollback_inflight_tableservice", table, pending_instant=str(time)))
    assert shown == time
    assert table.state().timeline.pending().find(str(time)) is None


@pytest.mark.thorough
def test_the_metadata_table_is_made_rebuilt_and_taken_out(tmp_path: Path):
    table = made(tmp_path / "t")
    ((message,),) = answer(pyhudi.call("delete_metadata_table", table))
    assert "metadata" in str(message)
    assert table.metadata.partitions == ()
    with pytest.raises(ConfigError, match="create_metadata_table"):
        pyhudi.call("init_metadata_table", table)
    assert str(answer(pyhudi.call("create_metadata_table", table))[0][0]).startswith("Created Metadata Table in ")
    assert "files" in table.metadata.partitions
    with pytest.raises(ConfigError, match="init_metadata_table"):
        pyhudi.call("create_metadata_table", table)
    assert str(answer(pyhudi.call("init_metadata_table", table))[0][0]).startswith("Initialized")
    assert str(answer(pyhudi.call("init_metadata_table", table, read_only=True))[0][0]).startswith("Opened")
    assert table.metadata.validate() == ()


@pytest.mark.thorough
def test_partitions_are_dropped_by_path_and_by_pattern_and_tables_emptied(tmp_path: Path):
    table = made(tmp_path / "t")
    assert answer(pyhudi.call("drop_partition", table, partition="p0")) == [("SUCCESS",)]
    assert table.scan(["p"]).to_arrow().group_by("p").aggregate([]).num_rows == 2
    pyhudi.call("truncate_table", table, partitions="p1")
    assert set(table.to_arrow(["p"]).column("p").to_pylist()) == {"p2"}
    pyhudi.call("drop_partition", table, partition="p*")
    assert table.to_arrow().num_rows == 0
    table.insert(rows(range(3), 5))
    pyhudi.call("truncate_table", table)
    assert table.to_arrow().num_rows == 0
    assert len(times(table)) > 3


def test_partitions_that_lost_their_metadata_file_get_it_back(tmp_path: Path):
    table = made(tmp_path / "t")
    (tmp_path / "t" / "p1" / ".hoodie_partition_metadata").unlink()
    expected = [("p0", "Yes", "None"), ("p1", "No", "None"), ("p2", "Yes", "None")]
    assert answer(pyhudi.call("repair_add_partition_meta", table)) == expected
    assert ("p1", "No", "Repaired") in answer(pyhudi.call("repair_add_partition_meta", table, dry_run=False))
    assert table.to_arrow().num_rows == 9
    forms = answer(pyhudi.call("repair_migrate_partition_meta", table))
    assert forms == [(path, "true", "false", "MIGRATE") for path in ("p0", "p1", "p2")]
    with pytest.raises(ConfigError, match="as text"):
        pyhudi.call("repair_migrate_partition_meta", table, dry_run=False)


def test_a_clean_whose_plan_is_empty_is_taken_out(tmp_path: Path):
    table = made(tmp_path / "t")
    requested = tmp_path / "t" / ".hoodie" / "timeline" / "20991231000000000.clean.requested"
    requested.write_bytes(b"")
    assert answer(pyhudi.call("repair_corrupted_clean_files", table)) == [(True,)]
    assert not requested.exists()


@pytest.mark.thorough
def test_a_key_has_one_row_in_the_partition_that_is_named(tmp_path: Path):
    table = made(tmp_path / "t")
    names = table.to_arrow().column_names
    table.bulk_insert(table.to_arrow([name for name in names if not name.startswith("_hoodie")]))
    assert table.count() == 18

    named = {"duplicated_partition_path": "p1"}
    assert "1 to repair" in answer(pyhudi.call("repair_deduplicate", table, **named))[0][0]
    assert table.count() == 18
    assert "p1" in answer(pyhudi.call("repair_deduplicate", table, dry_run=False, **named))[0][0]
    assert table.count() == 15
    for name, value in (("repaired_output_path", "/tmp/x"), ("dedupe_type", "insert_type")):
        with pytest.raises(ConfigError, match=f"leave out {name}"):
            pyhudi.call("repair_deduplicate", table, **named, **{name: value})


def test_lost_properties_come_from_a_file(tmp_path: Path):
    table = made(tmp_path / "t")
    file = tmp_path / "t/.hoodie/hoodie.properties"
    before, whole = table.to_arrow(), dict(table.state().config.properties)
    (tmp_path / "new.properties").write_bytes(file.read_bytes() + b"hoodie.mine=1\n")
    file.unlink()

    changed = answer(
        pyhudi.call("repair_overwrite_hoodie_props", tmp_path / "t", new_props_file_path=tmp_path / "new.properties")
    )
    assert ("hoodie.mine", None, "1") in changed
    assert {**whole, "hoodie.mine": "1"} == HudiTable.open(tmp_path / "t").state().config.properties
    assert HudiTable.open(tmp_path / "t").to_arrow() == before


@pytest.mark.parametrize("words", [("EIGHT", "NINE"), ("8", "9")])
def test_versions_go_up_and_down(tmp_path: Path, words: tuple[str, str]):
    table = made(tmp_path / "t")
    assert answer(pyhudi.call("downgrade_table", table, to_version=words[0])) == [(True,)]
    assert table.state().config.table_version == 8
    assert answer(pyhudi.call("upgrade_table", table, to_version=words[1])) == [(True,)]
    assert table.state().config.table_version == 9
    with pytest.raises(ConfigError, match="8 or EIGHT"):
        pyhudi.call("upgrade_table", table, to_version="newest")


@pytest.mark.thorough
def test_copies_are_views_and_tables_of_the_session(tmp_path: Path):
    table = made(tmp_path / "t")
    first, second, third = times(table)
    session = DuckDbSession({"t": tmp_path / "t"})
    ask = f"CALL copy_to_temp_view(table => 't', view_name => 'back_then', as_of_instant => '{first}')"
    assert session.sql(ask).to_arrow().to_pylist() == [{"status": 0}]
    assert session.sql("SELECT DISTINCT ts FROM back_then").to_arrow().to_pylist() == [{"ts": 0}]
    with pytest.raises(ConfigError, match="back_then"):
        session.sql(ask)
    session.sql("CALL copy_to_temp_view(table => 't', view_name => 'back_then', replace => true)")
    assert session.sql("SELECT DISTINCT ts FROM back_then").to_arrow().to_pylist() == [{"ts": 2}]
    increments = f"begin_instance_time => '{second}', end_instance_time => '{third}'"
    copy = (
        f"CALL copy_to_table(table => 't', new_table => 'c', query_type => 'incremental', columns => 'id', {increments}"
    )
    session.sql(f"{copy})")
    session.sql(f"{copy}, save_mode => 'append')")
    assert session.sql("SELECT count(*) AS n FROM c").to_arrow().to_pylist() == [{"n": 18}]
    with pytest.raises(ConfigError, match="call it by SQL"):
        pyhudi.call("copy_to_temp_view", table, view_name="v")


def test_the_audit_of_the_lock_is_turned_on_read_and_cleaned(tmp_path: Path):
    table = made(tmp_path / "t", writes=1)
    folder = f"file:{table.path}/.hoodie/.locks"
    ((name, state, _),) = answer(pyhudi.call("set_audit_lock", table.path, state="ENABLED"))
    assert (name, state) == (table.path, "enabled")
    with pytest.raises(ConfigError, match="enabled or disabled"):
        pyhudi.call("set_audit_lock", table.path, state="on")
    table.upsert(rows(range(2), 7), options={**QUIET, "hoodie.write.lock.provider": "STORAGE"})

    assert answer(pyhudi.call("show_audit_lock_status", table.path)) == [
        (table.path, True, f"{folder}/audit_enabled.json", f"{folder}/audit")
    ]
    ((_, outcome, transactions, issues, _),) = answer(pyhudi.call("validate_audit_lock", table.path))
    assert (outcome, issues) == ("PASSED", 0)
    assert transactions > 0
    ((_, cleaned, is_dry, days, _),) = answer(pyhudi.call("cleanup_audit_lock", table.path, dry_run=True))
    assert (cleaned, is_dry, days) == (0, True, 7)


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    (tmp_path / "in" / "p=x").mkdir(parents=True)
    pq.write_table(rows(range(3), 1).drop(["p"]), tmp_path / "in" / "p=x" / "a.parquet")
    return tmp_path / "in"


def bootstrapped(source: Path, **more: str | int | bool) -> HudiTable:
    path = source.with_name("t")
    needed = {"table": "db.t", "table_type": "COPY_ON_WRITE", "bootstrap_path": str(source), "rowKey_field": "id"}
    assert answer(pyhudi.call("run_bootstrap", base_path=str(path), **{**needed, **more})) == [(0,)]
    return HudiTable.open(path)


def test_a_folder_of_files_becomes_a_table_whose_rows_stay_there(exported: Path):
    table = bootstrapped(exported)
    assert table.to_arrow(["id", "p"]).to_pylist() == [{"id": f"k{n}", "p": "x"} for n in range(3)]
    assert table.state().config.properties["hoodie.table.name"] == "t"
    shown = pyhudi.call("show_bootstrap_mapping", path=str(table.path), filter="partition = 'p=x'")
    assert shown.column("source_file").to_pylist() == [f"file:{exported}/p=x/a.parquet"]
    assert pyhudi.call("show_bootstrap_mapping", table, filter="partition = 'p=y'").num_rows == 0
    assert answer(pyhudi.call("show_bootstrap_partitions", path=str(table.path))) == [("p=x",)]


def test_a_bootstrap_by_sql_takes_properties_below_options_below_arguments(exported: Path, tmp_path: Path):
    file = tmp_path / "more.properties"
    file.write_text(
        "hoodie.bootstrap.mode.selector=x.FullRecordBootstrapModeSelector\nhoodie.datasource.write.precombine.field=ts\n"
        "hoodie.write.table.version=6\n"
    )
    table = bootstrapped(exported, props_file_path=str(file), options="hoodie.write.table.version=8")
    assert (table.state().config.table_version, table.state().config.ordering_fields) == (8, ("ts",))
    assert pyhudi.call("show_bootstrap_mapping", table).num_rows == 0  # its rows are copies
    again = bootstrapped(
        exported,
        props_file_path=str(file),
        selector_class="MetadataOnlyBootstrapModeSelector",
        bootstrap_overwrite=True,
    )
    assert again.state().config.table_version == 6
    assert pyhudi.call("show_bootstrap_mapping", again).num_rows == 1


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("bootstrap_index_class", "my.Index"),
        ("full_bootstrap_input_provider", "my.Provider"),
        ("schema_provider_class", "my.Schema"),
        ("base_file_format", "ORC"),
    ],
)
def test_a_bootstrap_by_sql_refuses_what_it_would_not_honour(exported: Path, argument: str, value: str | bool):
    with pytest.raises(ConfigError, match=argument.replace("base_file_format", "base.file.format")):
        bootstrapped(exported, **{argument: value})
    assert not exported.with_name("t").exists()


def test_a_bootstrap_by_sql_registers_its_table_when_an_argument_says_so(
    exported: Path, monkeypatch: pytest.MonkeyPatch
):
    with catalogs_in_memory(monkeypatch) as catalog:
        bootstrapped(exported)
        assert catalog.calls == []
        bootstrapped(exported, partition_path_field="p", enable_hive_sync=True, bootstrap_overwrite=True)
    registered = catalog.databases["db"]["t"]
    assert registered.table.location == f"file:{exported.with_name('t')}"
    assert [one.name for one in registered.table.columns][-2:] == ["id", "ts"]
    assert registered.locations == {("x",): f"file:{exported.with_name('t')}/p=x"}
