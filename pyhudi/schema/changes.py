"""Changes of a table's schema, as by `ALTER TABLE`, and ids for columns without one.

`changed_schema` works on schemas whose columns have ids. A change names a column by its path: `address.city`, in a list
`items.element.price`, in a map `prices.value.amount`. Names match regardless of case, as in Spark.

Columns without an id get one: `numbered_schema` numbers the schema of a table before its first change,
`numbered_column` a new column. The columns of one record get their ids before the columns inside them, in the order of
the schema.
Source: docs/formats/schema.md, "Schema history".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from itertools import count
from typing import cast

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_list
from pyhudi.errors import SchemaMismatch
from pyhudi.formats.avro.schema import DOC_KEY, storable
from pyhudi.model.keys import META_COLUMNS
from pyhudi.schema.casts import can_cast
from pyhudi.schema.internal import InternalSchema, ListType, MapType, SchemaColumn, StructType

__all__ = [
    "FIRST",
    "AddColumn",
    "ChangeType",
    "DropColumn",
    "DropNotNull",
    "MoveColumn",
    "RenameColumn",
    "SchemaChange",
    "SetComment",
    "changed_schema",
    "numbered_column",
    "numbered_schema",
    "renumbered",
]


def numbered_schema(columns: pa.Schema, *, with_meta: bool) -> InternalSchema:
    """The schema of a table without history, as version 0. `columns`: its data columns; `with_meta`: rows have the five
    meta columns, which come first.
    """
    meta = [pa.field(name, pa.string()) for name in META_COLUMNS] if with_meta else []
    ids = count()
    numbered = _record([*meta, *storable(columns)], ids)
    return InternalSchema(0, next(ids) - 1, numbered)


def numbered_column(column: pa.Field, max_column_id: int) -> tuple[SchemaColumn, int]:
    """Return a new column of a schema with the greatest id `max_column_id`, and the greatest id after it."""
    ids = count(max_column_id + 1)
    (numbered,) = _record([storable(pa.schema([column])).field(0)], ids)
    return numbered, next(ids) - 1


def renumbered(newest: InternalSchema, columns: pa.Schema) -> InternalSchema:
    """Return the schema of these columns after the newest one of a history: columns with existing names keep their ids.

    Args:    columns: the data columns of rows that were fitted to the table (`evolve`); meta columns stay unchanged.
    """
    meta = tuple(column for column in newest.columns if column.name in META_COLUMNS)
    ids = count(newest.max_column_id + 1)
    existing = {column.name: column for column in newest.columns}
    data = _stored_or_new(list(storable(columns)), existing, ids)
    return InternalSchema(newest.version_id, next(ids) - 1, (*meta, *data))


def _stored_or_new(
    fields: list[pa.Field], existing: Mapping[str, SchemaColumn], ids: Iterator[int]
) -> tuple[SchemaColumn, ...]:
    new = {field.name: next(ids) for field in fields if field.name not in existing}
    return tuple(
        _column(new[field.name], field, ids) if field.name in new else _with_type(existing[field.name], field, ids)
        for field in fields
    )


def _with_type(column: SchemaColumn, field: pa.Field, ids: Iterator[int]) -> SchemaColumn:
    return replace(column, type=_retype(column.type, field.type, ids), nullable=column.nullable or field.nullable)


def _retype(
    old: pa.DataType | StructType | ListType | MapType, new: pa.DataType, ids: Iterator[int]
) -> pa.DataType | StructType | ListType | MapType:
    if isinstance(old, StructType) and isinstance(new, pa.StructType):
        return StructType(_stored_or_new(list(new.fields), {column.name: column for column in old.columns}, ids))
    if isinstance(old, ListType) and isinstance(new, pa.ListType):
        return ListType(_with_type(old.element, new.value_field, ids))
    if isinstance(old, MapType) and isinstance(new, pa.MapType):
        return replace(old, value=_with_type(old.value, new.item_field, ids))
    return new


def _record(fields: list[pa.Field], ids: Iterator[int]) -> tuple[SchemaColumn, ...]:
    numbers = [next(ids) for _ in fields]
    return tuple(_column(number, field, ids) for number, field in zip(numbers, fields, strict=True))


def _column(number: int, field: pa.Field, ids: Iterator[int]) -> SchemaColumn:
    doc = (field.metadata or {}).get(DOC_KEY, b"").decode()
    return SchemaColumn(number, field.name, _typed(field.type, ids), field.nullable, doc)


def _typed(data_type: pa.DataType, ids: Iterator[int]) -> pa.DataType | StructType | ListType | MapType:
    if pt.is_struct(data_type):
        return StructType(_record(list(data_type.fields), ids))
    if is_list(data_type):
        element = next(ids)
        return ListType(_part(element, "element", data_type.value_field, ids))
    if pt.is_map(data_type):
        key, value = next(ids), next(ids)
        inside = SchemaColumn(key, "key", data_type.key_type, nullable=False)
        return MapType(inside, _part(value, "value", data_type.item_field, ids))
    return data_type


def _part(number: int, name: str, field: pa.Field, ids: Iterator[int]) -> SchemaColumn:
    return SchemaColumn(number, name, _typed(field.type, ids), field.nullable)


FIRST = ""  # instead of the name of the preceding column

_Columns = tuple[SchemaColumn, ...]
_Edit = Callable[[_Columns, str], _Columns]  # the columns of one record, and the name of the column


class _Checked:
    """A change whose fields are checked when it is made."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Raise SchemaMismatch for names that are not text, and types that Arrow does not know."""
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.name == "type":
                object.__setattr__(self, "type", _type_of(value, self))
            elif field.type in ("str", "str | None") and not isinstance(value, str) and (value is not None):
                raise SchemaMismatch(f"{type(self).__name__}: {field.name} is text; found {value!r:.100}.")


