"""Values of callers as columns, and what is said of those that a column can't hold: which it is, and the way out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Protocol, cast

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_list
from pyhudi.errors import SchemaMismatch
from pyhudi.model.predicate.limits import shown
from pyhudi.schema.casts import can_cast

__all__ = ["NO_FIT", "check_frame", "column_of", "column_refused"]

NO_FIT = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)
_WRITTEN = {pa.int64(): "int64()", pa.float32(): "float32()", pa.float64(): "float64()", pa.string(): "string()"}


class NamedColumns(Protocol):
    """A DataFrame of pandas or polars, as far as its columns are looked at one by one."""

    @property
    def columns(self) -> Iterable[object]: ...

    def __getitem__(self, name: object) -> object: ...


def column_of(name: object, values: Sequence[object], data_type: pa.DataType | None) -> pa.Array:
    """Python values as a column. `data_type`: of the table's column, None where it has none. Raises SchemaMismatch."""
    if not isinstance(name, str):
        raise SchemaMismatch(f"A row has the key {shown(name)}, which is no text: columns are named by text.")
    try:
        column = pa.array(values, data_type)
    except UnicodeError:
        raise
    except (*NO_FIT, TypeError, ValueError) as error:
        bad = next((value for value in values if not _fits(value, data_type)), None)
        raise _refused(name, bad, data_type, error) from error
    cut = None if data_type is None else next((v for v in values if _loses_digits(v, data_type)), None)
    if cut is not None:
        raise _refused(name, cut, data_type, "digits behind the point would be lost")
    return column


def _fits(value: object, data_type: pa.DataType | None) -> bool:
    try:
        pa.array([value], data_type)
    except (*NO_FIT, TypeError, ValueError):
        return False
    return True


def _loses_digits(value: object, data_type: pa.DataType) -> bool:
    """Is there a fraction where the column has whole numbers? Arrow cuts it."""
    if isinstance(value, float):
        return pt.is_integer(data_type) and not value.is_integer()
    if pt.is_struct(data_type) and isinstance(value, Mapping):
        return any(_loses_digits(value.get(field.name), field.type) for field in data_type.fields)
    if pt.is_map(data_type) and isinstance(value, Mapping | list | tuple):
        pairs = value.items() if isinstance(value, Mapping) else value
        return any(
            _loses_digits(item, data_type.item_type) for _, item in cast("Iterable[tuple[object, object]]", pairs)
        )
    if is_list(data_type) and isinstance(value, list | tuple):
        return any(_loses_digits(inner, data_type.value_type) for inner in value)
    return False


def _refused(name: str, value: object, data_type: pa.DataType | None, reason: object) -> SchemaMismatch:
    found = "" if value is None else f" {shown(value)} (of type {type(value).__name__})"
    if data_type is None:
        what = "has a value that no column can hold:" if value is not None else "has values of several types"
        return SchemaMismatch(
            f"Column {name!r} {what}{found}: {reason}. Give its values one type that Arrow knows. Nothing was written."
        )
    wider = _wider(data_type, value)
    way = "" if wider is None else f", or let the column hold them: table.alter(ChangeType({name!r}, pa.{wider}))"
    return SchemaMismatch(
        f"Column {name!r} is of type {data_type} and can't hold{found or ' these values'}: {reason}. Convert the "
        f"values{way}. Nothing was written."
    )


def _wider(data_type: pa.DataType, value: object) -> str | None:
    """How the type is written that holds the column's values and this one; None when there is none."""
    if not isinstance(value, int | float | Decimal | str):
        return None
    try:
        needed = pa.scalar(value).type
    except (*NO_FIT, TypeError, ValueError):
        return None
    if pt.is_decimal(data_type) and pt.is_decimal(needed):
        scale = max(data_type.scale, needed.scale)
        precision = max(data_type.precision - data_type.scale, needed.precision - needed.scale) + scale
        return f"decimal128({precision}, {scale})" if precision <= 38 else None
    return _WRITTEN.get(needed) if needed != data_type and can_cast(data_type, needed) else None


def check_frame(data: object) -> None:
    """Raises SchemaMismatch for DataFrames with a name twice, and for polars columns of Python objects: Arrow gets the
    addresses of these.
    """
    module = type(data).__module__.partition(".")[0]
    if type(data).__name__ != "DataFrame" or module not in ("pandas", "polars"):
        return
    names = [str(name) for name in cast("NamedColumns", data).columns]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else ()
    if twice:
        raise SchemaMismatch(f"The DataFrame has several columns called {', '.join(twice)}. Rename or drop the others.")
    if module == "polars":
        kinds = cast("Mapping[str, object]", getattr(data, "schema", {}))
        objects = [name for name, kind in kinds.items() if str(kind).startswith("Object")]
        if objects:
            raise SchemaMismatch(
                f"Column {objects[0]!r} is of polars' type Object: Python objects, which no table can hold. Make "
                "texts, numbers or structs of them, or drop the column. Nothing was written."
            )


def column_refused(data: object, error: BaseException, schema: pa.Schema | None) -> SchemaMismatch:
    """The error for data that Arrow does not take, with the column at fault where it can be told."""
    for name, taken in _columns(data):
        try:
            taken()
        except (*NO_FIT, TypeError, ValueError) as own:
            at = -1 if schema is None else schema.get_field_index(name)
            holds = "" if schema is None or at < 0 else f", and the table's is of type {schema.field(at).type}"
            return SchemaMismatch(
                f"Column {name!r} of the data ({type(data).__module__}.{type(data).__qualname__}) can't be a column "
                f"of one type{holds}: {own.args[0] if own.args else own}. Cast it. Nothing was written."
            )
    return SchemaMismatch(f"The data has a column without one Arrow type: {error}. Give each column one type.")


def _columns(data: object) -> Iterable[tuple[str, Callable[[], object]]]:
    """Each column by its name, and what makes an Arrow column of it."""
    if type(data).__name__ != "DataFrame":
        return
    frame, is_pandas = cast("NamedColumns", data), type(data).__module__.startswith("pandas")
    for name in frame.columns:
        column = frame[name]
        if is_pandas:
            yield str(name), lambda column=column: pa.Array.from_pandas(column)  # type: ignore[misc]
        elif hasattr(column, "to_frame"):
            yield str(name), lambda column=column: pa.RecordBatchReader.from_stream(column.to_frame())  # type: ignore[misc]
