"""Single rows of a Parquet file are read by its pages, and are those that a read of everything has."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile
from pyhudi.formats.base import BaseFileOptions, Footer, new_base_file, open_base_file
from pyhudi.formats.base.base import rows_among
from pyhudi.formats.base.parquet import ParquetReader
from pyhudi.storage import LocalStorage
from tests.support.storages.settled import settled_files
from tests.support.sweeps import examples

ROWS = 10_000


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from settled_files(monkeypatch)


def table(rows: int = ROWS) -> pa.Table:
    numbers = np.random.default_rng(1).permutation(rows)

    def some(values: list[object]) -> list[object]:
        return [None if number % 7 == 0 else value for number, value in zip(numbers.tolist(), values, strict=True)]

    listed = numbers.tolist()
    day = dt.date(2024, 1, 1)
    return pa.table(
        {
            "key": pa.array([f"key-{number:06d}" for number in listed]),
            "text": pa.array(some(["x" * (number % 50) for number in listed])),
            "low": pa.array([f"v{number % 5}" for number in listed]),
            "i": pa.array(some(listed), pa.int32()),
            "l": pa.array(listed, pa.int64()),
            "d": pa.array(some([number / 3 for number in listed])),
            "b": pa.array(some([number % 2 == 0 for number in listed])),
            "m": pa.array(some([Decimal(number) / 100 for number in listed]), pa.decimal128(18, 2)),
            "big": pa.array(some([Decimal(number) for number in listed]), pa.decimal128(38, 4)),
            "day": pa.array([day + dt.timedelta(days=number % 900) for number in listed]),
            "at": pa.array(some(listed), pa.int64()).cast(pa.timestamp("us", "UTC")),
            "raw": pa.array([number.to_bytes(4, "big") for number in listed]),
            "nothing": pa.nulls(rows, pa.int32()),
        }
    )


def written(tmp_path: Path, rows: pa.Table, **options: object) -> ParquetReader:
    pq.write_table(rows, tmp_path / "a.parquet", **options)  # type: ignore[arg-type]
    return ParquetReader(LocalStorage(str(tmp_path)), "a.parquet")


def by_pages(reader: ParquetReader, names: list[str], wanted: list[int]) -> pa.Table | None:
    """Rows of the only row group, None where they are read otherwise."""
    found = reader._of_pages(0, names, np.array(wanted, np.int64))
    return None if found is None else pa.Table.from_batches([found])


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "none"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionaries", [True, ["low"]])
def test_rows_by_pages_are_those_of_the_file(
    tmp_path: Path, codec: str, version: str, dictionaries: bool | list[str]
) -> None:
    rows = table()
    form = {"compression": codec, "data_page_version": version, "use_dictionary": dictionaries, "store_schema": False}
    with written(tmp_path, rows, data_page_size=4000, write_batch_size=100, **form) as reader:
        for wanted in ([0], [ROWS - 1], [17, 18, 5000], list(range(0, ROWS, 311))):
            found = by_pages(reader, rows.column_names, wanted)
            assert found is not None
            assert found.equals(rows.take(wanted))
            picked = by_pages(reader, ["d", "key"], wanted)
            assert picked is not None
            assert picked.equals(rows.select(["d", "key"]).take(wanted))


def test_few_rows_need_few_bytes_of_our_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(str(tmp_path))
    rows = pa.table({"v": np.random.default_rng(3).random(100_000)})
    writer = new_base_file(storage, "a.parquet", rows.schema, BaseFileOptions())
    writer.write(rows)
    writer.close(Footer())
    with ParquetReader(storage, "a.parquet") as reader:
        (batch,) = reader.rows_at(["v"], np.array([50_000]))
        assert batch.column(0).to_pylist() == [rows.column(0)[50_000].as_py()]
        paged = reader._paged(0, "v")
        assert paged
        assert max(page.rows for page in paged.pages.data) <= 4096
        monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)  # no column is read from its beginning
        assert sum(map(len, reader.rows_at(["v"], np.array([1, 99_999])))) == 2


def test_nested_columns_and_int96_are_read_as_before(tmp_path: Path) -> None:
    at = pa.array([dt.datetime(2024, 1, 1)] * 10, pa.timestamp("us"))
    rows = pa.table({"id": range(10), "s": [{"a": n} for n in range(10)], "l": [[n] for n in range(10)], "t": at})
    with written(tmp_path, rows, use_deprecated_int96_timestamps=True) as reader:
        assert by_pages(reader, ["id"], [3]) is not None
        for name in ("s", "l", "t"):
            assert by_pages(reader, ["id", name], [3]) is None
        (batch,) = reader.rows_at(["id", "s", "l", "t"], np.array([3, 7]))
        assert batch.column(1).to_pylist() == [{"a": 3}, {"a": 7}]
        assert str(batch.schema.field("t").type) == "timestamp[us, tz=UTC]"


def test_a_column_behind_nested_ones_is_found(tmp_path: Path) -> None:
    rows = pa.table({"s": [{"a": n, "b": {"c": n}} for n in range(10)], "a": pa.array(range(10)), "b": ["x"] * 10})
    with written(tmp_path, rows) as reader:
        found = by_pages(reader, ["b", "a"], [2, 9])
    assert found is not None
    assert found.to_pylist() == [{"b": "x", "a": 2}, {"b": "x", "a": 9}]


def test_damaged_pages_are_reported_with_the_name_of_the_file(tmp_path: Path) -> None:
    rows = table()
    with written(tmp_path, rows, data_page_size=4000, write_batch_size=100, compression="zstd") as reader:
        paged = reader._paged(0, "d")
    assert paged
    page = paged.pages.data[3]
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    middle = page.offset + page.size_bytes // 2
    data[middle - 200 : middle + 200] = bytes(400)
    (tmp_path / "b").write_bytes(data)
    os.replace(tmp_path / "b", tmp_path / "a.parquet")
    damaged = ParquetReader(LocalStorage(str(tmp_path)), "a.parquet")
    with damaged as reader, pytest.raises(CorruptFile, match=r"a\.parquet"):
        list(reader.rows_at(["d"], np.array([page.first_row])))


def test_page_headers_that_contradict_the_footer_are_not_used(tmp_path: Path) -> None:
    rows = pa.table({"v": np.arange(1000)})
    with written(tmp_path, rows, compression="none", use_dictionary=False) as reader:
        paged = reader._paged(0, "v")
    assert paged
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[paged.pages.data[0].offset] = 0xFF
    (tmp_path / "b").write_bytes(data)
    os.replace(tmp_path / "b", tmp_path / "a.parquet")
    with ParquetReader(LocalStorage(str(tmp_path)), "a.parquet") as reader:
        assert reader._paged(0, "v") is False


def test_rows_with_values_are_found_again_without_a_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table()
    with written(tmp_path, rows, row_group_size=3000) as reader:
        keys = [rows.column("key")[at].as_py() for at in (5, 2999, 3000, 9999)]
        values = pa.array([*keys, "nobody"])
        assert [reader.rows_having("key", values).tolist() for _ in range(2)] == [[5, 2999, 3000, 9999]] * 2
        monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)  # the column is not read a third time
        assert reader.rows_having("key", values).tolist() == [5, 2999, 3000, 9999]
        with ParquetReader(LocalStorage(str(tmp_path)), "a.parquet") as other:
            assert other.rows_having("key", values).tolist() == [5, 2999, 3000, 9999]


@settings(deadline=None, max_examples=examples(60))
@given(
    values=st.lists(st.none() | st.text(max_size=6), max_size=40)
    | st.lists(st.none() | st.integers(-9, 9), max_size=40),
    skipped=st.integers(0, 3),
    wanted=st.lists(st.integers(0, 39), max_size=5),
)
def test_every_row_with_a_value_is_found(values: list[str | int | None], skipped: int, wanted: list[int]) -> None:
    kind = pa.int32() if any(isinstance(value, int) for value in values) else pa.string()
    column = pa.array(values, kind).slice(skipped)
    asked = pa.array([column[at].as_py() for at in wanted if at < len(column) and column[at].is_valid], kind)
    expected = [row for row, value in enumerate(column.to_pylist()) if value in asked.to_pylist()]
    assert rows_among([(0, column)], asked).tolist() == expected
    parts = [(first, column.slice(first, 3)) for first in range(0, len(column), 3)]
    assert rows_among(parts, asked).tolist() == expected


def test_a_replaced_file_is_read_again(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    first, second = pa.table({"k": ["a", "b"], "v": [1, 2]}), pa.table({"k": ["b", "a"], "v": [3, 4]})
    pq.write_table(first, tmp_path / "a.parquet")
    for _ in range(3):
        with open_base_file(storage, "a.parquet") as reader:
            found = list(reader.rows_at(["v"], reader.rows_having("k", pa.array(["a"]))))
            assert [batch.to_pylist() for batch in found] == [[{"v": 1}]]
    pq.write_table(second, tmp_path / "b")
    os.replace(tmp_path / "b", tmp_path / "a.parquet")
    for _ in range(3):
        with open_base_file(storage, "a.parquet") as reader:
            found = list(reader.rows_at(["v"], reader.rows_having("k", pa.array(["a"]))))
            assert [batch.to_pylist() for batch in found] == [[{"v": 4}]]