def _type_of(value: object, change: object) -> pa.DataType:
    """Return an Arrow type, given itself or by name. Raises SchemaMismatch."""
    if isinstance(value, pa.DataType):
        return value
    try:
        if isinstance(value, str):
            return cast("pa.DataType", pa.type_for_alias(value))  # type: ignore[call-overload]
    except ValueError:
        pass
    raise SchemaMismatch(
        f"{type(change).__name__}: {value!r:.100} is not a type. Give a pyarrow type such as pa.int64(), pa.string() "
        "or pa.decimal128(10, 2), or its name as text: 'int64', 'string'."
    )


@dataclass(frozen=True, slots=True)
class AddColumn(_Checked):
    """A new column, null in existing rows. `after`: the column before it; FIRST; None: at the end."""

    path: str
    type: pa.DataType
    nullable: bool = True
    comment: str = ""
    after: str | None = None


@dataclass(frozen=True, slots=True)
class RenameColumn(_Checked):
    """A new name, in the same place. `name`: without the path."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class DropColumn(_Checked):
    """The column is dropped; a later column of the same name is another column."""

    path: str


@dataclass(frozen=True, slots=True)
class ChangeType(_Checked):
    """A new type, to which every value of the old one can be converted."""

    path: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class SetComment(_Checked):
    """The column's new comment; "" removes it."""

    path: str
    comment: str


@dataclass(frozen=True, slots=True)
class MoveColumn(_Checked):
    """A new place in its record. `after`: the column before it, or FIRST."""

    path: str
    after: str


@dataclass(frozen=True, slots=True)
class DropNotNull(_Checked):
    """The column becomes nullable."""

    path: str


SchemaChange = AddColumn | RenameColumn | DropColumn | ChangeType | SetComment | MoveColumn | DropNotNull


def changed_schema(
    schema: InternalSchema, changes: Sequence[SchemaChange], deciding: Collection[str] = ()
) -> InternalSchema:
    """Return the schema after the changes, applied in order; version and ids of other columns stay.

    Args:    deciding: paths of the columns of keys, partitions and ordering.
    Raises:  SchemaMismatch for missing or already existing columns, and for changes that rows can't follow.
    """
    for change in changes:
        changed = _after(schema, change)
        if isinstance(change, RenameColumn | DropColumn | ChangeType) and changed != schema:
            _check_deciding(change.path.lower(), deciding)
        schema = changed
    return schema


def _check_deciding(path: str, deciding: Collection[str]) -> None:
    inside = next((name for name in deciding if f"{name}.".lower().startswith(f"{path}.")), None)
    if inside is not None:
        raise SchemaMismatch(
            f"{inside!r} is a key, partition or ordering column: it keeps its name and type, or older rows would not "
            "be found again. Write the rows to a new table to change it."
        )


def _after(schema: InternalSchema, change: SchemaChange) -> InternalSchema:
    if change.path.partition(".")[0] in META_COLUMNS:
        raise SchemaMismatch(f"{change.path!r} is one of Hudi's own columns, which stay as they are.")
    greatest = schema.max_column_id

    def edit(columns: _Columns, name: str) -> _Columns:
        nonlocal greatest
        if isinstance(change, AddColumn):
            column, greatest = _new(change, name, greatest)
            _check_new(columns, change.path, name)
            return _place(columns, column, change.after, change.path)
        at = _index(columns, name, change.path)
        if isinstance(change, DropColumn):
            return _without(columns, at, change.path)
        if isinstance(change, MoveColumn):
            return _place(columns[:at] + columns[at + 1 :], columns[at], change.after, change.path)
        return (*columns[:at], _alter(columns, at, change), *columns[at + 1 :])

    *parents, name = change.path.split(".")
    columns = _edit_record(schema.columns, parents, name, edit, change)
    return replace(schema, columns=columns, max_column_id=greatest)


