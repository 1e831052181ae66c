"""Queries for keys that a process asks again and again see every write, though much of the files stays in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.formats.avro.decode import AvroDecoder
from tests.support.storages.settled import settled_files

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.compact.inline": "false",
}
UNIQUE = {"hoodie.pyhudi.read.unique.keys": "true"}


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from settled_files(monkeypatch)


def rows(numbers: list[int], version: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{number:03d}" for number in numbers],
            "p": [f"p{number % 3}" for number in numbers],
            "ts": [version] * len(numbers),
            "v": [number * 1000 + version for number in numbers],
        }
    )


def looked_up(path: Path, numbers: list[int]) -> dict[str, int]:
    keys = ", ".join(f"'k{number:03d}'" for number in numbers)
    found = HudiTable.open(str(path)).scan(columns=["id", "v"], where=f"id IN ({keys})", options=UNIQUE).to_arrow()
    assert found.num_rows == len(set(found.column("id").to_pylist()))
    return dict(zip(*(found.column(name).to_pylist() for name in ("id", "v")), strict=True))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_every_look_up_sees_the_newest_write(tmp_path: Path, kind: str) -> None:
    random, path = np.random.default_rng(5), tmp_path / "t"
    of_kind = {**OPTIONS, "hoodie.datasource.write.table.type": kind}
    write_hudi(str(path), rows(list(range(60)), 0), "bulk_insert", options=of_kind)
    truth = {f"k{number:03d}": number * 1000 for number in range(60)}
    for version in range(1, 9):
        some = sorted(random.choice(70, 12, replace=False).tolist())
        if version % 4 == 3:
            HudiTable.open(str(path)).delete(rows(some, version).select(["id", "p"]), options=OPTIONS)
            truth = {key: value for key, value in truth.items() if int(key[1:]) not in some}
        else:
            HudiTable.open(str(path)).upsert(rows(some, version), options=OPTIONS)
            truth |= {f"k{number:03d}": number * 1000 + version for number in some}
        if version == 6 and kind == "MERGE_ON_READ":
            HudiTable.open(str(path)).compact()
        asked = sorted({*some[:6], *random.choice(70, 6, replace=False).tolist()})
        expected = {key: value for key, value in truth.items() if int(key[1:]) in asked}
        for _ in range(3):
            assert looked_up(path, asked) == expected, version
    assert HudiTable.open(str(path)).metadata.validate() == ()


def test_a_base_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "t"
    kind = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    write_hudi(str(path), rows(list(range(9)), 0), "bulk_insert", options={**OPTIONS, **kind})
    for _ in range(3):
        assert looked_up(path, [3]) == {"k003": 3000}
    (base,) = (path / "p0").glob("*.parquet")
    stored = pq.read_table(base)
    changed = stored.set_column(stored.schema.get_field_index("v"), "v", pa.array([7] * len(stored)))
    pq.write_table(changed, tmp_path / "other")
    os.replace(tmp_path / "other", base)
    for _ in range(3):
        assert looked_up(path, [3]) == {"k003": 7}


@pytest.mark.thorough
def test_a_table_that_was_recreated_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for version in range(3):
        write_hudi(str(path), rows(list(range(9)), version), "bulk_insert", mode="overwrite", options=OPTIONS)
        for _ in range(3):
            assert looked_up(path, [2, 5]) == {"k002": 2000 + version, "k005": 5000 + version}


@pytest.mark.thorough
def test_what_the_last_write_put_into_the_index_is_decoded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, decoded = tmp_path / "t", list[int]()
    write_hudi(str(path), rows(list(range(60)), 0), "bulk_insert", options=OPTIONS)
    decode = AvroDecoder.decode

    def counted(self: AvroDecoder, content: bytes, starts: Any, ends: Any, where: str) -> pa.Table:
        decoded.append(len(starts))
        return decode(self, content, starts, ends, where)

    monkeypatch.setattr(AvroDecoder, "decode", counted)
    for first in (60, 70):
        HudiTable.open(str(path)).upsert(rows(list(range(first, first + 10)), 1), options=OPTIONS)
        decoded.clear()
        index = HudiTable.open(str(path)).metadata.partition("record_index")
        found = index.lookup([f"k{number:03d}" for number in range(80)])
        assert found.num_rows == first + 10
        assert len(decoded) <= 3, decoded  # not once for each file group
