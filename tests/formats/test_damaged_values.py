"""Damaged values of base files with an undamaged footer: every way to read them names the file."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.errors import CorruptFile
from pyhudi.formats.base import BaseFileOptions, Footer, new_base_file, open_base_file
from pyhudi.formats.base.base import BaseFileReader
from pyhudi.storage.memory import MemoryStorage

READINGS: dict[str, Callable[[BaseFileReader], object]] = {
    "column": lambda reader: reader.column("a"),
    "batches": lambda reader: list(reader.batches(["a"])),
    "numbered batches": lambda reader: list(reader.numbered_batches(["a"])),
    "rows at": lambda reader: list(reader.rows_at(["a"], np.array([5]))),
    "rows having": lambda reader: reader.rows_having("a", pa.array([5])),
}


@pytest.mark.parametrize("way", READINGS)
@pytest.mark.parametrize(("name", "kind"), [("x.parquet", "Parquet"), ("x.orc", "ORC")])
def test_damaged_values_are_named_with_their_format_and_what_to_do(name: str, kind: str, way: str) -> None:
    storage = MemoryStorage()
    rows = pa.table({"a": np.random.default_rng(1).integers(0, 1 << 60, 1000)})
    writer = new_base_file(storage, name, rows.schema, BaseFileOptions(format=kind.upper()))
    writer.write(rows)
    writer.close(Footer())
    data = storage.read(name)
    storage.write(name, data[:4] + b"\xff" * 3000 + data[3004:])

    with open_base_file(storage, name) as reader:
        assert reader.num_rows == 1000
        with pytest.raises(CorruptFile, match=rf"(?s)/{name}: not a readable {kind} file: .*Restore the file"):
            READINGS[way](reader)
