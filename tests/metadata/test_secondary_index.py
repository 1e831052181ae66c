"""Secondary indexes: made from rows, kept up by all actions, against what Apache Hudi wrote."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.errors import DamagedLog
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.maintenance import KEPT
from pyhudi.metadata.partitions import MetadataKind, kind_of
from pyhudi.metadata.secondary_keys import secondary_keys
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.storage import open_storage
from tests.support.golden.folder import SHARED

SECONDARY = "secondary_index_"


def _places() -> list[Any]:
    found = []
    for place in sorted((*(SHARED / "golden").glob("*/*.zip"), *(SHARED / "fixtures" / "hudi-tables").glob("*.zip"))):
        with zipfile.ZipFile(place) as archive:
            if any(f"/.hoodie/metadata/{SECONDARY}" in name for name in archive.namelist()):
                found.append(pytest.param(place, id=f"{place.parent.name}-{place.stem}"))
    return found


def _open(place: Path, folder: Path) -> MetadataTable:
    with zipfile.ZipFile(place) as archive:
        archive.extractall(folder)
    path = next(entry for entry in folder.iterdir() if entry.name != "__MACOSX")
    table = MetadataTable.open(MetaClient.load(open_storage(str(path))))
    if table is None or "record_index" not in table.partitions:
        pytest.skip("it can't be read, or the table has no record index")
    return table


def _secondary(table: MetadataTable) -> list[str]:
    return [name for name in table.partitions if kind_of(name) is MetadataKind.SECONDARY_INDEX]


@pytest.mark.parametrize("place", _places())
def test_a_secondary_index_built_from_the_rows_is_the_one_that_hudi_kept(place: Path, tmp_path: Path) -> None:
    table = _open(place, tmp_path)
    for name in _secondary(table):
        try:
            theirs = table.records(name)
        except DamagedLog:
            pytest.skip("a log file of the index is lost")
        table = KEPT[MetadataKind.SECONDARY_INDEX].build(table, name, MetadataOptions())
        ours = table.records(name)
        assert ours.schema == theirs.schema
        assert sorted(map(str, ours.to_pylist())) == sorted(map(str, theirs.to_pylist())), name
        by_value = table.lookup(name, ours.column("key").to_pylist())
        assert by_value.num_rows == ours.num_rows
