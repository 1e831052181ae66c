"""Text that is none: PyArrow takes any bytes for UTF-8 when an array is made from buffers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

WRONG = b"caf\xe9"  # Latin-1


def as_text(values: list[bytes | None], kind: pa.DataType | None = None) -> pa.Array:
    """The bytes as text of a type, whatever they are."""
    kind = kind or pa.string()
    bytes_of = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    return pa.Array.from_buffers(kind, len(values), pa.array(values, bytes_of[kind]).buffers())


def nested(text: pa.Array) -> dict[str, pa.Array]:
    """A text inside of other types, one in each row."""
    ends = pa.array(np.arange(len(text) + 1), pa.int32())
    names = pa.array([str(n) for n in range(len(text))])
    return {
        "struct": pa.StructArray.from_arrays([text], ["x"]),
        "list": pa.ListArray.from_arrays(ends, text),
        "large list": pa.LargeListArray.from_arrays(ends.cast(pa.int64()), text),
        "fixed list": pa.FixedSizeListArray.from_arrays(text, 1),
        "map value": pa.MapArray.from_arrays(ends, names, text),
        "map key": pa.MapArray.from_arrays(ends, text, names),
        "deep": pa.ListArray.from_arrays(ends, pa.StructArray.from_arrays([text], ["x"])),
        "dictionary": pa.DictionaryArray.from_arrays(pa.array(np.arange(len(text)), pa.int8()), text),
    }
