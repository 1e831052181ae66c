"""Text that is not UTF-8 is found wherever it is, and only where a row has it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.errors import ConfigError
from pyhudi.formats.damage import check_text, text_checked
from tests.support.values.not_text import WRONG, as_text, nested

TEXTS = [pa.string(), pa.large_string(), pa.string_view()]


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("wrong", [WRONG, b"\xff" * 40, b"\xed\xa0\x80", b"\xc0\x80"])
def test_bytes_that_are_no_text_are_named_with_column_and_row(kind: pa.DataType, wrong: bytes) -> None:
    column = pa.chunked_array([as_text([b"a", None], kind), as_text([b"b" * 30, wrong], kind)])
    with pytest.raises(ConfigError, match=r"Column 't', row 3 .*not UTF-8"):
        check_text(pa.table({"n": [1, 2, 3, 4], "t": column}))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("name", nested(as_text([b"a"])))
def test_text_inside_of_other_types_is_looked_at(name: str, kind: pa.DataType) -> None:
    column = nested(as_text([b"a", WRONG, b"c"], kind))[name]
    with pytest.raises(ConfigError, match=r"Column 'c.*not UTF-8"):
        check_text(pa.table({"c": column}))
    check_text(pa.table({"c": column.slice(0, 1)}))
    check_text(pa.table({"c": column.slice(2)}))
    check_text(pa.table({"c": nested(as_text(["é😀".encode(), b""], kind))[name]}))


def test_what_no_row_has_does_not_count() -> None:
    wrong = as_text([b"a", WRONG])
    check_text(
        pa.table(
            {
                "hidden": pa.StructArray.from_arrays([wrong], ["x"], mask=pa.array([False, True])),
                "unused": pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), wrong),
                "bytes": pa.array([WRONG, WRONG]),
            }
        )
    )


def test_a_stream_breaks_off_where_the_text_ends() -> None:
    batches = [pa.record_batch({"t": as_text([b"a", b"b"])}), pa.record_batch({"t": as_text([b"c", WRONG])})]
    stream = text_checked(pa.RecordBatchReader.from_batches(batches[0].schema, batches))
    assert stream.read_next_batch().num_rows == 2
    with pytest.raises(ConfigError, match="row 3"):
        stream.read_next_batch()


@pytest.mark.parametrize(
    ("name", "path"),
    [("map key", "c.key"), ("map value", "c.value"), ("struct", "c.x"), ("list", "c.element"), ("deep", "c.element.x")],
)
def test_text_inside_of_other_types_is_named_by_its_path(name: str, path: str) -> None:
    with pytest.raises(ConfigError, match=rf"Column '{path}'"):
        check_text(pa.table({"c": nested(as_text([b"a", WRONG]))[name]}))
