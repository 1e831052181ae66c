"""Partition columns: what a path tells exactly counts and prunes, what it leaves in doubt is asked of the files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.expressions.predicates import Column
from pyhudi.keygen import KeyColumns
from pyhudi.model.table_config import TableConfig
from pyhudi.queries.skip.paths import PathColumns


@dataclass(frozen=True)
class ThreeDigits:
    """A user's generator: the partition is named by the last three digits of a number."""

    record_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]

    def columns(self, batch: pa.RecordBatch) -> KeyColumns:
        number = batch.column(self.partition_fields[0]).cast(pa.string())
        return KeyColumns(
            batch.column(self.record_fields[0]), pc.utf8_slice_codeunits(pc.utf8_lpad(number, 3, "0"), -3)
        )


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_numbers_of_a_partition_with_leading_zeros_are_those_in_its_files(tmp_path: Path, table_type: str) -> None:
    options = {"hoodie.datasource.write.keygenerator.class": f"{__name__}:ThreeDigits"}
    rows = [{"id": str(n), "n": n} for n in (7, 1007, 12)]
    write_hudi(tmp_path / "t", rows, record_key="id", partition_by="n", table_type=table_type, options=options)
    table = HudiTable.open(tmp_path / "t")

    assert table.inspect.partitions()["partition_path"].to_pylist() == ["007", "012"]
    assert sorted(table.to_arrow(["n"])["n"].to_pylist()) == [7, 12, 1007]
    for n in (7, 1007, 12):
        assert table.to_arrow(["id"], f"n = {n}")["id"].to_pylist() == [str(n)]
    assert table.to_arrow(["id"], "n > 1000")["id"].to_pylist() == ["1007"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("0", 0),
        ("-12", -12),
        ("2147483647", 2**31 - 1),
        *((text, None) for text in ("007", "00", "-0", "-007", "+7", "7.0", "1e3", " 7", "٧", "1٧", "", "x")),
        *((text, None) for text in ("2147483648", "-2147483649", "9" * 30)),
    ],
)
def test_only_a_number_as_a_generator_writes_it_tells_the_value_of_an_integer_column(
    text: str, value: int | None
) -> None:
    config = TableConfig({"hoodie.table.name": "t", "hoodie.table.version": "9", "hoodie.table.partition.fields": "n"})
    schema = pa.schema([("n", pa.int32())])

    assert PathColumns(config, schema).parsed(text) == (() if value is None else (("n", text),))
    known = PathColumns(config, schema).ranges(text).get(Column(("n",)))
    assert (None if known is None else (known.low, known.high, known.may_be_null)) == (
        None if value is None else (value, value, False)
    )
