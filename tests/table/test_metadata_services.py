"""`table.metadata.rebuild` and `drop`."""

from __future__ import annotations

import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError
from pyhudi.metadata.table import has_metadata_table
from tests.support.tables.small import TestTable
from tests.support.tables.with_metadata import NAMES, check, keep_names, metadata_of, table_of, with_names


@pytest.fixture(autouse=True)
def names_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_names(monkeypatch)


def made(version: str = "9") -> TestTable:
    table = table_of(version)
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    with_names(table)
    return table


def break_it(table: TestTable) -> None:
    """A file that the metadata table names is missing."""
    path = next(e.path for e in table.storage.walk("x") if e.name.endswith(".parquet"))
    table.storage.write(path.replace("x/", "y/"), table.storage.read(path))
    table.storage.delete(path)


def test_a_dry_run_says_what_is_wrong_and_does_nothing() -> None:
    table = made()
    break_it(table)
    before = sorted(e.path for e in table.storage.walk(""))
    found = HudiTable(table.meta).metadata.rebuild(dry_run=True)
    assert found.dry_run
    assert found.partitions == ("files", NAMES)
    assert found.file_groups == {"files": ("files-0000-0",), NAMES: ("bloom-filters-0000-0",)}
    assert "no such file" in str(found)
    assert sorted(e.path for e in table.storage.walk("")) == before


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_rebuilt_metadata_table_is_right(version: str) -> None:
    table = made(version)
    break_it(table)
    found = HudiTable(table.meta).metadata.rebuild()
    assert found.differences
    check(table)
    assert table.meta.config.metadata_partitions == (NAMES, "files")


def test_one_partition_is_rebuilt_beside_the_others() -> None:
    table = made()
    (files,) = metadata_of(table).slices("files")
    HudiTable(table.meta).metadata.rebuild([NAMES])
    check(table)
    assert metadata_of(table).slices("files") == (files,)
    with pytest.raises(ConfigError, match="expr_index_x"):
        HudiTable(table.meta).metadata.rebuild(["expr_index_x"])


@pytest.mark.thorough
def test_partitions_are_dropped_by_name_or_all_at_once(recwarn: pytest.WarningsRecorder) -> None:
    table = made()
    assert HudiTable(table.meta).metadata.drop([NAMES]) == (NAMES,)
    assert table.meta.config.metadata_partitions == ("files",)
    check(table)
    with pytest.raises(ConfigError, match="has no partition"):
        HudiTable(table.meta).metadata.drop([NAMES])
    assert HudiTable(table.meta).metadata.drop() == ("files",)
    assert not has_metadata_table(table.meta)
    assert not recwarn.list
    assert table.rows() == [("a", "x", 1, 10), ("b", "y", 1, 20)]
    HudiTable(table.meta).metadata.rebuild()
    check(table)
