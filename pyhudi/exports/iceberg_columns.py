"""A table's columns in Iceberg: types, changes from commit to commit, and the names of columns in files.

PyHudi's files have no Iceberg field ids. Readers find a column by the table's name mapping, which holds every name that
the column has in some file: the current one, and those before renames. Dropped columns remain in the mapping, because
readers refuse a file with a column that the mapping lacks.

A renamed column is identified by the ids of the schema history; without a history columns match by name, as in PyHudi's
reads. Every column is optional: files written before a column was added lack it.
Source: the Iceberg specification, "Schemas and Data Types", "Schema Evolution", "Name Mapping Serialization".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise

import pyarrow as pa
import pyarrow.types as pt
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

from pyhudi.errors import UnsupportedTable
from pyhudi.formats.avro.schema import DOC_KEY
from pyhudi.schema import internal
from pyhudi.schema.internal import InternalSchema, SchemaColumn

__all__ = [
    "EXPORT_AGAIN",
    "FormerName",
    "change_columns",
    "former_name",
    "iceberg_schema",
    "misread_since",
    "names_in_files",
    "taken_again",
    "unmapped",
]

EXPORT_AGAIN = (
    "Rewrite the older files (table.cluster()), drop the Iceberg table, which keeps every data file, and export again."
)

Path = tuple[str, ...]
FormerName = Callable[[Path], str | None]  # a column → its name in the exported table; None: it is new
_UTC = ("UTC", "+00:00", "Etc/UTC", "Z")
_SIMPLE: Mapping[pa.DataType, type[IcebergType]] = {
    pa.bool_(): BooleanType,
    pa.int8(): IntegerType,
    pa.int16(): IntegerType,
    pa.int32(): IntegerType,
    pa.int64(): LongType,
    pa.float32(): FloatType,
    pa.float64(): DoubleType,
    pa.date32(): DateType,
    pa.time64("us"): TimeType,
    pa.string(): StringType,
    pa.large_string(): StringType,
    pa.binary(): BinaryType,
    pa.large_binary(): BinaryType,
}


# ---- types


def iceberg_schema(schema: pa.Schema, where: str) -> Schema:
    """The columns in Iceberg's types, ids from 1. Raises UnsupportedTable, naming all unsupported columns."""
    types = _Types(count(1), [])
    fields = types.fields(schema, ())
    if types.unknown:
        raise UnsupportedTable(
            f"{where}: Iceberg has no type for {'; '.join(types.unknown)}. Nothing was exported. Change the type "
            "(table.alter(ChangeType(...))), or drop the column."
        )
    return Schema(*fields)


@dataclass(frozen=True, slots=True)
class _Types:
    """`unknown`: the unsupported columns, as text."""

    ids: Iterator[int]
    unknown: list[str]

    def fields(self, fields: Iterable[pa.Field], path: Path) -> list[NestedField]:
        """The fields of one level; their ids come before those within, as in pyiceberg."""
        numbered = [(next(self.ids), field) for field in fields]
        return [
            NestedField(number, field.name, self.type(field.type, (*path, field.name)), required=False, doc=_doc(field))
            for number, field in numbered
        ]

    def type(self, data_type: pa.DataType, path: Path) -> IcebergType:
        if pt.is_struct(data_type):
            return StructType(*self.fields(data_type.fields, path))
        if pt.is_list(data_type) or pt.is_large_list(data_type):
            element = next(self.ids)
            return ListType(element, self.type(data_type.value_type, (*path, "element")), element_required=False)
        if pt.is_map(data_type):
            key, value = next(self.ids), next(self.ids)
            key_type = self.type(data_type.key_type, (*path, "key"))
            return MapType(key, key_type, value, self.type(data_type.item_type, (*path, "value")), value_required=False)
        if pt.is_decimal128(data_type) and data_type.scale >= 0:
            return DecimalType(data_type.precision, data_type.scale)
        if pt.is_fixed_size_binary(data_type):
            return FixedType(data_type.byte_width)
        if pt.is_timestamp(data_type) and data_type.unit in ("ms", "us") and data_type.tz in (None, *_UTC):
            return TimestampType() if data_type.tz is None else TimestamptzType()
        if data_type in _SIMPLE:
            return _SIMPLE[data_type]()
        self.unknown.append(f"{'.'.join(path)} of {data_type}")
        return StringType()


def _doc(field: pa.Field) -> str | None:
    text = (field.metadata or {}).get(DOC_KEY)
    return text.decode(errors="replace") if text else None


# ---- changes


def former_name(before: InternalSchema | None, now: InternalSchema | None) -> FormerName:
    """The names of columns in an earlier schema of the history. None: columns keep their names."""
    if before is None or now is None or before == now:
        return lambda path: path[-1]
    names = {column.id: column.name for _, _, column in _walk(before.columns)}
    ids = {path: column.id for path, _, column in _walk(now.columns)}
    # Histories may leave meta columns out.
    return lambda path: names.get(ids[path]) if path in ids else path[-1]


def misread_since(now: InternalSchema, written: InternalSchema) -> str | None:
    """A name that now means another column than in files of an earlier schema, so that no mapping is right for both."""
    ids = {(parent, column.name): column.id for _, parent, column in _walk(now.columns)}
    keys = (((parent, column.name), column.id) for _, parent, column in _walk(written.columns))
    return next((key[1] for key, number in keys if ids.get(key, number) != number), None)


