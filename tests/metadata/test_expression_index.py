"""Expression indexes: made from rows, kept up by all actions, against what Apache Hudi wrote."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.formats.bloom import BloomFilter
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.maintenance import KEPT
from pyhudi.metadata.partitions import MetadataKind, kind_of
from pyhudi.metadata.table import MetadataTable
from pyhudi.metadata.table_slices import newest_slices
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.storage import open_storage
from tests.support.golden.folder import SHARED
from tests.support.tables.clustered import Clustered
from tests.support.tables.small import Row, rows_of

PREFIX = "expr_index_"
ON = {"metadata_enable": "true"}
KINDS = [(version, kind) for version in ("8", "9") for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]
Records = dict[str, dict[str, Any]]


def _places() -> list[Any]:
    found = []
    for place in sorted((SHARED / "golden").glob("*/mdt_all_*.zip")):
        with zipfile.ZipFile(place) as archive:
            if any(f"/.hoodie/metadata/{PREFIX}" in name for name in archive.namelist()):
                found.append(pytest.param(place, id=f"{place.parent.name}-{place.stem}"))
    return found


def _open(place: Path, folder: Path) -> MetadataTable:
    with zipfile.ZipFile(place) as archive:
        archive.extractall(folder)
    path = next(entry for entry in folder.iterdir() if entry.name != "__MACOSX")
    table = MetadataTable.open(MetaClient.load(open_storage(str(path))))
    assert table is not None
    return table


def _indexes(table: MetadataTable) -> list[str]:
    return [name for name in table.partitions if kind_of(name) is MetadataKind.EXPRESSION_INDEX]


def _newest(table: MetadataTable, name: str) -> Records:
    """By key, the records of the newest slices' files, and of whole partitions: Hudi keeps those of older files."""
    live = {file.name for one in newest_slices(table.data) for file in (one.base_file, *one.log_files) if file}
    found = {}
    for record in table.records(name).to_pylist():
        stats, bloom = record["ColumnStatsMetadata"], record["BloomFilterMetadata"]
        if bloom is not None:
            found[record["key"]] = {"type": record["type"], "bloom": bloom["bloomFilter"].decode(), "of": bloom["type"]}
        elif record["type"] == 6 or stats["fileName"] in live:
            found[record["key"]] = record
    return found


@pytest.mark.parametrize("place", _places())
def test_an_expression_index_built_from_the_rows_is_the_one_that_hudi_kept(place: Path, tmp_path: Path) -> None:
    table = built = _open(place, tmp_path)
    assert _indexes(table)
    for name in _indexes(table):
        theirs = _newest(table, name)
        built = KEPT[MetadataKind.EXPRESSION_INDEX].build(built, name, MetadataOptions())
        assert [s.group.file_id for s in built.slices(name)] == [s.group.file_id for s in table.slices(name)]
        ours = _newest(built, name)
        if read_index_definitions(table.data.storage).by_name[name].kind == "column_stats":
            assert ours == theirs
            continue
        assert ours and set(ours) <= set(theirs)
        texts = {str(row["s"]).lower() for row in HudiTable(table.data).to_arrow().to_pylist()}
        values = pa.array(sorted(texts))
        for key, own in ours.items():
            both = [BloomFilter.from_base64(one["bloom"], one["of"]) for one in (own, theirs[key])]
            answers = [bloom.might_contain(values).tolist() for bloom in both]
            assert answers[0] == answers[1]
            assert any(answers[0])
