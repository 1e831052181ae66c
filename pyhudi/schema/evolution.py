"""Schema evolution on write: the table's schema after a write of data with another schema.

Allowed: new columns (made nullable, appended at the end of the root or of their struct), types that can be widened in
the table (int → long → float → double), data narrower than the table (widened on the way in, also to text). Required
columns stay required whatever the data's type says: rows without a value are refused (`required.py`). Refused, all
offending columns in one message: narrowing and unrelated types, columns that would change their kind (number → string,
string → binary; an option allows it), names that differ only by case, names that columns had before, missing columns
(unless an option says null or drop), changes of key and partition columns. Names match exactly; order does not matter.
An untyped null, at any depth, has the type of the table there.
Source: docs/formats/schema.md, "Evolution on write".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_bytes, is_list, is_text
from pyhudi.errors import SchemaMismatch
from pyhudi.formats.avro.schema import storable, without_meta
from pyhudi.schema.casts import can_cast
from pyhudi.schema.former_names import FormerName

__all__ = ["column_paths", "evolve", "misfit", "or_widen", "wider_decimal"]

_NO_NAMES: Mapping[str, FormerName] = MappingProxyType({})
_NUMBERS = (pa.int32(), pa.int64(), pa.float32(), pa.float64())  # in the order of widening


def evolve(
    table: pa.Schema,
    incoming: pa.Schema,
    *,
    null_for_missing: bool = False,
    allow_drop: bool = False,
    reconcile: bool = False,
    allow_kind_change: bool = False,
    protected: Collection[str] = (),
    ordering_fields: Collection[str] = (),
    former: Mapping[str, FormerName] = _NO_NAMES,
) -> pa.Schema:
    """The table's schema after a write of `incoming`; the same object when nothing changes.

    Args:
        table: the table's data columns; if empty, the table is new and takes the incoming schema.
        incoming: the schema of the data; meta columns in it are ignored.
        null_for_missing, reconcile: columns that the data lacks stay, and are null in the new rows.
        allow_drop: columns that the data lacks leave the table (unless the other two keep them).
        allow_kind_change: number columns become text, and text columns bytes, if the data has these types, as in Hudi.
        protected: key and partition columns (dotted paths for nested ones): required, with the same type (or a narrower
            one with the same texts: int for long, float for double).
        ordering_fields: the ordering columns: required, and at most widened from one number type to another.
        former: path → what became of the column that had it (`former_names`); data can't bring it back.
    Returns: data columns only. `project(data, evolve(...))` brings the data into it.
    Raises:  SchemaMismatch naming every column that does not fit, with both types and the reason.
    """
    old = without_meta(table)
    new = storable(pa.schema(_with_nulls_typed(list(without_meta(incoming)), list(old))))
    if not old.names:
        return new
    keep = null_for_missing or reconcile
    step = _Step(keep, allow_drop, allow_kind_change, frozenset(protected), frozenset(ordering_fields), former)
    fields = step.fields(list(old), list(new), "")
    if step.problems:
        raise misfit(step.problems)
    evolved = pa.schema(fields)
    return table if evolved.equals(table) else evolved


class _Step:
    """One evolution; collects the misfits."""

    def __init__(
        self,
        keep_missing: bool,
        allow_drop: bool,
        allow_kind_change: bool,
        protected: frozenset[str],
        ordering_fields: frozenset[str],
        former: Mapping[str, FormerName],
    ) -> None:
        self.problems: list[str] = []
        self._allow_kind_change = allow_kind_change
        self._keep_missing = keep_missing
        self._allow_drop = allow_drop
        self._protected = protected
        self._ordering_fields = ordering_fields
        self._former = former

    def fields(self, old: Sequence[pa.Field], new: Sequence[pa.Field], path: str) -> list[pa.Field]:
        """Fields of a struct (or of the root, path "") after the write: the old ones in their order, then the new."""
        arriving = {field.name: field for field in new}
        old_names = {field.name for field in old}
        by_lower_case = {field.name.lower(): field.name for field in old}
        out: list[pa.Field] = []
        misspelt = set()
        for field in new:
            if field.name in old_names:
                continue
            name, other = _join(path, field.name), by_lower_case.get(field.name.lower())
            former = self._former.get(name)
            if other is not None:
                misspelt.add(other)
                self.problems.append(
                    f"column {name!r}: the table calls it {_join(path, other)!r}, and names match letter by letter; "
                    f"rename the column in the data"
                )
            elif former is not None:
                misspelt.add("" if former.path is None else former.path.rpartition(".")[2])
                self.problems.append(f"column {name!r}: {former.refusal(name)}")
        for field in old:
            if field.name in arriving:
                out.append(self._both(field, arriving[field.name], _join(path, field.name)))
            elif field.name not in misspelt:
                out += self._missing(field, _join(path, field.name))
        out += [field.with_nullable(True) for field in new if field.name not in old_names]
        return out

    def _both(self, old: pa.Field, new: pa.Field, path: str) -> pa.Field:
        data_type = self._type(old.type, new.type, path)
        # In Spark and pandas nearly every column is nullable: the rows are checked (`required.py`), not the type.
        return pa.field(old.name, data_type, nullable=old.nullable, metadata=old.metadata)

    def _missing(self, old: pa.Field, path: str) -> list[pa.Field]:
        inside = (
            name for name in self._protected | self._ordering_fields if name == path or name.startswith(f"{path}.")
        )
        needed = next(inside, None)
        if needed is not None:
            self.problems.append(
                f"column {path!r} ({old.type}): missing in the data; {needed!r} is a key, partition or ordering column"
            )
        elif self._keep_missing:
            return [old]  # required or not: rows other than deletes are refused
        elif not self._allow_drop:
            self.problems.append(
                f"column {path!r} ({old.type}): missing in the data; add it, or set "
                f"hoodie.write.set.null.for.missing.columns=true to write nulls"
            )
        return []

    def _type(self, old: pa.DataType, new: pa.DataType, path: str) -> pa.DataType:
        if old.equals(new):
            return old
        if pt.is_struct(old) and pt.is_struct(new):
            return pa.struct(self.fields(old.fields, new.fields, path))
        if is_list(old) and is_list(new):
            return pa.list_(self._element(old.value_field, new.value_field, f"{path}.element"))
        if pt.is_map(old) and pt.is_map(new):
            return pa.map_(pa.string(), self._element(old.item_field, new.item_field, f"{path}.value"))
        reason = self._refusal(old, new, path)
        if reason is not None:
            self.problems.append(f"column {path!r}: the table has {old}, the data {new}; {reason}")
            return old
        return new if _widens(old, new) else old

    def _element(self, old: pa.Field, new: pa.Field, path: str) -> pa.Field:
        return pa.field(old.name, self._type(old.type, new.type, path), nullable=old.nullable)

    def _refusal(self, old: pa.DataType, new: pa.DataType, path: str) -> str | None:
        """Why data of type `new` can't go into a column of another type `old`; None when it can."""
        if path in self._protected and not _same_text(old, new):
            return "a key or partition column keeps its type, or older rows would not be found again"
        if _takes(old, new):
            return None
        if path in self._ordering_fields and not (old in _NUMBERS and new in _NUMBERS):
            return "an ordering column may only become a wider number, or rows could not be compared"
        if _widens(old, new):
            if self._allow_kind_change or new in _NUMBERS or pt.is_time(new):
                return None
            return (
                f"for all its rows the column would become {'text' if is_text(new) else 'bytes'}: cast the data to "
                f"{old}, or allow it with hoodie.pyhudi.schema.allow.kind.change=true"
            )
        if pt.is_timestamp(old) and pt.is_timestamp(new):
            return "one is a moment in UTC, the other a local time: say which zone you mean by casting the data"
        if pt.is_decimal(old) and pt.is_decimal(new):
            return f"digits could be lost: cast the data{or_widen(path, old, new)}"
        return f"that is no widening: cast the data to {old}"


