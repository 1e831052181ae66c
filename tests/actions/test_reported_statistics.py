"""What tasks report of the files they write, whichever action they are of: the statistics of these very files."""

from __future__ import annotations

from typing import Any

import pytest

from pyhudi.actions.changes import change
from pyhudi.actions.writes import bulk_insert, keyed_write, preparation
from pyhudi.filegroup.stats import stats_of_file
from pyhudi.filegroup.write.status import from_table
from pyhudi.formats.stored_ranges import ranges_from_bytes, rows_of_files
from pyhudi.model.keys import META_COLUMNS
from pyhudi.services import planned
from tests.support.tables.clustered import made
from tests.support.tables.compacted import Compacted
from tests.support.tables.merge_on_read import BLOCK_FORMATS, VERSIONS, MergeOnRead
from tests.support.tables.small import SCHEMA

COLUMNS = (*META_COLUMNS, *SCHEMA.names)


class Reported:
    """The files of which tasks reported statistics, and which were those of the files."""

    def __init__(self) -> None:
        self.table: MergeOnRead | None = None
        self.names: list[str] = []

    def from_table(self, collected: Any) -> list[Any]:
        statuses = from_table(collected)
        assert self.table is not None
        for status in statuses:
            meta = self.table.meta
            assert status.stat.path is not None
            version, schema = meta.config.table_version, meta.stored_schema() or SCHEMA
            stored = stats_of_file(meta.storage, status.stat.path, COLUMNS, version, schema)
            assert status.column_stats is not None
            name, ranges = status.stat.path.rpartition("/")[2], ranges_from_bytes(status.column_stats)
            assert rows_of_files(version, [(name, ranges)]).to_pylist() == stored.to_pylist()
            assert set(stored.column("columnName").to_pylist()) == set(COLUMNS)
            self.names.append(status.stat.path.rpartition("/")[2])
        return statuses


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> Reported:
    found = Reported()
    monkeypatch.setattr(preparation, "columns_with_stats", lambda *_: COLUMNS)
    for module in (planned, change, keyed_write, bulk_insert):
        monkeypatch.setattr(module, "from_table", found.from_table)
    return found


def _data_files(table: MergeOnRead) -> set[str]:
    paths = (entry.path for entry in table.storage.walk("") if not entry.path.startswith(".hoodie/"))
    names = {path.rpartition("/")[2] for path in paths}
    return {name for name in names if name.endswith(".parquet") or ".log." in name}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("block_format", BLOCK_FORMATS)
def test_writes_and_compactions_report_the_statistics_of_their_files(
    reported: Reported, version: str, block_format: str
) -> None:
    table = Compacted(version, logfile_data_block_format=block_format)
    reported.table = table
    table.start()
    table.log_compact()
    table.upsert(("a", "x", 3, 12))
    table.compact()
    assert set(reported.names) == _data_files(table)
    assert any(".log." in name for name in reported.names)
    assert sum(name.endswith(".parquet") for name in reported.names) == 4


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rewrites_and_clusterings_report_the_statistics_of_their_files(
    reported: Reported, table_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = MergeOnRead.__init__

    def watched(self: MergeOnRead, *args: Any, **options: Any) -> None:
        original(self, *args, **options)
        reported.table = self

    monkeypatch.setattr(MergeOnRead, "__init__", watched)
    table = made("9", table_type)
    table.cluster(clustering_plan_strategy_sort_columns="v")
    assert set(reported.names) == _data_files(table)