def _walk(
    columns: Iterable[SchemaColumn], path: Path = (), parent: int = -1
) -> Iterator[tuple[Path, int, SchemaColumn]]:
    """Each column and nested field: its path, the id of the enclosing column, and the column."""
    for column in columns:
        own = (*path, column.name)
        yield own, parent, column
        inner = column.type
        if isinstance(inner, internal.StructType):
            yield from _walk(inner.columns, own, column.id)
        elif isinstance(inner, internal.ListType):
            yield from _walk((inner.element,), own, column.id)
        elif isinstance(inner, internal.MapType):
            yield from _walk((inner.key, inner.value), own, column.id)


def change_columns(update: UpdateSchema, old: Schema, new: Schema, former: FormerName) -> dict[str, str]:
    """Stage the changes from the exported columns to the current ones: drop, rename, widen, add, move.

    Returns: outer columns with a change of type that Iceberg lacks → that change. If there are any, discard the stage.
    """
    changes = _Changes(update, former, {})
    changes.fields(old.as_struct(), new.as_struct(), (), ())
    stored = {field.name for field in old.fields}
    before = [former((field.name,)) for field in new.fields]
    kept = [field.name for field in old.fields if field.name in before]
    added = [field.name for field, name in zip(new.fields, before, strict=True) if name not in stored]
    order = [name if name in stored else field.name for field, name in zip(new.fields, before, strict=True)]
    if order != kept + added and not changes.impossible:
        update.move_first(order[0] or "")
        for previous, name in pairwise(order):
            update.move_after(name or "", previous or "")
    return changes.impossible


@dataclass(frozen=True, slots=True)
class _Changes:
    update: UpdateSchema
    former: FormerName
    impossible: dict[str, str]

    def fields(self, old: StructType, new: StructType, old_path: Path, new_path: Path) -> None:
        """Stage changes of one level, and within. pyiceberg finds columns by their old names."""
        by_name = {field.name: field for field in old.fields}
        before = {field.name: self.former((*new_path, field.name)) for field in new.fields}
        for name in by_name.keys() - before.values():
            self.update.delete_column((*old_path, name))
        for field in new.fields:
            stored, path = by_name.get(before[field.name] or ""), (*new_path, field.name)
            if stored is None:
                self.update.add_column((*old_path, field.name), field.field_type, field.doc)
                continue
            self.type(stored.field_type, field.field_type, (*old_path, stored.name), path)
            if (stored.doc or "") != (field.doc or ""):
                self.update.update_column((*old_path, stored.name), doc=field.doc or "")
            if stored.name != field.name:
                self.update.rename_column((*old_path, stored.name), field.name)

    def type(self, old: IcebergType, new: IcebergType, old_path: Path, new_path: Path) -> None:
        if isinstance(old, StructType) and isinstance(new, StructType):
            self.fields(old, new, old_path, new_path)
        elif isinstance(old, ListType) and isinstance(new, ListType):
            self.type(old.element_type, new.element_type, (*old_path, "element"), (*new_path, "element"))
        elif isinstance(old, MapType) and isinstance(new, MapType) and _same_layout(old.key_type, new.key_type):
            self.type(old.value_type, new.value_type, (*old_path, "value"), (*new_path, "value"))
        elif old != new:
            if _widens(old, new):
                self.update.update_column(old_path, new)
            else:
                self.impossible[new_path[0]] = f"{'.'.join(new_path)} was {old} and is {new}"


def _same_layout(old: IcebergType, new: IcebergType) -> bool:
    """True if types are equal except for the ids within."""
    fresh = [assign_fresh_schema_ids(Schema(NestedField(1, "key", kind, required=True))) for kind in (old, new)]
    return fresh[0].as_struct() == fresh[1].as_struct()


def _widens(old: IcebergType, new: IcebergType) -> bool:
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        return old.scale == new.scale and old.precision < new.precision
    return (type(old), type(new)) in ((IntegerType, LongType), (FloatType, DoubleType))


# ---- files


def unmapped(mapping: NameMapping, fields: Iterable[pa.Field]) -> list[pa.Field]:
    """The columns of a file that the mapping lacks; outer ones as a whole."""
    return [field for field in fields if not _is_mapped(mapping.root, field)]


def _is_mapped(level: Sequence[MappedField], field: pa.Field) -> bool:
    known = next((one for one in level if field.name in one.names), None)
    return known is not None and all(_is_mapped(known.fields, part) for part in _parts(field.type))


def _parts(data_type: pa.DataType) -> Sequence[pa.Field]:
    """The nested fields of a type, under their names in a mapping."""
    if pt.is_struct(data_type):
        return data_type.fields
    if pt.is_list(data_type) or pt.is_large_list(data_type):
        return (data_type.value_field.with_name("element"),)
    if pt.is_map(data_type):
        return (data_type.key_field.with_name("key"), data_type.item_field.with_name("value"))
    return ()


def names_in_files(mapping: NameMapping) -> dict[str, int]:
    """Outer column's name in files → its id."""
    return {name: field.field_id for field in mapping.root for name in field.names if field.field_id is not None}


def taken_again(level: Sequence[MappedField], old: StructType, new: StructType, outer: Path = ()) -> Iterator[str]:
    """New columns with a name that files may have for another column, which was dropped or renamed."""
    known = {name: field for field in level for name in field.names}
    stored = {field.name: field for field in old.fields}
    for field in new.fields:
        before, path = stored.get(field.name), (*outer, field.name)
        if field.name in known and before is None:
            yield ".".join(path)
        elif before is not None and isinstance(before.field_type, StructType) and field.name in known:
            inner = field.field_type
            if isinstance(inner, StructType):
                yield from taken_again(known[field.name].fields, before.field_type, inner, path)