def misfit(problems: Iterable[str]) -> SchemaMismatch:
    """The error for data that does not fit the table's schema."""
    listed = "".join(f"\n  - {problem}" for problem in problems)
    return SchemaMismatch(f"The data does not fit the table's schema; nothing was written:{listed}")


def column_paths(schema: pa.Schema) -> dict[str, pa.DataType]:
    """All columns and nested fields by their paths: `address.city`, `items.element.price`, `prices.value`."""
    paths: dict[str, pa.DataType] = {}
    pending = [(field.name, field.type) for field in reversed(list(schema))]
    while pending:
        path, data_type = pending.pop()
        paths[path] = data_type
        if pt.is_struct(data_type):
            pending += [(_join(path, field.name), field.type) for field in reversed(data_type.fields)]
        elif is_list(data_type):
            pending.append((_join(path, "element"), data_type.value_type))
        elif pt.is_map(data_type):
            pending.append((_join(path, "value"), data_type.item_type))
    return paths


def wider_decimal(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    """The decimal that takes the values of both; None where one is no decimal, and for more than 38 digits."""
    if not (pt.is_decimal(old) and pt.is_decimal(new)):
        return None
    scale = max(old.scale, new.scale)
    precision = max(old.precision - old.scale, new.precision - new.scale) + scale
    return pa.decimal128(precision, scale) if precision <= 38 else None


def or_widen(path: str, old: pa.DataType, new: pa.DataType) -> str:
    """The end of a message about decimals that don't fit: the change that lets the column take both, "" for none."""
    wider = wider_decimal(old, new)
    return "" if wider is None else f", or widen the column: table.alter(ChangeType({path!r}, pa.{wider}))"


def _with_nulls_typed(new: Sequence[pa.Field], old: Sequence[pa.Field]) -> list[pa.Field]:
    """Incoming fields, with an untyped null replaced by the table's type."""
    old_types = {field.name: field.type for field in old}
    return [
        field.with_type(_typed(field.type, old_types[field.name])) if field.name in old_types else field
        for field in new
    ]


def _typed(new: pa.DataType, old: pa.DataType) -> pa.DataType:
    if pt.is_null(new):
        return old
    if pt.is_struct(new) and pt.is_struct(old):
        return pa.struct(_with_nulls_typed(new.fields, old.fields))
    if is_list(new) and is_list(old):
        return pa.list_(new.value_field.with_type(_typed(new.value_type, old.value_type)))
    if pt.is_map(new) and pt.is_map(old):
        values = new.item_field.with_type(_typed(new.item_type, old.item_type))
        return pa.map_(_typed(new.key_type, old.key_type), values)
    return new


def _takes(old: pa.DataType, new: pa.DataType) -> bool:
    """Does a column of type `old` take data of type `new`, unchanged or widened, without changing the table?"""
    if pt.is_timestamp(old) and pt.is_timestamp(new):
        return bool((old.tz is None) == (new.tz is None))  # a coarser column cuts: Spark has no milliseconds to cast to
    if pt.is_decimal(old):
        return bool(pt.is_decimal(new) and can_cast(new, old))
    return _widens(new, old)


def _same_text(old: pa.DataType, new: pa.DataType) -> bool:
    """Do values of type `new` have the same text, hence the same keys and paths, once they are stored as `old`?"""
    same_kind = pt.is_integer(old) == pt.is_integer(new)
    return old in _NUMBERS and new in _NUMBERS and same_kind and _widens(new, old)


def _widens(narrow: pa.DataType, wide: pa.DataType) -> bool:
    if narrow in _NUMBERS:
        return is_text(wide) or (wide in _NUMBERS and _NUMBERS.index(narrow) < _NUMBERS.index(wide))
    if pt.is_time(narrow) and pt.is_time(wide):
        return can_cast(narrow, wide)
    return is_text(narrow) and is_bytes(wide) and not pt.is_fixed_size_binary(wide)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
