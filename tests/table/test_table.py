"""The front desk: making, opening, looking at and writing tables without Spark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from pyhudi import (
    ConfigError,
    CorruptFile,
    HudiTable,
    SchemaMismatch,
    TableExists,
    TableNotFound,
    UnsupportedTable,
    write_hudi,
)
from tests.support.tables.rides import ROWS, SCHEMA, ids


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    made = HudiTable.create(tmp_path / "rides", SCHEMA, record_key="id", partition_by="city", ordering="ts")
    made.insert(ROWS)
    return made


def test_a_new_table_is_empty_and_has_its_schema(tmp_path: Path) -> None:
    path = tmp_path / "rides"
    assert not HudiTable.exists(path)

    table = HudiTable.create(
        path,
        SCHEMA,
        record_key="id",
        partition_by=["city"],
        ordering="ts",
        options={"hoodie.datasource.write.hive_style_partitioning": True},
    )

    assert HudiTable.exists(path)
    assert table.schema() == SCHEMA
    assert table.state().config.table_name == "rides"
    assert table.state().config.record_key_fields == ("id",)
    assert table.state().config.hive_style_partitioning
    assert table.to_arrow().schema.names == [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
        *SCHEMA.names,
    ]
    assert (table.scan().count(), table.history(), table.inspect.files().num_rows) == (0, [], 0)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_tables_of_all_writable_versions(tmp_path: Path, version: int) -> None:
    table = HudiTable.create(tmp_path / "t", SCHEMA, record_key="id", table_version=version)
    table.insert(ROWS)

    assert HudiTable.open(tmp_path / "t").state().config.table_version == version
    assert ids(table) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"record_key": "idd"}, ConfigError, "record_key='idd'"),
        ({"record_key": "id", "partition_by": "town"}, ConfigError, "partition_by='town'"),
        ({"record_key": "id", "ordering": "time"}, ConfigError, "ordering='time'"),
        ({"record_kei": "id"}, ConfigError, "Did you mean 'record_key'"),
        ({"record_key": "id", "options": {"hoodie.datasource.write.recordkey.field": "v"}}, ConfigError, "twice"),
        ({"record_key": "id", "options": {"hoodie.table.name": "a"}, "table_name": "b"}, ConfigError, "twice"),
    ],
)
def test_a_table_that_makes_no_sense_is_not_made(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        HudiTable.create(tmp_path / "t", SCHEMA, **options)

    assert not HudiTable.exists(tmp_path / "t")


def test_a_table_is_not_made_twice(table: HudiTable) -> None:
    with pytest.raises(TableExists, match="already"):
        HudiTable.create(table.path, SCHEMA, record_key="id")

    assert ids(table) == [0, 1, 2, 3, 4, 5]


def test_writes_tell_what_they_did(table: HudiTable) -> None:
    result = table.upsert([{"id": 1, "city": "b", "v": 9.0, "ts": 2}, {"id": 7, "city": "b", "v": 1.0, "ts": 2}])
    assert (result.inserted, result.updated, result.deleted) == (1, 1, 0)

    result = table.delete([{"id": 0, "city": "a"}, {"id": 99, "city": "a"}])
    assert (result.inserted, result.updated, result.deleted) == (0, 0, 1)

    result = table.bulk_insert(pa.Table.from_pylist([{"id": 8, "city": "c", "v": None, "ts": 3}], SCHEMA))
    assert result.inserted == 1
    assert ids(table) == [1, 2, 3, 4, 5, 7, 8]
    assert table.to_arrow(["v"], "id = 1")["v"].to_pylist() == [9.0]


def test_history_is_newest_first_and_prints_as_a_table(table: HudiTable) -> None:
    second = table.upsert(
        [{"id": 1, "city": "b", "v": 9.0, "ts": 2}], options={"hoodie.datasource.write.commitmeta.key.prefix": "_"}
    )

    history = table.history()

    assert [entry.operation for entry in history] == ["UPSERT", "INSERT"]
    assert history[0].instant_time == second.instant_time
    assert history[0].completion_time == second.completion_time
    assert (history[0].rows_updated, history[0].rows_inserted, history[0].files) == (1, 0, 1)
    assert (history[1].rows_inserted, history[1].files, history[1].state) == (6, 2, "completed")
    assert [entry.operation for entry in table.history(limit=1)] == ["UPSERT"]
    assert table.history(limit=0) == []
    lines = repr(history).splitlines()
    assert lines[0].split()[:3] == ["instant", "completed", "action"]
    assert second.instant_time in lines[2]
    assert "<table>" in history._repr_html_()


def test_files_and_partitions_are_arrow_tables(table: HudiTable) -> None:
    files, partitions = table.inspect.files(), table.inspect.partitions()

    assert partitions["partition_path"].to_pylist() == ["a", "b"]
    assert partitions["files"].to_pylist() == [1, 1]
    assert sum(files["size_bytes"].to_pylist()) == sum(partitions["size_bytes"].to_pylist())
    for path, size in zip(files["path"].to_pylist(), files["size_bytes"].to_pylist(), strict=True):
        assert (Path(table.path) / path).stat().st_size == size
        assert pq.read_metadata(Path(table.path) / path).num_rows == 3


def test_a_table_prints_what_it_is(table: HudiTable) -> None:
    assert "'rides'" in repr(table)
    assert "COPY_ON_WRITE, version 9, key id, partitioned by city" in repr(table)
    assert "COPY_ON_WRITE" in table._repr_html_()
    assert "<script>" not in table._repr_html_()


def as_reader(data: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(data.schema, iter(data.to_batches(max_chunksize=2)))


class Streaming:
    """Something of another library that speaks Arrow's C stream."""

    def __init__(self, data: pa.Table) -> None:
        self.data = data

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.data.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "shape",
    [
        lambda data: data,
        lambda data: data.to_batches()[0],
        as_reader,
        lambda data: data.to_pandas(),
        lambda data: data.to_pandas().set_index("v", drop=False),
        lambda data: data.to_pylist(),
        Streaming,
        ds.dataset,
    ],
    ids=["table", "batch", "reader", "pandas", "pandas with index", "dicts", "c stream", "dataset"],
)
def test_data_may_come_in_any_arrow_like_form(table: HudiTable, shape: Callable[[pa.Table], Any]) -> None:
    data = pa.Table.from_pylist([{"id": 10 + i, "city": "a", "v": 1.5, "ts": 2} for i in range(5)], SCHEMA)

    assert table.upsert(shape(data)).inserted == 5

    assert ids(table)[-5:] == [10, 11, 12, 13, 14]


