"""The compute functions that PyHudi calls: an array gives an array, a chunked array a chunked one, a scalar a scalar.

The installed stubs ask for kinds of arrays that columns of any schema don't have, don't take Python values where
pyarrow does, and lack some functions. A function that is not here is added when it is first called.
"""

# Arrays and chunked arrays have no common subclass, which types can't say.
# mypy: disable-error-code="overload-overlap"

from collections.abc import Callable, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

from pyarrow import lib
from pyarrow._compute import Expression as Expression

_Array: TypeAlias = lib.Array[Any]
_Chunked: TypeAlias = lib.ChunkedArray[Any]
_Scalar: TypeAlias = lib.Scalar[Any]
_Plain: TypeAlias = bool | int | float | str | bytes | Decimal | date | time | timedelta | None
_ArrayT = TypeVar("_ArrayT", bound=lib.Array[Any])
_One: TypeAlias = _Scalar | _Plain
_Values: TypeAlias = _Array | _Chunked | _Scalar
_NullHandling: TypeAlias = Literal["emit_null", "skip", "replace"]
_Counted: TypeAlias = Literal["only_valid", "only_null", "all"]
_Order: TypeAlias = Literal["ascending", "descending"]

class _Unary(Protocol):
    @overload
    def __call__(self, values: _Array, /) -> _Array: ...
    @overload
    def __call__(self, values: _Chunked, /) -> _Chunked: ...
    @overload
    def __call__(self, values: _Scalar, /) -> _Scalar: ...
    @overload
    def __call__(self, values: Expression, /) -> Expression: ...

class _Binary(Protocol):
    @overload
    def __call__(self, left: _Array, right: _Array | _One, /) -> _Array: ...
    @overload
    def __call__(self, left: _Array, right: _Chunked, /) -> _Chunked: ...
    @overload
    def __call__(self, left: _Chunked, right: _Array | _Chunked | _One, /) -> _Chunked: ...
    @overload
    def __call__(self, left: _One, right: _Array, /) -> _Array: ...
    @overload
    def __call__(self, left: _One, right: _Chunked, /) -> _Chunked: ...
    @overload
    def __call__(self, left: _One, right: _One, /) -> _Scalar: ...
    @overload
    def __call__(self, left: Expression, right: Expression | _One, /) -> Expression: ...
    @overload
    def __call__(self, left: _One, right: Expression, /) -> Expression: ...

class _UnaryTest(Protocol):
    @overload
    def __call__(self, values: _Array, /) -> lib.BooleanArray: ...
    @overload
    def __call__(self, values: _Chunked, /) -> _Chunked: ...
    @overload
    def __call__(self, values: _Scalar, /) -> lib.BooleanScalar: ...
    @overload
    def __call__(self, values: Expression, /) -> Expression: ...

class _BinaryTest(Protocol):
    @overload
    def __call__(self, left: _Array, right: _Array | _One, /) -> lib.BooleanArray: ...
    @overload
    def __call__(self, left: _Array, right: _Chunked, /) -> _Chunked: ...
    @overload
    def __call__(self, left: _Chunked, right: _Array | _Chunked | _One, /) -> _Chunked: ...
    @overload
    def __call__(self, left: _One, right: _Array, /) -> lib.BooleanArray: ...
    @overload
    def __call__(self, left: _One, right: _Chunked, /) -> _Chunked: ...
    @overload
    def __call__(self, left: _One, right: _One, /) -> lib.BooleanScalar: ...
    @overload
    def __call__(self, left: Expression, right: Expression | _One, /) -> Expression: ...
    @overload
    def __call__(self, left: _One, right: Expression, /) -> Expression: ...

class _Aggregate(Protocol):
    def __call__(self, values: _Array | _Chunked, /, *, skip_nulls: bool = True, min_count: int = 1) -> _Scalar: ...

class _Pad(Protocol):
    @overload
    def __call__(self, strings: _Array, /, width: int, padding: str = " ") -> _Array: ...
    @overload
    def __call__(self, strings: _Chunked, /, width: int, padding: str = " ") -> _Chunked: ...

