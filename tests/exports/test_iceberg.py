"""Iceberg metadata over a table's files: what pyiceberg reads after each commit, and what is refused."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

from pyhudi import HudiTable, write_hudi
from pyhudi.cli.main import main
from pyhudi.errors import ConfigError, SchemaMismatch, StorageError, TableExists, UnsupportedTable
from pyhudi.schema import AddColumn, ChangeType, DropColumn, MoveColumn, RenameColumn
from tests.support.exports.iceberg import ICEBERG, Lake, by_pyhudi

OFF = {"hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false"}

BY_DAY = {
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}


def row(id: int, city: str | None = "a", **more: object) -> dict[str, object]:
    return {"id": id, "city": city, **more}


def written(path: Path, data: Any, partition_by: str | list[str] | None = "city", **options: str) -> HudiTable:
    write_hudi(str(path), data, record_key="id", partition_by=partition_by, options={**OFF, **options})
    return HudiTable.open(path)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


# ---- commits


def test_each_commit_since_the_last_export_is_a_snapshot_that_names_it(tmp_path: Path, lake: Lake) -> None:
    table = written(tmp_path / "t", [row(1), row(2, "b")])
    first = lake.export(table)
    lake.assert_equal(table)

    table.upsert([row(3)], options=OFF)
    table.delete(where="id = 1", options=OFF)
    then = by_pyhudi(table)
    table.delete_partitions(["b"], options=OFF)
    result = lake.export(table)

    lake.assert_equal(table)
    commits = [one.requested_time for one in table.state().timeline.commits()]
    assert lake.instants() == [*commits[:-1], result.instant_time]
    assert (first.commits, result.commits) == (1, 3)
    between = lake.table().snapshots()[-2]
    assert lake.read(between.snapshot_id) == then

    assert lake.export(table).commits == 0
    assert len(lake.instants()) == 4


def test_no_data_file_is_copied_or_touched_and_the_metadata_lie_elsewhere(tmp_path: Path, lake: Lake) -> None:
    table = written(tmp_path / "t", [row(1), row(2, "b")])

    def files() -> dict[str, tuple[int, int]]:
        return {
            str(path): (path.stat().st_mtime_ns, path.stat().st_size)
            for path in (tmp_path / "t").rglob("*")
            if path.is_file() and "pyhudi_exports" not in str(path)
        }

    before = files()
    lake.export(table)
    assert files() == before
    assert lake.table().location().startswith(f"file://{tmp_path}/wh/")
    assert not list((tmp_path / "wh").rglob("*.parquet"))


def test_a_table_without_partitions_and_without_rows_goes_on(tmp_path: Path, lake: Lake) -> None:
    table = written(tmp_path / "t", [row(1), row(2)], None)
    lake.export(table)
    table.delete(where="id > 0", options=OFF)
    lake.export(table)
    assert lake.read() == []
    table.upsert([row(3)], options=OFF)
    lake.export(table)
    lake.assert_equal(table)


def test_an_export_is_rolled_back_with_its_table(tmp_path: Path, lake: Lake) -> None:
    table = written(tmp_path / "t", [row(1), row(2, "b")])
    table.upsert([row(1), row(3, "c")], options=OFF)
    lake.export(table)
    table.rollback(options=OFF)
    lake.export(table)
    lake.assert_equal(table)


def test_a_merge_on_read_table_has_the_rows_of_its_base_files(tmp_path: Path, lake: Lake) -> None:
    table = written(tmp_path / "t", [row(1, v=1)], **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    lake.export(table)
    table.upsert([row(1, v=2)], options=OFF)
    with pytest.warns(UserWarning, match="lacks 1 rows that are only in log"):
        result = lake.export(table)
    assert result.rows_in_logs == 1
    lake.assert_equal(table)
    table.compact(options=OFF)
    lake.export(table)
    lake.assert_equal(table)
    assert lake.table().scan().to_arrow()["v"].to_pylist() == [2]


# ---- partitions


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ["a", "b c", None]),
        (pa.int32(), [1, -2, None]),
        (pa.int64(), [1, 1 << 40, None]),
        (pa.date32(), [datetime.date(2026, 1, 2), datetime.date(1969, 12, 30), None]),
        (pa.bool_(), [True, False, None]),
    ],
)
@pytest.mark.parametrize("hive_style", ["true", "false"])
def test_partition_columns_have_the_values_of_their_paths(
    kind: pa.DataType, values: list[Any], hive_style: str, tmp_path: Path, lake: Lake
) -> None:
    data = pa.table({"id": range(len(values)), "p": pa.array(values, kind)})
    table = written(tmp_path / "t", data, "p", **{"hoodie.datasource.write.hive_style_partitioning": hive_style})
    lake.export(table)
    lake.assert_equal(table)
    for value in values:
        where = "p is null" if value is None else f"p = {value!r}" if kind != pa.date32() else f"p = '{value}'"
        assert lake.table().scan(where).to_arrow().num_rows == 1
    if kind != pa.bool_():
        assert [one.name for one in lake.table().spec().fields] == ["p"]


def test_encoded_values_and_several_fields_are_partitions(tmp_path: Path, lake: Lake) -> None:
    data = [row(1, "x/y", n=1), row(2, "50% off?", n=1), row(3, None, n=2)]
    encoded = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
    table = written(tmp_path / "t", data, ["city", "n"], **encoded)
    lake.export(table)
    lake.assert_equal(table)
    assert lake.table().scan("city = 'x/y' and n = 1").to_arrow()["id"].to_pylist() == [1]
    table.upsert([row(1, "x/y", n=1, v=5)], options={**OFF, "hoodie.pyhudi.schema.mode": "merge"})
    lake.export(table)
    lake.assert_equal(table)


def test_a_transformed_partition_is_a_plain_column(tmp_path: Path, lake: Lake) -> None:
    table = written(tmp_path / "t", [{"id": 1, "at": 0}, {"id": 2, "at": 86_400_000}], "at", **BY_DAY)
    lake.export(table)
    lake.assert_equal(table)
    assert not lake.table().spec().fields
    table.upsert([{"id": 2, "at": 86_400_000}], options={**OFF, **BY_DAY})
    lake.export(table)
    lake.assert_equal(table)


def test_partition_columns_that_are_in_no_file_come_from_the_path_or_are_refused(tmp_path: Path, lake: Lake) -> None:
    dropped = {"hoodie.datasource.write.drop.partition.columns": "true"}
    table = written(tmp_path / "t", [row(1), row(2, "b")], **dropped)
    lake.export(table)
    assert sorted(lake.table().scan().to_arrow()["city"].to_pylist()) == ["a", "b"]
    assert lake.table().scan("city = 'b'").to_arrow()["id"].to_pylist() == [2]

    other = Lake(tmp_path, "other.rides")
    table = written(tmp_path / "u", [{"id": 1, "at": 0}], "at", **dropped, **BY_DAY)
    with pytest.raises(UnsupportedTable, match=r"columns at are not in the files.*NULL"):
        other.export(table)
    with other.catalog() as catalog:
        assert ("other",) not in catalog.list_namespaces()


def test_a_file_whose_rows_are_not_of_its_partition_is_refused(tmp_path: Path, lake: Lake) -> None:
    """ "" has the path of null."""
    table = written(tmp_path / "t", [row(1, None), row(2, "")])
    with pytest.raises(SchemaMismatch, match=r"the path says that city is None in all rows"):
        lake.export(table)
    with lake.catalog() as catalog:
        assert catalog.list_namespaces() == []


# ---- columns


def test_added_widened_and_moved_columns_are_followed(tmp_path: Path, lake: Lake) -> None:
    data = pa.table(
        {
            "id": [1, 2],
            "city": ["a", "b"],
            "n": pa.array([1, 2], pa.int32()),
            "x": pa.array([0.5, 1.5], pa.float32()),
            "d": pa.array([Decimal("1.23"), Decimal("4.56")], pa.decimal128(5, 2)),
        }
    )
    table = written(tmp_path / "t", data)
    lake.export(table)
    table.alter(
        ChangeType("n", pa.int64()),
        ChangeType("x", pa.float64()),
        ChangeType("d", pa.decimal128(20, 2)),
        AddColumn("note", pa.string(), comment="a note"),
        MoveColumn("note", after="id"),
    )
    lake.export(table)
    lake.assert_equal(table)
    table.upsert(pa.table({"id": [1], "city": ["a"], "n": [1 << 40], "note": ["x"]}), options=OFF)
    lake.export(table)
    lake.assert_equal(table)
    assert lake.table().schema().find_field("note").doc == "a note"
    assert lake.table().scan("n > 2").to_arrow()["id"].to_pylist() == [1]
    assert lake.table().scan("d >= 4.56").to_arrow()["id"].to_pylist() == [2]


def test_renamed_and_dropped_columns_are_read_in_older_files(tmp_path: Path, lake: Lake) -> None:
    data = pa.table({"id": [1, 2], "city": ["a", "b"], "n": [1, 2], "gone": ["x", "y"]})
    table = written(tmp_path / "t", data)
    lake.export(table)
    table.alter(RenameColumn("n", "number"), DropColumn("gone"))
    lake.export(table)
    lake.assert_equal(table)
    table.upsert([row(1, number=7)], options=OFF)
    lake.export(table)
    lake.assert_equal(table)
    table.alter(RenameColumn("number", "count"))
    table.upsert([row(3, count=8)], options=OFF)
    lake.export(table)
    lake.assert_equal(table)
    assert sorted(lake.table().scan().to_arrow()["count"].to_pylist()) == [2, 7, 8]

    again = Lake(tmp_path, "lake.again")
    again.export(table)  # a first export knows the names of files of all ages
    again.assert_equal(table)


def test_columns_within_columns_change(tmp_path: Path, lake: Lake) -> None:
    kind = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])
    values = [{"a": 1, "b": {"c": "x"}}, None]
    data = pa.table(
        {
            "id": [1, 2],
            "city": ["a", "b"],
            "s": pa.array(values, kind),
            "l": pa.array([values, []], pa.list_(kind)),
            "m": pa.array([[("k", values[0])], []], pa.map_(pa.string(), kind)),
        }
    )
    table = written(tmp_path / "t", data)
    lake.export(table)
    lake.assert_equal(table)
    table.alter(
        RenameColumn("s.b.c", "text"),
        ChangeType("s.a", pa.int64()),
        AddColumn("l.element.more", pa.string()),
        RenameColumn("m.value.a", "first"),
    )
    lake.export(table)
    lake.assert_equal(table)
    again = Lake(tmp_path, "lake.again")
    again.export(table)
    again.assert_equal(table)


def test_a_column_dropped_and_added_again_does_not_show_its_former_values(tmp_path: Path, lake: Lake) -> None:
    table = written(tmp_path / "t", [row(1, n=1), row(2, "b", n=2)])
    lake.export(table)
    table.alter(DropColumn("n"))
    table.alter(AddColumn("n", pa.int64()))
    with pytest.raises(UnsupportedTable, match=r"another column under the name 'n'.*table.cluster"):
        lake.export(table)
    table.upsert([row(1, n=7), row(2, "b", n=None)], options=OFF)  # both files are rewritten
    assert lake.export(table).commits
    lake.assert_equal(table)
    assert len(lake.instants()) == 1  # those before would show null for the former column

    first = Lake(tmp_path, "lake.first")
    first.export(table)
    first.assert_equal(table)


def test_a_change_of_type_that_iceberg_lacks_is_refused_until_no_file_has_the_former(
    tmp_path: Path, lake: Lake
) -> None:
    table = written(tmp_path / "t", pa.table({"id": [1], "city": ["a"], "n": pa.array([1], pa.int32())}))
    lake.export(table)
    table.alter(ChangeType("n", pa.string()))
    with pytest.raises(UnsupportedTable, match=r"column 'n' as int32, and the table has string"):
        lake.export(table)
    table.upsert([row(1, n="x")], options=OFF)
    assert "n was int and is string" in lake.export(table).replaced
    lake.assert_equal(table)


@pytest.mark.parametrize(
    "kind", [pa.time32("ms"), pa.timestamp("ns"), pa.list_(pa.float32(), 3)], ids=["time", "nanoseconds", "vector"]
)
def test_types_that_iceberg_lacks_are_refused_by_name(kind: pa.DataType, tmp_path: Path) -> None:
    from pyhudi.exports.iceberg_columns import iceberg_schema

    inner = pa.struct([("x", kind)])
    with pytest.raises(UnsupportedTable, match=r"here: Iceberg has no type for a of .*; b\.x of ") as raised:
        iceberg_schema(pa.schema([("a", kind), ("b", inner), ("c", pa.int32())]), "here")
    assert "c of" not in str(raised.value)


def test_milliseconds_are_the_same_moments(tmp_path: Path, lake: Lake) -> None:
    moments = [datetime.datetime(2026, 1, 2, 3, 4, 5, 678000), datetime.datetime(1969, 12, 31, 23, 59, 59, 1000)]
    data = pa.table(
        {
            "id": [1, 2],
            "city": ["a", "a"],
            "at": pa.array(moments, pa.timestamp("ms", "UTC")),
            "local": pa.array(moments, pa.timestamp("ms")),
        }
    )
    table = written(tmp_path / "t", data)
    lake.export(table)
    assert lake.read() == by_pyhudi(table)
    found = lake.table().scan("local > '2026-01-02T03:04:05.677'").to_arrow()
    assert found["id"].to_pylist() == [1]
    assert lake.table().scan("at < '1969-12-31T23:59:59.001+00:00'").to_arrow().num_rows == 0


# ---- others at the same table


def test_a_death_after_the_catalog_took_a_commit_loses_and_doubles_nothing(tmp_path: Path, lake: Lake) -> None:
    table = written(tmp_path / "t", [row(1)])
    lake.export(table)
    table.upsert([row(2)], options=OFF)
    commit = SqlCatalog.commit_table

    def dying(*arguments: Any) -> Any:
        commit(*arguments)
        raise KeyboardInterrupt

    with patch.object(SqlCatalog, "commit_table", dying), pytest.raises(KeyboardInterrupt):
        lake.export(table)
    assert lake.export(table).commits == 0
    lake.assert_equal(table)


@pytest.mark.parametrize("lands", [True, False])
def test_two_exports_at_once_make_each_snapshot_once(lands: bool, tmp_path: Path, lake: Lake) -> None:
    table = written(tmp_path / "t", [row(1)])
    lake.export(table)
    table.upsert([row(2)], options=OFF)
    table.upsert([row(3, "b")], options=OFF)
    commit, calls = SqlCatalog.commit_table, list[object]()

    def overtaken(*arguments: Any) -> Any:
        calls.append(None)
        if len(calls) == 1:
            if lands:
                lake.export(table)
            raise CommitFailedException("somebody was faster")
        return commit(*arguments)

    with patch.object(SqlCatalog, "commit_table", overtaken):
        result = lake.export(table)
    assert result.commits == (0 if lands else 2)
    lake.assert_equal(table)
    assert len(lake.instants()) == len(set(lake.instants())) == 3


def test_a_first_export_meets_another(tmp_path: Path, lake: Lake) -> None:
    table = written(tmp_path / "t", [row(1)])
    create = SqlCatalog.create_table_transaction

    def overtaken(*arguments: Any, **named: Any) -> Any:
        made = create(*arguments, **named)
        with patch.object(SqlCatalog, "create_table_transaction", create):
            lake.export(table)
        return made

    with patch.object(SqlCatalog, "create_table_transaction", overtaken):
        assert lake.export(table).commits == 0
    lake.assert_equal(table)


def test_a_failed_first_export_leaves_no_table_and_no_namespace(tmp_path: Path, lake: Lake) -> None:
    table = written(tmp_path / "t", [row(1)])
    with (
        patch.object(SqlCatalog, "commit_table", side_effect=PermissionError("not yours")),
        pytest.raises(StorageError, match=r"lake\.rides in the catalog default: the catalog refused: .*not yours"),
    ):
        lake.export(table)
    with lake.catalog() as catalog:
        assert catalog.list_namespaces() == []


def test_a_table_of_the_name_that_is_not_ours_is_left_alone(tmp_path: Path, lake: Lake) -> None:
    table, other = written(tmp_path / "t", [row(1)]), written(tmp_path / "other", [row(1)])
    lake.export(other)
    with pytest.raises(TableExists, match=rf"is of the Hudi table file://{tmp_path}/other.*export\.iceberg\.table"):
        lake.export(table)

    theirs = Lake(tmp_path, "lake.theirs")
    with theirs.catalog() as catalog:
        catalog.create_table("lake.theirs", pa.schema([("a", pa.int64())]))
    with pytest.raises(TableExists, match="was not made by an export"):
        theirs.export(table)


def test_an_export_that_another_program_wrote_to_is_refused(tmp_path: Path, lake: Lake) -> None:
    table = written(tmp_path / "t", [row(1)])
    lake.export(table)
    lake.table().delete("id = 1")
    table.upsert([row(2)], options=OFF)
    with pytest.raises(TableExists, match=r"changed by another program: snapshot \d+ names no hudi\.instant"):
        lake.export(table)


def test_properties_that_guard_the_files_come_back(tmp_path: Path, lake: Lake) -> None:
    table = written(tmp_path / "t", [row(1)])
    lake.export(table)
    assert lake.table().properties["gc.enabled"] == "false"
    with lake.table().transaction() as transaction:
        transaction.set_properties({"gc.enabled": "true", "commit.retry.num-retries": "4"})
    table.upsert([row(2)], options=OFF)
    lake.export(table)
    properties = lake.table().properties
    assert (properties["gc.enabled"], properties["commit.retry.num-retries"]) == ("false", "0")


def test_errors_say_what_is_wrong_with_the_catalog(tmp_path: Path, lake: Lake) -> None:
    table = written(tmp_path / "t", [row(1)])
    with pytest.raises(ConfigError, match=r"catalog 'nowhere' can't be opened.*hoodie\.pyhudi\.export\.iceberg\.catal"):
        table.export_metadata("iceberg", options={f"{ICEBERG}catalog": "nowhere"})
    no_server = {f"{ICEBERG}catalog.type": "rest", f"{ICEBERG}catalog.uri": "http://127.0.0.1:1"}
    with pytest.raises(StorageError, match=r"'default' does not answer"):
        table.export_metadata("iceberg", options=no_server)
    with pytest.raises(ConfigError, match=r"expected a namespace and a name"):
        table.export_metadata("iceberg", options={**lake.options, f"{ICEBERG}table": "rides"})
    inside = {**lake.options, f"{ICEBERG}location": f"file://{tmp_path}/t/iceberg"}
    with pytest.raises(ConfigError, match=r"inside of the Hudi table"):
        table.export_metadata("iceberg", options=inside)


# ---- snapshots


def test_older_snapshots_expire_with_the_metadata_files_that_only_they_had(tmp_path: Path, lake: Lake) -> None:
    few = Lake(tmp_path, more={f"{ICEBERG}snapshots.retained": "2"})
    table = written(tmp_path / "t", [row(1), row(2, "b")])
    few.export(table)
    for n in range(4):
        table.upsert([row(n + 3)], options=OFF)
        few.export(table)
    commits = [one.requested_time for one in table.state().timeline.commits()]
    assert few.instants() == commits[-2:]
    few.assert_equal(table)
    older = min(few.table().snapshots(), key=lambda one: one.sequence_number or 0)
    assert few.read(older.snapshot_id)

    live = {one.manifest_list for one in few.table().snapshots()}
    live |= {m.manifest_path for one in few.table().snapshots() for m in one.manifests(few.table().io)}
    assert {f"file://{path}" for path in (tmp_path / "wh").rglob("*.avro")} == live


def test_cleaning_keeps_the_files_of_every_snapshot_that_is_there(tmp_path: Path) -> None:
    lake = Lake(tmp_path, more={f"{ICEBERG}snapshots.retained": "3"})
    table = written(tmp_path / "t", [row(1)])
    lake.export(table)
    for n in range(5):
        table.upsert([row(n + 2)], options=OFF)
        lake.export(table)
        table.clean(options={"hoodie.clean.commits.retained": "1"})
        for snapshot in lake.table().snapshots():
            lake.read(snapshot.snapshot_id)
    assert len(list((tmp_path / "t").rglob("a/*.parquet"))) <= 4


def test_a_commit_exports_its_table_when_an_option_asks_for_it(tmp_path: Path, lake: Lake) -> None:
    options = {"hoodie.pyhudi.export.formats": "iceberg", **lake.options}
    table = written(tmp_path / "t", [row(1)], **options)
    lake.assert_equal(table)
    table.upsert([row(2)], options={**OFF, **options})
    lake.assert_equal(table)


def test_the_name_mapping_has_every_name(tmp_path: Path, lake: Lake) -> None:
    table = written(tmp_path / "t", [row(1, n=1)])
    lake.export(table)
    table.alter(RenameColumn("n", "m"))
    lake.export(table)
    mapping = json.loads(lake.table().properties["schema.name-mapping.default"])
    assert ["n", "m"] in [one["names"] for one in mapping]


def test_the_command_exports_and_says_what_it_did(
    tmp_path: Path, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    table = written(tmp_path / "t", [row(1)])
    options = [text for key, value in lake.options.items() for text in ("--option", f"{key}={value}")]
    assert main(["export", "iceberg", str(tmp_path / "t"), *options, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["format"], told["location"]) == ("iceberg", "lake.rides in the catalog default")
    lake.assert_equal(table)
