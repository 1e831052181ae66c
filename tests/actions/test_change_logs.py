"""Change logs: what writes put next to the base files that they rewrite, and what becomes of them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from pyhudi.errors import ConfigError
from pyhudi.formats.avro.schema import avro_from_arrow
from pyhudi.formats.log.blocks.change_data import change_schema
from pyhudi.formats.log.envelope import BlockType, HeaderKey
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.meta_client import MetaClient
from pyhudi.model.change_logs import LOGGING_MODES
from pyhudi.model.commit import WriteStat
from pyhudi.model.filenames import BaseFileName, LogFileName
from pyhudi.model.options import WriteOptions
from pyhudi.services.clean.cleaning import clean
from pyhudi.storage import open_storage
from pyhudi.table.calls import serve
from pyhudi.timeline.table_properties import load_table_config
from tests.support.golden.folder import GoldenTable
from tests.support.tables import change_logs
from tests.support.tables.clustered import TYPES, Clustered
from tests.support.tables.small import TestTable, rows_of

VERSIONS = ("6", "8", "9")


def logged(version: str, table_type: str = "COPY_ON_WRITE", mode: str = "DATA_BEFORE_AFTER") -> Clustered:
    cdc = {"table_cdc_enabled": "true", "table_cdc_supplemental_logging_mode": mode}
    return Clustered(version, table_type, **cdc)


def stored(table: TestTable) -> set[str]:
    """Change logs that lie in the table."""
    return {info.path for info in table.storage.walk("") if info.path.endswith(".cdc")}


def last_stats(table: TestTable) -> tuple[WriteStat, ...]:
    meta = table.meta
    newest = meta.timeline.last_commit()
    assert newest is not None
    return meta.commits.metadata(newest).stats()


def records(table: TestTable, path: str) -> list[dict[str, object]]:
    found = []
    for block in scan_log(table.storage, path):
        assert isinstance(block, LogBlock)
        assert block.frame.block_type is BlockType.CDC_DATA
        assert set(block.frame.header) == {HeaderKey.INSTANT_TIME, HeaderKey.SCHEMA}
        found += block.rows().to_pylist()
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_a_rewritten_file_has_a_change_log_of_its_name_that_its_stat_names(version: str) -> None:
    table = logged(version)
    table.insert(("a", "x", 1, 1), ("b", "x", 1, 1))
    assert [stat.cdc_stats for stat in last_stats(table)] == [None], "a new file group tells its changes itself"
    table.upsert(("a", "x", 2, 2), ("n", "x", 1, 1))

    (stat,) = (stat for stat in last_stats(table) if stat.cdc_stats is not None)
    assert stored(table) == {*(stat.cdc_stats or {})}
    ((path, size),) = (stat.cdc_stats or {}).items()
    base, log = (
        BaseFileName.parse((stat.path or "").rpartition("/")[2]),
        LogFileName.parse(path.rpartition("/")[2]),
    )
    assert base is not None
    assert log == LogFileName(base.file_id, base.instant_time, 1, base.write_token, ".cdc")
    assert len(table.storage.read(path)) == size


@pytest.mark.parametrize(("limit", "blocks"), [("1", 2), ("1000000", 1)])
def test_a_block_of_changes_is_written_when_it_is_full_and_the_rest_at_the_end(limit: str, blocks: int) -> None:
    table = change_logs.logged("9", small=True, logfile_data_block_max_size=limit)
    table.insert(("a", "x", 1, 1))
    table.upsert(("a", "x", 2, 2), ("n", "x", 1, 1))  # an update and an insert, noted one after the other

    (path,) = stored(table)
    assert sorted(str(record["op"]) for record in records(table, path)) == ["i", "u"]
    assert len(list(scan_log(table.storage, path))) == blocks


ROW = {"id": "a", "p": "x", "ts": 1, "v": 1}
RECORDS = {
    "OP_KEY_ONLY": [{"op": "u", "record_key": "a"}, {"op": "d", "record_key": "b"}],
    "DATA_BEFORE": [
        {"op": "u", "record_key": "a", "before": ROW},
        {"op": "d", "record_key": "b", "before": {**ROW, "id": "b"}},
    ],
    "DATA_BEFORE_AFTER": [
        {"op": "u", "before": ROW, "after": {**ROW, "ts": 2, "v": 2}},
        {"op": "d", "before": {**ROW, "id": "b"}, "after": None},
    ],
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mode", LOGGING_MODES)
def test_a_change_log_holds_what_its_mode_says(version: str, mode: str) -> None:
    table = logged(version, mode=mode)
    table.insert(("a", "x", 1, 1), ("b", "x", 1, 1), ("c", "x", 1, 1))
    table.upsert(("a", "x", 2, 2))
    table.delete(("b", "x"))
    found = [
        record for path in sorted(stored(table), key=lambda p: p.partition("_")[2]) for record in records(table, path)
    ]
    newest = [instant.requested_time for instant in table.meta.timeline.commits().instants[1:]]
    if mode == "DATA_BEFORE_AFTER":
        assert [record.pop("ts_ms") for record in found] == newest
    assert found == RECORDS[mode]


def test_a_rewritten_file_whose_rows_stay_has_an_empty_change_log() -> None:
    """Without one, real Hudi does not know what its commit did and fails."""
    table = logged("9")
    table.insert(("a", "x", 5, 1))
    table.upsert(("a", "x", 1, 1))
    (path,) = stored(table)
    assert records(table, path) == []
    assert len(list(scan_log(table.storage, path))) == 1, "a block without records"


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.2.0"])
def test_the_schema_of_a_change_log_is_that_of_real_hudi(golden: Callable[..., GoldenTable], version: str) -> None:
    path, _ = golden(version, "g2_cdc_cow_data_before_after")
    meta = MetaClient.load(open_storage(path))
    avro = avro_from_arrow(meta.stored_schema(), meta.config.table_name, with_meta=False)
    found = {
        block.schema_json
        for info in meta.storage.walk("")
        if info.path.endswith(".cdc")
        for block in scan_log(meta.storage, info.path)
        if isinstance(block, LogBlock)
    }
    assert found == {change_schema(meta.config.logging_mode, avro, meta.config.table_version)}


def test_the_row_of_a_nested_type_is_written_once_and_referred_to_afterwards() -> None:
    row = '{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[{"name":"a","type":"int"}]}'
    assert json.loads(change_schema("DATA_BEFORE_AFTER", row, 9))["fields"][3]["type"] == ["null", "t_record"]
    assert [field["name"] for field in json.loads(change_schema("DATA_BEFORE", row, 9))["fields"]] == [
        "op",
        "record_key",
        "before",
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_on_merge_on_read_log_files_name_the_slice_that_they_change(version: str) -> None:
    """Real Hudi looks there for the rows before. Log files tell their changes; no change log is written."""
    table = logged(version, "MERGE_ON_READ")
    table.insert(("a", "x", 1, 1))
    (inserted,) = last_stats(table)
    table.upsert(("a", "x", 2, 2))
    table.upsert(("a", "x", 3, 3))
    (stat,) = last_stats(table)
    assert stat.base_file == (inserted.path or "").rpartition("/")[2]
    assert len(stat.log_files or ()) == 2
    assert stat.prev_commit == table.meta.timeline.commits().instants[0].requested_time
    table.compact_now()
    assert stored(table) == set()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
def test_a_rollback_takes_change_logs_with_it(version: str, table_type: str) -> None:
    table = logged(version, table_type)
    table.options = {key: text for key, text in table.options.items() if key != "hoodie.parquet.small.file.limit"}
    table.insert(("a", "x", 1, 1))
    table.insert(("b", "x", 1, 1))
    before = stored(table)
    table.insert(("c", "x", 1, 1))
    assert len(stored(table)) == len(before) + 1
    table.roll_back_last()
    assert stored(table) == before
    assert table.rows() == [("a", "x", 1, 1), ("b", "x", 1, 1)]


@pytest.mark.parametrize("version", VERSIONS)
def test_cleaning_deletes_a_change_log_with_its_slice(version: str) -> None:
    table = logged(version)
    for ts in range(5):
        table.upsert(("a", "x", ts, ts))
    assert len(stored(table)) == 4
    options = WriteOptions.parse({"hoodie.clean.commits.retained": "1"}, table=load_table_config(table.storage))
    serve(table.storage, clean, options, table.engine)
    left = {info.name.split("_")[-1].partition(".")[0] for info in table.storage.walk("x") if ".parquet" in info.name}
    assert {path.split("_")[1].partition(".")[0] for path in stored(table)} <= left
    assert len(stored(table)) == len(left) < 4


def test_a_table_is_made_with_change_logs_or_without() -> None:
    table = logged("9", mode="DATA_BEFORE")
    table.insert(("a", "x", 1, 1))
    for key, value in [("enabled", "false"), ("supplemental_logging_mode", "OP_KEY_ONLY")]:
        with pytest.raises(ConfigError, match=r"hoodie\.table\.cdc\..*A write can't change this"):
            table.upsert(("a", "x", 2, 2), **{f"table_cdc_{key}": value})
    table.write_as_is("upsert", rows_of(("a", "x", 2, 2)))
    assert len(stored(table)) == 1


@pytest.mark.parametrize("table_type", TYPES)
def test_clustering_logs_no_changes(table_type: str) -> None:
    table = logged("9", table_type)
    table.insert(("a", "x", 1, 1))
    table.insert(("b", "x", 1, 1))
    table.cluster()
    assert stored(table) == set()
    assert table.rows() == [("a", "x", 1, 1), ("b", "x", 1, 1)]