def _edit_record(columns: _Columns, parents: Sequence[str], name: str, edit: _Edit, change: SchemaChange) -> _Columns:
    if not parents:
        return edit(columns, name)
    at = _index(columns, parents[0], change.path)
    outer = columns[at]
    if isinstance(outer.type, StructType):
        inner: pa.DataType | StructType | ListType | MapType = StructType(
            _edit_record(outer.type.columns, parents[1:], name, edit, change)
        )
    elif isinstance(outer.type, ListType | MapType):
        inner = _edited_parts(outer.type, parents[1:], name, edit, change)
    else:
        raise SchemaMismatch(f"{change.path!r}: {outer.name!r} is of type {outer.type} and has no columns inside.")
    return (*columns[:at], replace(outer, type=inner), *columns[at + 1 :])


def _edited_parts(
    outer: ListType | MapType, parents: Sequence[str], name: str, edit: _Edit, change: SchemaChange
) -> ListType | MapType:
    """Return a list or map with a change inside. Its own parts have fixed names and places."""
    if not parents and not isinstance(change, ChangeType | DropNotNull | SetComment):
        kind = "list" if isinstance(outer, ListType) else "map"
        raise SchemaMismatch(f"{change.path!r} is a part of a {kind}: only its type can be changed.")
    if isinstance(outer, ListType):
        return ListType(_edit_record((outer.element,), parents, name, edit, change)[0])
    if (parents[0] if parents else name) == "key":
        raise SchemaMismatch(f"{change.path!r}: the keys of a map stay as they are.")
    return replace(outer, value=_edit_record((outer.value,), parents, name, edit, change)[0])


def _index(columns: _Columns, name: str, path: str) -> int:
    names = [column.name for column in columns]
    if name in names:
        return names.index(name)
    alike = [at for at, existing in enumerate(names) if existing.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    near = get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    existing = ", ".join(existing for existing in names if existing not in META_COLUMNS)
    raise SchemaMismatch(f"There is no column {path!r}.{hint} Columns there: {existing}.")


def _check_new(columns: _Columns, path: str, name: str) -> None:
    """Refuse a name that exists in any case: Spark ignores the case of names."""
    same = next((column.name for column in columns if column.name.lower() == name.lower()), None)
    if same is not None:
        raise SchemaMismatch(f"There is a column {same!r} already, so {path!r} can't be added or be a new name.")


def _new(change: AddColumn, name: str, greatest: int) -> tuple[SchemaColumn, int]:
    if not change.nullable:
        raise SchemaMismatch(f"{change.path!r}: a new column is null in existing rows; add it as nullable.")
    metadata = {DOC_KEY: change.comment.encode()} if change.comment else None
    return numbered_column(pa.field(name, change.type, metadata=metadata), greatest)


def _place(columns: _Columns, column: SchemaColumn, after: str | None, path: str) -> _Columns:
    if after is None:
        return (*columns, column)
    if after == FIRST:
        at = sum(other.name in META_COLUMNS for other in columns)
    else:
        if after.lower() == column.name.lower():
            raise SchemaMismatch(f"{path!r} can't be placed after itself.")
        at = _index(columns, after, after) + 1
    return (*columns[:at], column, *columns[at:])


def _without(columns: _Columns, at: int, path: str) -> _Columns:
    rest = columns[:at] + columns[at + 1 :]
    if all(column.name in META_COLUMNS for column in rest):
        raise SchemaMismatch(f"{path!r} is the last column of its record; drop the record, or the table.")
    return rest


def _alter(columns: _Columns, at: int, change: RenameColumn | ChangeType | SetComment | DropNotNull) -> SchemaColumn:
    column = columns[at]
    if isinstance(change, RenameColumn):
        _check_new(columns[:at] + columns[at + 1 :], change.name, change.name)
        return replace(column, name=change.name)
    if isinstance(change, SetComment):
        return replace(column, doc=change.comment)
    if isinstance(change, DropNotNull):
        return replace(column, nullable=True)
    new, _ = numbered_column(pa.field(column.name, change.type), column.id)
    old = column.type
    nested = (StructType, ListType, MapType)
    if isinstance(old, nested) or isinstance(new.type, nested):
        raise SchemaMismatch(f"{change.path!r} is nested, or would be: change the types of the columns inside of it.")
    if not can_cast(old, new.type):
        raise SchemaMismatch(f"{change.path!r}: values of type {old} can't become {new.type}.")
    return replace(column, type=new.type)
