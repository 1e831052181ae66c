"""The columns of a schema by their paths, and how two schemas differ."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_list
from pyhudi.errors import SchemaMismatch

__all__ = ["ColumnChanges", "check_twins", "column_paths", "zones_of"]


@dataclass(frozen=True, slots=True)
class ColumnChanges:
    """Paths of the columns that a later schema adds, changes in type, and drops.

    Parts of an added or dropped column are not listed.
    """

    added: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    @classmethod
    def between(cls, old: pa.Schema, new: pa.Schema) -> ColumnChanges:
        """Return the changes from one schema to another."""
        if old.equals(new):
            return cls()
        before, after = column_paths(old), column_paths(new)
        retyped = (
            path
            for path, data_type in after.items()
            if path in before and before[path] != data_type and not _are_same_kind(before[path], data_type)
        )
        return cls(_outermost(after, before), tuple(retyped), _outermost(before, after))


def zones_of(schema: pa.Schema) -> dict[str, str]:
    """Return the time zones of timestamp columns, except UTC, by path."""
    kinds = {path: kind for path, kind in column_paths(schema).items() if pt.is_timestamp(kind)}
    return {path: kind.tz for path, kind in kinds.items() if kind.tz not in (None, "UTC", "Etc/UTC", "+00:00")}


def check_twins(schema: pa.Schema, known: pa.Schema) -> None:
    """Raise SchemaMismatch for columns, or fields of one struct, whose names differ only by case: Spark reads neither.

    `known`: the table's columns, which pass.
    """
    paths, before = column_paths(schema), column_paths(known)
    spelled: dict[str, str] = {}
    for path in paths:
        outer, _, name = path.rpartition(".")
        twin = spelled.setdefault(f"{outer}.{name.lower()}", path)
        if twin != path and not (twin in before and path in before):
            raise SchemaMismatch(
                f"The columns {twin!r} and {path!r} differ only by case, which Spark does not tell apart. Rename one "
                "of them. Nothing was written."
            )


def _are_same_kind(old: pa.DataType, new: pa.DataType) -> bool:
    """True if both are nested in the same way, so that the difference is in their own columns."""
    kinds = (pt.is_struct, is_list, pt.is_map)
    return any(kind(old) and kind(new) for kind in kinds)


def _outermost(paths: dict[str, pa.DataType], others: dict[str, pa.DataType]) -> tuple[str, ...]:
    """Return the paths missing in `others`, without those inside another missing one."""
    missing = [path for path in paths if path not in others]
    return tuple(path for path in missing if not any(path.startswith(f"{outer}.") for outer in missing))


def column_paths(schema: pa.Schema) -> dict[str, pa.DataType]:
    """Return all columns and nested fields by path: `address.city`, `items.element.price`, `prices.value`."""
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


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