@pytest.mark.parametrize("data", [None, 5, "rows.csv", [1, 2], {1, 2}, object()])
def test_other_data_is_refused(table: HudiTable, data: Any) -> None:
    with pytest.raises(ConfigError, match=r"can't be read|not rows"):
        table.upsert(data)


def test_a_column_of_mixed_types_is_refused(table: HudiTable) -> None:
    with pytest.raises(SchemaMismatch, match=r"'id'.*of one type"):
        table.upsert(pd.DataFrame({"id": [1, "two"], "city": ["a", "b"], "v": [1.0, 2.0], "ts": [1, 1]}))

    assert len(table.history()) == 1


def test_the_first_write_makes_the_table(tmp_path: Path) -> None:
    result = write_hudi(tmp_path / "trips", ROWS, record_key="id", partition_by="city", ordering=["ts"])

    table = HudiTable.open(tmp_path / "trips")
    assert result is not None
    assert result.inserted == 6
    assert table.state().config.table_name == "trips"
    assert table.state().config.ordering_fields == ("ts",)


def test_hudis_own_keys_and_arguments_are_the_same_options(tmp_path: Path) -> None:
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.table.name": "named"}
    write_hudi(tmp_path / "a", ROWS, options=options)
    write_hudi(tmp_path / "c", ROWS, record_key="id", table_name="named")

    configs = [HudiTable.open(tmp_path / name).state().config for name in "ac"]
    assert {config.table_name for config in configs} == {"named"}
    assert {config.record_key_fields for config in configs} == {("id",)}


def test_the_operation_may_be_among_the_options(tmp_path: Path) -> None:
    options = {"hoodie.datasource.write.operation": "insert"}
    result = write_hudi(tmp_path / "t", ROWS, record_key="id", options=options)

    assert result is not None
    assert result.operation == "INSERT"
    with pytest.raises(ConfigError, match="given twice"):
        write_hudi(tmp_path / "t", ROWS, "upsert", options=options)


def test_without_a_record_key_rows_are_bulk_inserted(tmp_path: Path) -> None:
    result = write_hudi(tmp_path / "t", ROWS)

    assert result is not None
    assert result.operation == "BULK_INSERT"


