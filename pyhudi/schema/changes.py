"""Changes of a table's schema, as `ALTER TABLE` makes them, on schemas whose columns have ids.

A column is named by its path: `address.city`, in a list `items.element.price`, in a map `prices.value.amount`. Names
are found whatever their case, as Spark finds them.
Source: docs/formats/schema.md, "Schema history".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

import pyarrow as pa

from pyhudi.errors import SchemaMismatch
from pyhudi.formats.avro.schema import DOC_KEY
from pyhudi.model.keys import META_COLUMNS
from pyhudi.schema.casts import can_cast
from pyhudi.schema.internal import InternalSchema, ListType, MapType, SchemaColumn, StructType
from pyhudi.schema.numbering import numbered_column

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
]

FIRST = ""  # in the place of the name of the column before: there is none

_Columns = tuple[SchemaColumn, ...]
_Edit = Callable[[_Columns, str], _Columns]  # the columns of one record, and the name that is meant


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new column, null in the rows that there are. `after`: the column before it; FIRST; None: at the end."""

    path: str
    type: pa.DataType
    nullable: bool = True
    comment: str = ""
    after: str | None = None


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Another name, in the same place. `name`: without the path."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class DropColumn:
    """The column leaves the schema; one that gets its name later is another column."""

    path: str


@dataclass(frozen=True, slots=True)
class ChangeType:
    """Another type, which every value of the old one can become."""

    path: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class SetComment:
    """What the column's comment says; "" takes it away."""

    path: str
    comment: str


@dataclass(frozen=True, slots=True)
class MoveColumn:
    """Another place in its record. `after`: the column before it, or FIRST."""

    path: str
    after: str


@dataclass(frozen=True, slots=True)
class DropNotNull:
    """The column may be null from now on."""

    path: str


SchemaChange = AddColumn | RenameColumn | DropColumn | ChangeType | SetComment | MoveColumn | DropNotNull


def changed_schema(
    schema: InternalSchema, changes: Sequence[SchemaChange], deciding: Collection[str] = ()
) -> InternalSchema:
    """The schema after the changes, one after the other; version and ids of other columns stay.

    Args:    deciding: paths of the columns that keys, partitions and ordering are made of.
    Raises:  SchemaMismatch for columns that are not there, or are there already, and changes that rows can't follow.
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
            return _placed(columns, column, change.after, change.path)
        at = _index(columns, name, change.path)
        if isinstance(change, DropColumn):
            return _without(columns, at, change.path)
        if isinstance(change, MoveColumn):
            return _placed(columns[:at] + columns[at + 1 :], columns[at], change.after, change.path)
        return (*columns[:at], _altered(columns, at, change), *columns[at + 1 :])

    *parents, name = change.path.split(".")
    columns = _edited(schema.columns, parents, name, edit, change)
    return replace(schema, columns=columns, max_column_id=greatest)


def _edited(columns: _Columns, parents: Sequence[str], name: str, edit: _Edit, change: SchemaChange) -> _Columns:
    if not parents:
        return edit(columns, name)
    at = _index(columns, parents[0], change.path)
    outer = columns[at]
    if isinstance(outer.type, StructType):
        inner: pa.DataType | StructType | ListType | MapType = StructType(
            _edited(outer.type.columns, parents[1:], name, edit, change)
        )
    elif isinstance(outer.type, ListType | MapType):
        inner = _edited_parts(outer.type, parents[1:], name, edit, change)
    else:
        raise SchemaMismatch(f"{change.path!r}: {outer.name!r} is of type {outer.type} and has no columns inside.")
    return (*columns[:at], replace(outer, type=inner), *columns[at + 1 :])


def _edited_parts(
    outer: ListType | MapType, parents: Sequence[str], name: str, edit: _Edit, change: SchemaChange
) -> ListType | MapType:
    """A list or map with something changed inside; its own parts have fixed names and places."""
    if not parents and not isinstance(change, ChangeType | DropNotNull | SetComment):
        kind = "list" if isinstance(outer, ListType) else "map"
        raise SchemaMismatch(f"{change.path!r} is a part of a {kind}: only its type can be changed.")
    if isinstance(outer, ListType):
        return ListType(_edited((outer.element,), parents, name, edit, change)[0])
    if (parents[0] if parents else name) == "key":
        raise SchemaMismatch(f"{change.path!r}: the keys of a map stay as they are.")
    return replace(outer, value=_edited((outer.value,), parents, name, edit, change)[0])


def _index(columns: _Columns, name: str, path: str) -> int:
    names = [column.name for column in columns]
    if name in names:
        return names.index(name)
    alike = [at for at, known in enumerate(names) if known.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    near = get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    known = ", ".join(known for known in names if known not in META_COLUMNS)
    raise SchemaMismatch(f"There is no column {path!r}.{hint} Columns there: {known}.")


def _check_new(columns: _Columns, path: str, name: str) -> None:
    """Spark takes names for equal that differ by case only."""
    same = next((column.name for column in columns if column.name.lower() == name.lower()), None)
    if same is not None:
        raise SchemaMismatch(f"There is a column {same!r} already, so {path!r} can't be added or be a new name.")


def _new(change: AddColumn, name: str, greatest: int) -> tuple[SchemaColumn, int]:
    if not change.nullable:
        raise SchemaMismatch(f"{change.path!r}: a new column is null in the rows that there are; add it as nullable.")
    metadata = {DOC_KEY: change.comment.encode()} if change.comment else None
    return numbered_column(pa.field(name, change.type, metadata=metadata), greatest)


def _placed(columns: _Columns, column: SchemaColumn, after: str | None, path: str) -> _Columns:
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
    left = columns[:at] + columns[at + 1 :]
    if all(column.name in META_COLUMNS for column in left):
        raise SchemaMismatch(f"{path!r} is the last column of its record; drop the record, or the table.")
    return left


def _altered(columns: _Columns, at: int, change: RenameColumn | ChangeType | SetComment | DropNotNull) -> SchemaColumn:
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