class _Trim(Protocol):
    @overload
    def __call__(self, strings: _Array, /, characters: str) -> _Array: ...
    @overload
    def __call__(self, strings: _Chunked, /, characters: str) -> _Chunked: ...

class _Match(Protocol):
    @overload
    def __call__(self, strings: _Array, /, pattern: str, *, ignore_case: bool = False) -> lib.BooleanArray: ...
    @overload
    def __call__(self, strings: _Chunked, /, pattern: str, *, ignore_case: bool = False) -> _Chunked: ...
    @overload
    def __call__(self, strings: Expression, /, pattern: str, *, ignore_case: bool = False) -> Expression: ...

class _Extrema(Protocol):
    @overload
    def __call__(self, *values: _Array | _One, skip_nulls: bool = True) -> _Array: ...
    @overload
    def __call__(self, *values: _Array | _Chunked | _One, skip_nulls: bool = True) -> _Chunked: ...

add: _Binary
and_: _BinaryTest
bit_wise_not: _Unary
divide: _Binary
equal: _BinaryTest
greater: _BinaryTest
greater_equal: _BinaryTest
less: _BinaryTest
less_equal: _BinaryTest
multiply: _Binary
not_equal: _BinaryTest
or_: _BinaryTest
or_kleene: _BinaryTest
subtract: _Binary

ascii_lower: _Unary
ascii_upper: _Unary
binary_length: _Unary
invert: _UnaryTest
is_nan: _UnaryTest
is_null: _UnaryTest
is_valid: _UnaryTest
list_parent_indices: _Unary
list_value_length: _Unary
string_is_ascii: _UnaryTest
utf8_length: _Unary
utf8_lower: _Unary

max_element_wise: _Extrema
min_element_wise: _Extrema

all: _Aggregate
any: _Aggregate
max: _Aggregate
min: _Aggregate
sum: _Aggregate

utf8_lpad: _Pad
utf8_ltrim: _Trim
utf8_rtrim: _Trim
utf8_trim: _Trim
utf8_rpad: _Pad
match_substring: _Match
match_substring_regex: _Match
starts_with: _Match

@overload
def fill_null(values: _ArrayT, fill_value: _Array | _One) -> _ArrayT: ...
@overload
def fill_null(values: _Chunked, fill_value: _Chunked | _Array | _One) -> _Chunked: ...
@overload
def fill_null(values: Expression, fill_value: Expression | _One) -> Expression: ...
@overload
def if_else(cond: _Array, left: _Array | _One, right: _Array | _One, /) -> _Array: ...
@overload
def if_else(cond: _Array | _Chunked, left: _Values | _Plain, right: _Values | _Plain, /) -> _Chunked: ...
@overload
def if_else(cond: Expression, left: Expression | _One, right: Expression | _One, /) -> Expression: ...
@overload
def coalesce(*values: _Array | _One) -> _Array: ...
@overload
def coalesce(*values: _Values | _Plain) -> _Chunked: ...
@overload
def is_in(values: _Array, /, value_set: _Array | _Chunked, *, skip_nulls: bool = False) -> lib.BooleanArray: ...
@overload
def is_in(values: _Chunked, /, value_set: _Array | _Chunked, *, skip_nulls: bool = False) -> _Chunked: ...
@overload
def index_in(values: _Array, /, value_set: _Array | _Chunked, *, skip_nulls: bool = False) -> lib.Int32Array: ...
@overload
def index_in(values: _Chunked, /, value_set: _Array | _Chunked, *, skip_nulls: bool = False) -> _Chunked: ...
@overload
def replace_with_mask(values: _Array, mask: _Array | bool, replacements: _Array, /) -> _Array: ...
@overload
def replace_with_mask(values: _Chunked, mask: _Array | _Chunked | bool, replacements: _Array, /) -> _Chunked: ...
@overload
def cast(arr: _Array, target_type: lib.DataType | None = None, safe: bool | None = None) -> _Array: ...
@overload
def cast(arr: _Chunked, target_type: lib.DataType | None = None, safe: bool | None = None) -> _Chunked: ...
@overload
def cumulative_sum_checked(values: _Array, /, start: _One = None, *, skip_nulls: bool = False) -> _Array: ...
@overload
def cumulative_sum_checked(values: _Chunked, /, start: _One = None, *, skip_nulls: bool = False) -> _Chunked: ...

