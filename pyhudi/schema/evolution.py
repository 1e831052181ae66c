"""Schema evolution on write: the table's schema after a write of data with another schema.

Allowed: new columns (made nullable, appended at the end of the root or of their struct), types that can be widened in
the table (int → long → float → double), data narrower than the table (widened on the way in, also to text). Required
columns stay required even if the data's type is nullable: rows without a value are refused (`required.py`). Refused,
all offending columns in one message: narrowing and unrelated types, columns that would change their kind (number →
string, string → binary; an option allows it), names that differ only by case, former names of columns, new names that
resemble those of missing columns (unless the call says that it adds columns), missing columns (unless an option says
null or drop), changes of key and partition columns. Names match exactly; order does not matter. An untyped null, at any
depth, takes the type that the table has there.
Source: docs/formats/schema.md, "Evolution on write".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_bytes, is_list, is_text
from pyhudi.errors import SchemaMismatch
from pyhudi.formats.avro.schema import storable, without_meta
from pyhudi.schema.casts import can_cast
from pyhudi.schema.former_names import FormerName
from pyhudi.schema.near_names import near_name
from pyhudi.schema.value_types import nulls_typed

__all__ = ["evolve", "misfit", "misspelt", "or_widen", "wider_decimal"]

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
    missing: str = "refused",
    schema_mode: str | None = None,
) -> pa.Schema:
    """Return the table's schema after a write of `incoming`; the same object when nothing changes.

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
        missing: of whole columns that the data lacks: "kept", stored rows keep their values; "null", there are none;
            "refused".
        schema_mode: "merge" accepts all new columns, "strict" none, and no wider types; None: those that don't look
            misspelt.
    Returns: data columns only. `project(data, evolve(...))` brings the data into it.
    Raises:  SchemaMismatch naming every column that does not fit, with both types and the reason.
    """
    old = without_meta(table)
    new = storable(pa.schema(nulls_typed(list(without_meta(incoming)), list(old))))
    if not old.names:
        return new
    keep = null_for_missing or reconcile
    step = _Step(
        keep,
        allow_drop,
        allow_kind_change,
        frozenset(protected),
        frozenset(ordering_fields),
        former,
        missing,
        schema_mode,
    )
    fields = step.fields(list(old), list(new), "")
    if step.lacking:
        step.problems.append(
            f"{', '.join(step.lacking)}: missing in the data; add what is missing, or set "
            "hoodie.write.set.null.for.missing.columns=true to write nulls, also over stored values"
        )
    if step.problems:
        raise misfit(step.problems)
    evolved = pa.schema(fields)
    return table if evolved.equals(table) else evolved


@dataclass(frozen=True, slots=True)
class _Step:
    """One evolution by the arguments of `evolve`; collects the misfits."""

    keep_missing: bool
    allow_drop: bool
    allow_kind_change: bool
    protected: frozenset[str]
    ordering_fields: frozenset[str]
    former: Mapping[str, FormerName]
    missing: str
    schema_mode: str | None
    problems: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)  # columns that the data must not lack

    def fields(self, old: Sequence[pa.Field], new: Sequence[pa.Field], path: str) -> list[pa.Field]:
        """Fields of a struct (or of the root, path "") after the write: the old ones in their order, then the new."""
        arriving, old_names = {column.name: column for column in new}, {column.name for column in old}
        missing = [column.name for column in old if column.name not in arriving]
        added = [column for column in new if column.name not in old_names]
        by_lower_case = {name.lower(): name for name in old_names} if added else {}
        meant = {self._unknown(column, missing, by_lower_case, path) for column in added}
        out: list[pa.Field] = []
        for column in old:
            if column.name in arriving:
                out.append(self._both(column, arriving[column.name], _join(path, column.name)))
            elif column.name not in meant:
                out += self._missing(column, _join(path, column.name))
        return out + [column.with_nullable(True) for column in added]

    def _unknown(
        self, column: pa.Field, missing: Sequence[str], by_lower_case: Mapping[str, str], path: str
    ) -> str | None:
        """Report a new column that can't be added. Returns the table's column that the data means, if that is known."""
        name = _join(path, column.name)
        twin = by_lower_case.get(column.name.lower())
        if twin is not None:
            self.problems.append(
                f"column {name!r}: the table calls it {_join(path, twin)!r}, and names match letter by letter; rename "
                "the column in the data"
            )
            return twin
        former = self.former.get(name)
        if former is not None:
            self.problems.append(f"column {name!r}: {former.refusal(name)}")
            return None if former.path is None else former.path.rpartition(".")[2]
        near = near_name(column.name, missing)
        if self.schema_mode == "strict":
            hint = f" Did you mean {_join(path, near)!r}?" if near else ""
            self.problems.append(
                f"column {name!r} ({column.type}): the table has no such column, and schema_mode='strict' adds none."
                f"{hint} Leave it out, or add it first: table.alter(AddColumn({name!r}, ...))"
            )
        elif near is not None and self.schema_mode is None:
            self.problems.append(misspelt(name, _join(path, near)))
        else:
            return None
        return near

    def _both(self, old: pa.Field, new: pa.Field, path: str) -> pa.Field:
        data_type = self._type(old.type, new.type, path)
        # In Spark and pandas nearly every column is nullable: the rows are checked (`required.py`), not the type.
        return pa.field(old.name, data_type, nullable=old.nullable, metadata=old.metadata)

    def _missing(self, old: pa.Field, path: str) -> list[pa.Field]:
        is_whole = path == old.name
        if self.missing == "kept" and is_whole:
            return [old]
        inside = (name for name in self.protected | self.ordering_fields if name == path or name.startswith(f"{path}."))
        needed = next(inside, None)
        if needed is not None:
            self.problems.append(
                f"column {path!r} ({old.type}): missing in the data; {needed!r} is a key, partition or ordering column"
            )
        elif self.keep_missing or (self.missing == "null" and is_whole):
            return [old]  # required or not: rows other than deletes are refused
        elif not self.allow_drop:
            self.lacking.append(f"column {path!r} ({old.type})")
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
        if _widens(old, new) and self.schema_mode == "strict":
            self.problems.append(
                f"column {path!r}: the table has {old}, the data {new}; schema_mode='strict' keeps the table's types: "
                f"cast the data to {old}"
            )
        return new if _widens(old, new) else old

    def _element(self, old: pa.Field, new: pa.Field, path: str) -> pa.Field:
        return pa.field(old.name, self._type(old.type, new.type, path), nullable=old.nullable)

    def _refusal(self, old: pa.DataType, new: pa.DataType, path: str) -> str | None:
        """Return why data of type `new` doesn't fit a column of another type `old`; None if it does."""
        if path in self.protected and not _same_text(old, new):
            return "a key or partition column keeps its type, or older rows would not be found again"
        if _takes(old, new):
            return None
        if path in self.ordering_fields and not (old in _NUMBERS and new in _NUMBERS):
            return "an ordering column may only become a wider number, or rows could not be compared"
        if _widens(old, new):
            if self.allow_kind_change or new in _NUMBERS or pt.is_time(new):
                return None
            return (
                f"for all its rows the column would become {'text' if is_text(new) else 'bytes'}: cast the data to "
                f"{old}, or allow it with hoodie.pyhudi.schema.allow.kind.change=true"
            )
        if pt.is_timestamp(old) and pt.is_timestamp(new):
            return "one is a moment in UTC, the other a local time: say which zone you mean by casting the data"
        if pt.is_decimal(old) and pt.is_decimal(new):
            return f"digits could be lost: cast the data{or_widen(path, old, new)}"
        return f"that is not a widening: cast the data to {old}"


