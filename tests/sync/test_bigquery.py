"""BigQuery's list of files, and the statements that make its tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.cli.main import main
from pyhudi.errors import ConfigError, StorageError, UnsupportedTable
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import HudiOptionWarning
from pyhudi.model.options.catalogs.bigquery import BigQueryOptions
from pyhudi.storage import open_storage
from pyhudi.sync import bigquery

KEY = "hoodie.gcp.bigquery.sync."
NO_METADATA = {"hoodie.metadata.enable": "false"}
MANIFEST = {f"{KEY}use_bq_manifest_file": "true", f"{KEY}dataset_name": "lake"}
TOOL = {"hoodie.meta.sync.client.tool.class": "org.apache.hudi.gcp.bigquery.BigQuerySyncTool"}
PATHS, NAMES = ".hoodie/absolute-path-manifest/latest-snapshot.csv", ".hoodie/manifest/latest-snapshot.csv"
HIVE_STYLE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ROWS = [{"id": i, "city": "ab"[i % 2], "ts": 1} for i in range(4)]


def written(path: str, rows: Any = ROWS, **arguments: Any) -> HudiTable:
    options = {**NO_METADATA, "hoodie.table.name": "rides", **arguments.pop("options", {})}
    given = {"record_key": "id", "partition_by": "city", "ordering": "ts", **arguments}
    write_hudi(path, rows, options=options, **given)
    return HudiTable.open(path)


def lines(table: HudiTable, path: str = PATHS) -> list[str]:
    return open_storage(table.path).read(path).decode().splitlines()


def newest(table: HudiTable) -> list[str]:
    storage = open_storage(table.path)
    return [storage.full_path(path) for path in table.inspect.files()["path"].to_pylist()]


def statement(table: HudiTable, **more: str) -> str:
    (text,) = table.sync(
        "bigquery", options={**MANIFEST, **{f"{KEY}{key}": value for key, value in more.items()}}
    ).statements
    return text


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_manifest_has_the_path_of_the_newest_base_file_of_each_group(kind: str) -> None:
    table = written(f"memory://bq-{kind}", table_type=kind)
    first = table.sync("bigquery", options=MANIFEST)
    table.upsert([{"id": 9, "city": "c", "ts": 2}], options=NO_METADATA)
    table.upsert([{"id": 0, "city": "a", "ts": 2}], options=NO_METADATA)
    second, third = table.sync("bigquery", options=MANIFEST), table.sync("bigquery", options=MANIFEST)

    assert sorted(lines(table)) == sorted(newest(table))
    assert [one.tables[0].action for one in (first, second, third)] == ["created", "changed", "unchanged"]
    assert third.instant_time == table.history()[0].instant_time


def test_a_list_in_the_order_of_another_writer_stays_as_it_is() -> None:
    table = written("memory://bq-order")
    table.sync("bigquery", options=MANIFEST)
    other = "".join(f"{line}\n" for line in reversed(lines(table)))
    open_storage(table.path).write(PATHS, other.encode())

    assert table.sync("bigquery", options=MANIFEST).tables[0].action == "unchanged"
    assert open_storage(table.path).read(PATHS).decode() == other


def test_a_list_of_names_is_for_a_view_over_two_tables() -> None:
    dropped = {"hoodie.datasource.write.drop.partition.columns": "true", **HIVE_STYLE}
    table = written("memory://bq-view", options=dropped)
    options = {f"{KEY}dataset_name": "lake", f"{KEY}project_id": "p", f"{KEY}source_uri": "memory://bq-view/city=*",
               f"{KEY}source_uri_prefix": "memory://bq-view/"}  # fmt: skip

    manifest, versions, view = table.sync("bigquery", options=options).statements

    assert sorted(lines(table, NAMES)) == sorted(path.rpartition("/")[2] for path in newest(table))
    assert "EXTERNAL TABLE `p.lake.rides_manifest` (filename STRING)" in manifest
    assert NAMES in manifest
    assert "`p.lake.rides_versions` WITH PARTITION COLUMNS" in versions
    assert (
        'hive_partition_uri_prefix="memory://bq-view/", uris=["memory://bq-view/city=*"], format="PARQUET"' in versions
    )
    assert view == (
        "CREATE OR REPLACE VIEW `p.lake.rides` AS SELECT * FROM `p.lake.rides_versions` "
        "WHERE _hoodie_file_name IN (SELECT filename FROM `p.lake.rides_manifest`)"
    )


def test_the_statement_of_a_partitioned_table_has_its_columns_in_paths() -> None:
    table = written("memory://bq-parts", options=HIVE_STYLE)

    text = statement(
        table, source_uri_prefix="memory://bq-parts/", require_partition_filter="true", big_lake_connection_id="us.c"
    )

    assert text.startswith("CREATE OR REPLACE EXTERNAL TABLE `lake.rides` (`_hoodie_commit_time` STRING, ")
    assert "`id` INT64, `ts` INT64) WITH PARTITION COLUMNS WITH CONNECTION `us.c` OPTIONS (" in text
    assert 'hive_partition_uri_prefix="memory://bq-parts/", require_hive_partition_filter=true' in text
    assert f'{PATHS}"], format="PARQUET", file_set_spec_type="NEW_LINE_DELIMITED_MANIFEST")' in text
    assert "`city`" not in text


def test_without_a_prefix_partition_columns_are_ordinary_ones() -> None:
    text = statement(written("memory://bq-plain"), table_name="trips", dataset_name="other")

    assert "EXTERNAL TABLE `other.trips` (" in text
    assert "`city` STRING" in text
    assert "PARTITION" not in text


def test_types_are_those_that_hudi_declares() -> None:
    rows = pa.table({
        "id": [1], "city": ["a"], "ts": [1], "f": pa.array([1.5], pa.float32()), "b": [True],
        "d": pa.array([1], pa.date32()),
        "utc": pa.array([1], pa.timestamp("us", "UTC")), "local": pa.array([1], pa.timestamp("us")),
        "n": pa.array([None], pa.decimal128(38, 9)), "big": pa.array([None], pa.decimal128(38, 10)),
        "raw": [b"x"], "l": [[1]], "s": [{"a": 1, "t": ["x"]}],
        "m": pa.array([[("k", 1.0)]], pa.map_(pa.string(), pa.float64())),
    })  # fmt: skip
    text = statement(written("memory://bq-types", rows))

    for column in (
        "`f` FLOAT64", "`b` BOOL", "`d` DATE", "`utc` TIMESTAMP", "`local` INT64", "`n` NUMERIC", "`big` BIGNUMERIC",
        "`raw` BYTES", "`l` ARRAY<INT64>", "`s` STRUCT<`a` INT64, `t` ARRAY<STRING>>",
        "`m` STRUCT<`key_value` ARRAY<STRUCT<`key` STRING NOT NULL, `value` FLOAT64>>>",
    ):  # fmt: skip
        assert f"{column}" in text, column


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        ({}, {f"{KEY}dataset_name": ""}, ConfigError, "name one by .*dataset_name"),
        ({}, {f"{KEY}table_name": "a`b"}, ConfigError, "does not allow the name"),
        ({}, {f"{KEY}source_uri_prefix": "memory://bq-elsewhere"}, ConfigError, "the table is at"),
        ({}, {f"{KEY}source_uri_prefix": "memory://bq-refused"}, ConfigError, "name=value"),
        ({}, {f"{KEY}require_partition_filter": "true"}, ConfigError, "needs .*source_uri_prefix"),
        ({}, {f"{KEY}use_bq_manifest_file": "false"}, ConfigError, "needs .*source_uri.*use_bq_manifest_file=true"),
        ({}, {f"{KEY}assume_date_partitioning": "true"}, ConfigError, "assume_date_partitioning"),
        ({"options": {"hoodie.table.base.file.format": "ORC"}}, {}, UnsupportedTable, "base files are ORC"),
        ({"rows": [{**ROWS[0], "x": [[1]]}]}, {}, UnsupportedTable, "arrays in an array"),
        ({"options": {"hoodie.datasource.write.drop.partition.columns": "true"}}, {}, ConfigError, "leave out city"),
    ],
)
def test_what_bigquery_can_not_have_is_refused_before_anything_is_written(
    arguments: dict[str, Any], options: dict[str, str], error: type[Exception], words: str, tmp_path: Path
) -> None:
    open_storage("memory://bq-refused").delete_tree("")
    table = written("memory://bq-refused", **arguments)

    with pytest.raises(error, match=words):
        table.sync("bigquery", options={**MANIFEST, **options})
    assert open_storage("memory://bq-refused").stat(PATHS) is None


def test_an_option_of_the_view_has_no_effect_on_a_manifest_and_says_so() -> None:
    with pytest.warns(HudiOptionWarning, match="No effect: .*source_uri"):
        statement(written("memory://bq-view-option"), source_uri="memory://bq-x/*")


def test_a_table_without_a_row_left_has_an_empty_list_and_not_the_old_one() -> None:
    table = written("memory://bq-emptied")
    table.sync("bigquery", options=MANIFEST)
    table.delete_partitions(["a", "b"], options=NO_METADATA)

    table.sync("bigquery", options=MANIFEST)

    assert lines(table) == []


def test_each_commit_renews_the_list_when_the_tool_is_named() -> None:
    on = {**NO_METADATA, **MANIFEST, **TOOL}
    table = written("memory://bq-after", options=on)
    assert sorted(lines(table)) == sorted(newest(table))

    table.upsert([{"id": 9, "city": "c", "ts": 2}], options=on)
    assert len(lines(table)) == 3
    table.rollback(options=on)
    assert len(lines(table)) == 2


def test_a_list_that_can_not_be_written_is_warned_of_and_the_commit_is_complete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object) -> None:
        raise StorageError("no rights")

    monkeypatch.setattr(bigquery, "_renewed", refused)
    with pytest.warns(UserWarning, match=r"commit is complete.*not registered at BigQuery yet.*no rights"):
        table = written("memory://bq-denied", options={**MANIFEST, **TOOL})
    assert table.count() == 4


def test_a_sync_that_saw_an_older_timeline_does_not_leave_an_older_list(monkeypatch: pytest.MonkeyPatch) -> None:
    table = written("memory://bq-race")
    stale = MetaClient.load(open_storage(table.path))
    table.upsert([{"id": 9, "city": "c", "ts": 2}], options=NO_METADATA)
    table.sync("bigquery", options=MANIFEST)

    options = BigQueryOptions(dataset="lake", uses_manifest=True)
    bigquery.sync_to_bigquery(stale, options)

    assert len(lines(table)) == 3


def test_the_command_line_says_the_statement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = written(str(tmp_path / "rides"))
    options = [part for key, value in MANIFEST.items() for part in ("--option", f"{key}={value}")]

    assert main(["sync", "bigquery", table.path, *options]) == 0
    assert "\nCREATE OR REPLACE EXTERNAL TABLE `lake.rides` (" in capsys.readouterr().out
    assert main(["sync", "bigquery", table.path, *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["statements"][0].startswith("CREATE OR REPLACE EXTERNAL TABLE")
    assert {line.partition(":")[0] for line in lines(table)} == {"file"}
