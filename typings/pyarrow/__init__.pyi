"""pyarrow's types where the installed stubs and pyarrow differ; every other name comes from those stubs.

`pa.Array` takes no type parameter at run time, and what a column holds is said by its schema, at run time too: so here
it is one type, an array of something. Arrays and types of one kind (`pa.StringArray`, `pa.MapType`) have the methods of
their kind.
"""

# Names that are here and in the star import are meant to differ; an array is always also an iterable of values.
# mypy: disable-error-code="no-redef, assignment, overload-overlap"

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, overload

import numpy as np
import numpy.typing as npt
from pyarrow import ipc as ipc
from pyarrow import lib
from pyarrow import types as types
from pyarrow.ipc import RecordBatchStreamWriter as RecordBatchStreamWriter

__version__: str

Array: TypeAlias = lib.Array[Any]
ChunkedArray: TypeAlias = lib.ChunkedArray[Any]
DictionaryArray: TypeAlias = lib.DictionaryArray[Any, Any]
ExtensionArray: TypeAlias = lib.ExtensionArray[Any]
Field: TypeAlias = lib.Field[Any]
FixedSizeListType: TypeAlias = lib.FixedSizeListType[Any, Any]
LargeListType: TypeAlias = lib.LargeListType[Any]
LargeListViewType: TypeAlias = lib.LargeListViewType[Any]
ListArray: TypeAlias = lib.ListArray[Any]
MapArray: TypeAlias = lib.MapArray[Any, Any]
MapType: TypeAlias = lib.MapType[Any, Any, Any]
ListType: TypeAlias = lib.ListType[Any]
ListViewType: TypeAlias = lib.ListViewType[Any]
RunEndEncodedArray: TypeAlias = lib.RunEndEncodedArray[Any, Any]
Scalar: TypeAlias = lib.Scalar[Any]
TimestampType: TypeAlias = lib.TimestampType[Any, Any]

class OSFile(lib.OSFile):
    def __init__(self, path: str, mode: str = "r", memory_pool: lib.MemoryPool | None = None) -> None: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...

# The installed stubs tell the kind by the values, and take any ndarray for one of booleans.
@overload
def array(obj: npt.NDArray[np.bool_], type: lib.BoolType | None = None) -> lib.BooleanArray: ...
@overload
def array(obj: npt.NDArray[np.int32], type: lib.Int32Type | None = None) -> lib.Int32Array: ...
@overload
def array(obj: npt.NDArray[np.int64], type: lib.Int64Type | None = None) -> lib.Int64Array: ...
@overload
def array(obj: Iterable[Mapping[str, Any] | None], type: lib.StructType) -> lib.StructArray: ...
@overload
def array(obj: Iterable[bool | None], type: lib.BoolType) -> lib.BooleanArray: ...
@overload
def array(
    obj: Iterable[Any] | _ArrowArray,
    type: lib.DataType | None = None,
    mask: lib.Array[Any] | npt.NDArray[np.bool_] | None = None,
    size: int | None = None,
    from_pandas: bool | None = None,
    safe: bool = True,
) -> Array: ...
def chunked_array(
    arrays: Iterable[Array] | Iterable[Sequence[Any]], type: lib.DataType | None = None
) -> ChunkedArray: ...
def map_(key_type: lib.DataType | Field, item_type: lib.DataType | Field, keys_sorted: bool = False) -> MapType: ...
def field(
    name: str | Field,
    type: lib.DataType | None = None,
    nullable: bool | None = None,
    metadata: Mapping[str, str] | Mapping[bytes, bytes] | Mapping[str, bytes] | None = None,
) -> Field: ...
def nulls(size: int, type: lib.DataType | None = None) -> Array: ...
def repeat(value: object, size: int) -> Array: ...
def schema(
    fields: Iterable[Field | tuple[str, lib.DataType]] | Mapping[str, lib.DataType],
    metadata: Mapping[str, str] | Mapping[bytes, bytes] | None = None,
) -> lib.Schema: ...
def scalar(value: object, type: lib.DataType | None = None, *, from_pandas: bool | None = None) -> Scalar: ...

# Whatever has Python's buffer protocol, which no type says before Python 3.12; ndarrays have it.
def py_buffer(obj: bytes | bytearray | memoryview | npt.NDArray[Any]) -> lib.Buffer: ...

# Last: what is named above counts.
from pyarrow.lib import *  # noqa: E402, F403
