"""Metadata tables that Apache Hudi wrote, found by what partitions they have."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.meta_client import MetaClient
from pyhudi.metadata.table import MetadataTable
from pyhudi.storage import open_storage


def places_with(prefix: str, places: Iterable[Path]) -> list[Any]:
    """As parameters of a test: the zipped tables with a metadata table that has a partition whose name begins so."""
    folder = f"/.hoodie/metadata/{prefix}"
    found = [place for place in sorted(places) if any(folder in name for name in _metadata_files(place))]
    return [pytest.param(place, id=f"{place.parent.name}-{place.stem}") for place in found]


@cache  # tests of several partitions ask for the same tables when they are collected
def _metadata_files(place: Path) -> list[str]:
    with zipfile.ZipFile(place) as archive:
        return [name for name in archive.namelist() if "/.hoodie/metadata/" in name]


def opened(place: Path, folder: Path) -> MetadataTable | None:
    """The metadata table of a zipped table, which is unzipped to the folder; None when there is none to be read."""
    with zipfile.ZipFile(place) as archive:
        archive.extractall(folder)
    path = next(entry for entry in folder.iterdir() if entry.name != "__MACOSX")
    return MetadataTable.open(MetaClient.load(open_storage(str(path))))


def at(path: Path) -> MetadataTable:
    """The metadata table of the table in this folder, which there is."""
    table = MetadataTable.open(MetaClient.load(open_storage(str(path))))
    assert table is not None
    return table


def plain(records: pa.Table) -> list[dict[str, Any]]:
    """Records in the order of their keys, the files of a partition in that of their names."""
    rows = records.to_pylist()
    for row in rows:
        for name, value in row.items():
            row[name] = sorted(value) if name == "filesystemMetadata" and value is not None else value
    return sorted(rows, key=lambda row: row["key"])
