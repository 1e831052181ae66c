"""Base files whose footer is not what a table's is."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.errors import CorruptFile
from pyhudi.formats.base import open_base_file
from pyhudi.formats.base.opening import MAX_ROWS, check_outline
from pyhudi.storage.memory import MemoryStorage

NAME = "f-0_0-1-2_20240101000000000.parquet"


def stored(columns: pa.Table) -> MemoryStorage:
    storage, sink = MemoryStorage(), io.BytesIO()
    pq.write_table(columns, sink)
    storage.write(f"p/{NAME}", sink.getvalue())
    return storage


def test_a_column_that_is_there_twice_is_refused_when_the_file_is_opened() -> None:
    storage = stored(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(CorruptFile, match=rf"{NAME}: columns are there twice: a\."):
        open_base_file(storage, f"p/{NAME}")


@pytest.mark.parametrize("rows", [-1, MAX_ROWS + 1, 1 << 60])
def test_more_rows_than_a_file_has_are_not_counted_to(rows: int) -> None:
    check_outline("x", MAX_ROWS, ["a", "b"])
    with pytest.raises(CorruptFile, match=f"x: expected 0 to {MAX_ROWS} rows, found {rows}"):
        check_outline("x", rows, ["a"])
