"""Changes of a table's columns, as ALTER TABLE says them, applied to a schema with ids.

A column is named by its path, `("address", "city")` for one inside a struct; `element`, `key` and `value` lead into
arrays and maps. Names are found whatever their case. A renamed or moved column keeps its id, a new one gets the next.
Source: docs/formats/schema.md, "Schema history".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.arrow.kinds import is_list
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.formats.avro.reading import DOC_KEY
from pyhudi.model.keys import META_COLUMNS
from pyhudi.schema.evolution import evolve
from pyhudi.schema.internal import InternalSchema, ListType, MapType, SchemaColumn, StructType

__all__ = [
    "AddColumn",
    "ChangeColumn",
    "DropColumn",
    "Place",
    "RenameColumn",
    "SchemaChange",
    "changed_schema",
    "needs_ids",
    "with_ids",
]

ColumnPath = tuple[str, ...]
_SHOWN = "column"
_InternalType = pa.DataType | StructType | ListType | MapType


@dataclass(frozen=True, slots=True)
class Place:
    """Where among its neighbours a column goes. `after`: a neighbour's name; None: first."""

    after: str | None = None


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new column, null in all rows that are there. `place` None: last."""

    path: ColumnPath
    type: pa.DataType
    comment: str = ""
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class DropColumn:
    """A column leaves; its values can't be read any more, but by time travel."""

    path: ColumnPath


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Another name for a column, in the same struct."""

    path: ColumnPath
    name: str


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """What a column becomes; None leaves it as it is. `nullable`: only True, a column can't become required."""

    path: ColumnPath
    type: pa.DataType | None = None
    comment: str | None = None
    nullable: bool | None = None
    place: Place | None = None


SchemaChange = AddColumn | DropColumn | RenameColumn | ChangeColumn


def needs_ids(changes: Sequence[SchemaChange]) -> bool:
    """Whether files of before can be read rightly only by ids of columns: after a rename and a drop."""
    return any(isinstance(change, DropColumn | RenameColumn) for change in changes)


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
    Raises: ConfigError for columns that are not there, or there already, and for types that stored values don't fit.
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
        if change.path[0].lower() in META_COLUMNS:
            raise ConfigError(f"{change.path[0]} is a column of Hudi's own; it can't be changed.")
        return _at(columns, change.path, change.path, lambda siblings: self._siblings(siblings, change))

    def _siblings(self, columns: tuple[SchemaColumn, ...], change: SchemaChange) -> tuple[SchemaColumn, ...]:
        """The columns of one struct, with the change done to one of them."""
        if isinstance(change, AddColumn):
            _check_free(columns, change.path[-1], change.path)
            added = _numbered([_field(change.path[-1], change.type, change.comment)], self.ids)[0]
            return _placed(columns, added, change.place, change.path)
        old = _found(columns, change.path[-1], change.path)
        if isinstance(change, DropColumn):
            self._check_kept(change.path, "dropped")
            if len(columns) == 1 or all(column is old or column.name in META_COLUMNS for column in columns):
                raise ConfigError(f"{_dotted(change.path)} is the last column; drop the table instead.")
            return tuple(column for column in columns if column is not old)
        if isinstance(change, RenameColumn):
            self._check_kept(change.path, "renamed")
            if change.name.lower() != old.name.lower():
                _check_free(columns, change.name, (*change.path[:-1], change.name))
            return tuple(replace(column, name=change.name) if column is old else column for column in columns)
        new = self._changed(old, change)
        if change.place is None:
            return tuple(new if column is old else column for column in columns)
        return _placed(tuple(column for column in columns if column is not old), new, change.place, change.path)

    def _changed(self, old: SchemaColumn, change: ChangeColumn) -> SchemaColumn:
        new = old
        if change.comment is not None:
            new = replace(new, doc=change.comment)
        if change.nullable is False and old.nullable:
            raise ConfigError(f"{_dotted(change.path)} may be null; a column can't become NOT NULL.")
        if change.nullable:
            new = replace(new, nullable=True)
        before = old.to_arrow().type
        if change.type is not None and not change.type.equals(before):
            new = replace(new, type=self._widened(old, before, change))
        return new

    def _widened(self, old: SchemaColumn, before: pa.DataType, change: ChangeColumn) -> pa.DataType:
        assert change.type is not None
        if not isinstance(old.type, pa.DataType):
            raise ConfigError(f"{_dotted(change.path)} is nested ({before}); change its parts, one by one.")
        self._check_kept(change.path, "given another type", also_ordering=False)
        name = _dotted(change.path)
        ordered = {_SHOWN} if name in self.ordering_fields else set[str]()
        try:
            found = evolve(
                pa.schema([pa.field(_SHOWN, before)]),
                pa.schema([pa.field(_SHOWN, change.type)]),
                allow_kind_change=True,
                ordering_fields=ordered,
            )
        except SchemaMismatch as error:
            raise ConfigError(f"{name} can't become {change.type}: {error}") from error
        if not found.field(0).type.equals(change.type):
            raise ConfigError(f"{name} can't become {change.type}: that is narrower than {before}, which rows have.")
        return change.type

    def _check_kept(self, path: ColumnPath, what: str, *, also_ordering: bool = True) -> None:
        kept = self.protected | self.ordering_fields if also_ordering else self.protected
        dotted = _dotted(path).lower()
        role = next((name for name in kept if name.lower() == dotted or name.lower().startswith(f"{dotted}.")), None)
        if role is not None:
            raise ConfigError(
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
    raise ConfigError(f"{_dotted(whole)}: {path[0]} is no field inside a column of type {kind}.")


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
        raise ConfigError(f"{_dotted(whole)}: only the type and comment of {part.name} can be changed.")
    return changed[0]


def _found(columns: Sequence[SchemaColumn], name: str, path: ColumnPath) -> SchemaColumn:
    exact = [column for column in columns if column.name == name]
    near = exact or [column for column in columns if column.name.lower() == name.lower()]
    if len(near) != 1:
        names = ", ".join(column.name for column in columns if column.name not in META_COLUMNS)
        raise ConfigError(f"There is no column {_dotted(path)}; there are {names}.")
    return near[0]


def _check_free(columns: Sequence[SchemaColumn], name: str, path: ColumnPath) -> None:
    if any(column.name.lower() == name.lower() for column in columns):
        raise ConfigError(f"There is a column {_dotted(path)} already.")


def _placed(
    columns: tuple[SchemaColumn, ...], column: SchemaColumn, place: Place | None, path: ColumnPath
) -> tuple[SchemaColumn, ...]:
    if place is None:
        return (*columns, column)
    if place.after is None:
        first = sum(other.name in META_COLUMNS for other in columns)
        return (*columns[:first], column, *columns[first:])
    neighbour = _found(columns, place.after, (*path[:-1], place.after))
    if neighbour.name in META_COLUMNS[:-1]:
        raise ConfigError(f"{neighbour.name} is a column of Hudi's own; say FIRST instead.")
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
