"""CALL hive_sync: a table is registered by SQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import pyhudi
from pyhudi import write_hudi
from pyhudi.errors import ConfigError
from pyhudi.sql.duckdb_session import DuckDbSession
from tests.support.catalogs import MemoryCatalog, catalogs_in_memory

ROWS = [{"id": i, "city": "ab"[i % 2]} for i in range(4)]


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryCatalog]:
    with catalogs_in_memory(monkeypatch) as catalog:
        yield catalog


@pytest.fixture
def table(tmp_path: Path) -> Path:
    options = {"hoodie.metadata.enable": "false"}
    write_hudi(str(tmp_path / "rides"), ROWS, record_key="id", partition_by="city", options=options)
    return tmp_path / "rides"


def test_a_statement_registers_a_table_under_the_name_that_it_calls(table: Path, catalog: MemoryCatalog) -> None:
    answer = DuckDbSession({"t": table}).sql("CALL hive_sync(table => 't', mode => 'hms')")

    assert answer.to_arrow().to_pylist() == [{"result": "hive sync success."}]
    assert list(catalog.databases["default"]["t"].locations) == [("a",), ("b",)]


def test_arguments_are_hudis_options(table: Path, catalog: MemoryCatalog) -> None:
    extractor = "NonPartitionedExtractor"
    rows = pyhudi.call("hive_sync", str(table), partition_extractor_class=extractor, sync_incremental="false")

    assert rows.num_rows == 1
    assert catalog.databases["default"]["rides"].table.partition_keys == ()


@pytest.mark.parametrize(("argument", "value"), [("use_jdbc", "true"), ("mode", "jdbc"), ("strategy", "WO")])
def test_what_can_not_be_done_is_refused_by_name(
    argument: str, value: str, table: Path, catalog: MemoryCatalog
) -> None:
    with pytest.raises(ConfigError, match=value):
        pyhudi.call("hive_sync", str(table), **{argument: value})
    assert catalog.databases == {}
