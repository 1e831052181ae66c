"""Changes of a table's columns, as ALTER TABLE says them, applied to a schema with ids.

A column is named by its path, `address.city` for one inside a struct; `element` and `value` lead into arrays and maps.
Names are found whatever their case. A renamed or moved column keeps its id, a new one gets the next.
Source: docs/formats/schema.md, "Schema history".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.arrow.kinds import is_list
from pyhudi.errors import SchemaMismatch
from pyhudi.formats.avro.reading import DOC_KEY
from pyhudi.model.keys import META_COLUMNS
from pyhudi.schema.evolution import evolve
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
    "needs_ids",
    "with_ids",
]

FIRST = ""  # in the place of the name of the column before: there is none

ColumnPath = tuple[str, ...]
_SHOWN = "column"
_InternalType = pa.DataType | StructType | ListType | MapType
_WIDER = {  # what is read rightly by name
    pa.int32(): (pa.int64(), pa.float32(), pa.float64()),
    pa.int64(): (pa.float32(), pa.float64()),
    pa.float32(): (pa.float64(),),
}


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new column, null in all rows that are there. `after`: the column before it; FIRST; None: last."""

    path: str
    type: pa.DataType
    nullable: bool = True
    comment: str = ""
    after: str | None = None


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Another name for a column, in the same place. `name`: without the path."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class DropColumn:
    """A column leaves; its values can't be read any more, but by time travel."""

    path: str


@dataclass(frozen=True, slots=True)
class ChangeType:
    """Another type, to which every stored value can be widened."""

    path: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class SetComment:
    """What is said of a column."""

    path: str
    comment: str


@dataclass(frozen=True, slots=True)
class MoveColumn:
    """Another place among its neighbours. `after`: the column before it, or FIRST."""

    path: str
    after: str


@dataclass(frozen=True, slots=True)
class DropNotNull:
    """The column may be null from now on."""

    path: str


SchemaChange = AddColumn | RenameColumn | DropColumn | ChangeType | SetComment | MoveColumn | DropNotNull


def needs_ids(changes: Sequence[SchemaChange], before: pa.Schema) -> bool:
    """Whether files of before can be read rightly only by ids of columns, or Hudi's readers read them so."""
    for change in changes:
        if isinstance(change, AddColumn):
            if change.after is not None:
                return True
        elif isinstance(change, ChangeType):
            old = before.field(change.path).type if change.path in before.names else None
            if old is None or change.type not in _WIDER.get(old, ()):
                return True
        elif not isinstance(change, SetComment | DropNotNull):
            return True
    return False


def with_ids(schema: pa.Schema) -> InternalSchema:
    """A table's columns (meta columns first) with the ids that Hudi gives them: level by level."""
    ids = _Ids(-1)
    missing = [pa.field(name, pa.string()) for name in META_COLUMNS if name not in schema.names]
    columns = _numbered([*missing, *schema], ids)
    return InternalSchema(0, ids.last, columns)


def changed_schema(
    schema: InternalSchema,
    changes: Sequence[SchemaChange],
    *,
    protected: Collection[str] = (),
    ordering_fields: Collection[str] = (),
) -> InternalSchema:
    """The schema after these changes, one after the other.

    Args:
        protected: key and partition columns, dotted; they keep name and type.
        ordering_fields: columns that rows are ordered by; they keep their name.
    Raises: SchemaMismatch for columns that are not there, or there already, and for types that stored values don't fit.
    """
    ids = _Ids(schema.max_column_id)
    rules = _Rules(frozenset(protected), frozenset(ordering_fields), ids)
    columns = schema.columns
    for change in changes:
        columns = rules.applied(columns, change)
    return InternalSchema(schema.version_id, ids.last, columns)


class _Ids:
    def __init__(self, last: int) -> None:
        self.last = last

    def next(self) -> int:
        self.last += 1
        return self.last


