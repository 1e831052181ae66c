"""Columns in whatever form callers have them: views, dictionaries and runs are stored as the values that they mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi


def coded(values: list[str | None], kind: pa.DataType) -> pa.Array:
    """A dictionary, as polars has it of Categorical and Enum."""
    words = sorted({value for value in values if value is not None})
    codes = [None if value is None else words.index(value) for value in values]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.uint32()), pa.array(words, kind))


def runs(values: list[str | None], kind: pa.DataType) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array(range(1, len(values) + 1), pa.int32()), pa.array(values, kind))


Form = Callable[[list[str | None]], pa.Array]
FORMS: dict[str, Form] = {
    "large text": lambda values: pa.array(values, pa.large_string()),
    "text views": lambda values: pa.array(values, pa.string_view()),
    "dictionary of texts": lambda values: coded(values, pa.string()),
    "dictionary of views": lambda values: coded(values, pa.string_view()),
    "runs of views": lambda values: runs(values, pa.string_view()),
    "runs of codes": lambda values: pa.RunEndEncodedArray.from_arrays(
        pa.array(range(1, len(values) + 1), pa.int32()), coded(values, pa.string_view())
    ),
}


def rows_of(form: Form, keys: list[str | None], value: str | None) -> pa.Table:
    """Rows whose every column that can be text is in this form."""
    count, ends = len(keys), pa.array(range(len(keys) + 1), pa.int32())
    text = form([value] * count)
    return pa.table(
        {
            "id": form(keys),
            "p": form(["x" if key < "c" else "y" for key in map(str, keys)]),
            "o": form(["1"] * count),
            "v": text,
            "s": pa.StructArray.from_arrays([text], ["t"]),
            "l": pa.ListArray.from_arrays(ends, pa.StructArray.from_arrays([text], ["t"])),
            "m": pa.MapArray.from_arrays(ends, form(["k"] * count), text),
        }
    )


def expected(key: str, value: str | None) -> dict[str, object]:
    inner = {"t": value}
    where = "x" if key < "c" else "y"
    return {"id": key, "p": where, "o": "1", "v": value, "s": inner, "l": [inner], "m": [("k", value)]}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("form", FORMS)
def test_text_in_every_form_is_stored_as_text_as_key_partition_order_and_value(
    form: str, table_type: str, tmp_path: Path
) -> None:
    made = FORMS[form]
    options = {"hoodie.datasource.write.table.type": table_type}
    first = rows_of(made, ["a", "b", "c"], "one")
    write_hudi(tmp_path, first, "bulk_insert", record_key="id", partition_by="p", ordering="o", options=options)
    second = rows_of(made, ["c", "d"], None)
    stream = pa.RecordBatchReader.from_batches(second.schema, second.to_batches())
    write_hudi(tmp_path, stream)
    table = HudiTable.open(tmp_path)
    table.delete(rows_of(made, ["b"], "any").select(["id", "p"]))
    table.merge(rows_of(made, ["a"], "two")).when_matched_update({"v": "source.v"}).execute()

    assert table.schema().field("v").type == table.schema().field("s").type[0].type == pa.string()
    found = table.to_arrow([*first.column_names]).sort_by("id").to_pylist()
    assert found == [{**expected("a", "one"), "v": "two"}, expected("c", None), expected("d", None)]


def test_bytes_and_other_values_in_every_form_are_stored_as_what_they_mean(tmp_path: Path) -> None:
    codes, ends = pa.array([0, 1, None], pa.int8()), pa.array([2, 3], pa.int32())
    columns = {
        "view": pa.array([b"q", b"r", None], pa.binary_view()),
        "coded_views": pa.DictionaryArray.from_arrays(codes, pa.array([b"q", b"r"], pa.binary_view())),
        "coded_numbers": pa.DictionaryArray.from_arrays(codes, pa.array([5, 6])),
        "runs": pa.RunEndEncodedArray.from_arrays(ends, pa.array([7, None])),
        "listed": pa.array([["a"], None, ["b", None]], pa.list_view(pa.string_view())),
    }
    write_hudi(tmp_path, pa.table({"id": ["a", "b", "c"], **columns}), record_key="id")
    found = HudiTable.open(tmp_path).to_arrow(["id", *columns]).sort_by("id")
    assert found.schema.types[1:] == [pa.binary(), pa.binary(), pa.int64(), pa.int64(), pa.list_(pa.string())]
    assert found.select(list(columns)).to_pydict() == {
        "view": [b"q", b"r", None],
        "coded_views": [b"q", b"r", None],
        "coded_numbers": [5, 6, None],
        "runs": [7, 7, None],
        "listed": [["a"], None, ["b", None]],
    }


def test_a_slice_of_runs_has_the_values_of_its_own_rows(tmp_path: Path) -> None:
    codes = pa.RunEndEncodedArray.from_arrays(pa.array([2, 5, 6], pa.int32()), pa.array([1, 2, 3]))
    rows = pa.table({"id": [*"abcdef"], "v": codes}).slice(1, 4)
    write_hudi(tmp_path, rows, record_key="id")
    found = HudiTable.open(tmp_path).to_arrow(["id", "v"]).sort_by("id").to_pydict()
    assert found == {"id": [*"bcde"], "v": [1, 2, 2, 2]}