def misfit(problems: Iterable[str]) -> SchemaMismatch:
    """Return the error for data that does not fit the table's schema."""
    listed = "".join(f"\n  - {problem}" for problem in problems)
    return SchemaMismatch(f"The data does not fit the table's schema; nothing was written:{listed}")


def misspelt(name: str, near: str) -> str:
    """Describe the fault of a new column whose name resembles that of a missing one."""
    return (
        f"column {name!r}: the table has no such column, and the data lacks {near!r}. Did you mean {near!r}? Rename "
        "the column in the data; if it is a new one, say schema_mode='merge' (hoodie.pyhudi.schema.mode=merge)"
    )


def wider_decimal(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    """Return the decimal that holds the values of both; None if one is not a decimal, or for more than 38 digits."""
    if not (pt.is_decimal(old) and pt.is_decimal(new)):
        return None
    scale = max(old.scale, new.scale)
    precision = max(old.precision - old.scale, new.precision - new.scale) + scale
    return pa.decimal128(precision, scale) if precision <= 38 else None


def or_widen(path: str, old: pa.DataType, new: pa.DataType) -> str:
    """Return the end of a message about decimals that don't fit: the change that makes the column fit both, or ""."""
    wider = wider_decimal(old, new)
    return "" if wider is None else f", or widen the column: table.alter(ChangeType({path!r}, pa.{wider}))"


def _takes(old: pa.DataType, new: pa.DataType) -> bool:
    """True if a column of type `old` accepts data of type `new`, unchanged or widened, without a table change."""
    if pt.is_timestamp(old) and pt.is_timestamp(new):
        # A coarser column truncates: Spark has no millisecond type to cast to.
        return bool((old.tz is None) == (new.tz is None))
    if pt.is_decimal(old):
        return bool(pt.is_decimal(new) and can_cast(new, old))
    if is_bytes(old) and is_bytes(new):
        # Spark has no binary of a fixed size; values of another size are refused as they are cast.
        return not (pt.is_fixed_size_binary(old) and pt.is_fixed_size_binary(new))
    return _widens(new, old)


def _same_text(old: pa.DataType, new: pa.DataType) -> bool:
    """True if values of type `new` have the same text, hence the same keys and paths, when stored as `old`."""
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