@dataclass(frozen=True, slots=True)
class _Rules:
    protected: frozenset[str]
    ordering_fields: frozenset[str]
    ids: _Ids

    def applied(self, columns: tuple[SchemaColumn, ...], change: SchemaChange) -> tuple[SchemaColumn, ...]:
        path = tuple(change.path.split("."))
        if path[0].lower() in META_COLUMNS:
            raise SchemaMismatch(f"{path[0]} is a column of Hudi's own; it can't be changed.")
        return _at(columns, path, path, lambda siblings: self._siblings(siblings, change, path))

    def _siblings(
        self, columns: tuple[SchemaColumn, ...], change: SchemaChange, path: ColumnPath
    ) -> tuple[SchemaColumn, ...]:
        """The columns of one struct, with the change done to one of them."""
        if isinstance(change, AddColumn):
            _check_free(columns, path[-1], path)
            if not change.nullable:
                raise SchemaMismatch(f"The new column {change.path} is required, but rows are there without it.")
            added = _numbered([_field(path[-1], change.type, change.comment)], self.ids)[0]
            return _placed(columns, added, change.after, path)
        old = _found(columns, path[-1], path)
        if isinstance(change, DropColumn):
            self._check_kept(path, "dropped")
            if len(columns) == 1 or all(column is old or column.name in META_COLUMNS for column in columns):
                raise SchemaMismatch(f"{_dotted(path)} is the last column; drop the table instead.")
            return tuple(column for column in columns if column is not old)
        if isinstance(change, MoveColumn):
            return _placed(tuple(column for column in columns if column is not old), old, change.after, path)
        new = self._changed(columns, old, change, path)
        return tuple(new if column is old else column for column in columns)

    def _changed(
        self,
        columns: tuple[SchemaColumn, ...],
        old: SchemaColumn,
        change: RenameColumn | ChangeType | SetComment | DropNotNull,
        path: ColumnPath,
    ) -> SchemaColumn:
        if isinstance(change, SetComment):
            return replace(old, doc=change.comment)
        if isinstance(change, DropNotNull):
            return replace(old, nullable=True)
        if isinstance(change, RenameColumn):
            self._check_kept(path, "renamed")
            if change.name.lower() != old.name.lower():
                _check_free(columns, change.name, (*path[:-1], change.name))
            return replace(old, name=change.name)
        before = old.to_arrow().type
        return old if change.type.equals(before) else replace(old, type=self._widened(old, before, change, path))

    def _widened(self, old: SchemaColumn, before: pa.DataType, change: ChangeType, path: ColumnPath) -> pa.DataType:
        if not isinstance(old.type, pa.DataType):
            raise SchemaMismatch(f"{_dotted(path)} is nested ({before}); change its parts, one by one.")
        self._check_kept(path, "given another type", also_ordering=False)
        name = _dotted(path)
        ordered = {_SHOWN} if name in self.ordering_fields else set[str]()
        try:
            found = evolve(
                pa.schema([pa.field(_SHOWN, before)]),
                pa.schema([pa.field(_SHOWN, change.type)]),
                allow_kind_change=True,
                ordering_fields=ordered,
            )
        except SchemaMismatch as error:
            raise SchemaMismatch(f"{name} can't become {change.type}: {error}") from error
        if not found.field(0).type.equals(change.type):
            raise SchemaMismatch(f"{name} can't become {change.type}: that is narrower than {before}, which rows have.")
        return change.type

    def _check_kept(self, path: ColumnPath, what: str, *, also_ordering: bool = True) -> None:
        kept = self.protected | self.ordering_fields if also_ordering else self.protected
        dotted = _dotted(path).lower()
        role = next((name for name in kept if name.lower() == dotted or name.lower().startswith(f"{dotted}.")), None)
        if role is not None:
            raise SchemaMismatch(
                f"{_dotted(path)} can't be {what}: {role} is a key, partition or ordering column, by which rows that "
                "are there are found."
            )


def _at(
    columns: tuple[SchemaColumn, ...],
    path: ColumnPath,
    whole: ColumnPath,
    change: Callable[[tuple[SchemaColumn, ...]], tuple[SchemaColumn, ...]],
) -> tuple[SchemaColumn, ...]:
    """`change` done to the struct that the last part of the path is in."""
    if len(path) == 1:
        return change(columns)
    outer = _found(columns, path[0], whole)
    return tuple(
        replace(column, type=_inside(column.type, path[1:], whole, change)) if column is outer else column
        for column in columns
    )