def test_an_unknown_key_is_named_with_its_neighbour(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Did you mean 'hoodie\.upsert\.shuffle\.parallelism'"):
        write_hudi(tmp_path / "t", ROWS, record_key="id", options={"hoodie.upsert.shufle.parallelism": "2"})
    assert not HudiTable.exists(tmp_path / "t")


def test_save_modes(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_hudi(path, ROWS, record_key="id", mode="error")
    assert write_hudi(path, ROWS, mode="ignore") is None
    with pytest.raises(TableExists, match="append"):
        write_hudi(path, ROWS, mode="error")
    with pytest.raises(ConfigError, match="Unknown mode"):
        write_hudi(path, ROWS, mode="upend")

    write_hudi(path, ROWS[:2], record_key="id", partition_by="city", mode="replace")

    table = HudiTable.open(path)
    assert table.state().config.partition_fields == ("city",)
    assert (ids(table), len(table.history())) == ([0, 1], 1)


@pytest.mark.parametrize("mode", ["error", "errorifexists", "ErrorIfExists", "default"])
def test_the_modes_that_make_a_new_table_leave_one_that_is_there_as_it_is(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "t"
    assert write_hudi(path, ROWS[:2], record_key="id", mode=mode) is not None
    with pytest.raises(TableExists, match=rf"a Hudi table at .*/t already and mode is '{mode}'; use mode='append'"):
        write_hudi(path, ROWS, record_key="id", mode=mode)

    table = HudiTable.open(path)
    assert (ids(table), len(table.history())) == ([0, 1], 1)


def test_overwriting_never_deletes_a_folder_that_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"meow")

    with pytest.raises(ConfigError, match=r"cat\.jpg"):
        write_hudi(tmp_path / "photos", ROWS, record_key="id", mode="overwrite")

    assert (tmp_path / "photos" / "cat.jpg").read_bytes() == b"meow"


def test_wrong_options_are_found_before_an_overwrite_deletes_anything(table: HudiTable) -> None:
    for mode in ("overwrite", "replace"):
        with pytest.raises(ConfigError):
            write_hudi(table.path, ROWS, record_key="id", mode=mode, table_version=7)
        with pytest.raises(ConfigError):
            write_hudi(table.path, object(), record_key="id", mode=mode)

    assert ids(table) == [0, 1, 2, 3, 4, 5]


def test_an_option_that_contradicts_the_table_is_refused(table: HudiTable) -> None:
    with pytest.raises(ConfigError, match="city"):
        table.upsert(ROWS, options={"hoodie.datasource.write.recordkey.field": "city"})

    assert len(table.history()) == 1


def test_rows_that_do_not_fit_are_refused_with_their_columns(table: HudiTable) -> None:
    with pytest.raises(SchemaMismatch, match="'v'"):
        table.upsert(pa.table({"id": [1], "city": ["a"], "v": [True], "ts": [1]}))

    assert len(table.history()) == 1


def test_a_table_in_memory(tmp_path: Path) -> None:
    write_hudi("memory://test-table", ROWS, record_key="id", mode="overwrite")

    assert ids(HudiTable.open("memory://test-table")) == [0, 1, 2, 3, 4, 5]
    assert HudiTable.exists("memory://test-table")


# ---- tables that can't be opened


def test_no_table_at_the_path(tmp_path: Path) -> None:
    assert not HudiTable.exists(tmp_path)
    with pytest.raises(TableNotFound, match=str(tmp_path)):
        HudiTable.open(tmp_path)
    with pytest.raises(TableNotFound):
        HudiTable.open(tmp_path / "nothing")


@pytest.mark.parametrize(("version", "layout"), [("10", "3"), ("10", "2"), ("11", "2"), ("3", "1"), ("0", "1")])
def test_a_version_that_this_release_does_not_know_is_refused(table: HudiTable, version: str, layout: str) -> None:
    properties = Path(table.path) / ".hoodie" / "hoodie.properties"
    text = properties.read_text().replace("hoodie.table.version=9", f"hoodie.table.version={version}")
    properties.write_text(text.replace("layout.version=2", f"layout.version={layout}"))

    with pytest.raises(UnsupportedTable, match=f"version {version}"):
        HudiTable.open(table.path)


@pytest.mark.parametrize("keep", [0, 10, 200])
def test_truncated_properties_are_corrupt_not_defaults(table: HudiTable, keep: int) -> None:
    properties = Path(table.path) / ".hoodie" / "hoodie.properties"
    properties.write_bytes(properties.read_bytes()[:keep])

    with pytest.raises(CorruptFile, match=r"hoodie\.properties"):
        HudiTable.open(table.path)


def test_importing_the_front_desk_needs_no_spark() -> None:
    code = "import sys, pyhudi.table; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
