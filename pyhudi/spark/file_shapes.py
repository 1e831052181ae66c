"""The way Spark reads the files of a plan: directly, with columns renamed and cast, or by Python.

Spark's Parquet scan finds columns by name and gives null for missing ones, nested ones too. It can't convert most
types, and does not know ids; so files are grouped by *shape*: name and type of each required column in the file.
Source: docs/formats/schema.md, "Reading older files", "Schema history".
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeGuard

import pyarrow as pa
import pyarrow.types as at

from pyhudi.formats.base import open_base_file
from pyhudi.model.filenames import may_be_skeleton
from pyhudi.queries.plan import ReadPlan, ReadSlice
from pyhudi.schema.internal import InternalSchema, schema_as_of
from pyhudi.storage.base import Storage

__all__ = ["BY_PYTHON", "FileShape", "shapes_of"]

_FOOTERS_AT_ONCE = 8
_WHOLE_NUMBERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


@dataclass(frozen=True, slots=True)
class FileShape:
    """The differences from the query. `columns`: name in the query → (name and type in the file), only if they differ.

    A name of None: the file lacks the column (a column of that name would be another one). `native` False: Python must
    read these files. `from_path`: columns whose values come from the partition's path.
    """

    columns: tuple[tuple[str, str | None, pa.DataType], ...] = ()
    native: bool = True
    from_path: tuple[str, ...] = ()


BY_PYTHON = FileShape(native=False)


def shapes_of(plan: ReadPlan, storage: Storage) -> dict[FileShape, tuple[ReadSlice, ...]]:
    """The plan's slices by the shape of their files.

    One footer is read per instant and format: all files of one commit have one schema. Columns from the path may differ
    between partitions, too: the default partition has more of them.
    """
    one_of_each: dict[tuple[str, ...], ReadSlice] = {}
    plain = [read for read in plan.slices if not read.merges]
    for read in plain:
        one_of_each.setdefault(_era(read), read)
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        shapes = dict(
            zip(one_of_each, pool.map(lambda read: _shape(plan, storage, read), one_of_each.values()), strict=True)
        )
    result: dict[FileShape, list[ReadSlice]] = {}
    for read in plain:
        result.setdefault(shapes[_era(read)], []).append(read)
    if len(plain) < len(plan.slices):  # log files are merged by Python
        result.setdefault(BY_PYTHON, []).extend(read for read in plan.slices if read.merges)
    return {shape: tuple(reads) for shape, reads in result.items()}


def _era(read: ReadSlice) -> tuple[str, ...]:
    from_path = (name for name, _ in read.path_values)
    return read.base_file.instant_time, read.base_file.name.rpartition(".")[2], *from_path


def _shape(plan: ReadPlan, storage: Storage, read: ReadSlice) -> FileShape:
    if may_be_skeleton(read.base_file.name):
        return BY_PYTHON  # the other columns are in another file
    from_path = {name for name, _ in read.path_values}
    fields = [field for field in plan.read_schema if field.name not in from_path]
    with open_base_file(storage, read.base_file.path) as reader:
        file_schema = reader.schema
    names = {field.name: field.name for field in fields}
    if plan.internal_schemas:
        renamed = _names_by_id(plan.internal_schemas, read.base_file.instant_time, names)
        if renamed is None:
            return BY_PYTHON
        names = renamed
    differing: list[tuple[str, str | None, pa.DataType]] = []
    for field in fields:
        name = names.get(field.name)
        if name is None:
            differing.append((field.name, None, field.type))
        elif file_schema.get_field_index(name) >= 0:
            kind = file_schema.field(name).type
            same = _reads_as(kind, field.type)
            if not same and not _spark_casts(kind, field.type):
                return BY_PYTHON
            if not same or name != field.name:
                differing.append((field.name, name, field.type if same else kind))
        elif name != field.name:
            differing.append((field.name, None, field.type))
    if read.base_file.name.endswith(".orc") and any(_has_timestamp(field.type) for field in fields):
        return BY_PYTHON  # Spark reads ORC's plain timestamps in the writer's zone
    return FileShape(tuple(differing), from_path=tuple(name for name, _ in read.path_values))


def _names_by_id(history: Sequence[InternalSchema], instant_time: str, names: dict[str, str]) -> dict[str, str] | None:
    """Name in the query → name in files of that instant, without missing columns; None: Python must read the files."""
    query, file_columns = history[0], schema_as_of(history, instant_time)
    if file_columns is None:
        return names
    by_id = {column.id: column for column in file_columns.columns}
    result = {name: name for name in names if name not in {column.name for column in query.columns}}  # meta columns
    for column in query.columns:
        old_column = by_id.get(column.id)
        if column.name in names and old_column is not None:
            if not isinstance(column.type, pa.DataType) and column.type != old_column.type:
                return None  # a nested field was renamed, added or dropped
            result[column.name] = old_column.name
    return result


def _reads_as(stored: pa.DataType, target: pa.DataType) -> bool:
    """True if Spark's scan converts the stored type to the target by itself."""
    if stored == target:
        return True
    if at.is_timestamp(stored) and at.is_timestamp(target):
        return (stored.tz is None) == (target.tz is None)
    if _is_text(stored) and _is_text(target):
        return True
    if at.is_struct(stored) and at.is_struct(target):
        stored_fields = {stored.field(i).name: stored.field(i).type for i in range(stored.num_fields)}
        fields = [target.field(i) for i in range(target.num_fields)]
        # Without a common field Spark can't distinguish a null struct from one of nulls.
        return any(f.name in stored_fields for f in fields) and all(
            _reads_as(stored_fields[f.name], f.type) for f in fields if f.name in stored_fields
        )
    if at.is_map(stored) and at.is_map(target):
        return _reads_as(stored.key_type, target.key_type) and _reads_as(stored.item_type, target.item_type)
    if _is_list(stored) and _is_list(target):
        return _reads_as(stored.value_type, target.value_type)
    return stored in _WHOLE_NUMBERS[:3] and target in _WHOLE_NUMBERS[:3]


def _spark_casts(stored: pa.DataType, target: pa.DataType) -> bool:
    """True if Spark's CAST converts like Java: not for texts of floating point numbers."""
    if stored in _WHOLE_NUMBERS:
        return target in _WHOLE_NUMBERS or at.is_floating(target) or at.is_decimal(target) or _is_text(target)
    if at.is_floating(stored):
        return bool(at.is_float64(target))
    if at.is_decimal(stored):
        return bool(at.is_decimal(target))
    return _is_text(stored) and at.is_binary(target)


def _is_text(kind: pa.DataType) -> bool:
    return bool(at.is_string(kind) or at.is_large_string(kind))


def _is_list(kind: pa.DataType) -> TypeGuard[pa.ListType | pa.LargeListType]:
    return bool(at.is_list(kind) or at.is_large_list(kind))


def _has_timestamp(kind: pa.DataType) -> bool:
    if at.is_nested(kind):
        return any(_has_timestamp(kind.field(i).type) for i in range(kind.num_fields))
    return bool(at.is_timestamp(kind))