def _inside(
    kind: _InternalType,
    path: ColumnPath,
    whole: ColumnPath,
    change: Callable[[tuple[SchemaColumn, ...]], tuple[SchemaColumn, ...]],
) -> _InternalType:
    if isinstance(kind, StructType):
        return StructType(_at(kind.columns, path, whole, change))
    step, rest = path[0].lower(), path[1:]
    if isinstance(kind, ListType) and step == "element":
        return ListType(_part(kind.element, rest, whole, change))
    if isinstance(kind, MapType) and step == "value":
        return MapType(kind.key, _part(kind.value, rest, whole, change))
    raise SchemaMismatch(f"{_dotted(whole)}: {path[0]} is no field inside a column of type {kind}.")


def _part(
    part: SchemaColumn,
    rest: ColumnPath,
    whole: ColumnPath,
    change: Callable[[tuple[SchemaColumn, ...]], tuple[SchemaColumn, ...]],
) -> SchemaColumn:
    if rest:
        return replace(part, type=_inside(part.type, rest, whole, change))
    changed = change((part,))
    if len(changed) != 1 or changed[0].name != part.name:
        raise SchemaMismatch(f"{_dotted(whole)}: only the type and comment of {part.name} can be changed.")
    return changed[0]


def _found(columns: Sequence[SchemaColumn], name: str, path: ColumnPath) -> SchemaColumn:
    exact = [column for column in columns if column.name == name]
    near = exact or [column for column in columns if column.name.lower() == name.lower()]
    if len(near) != 1:
        names = ", ".join(column.name for column in columns if column.name not in META_COLUMNS)
        raise SchemaMismatch(f"There is no column {_dotted(path)}; there are {names}.")
    return near[0]


def _check_free(columns: Sequence[SchemaColumn], name: str, path: ColumnPath) -> None:
    if any(column.name.lower() == name.lower() for column in columns):
        raise SchemaMismatch(f"There is a column {_dotted(path)} already.")


def _placed(
    columns: tuple[SchemaColumn, ...], column: SchemaColumn, after: str | None, path: ColumnPath
) -> tuple[SchemaColumn, ...]:
    if after is None:
        return (*columns, column)
    if after == FIRST:
        first = sum(other.name in META_COLUMNS for other in columns)
        return (*columns[:first], column, *columns[first:])
    neighbour = _found(columns, after, (*path[:-1], after))
    if neighbour.name in META_COLUMNS[:-1]:
        raise SchemaMismatch(f"{neighbour.name} is a column of Hudi's own; say FIRST instead.")
    at = columns.index(neighbour) + 1
    return (*columns[:at], column, *columns[at:])


def _numbered(fields: Sequence[pa.Field], ids: _Ids) -> tuple[SchemaColumn, ...]:
    """Columns with ids: all of a struct before what is inside them."""
    own = [ids.next() for _ in fields]
    return tuple(
        SchemaColumn(number, field.name, _numbered_type(field.type, ids), field.nullable, _comment(field))
        for number, field in zip(own, fields, strict=True)
    )


def _numbered_type(kind: pa.DataType, ids: _Ids) -> _InternalType:
    if pa.types.is_struct(kind):
        return StructType(_numbered(kind.fields, ids))
    if pa.types.is_map(kind):
        key, value = _numbered([kind.key_field.with_name("key"), kind.item_field.with_name("value")], ids)
        return MapType(replace(key, nullable=False), value)
    if is_list(kind):
        return ListType(_numbered([kind.value_field.with_name("element")], ids)[0])
    return kind


def _field(name: str, kind: pa.DataType, comment: str) -> pa.Field:
    return pa.field(name, kind, metadata={DOC_KEY: comment.encode()} if comment else None)


def _comment(field: pa.Field) -> str:
    return ((field.metadata or {}).get(DOC_KEY) or b"").decode()


def _dotted(path: ColumnPath) -> str:
    return ".".join(path)