# Text
@overload
def binary_join_element_wise(
    *strings: _Array | _One, null_handling: _NullHandling = "emit_null", null_replacement: str = ""
) -> _Array: ...
@overload
def binary_join_element_wise(
    *strings: _Values | _Plain, null_handling: _NullHandling = "emit_null", null_replacement: str = ""
) -> _Chunked: ...
@overload
def binary_join(strings: _Array, separator: _One, /) -> _Array: ...
@overload
def binary_join(strings: _Chunked, separator: _One, /) -> _Chunked: ...
@overload
def split_pattern(strings: _Array, /, pattern: str | bytes, *, max_splits: int | None = None) -> lib.ListArray[Any]: ...
@overload
def split_pattern(strings: _Chunked, /, pattern: str | bytes, *, max_splits: int | None = None) -> _Chunked: ...
@overload
def extract_regex(strings: _Array, /, pattern: str) -> lib.StructArray: ...
@overload
def extract_regex(strings: _Chunked, /, pattern: str) -> _Chunked: ...
def replace_substring(strings: _Array, /, pattern: str, replacement: str) -> _Array: ...
@overload
def replace_substring_regex(strings: _Array, /, pattern: str, replacement: str) -> _Array: ...
@overload
def replace_substring_regex(strings: _Chunked, /, pattern: str, replacement: str) -> _Chunked: ...
@overload
def replace_substring_regex(strings: _Scalar, /, pattern: str, replacement: str) -> _Scalar: ...
@overload
def utf8_slice_codeunits(strings: _Array, /, start: int, stop: int | None = None, step: int = 1) -> _Array: ...
@overload
def utf8_slice_codeunits(strings: _Chunked, /, start: int, stop: int | None = None, step: int = 1) -> _Chunked: ...

# Parts of nested columns
_Path: TypeAlias = str | int | Sequence[str] | Sequence[int] | Expression

@overload
def struct_field(values: _Array, /, indices: _Path) -> _Array: ...
@overload
def struct_field(values: _Chunked, /, indices: _Path) -> _Chunked: ...
@overload
def list_element(lists: _Array, index: _One, /) -> _Array: ...
@overload
def list_element(lists: _Chunked, index: _One, /) -> _Chunked: ...

# Of a whole column
def count_distinct(array: _Array | _Chunked, /, mode: _Counted = "only_valid") -> lib.Int64Scalar: ...
def index(
    data: _Array | _Chunked, value: _One, start: int | None = None, end: int | None = None
) -> lib.Int64Scalar: ...
def min_max(values: _Array | _Chunked, /, *, skip_nulls: bool = True, min_count: int = 1) -> lib.StructScalar: ...
def run_end_encode(array: _Array, /, run_end_type: lib.DataType = ...) -> lib.RunEndEncodedArray[Any, Any]: ...
def unique(array: _Array | _Chunked, /) -> _Array: ...
def value_counts(array: _Array | _Chunked, /) -> lib.StructArray: ...
def sort_indices(
    input: _Array | _Chunked | lib.RecordBatch | lib.Table,
    /,
    sort_keys: Sequence[tuple[str, _Order]] = (),
    *,
    null_placement: Literal["at_start", "at_end"] | None = None,
) -> lib.UInt64Array: ...

# Expressions
def field(*name_or_index: str | int | tuple[str | int, ...]) -> Expression: ...
def scalar(value: _One) -> Expression: ...

class FunctionOptions: ...

class TrimOptions(FunctionOptions):
    def __init__(self, characters: str) -> None: ...

class JoinOptions(FunctionOptions):
    def __init__(self, null_handling: Literal["emit_null", "skip", "replace"] = "emit_null") -> None: ...

class UdfContext:
    @property
    def batch_length(self) -> int: ...

def register_scalar_function(
    func: Callable[..., _Array | _Scalar],  # of a UdfContext, and as many arrays or scalars as in_types has
    function_name: str,
    function_doc: dict[str, str],
    in_types: dict[str, lib.DataType],
    out_type: lib.DataType,
) -> None: ...
