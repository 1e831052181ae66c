"""Old dates in ORC files of Java's writers, whose calendar pyarrow does not look at, are refused by name."""

from __future__ import annotations

from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import UnsupportedTable
from pyhudi.formats.base.base import open_file
from pyhudi.storage.local import LocalStorage

OLD, NEW = date(1500, 6, 11), date(1582, 10, 15)
MOMENTS = [datetime(year, 1, 1, tzinfo=timezone.utc) for year in (1899, 1900)]
DATES = pa.list_(pa.date32())
COLUMNS: dict[str, list[pa.Array]] = {
    "date": [pa.array([day, None]) for day in (OLD, NEW)],
    "moment": [pa.array([at, None]).cast(pa.timestamp("us")) for at in MOMENTS],
    "list": [pa.array([[day], None], DATES) for day in (OLD, NEW)],
    "map": [pa.array([[("k", day)], None], pa.map_(pa.string(), pa.date32())) for day in (OLD, NEW)],
    "struct": [pa.array([{"l": [day]}, None], pa.struct([("l", DATES)])) for day in (OLD, NEW)],
}


def of_java(path: Path, values: pa.Array) -> Path:
    """A file as ORC's Java library signs it: the footer's field 9, the writer, is 0 instead of 1."""
    path.parent.mkdir()
    orc.write_table(pa.table({"id": ["a", "b"], "v": values}), str(path), compression="UNCOMPRESSED")
    content = path.read_bytes()
    assert content.count(b"\x48\x01\x62\x05") == 1  # before the library's version
    path.write_bytes(content.replace(b"\x48\x01\x62\x05", b"\x48\x00\x62\x05"))
    return path


def read(path: Path) -> list[Any]:
    with open_file(LocalStorage(str(path.parent)), path.name) as reader:
        return pa.Table.from_batches(list(reader.batches())).column("v").to_pylist()


@pytest.mark.parametrize("kind", COLUMNS)
def test_old_days_of_a_java_writer_are_refused_and_newer_ones_are_read(tmp_path: Path, kind: str) -> None:
    old, new = COLUMNS[kind]
    with pytest.raises(UnsupportedTable, match=r"f\.orc: column 'v' holds dates before .*ORC_JAVA.*old calendar"):
        read(of_java(tmp_path / "old" / "f.orc", old))
    assert len(read(of_java(tmp_path / "new" / "f.orc", new))) == 2


def test_a_bootstrap_of_such_a_file_makes_no_table_or_one_whose_old_days_are_refused(tmp_path: Path) -> None:
    of_java(tmp_path / "in" / "f.orc", COLUMNS["date"][0])
    with pytest.raises(UnsupportedTable, match="may count them by Java's old calendar"):
        pyhudi.bootstrap(tmp_path / "in", tmp_path / "t", record_key="id", mode="FULL_RECORD")
    assert not HudiTable.exists(tmp_path / "t")
    pyhudi.bootstrap(tmp_path / "in", tmp_path / "t", record_key="id", mode="METADATA_ONLY")
    assert HudiTable(tmp_path / "t").to_arrow(["id"]).num_rows == 2
    with pytest.raises(UnsupportedTable, match="may count them by Java's old calendar"):
        HudiTable(tmp_path / "t").to_arrow(["v"])


def test_old_days_of_own_files_stay(tmp_path: Path) -> None:
    table = HudiTable.create(
        tmp_path,
        pa.schema([("id", pa.string()), ("v", pa.date32())]),
        record_key="id",
        options={"hoodie.table.base.file.format": "ORC"},
    )
    table.upsert([{"id": "a", "v": OLD}])
    assert table.to_arrow(["v"]).to_pylist() == [{"v": OLD}]
