"""Former names of columns: what became of a name that the table no longer has, according to its schema history.

A writer may still send the old name of a column that another writer renamed or dropped. By its ids the history tells
which column the name was. Source: docs/formats/schema.md, "Schema history".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyhudi.schema.internal import InternalSchema, ListType, MapType, SchemaColumn, StructType

__all__ = ["FormerName", "former_names"]

_ROOT = -1


@dataclass(frozen=True, slots=True)
class FormerName:
    """The fate of a column: its current path (None if it was dropped), and the instant of that change."""

    path: str | None
    changed_at: str

    def refusal(self, name: str) -> str:
        """Return why data can't have a column of the former name."""
        if self.path is None:
            return (
                f"the table dropped it at {self.changed_at}. Leave it out; if a new column is meant, add it first: "
                f"table.alter(AddColumn({name!r}, ...))"
            )
        return f"the table calls it {self.path!r} since {self.changed_at}; rename the column in the data"


def former_names(history: Sequence[InternalSchema]) -> dict[str, FormerName]:
    """Path of a column that the newest schema lacks → what became of the column.

    The path is that of data with the table's present columns: its outer columns have their present names.

    Args:   history: newest first.
    """
    if not history:
        return {}
    paths = {column.id: path for _, path, column in _walk(history[0].columns, "", _ROOT)}
    outer = {_ROOT: "", **paths}
    present = set(paths.values())
    names: dict[str, FormerName] = {}
    for newer, schema in pairwise(history):
        for parent, _, column in _walk(schema.columns, "", _ROOT):
            path = _join(outer[parent], column.name) if parent in outer else ""
            if path and path not in present:
                names.setdefault(path, FormerName(paths.get(column.id), str(newer.version_id)))
    return names


def _walk(columns: Sequence[SchemaColumn], path: str, parent: int) -> Iterator[tuple[int, str, SchemaColumn]]:
    """Each column and part of a column: the id of the column around it, its path, and it."""
    for column in columns:
        own = _join(path, column.name)
        yield parent, own, column
        yield from _walk(_parts(column.type), own, column.id)


def _parts(data_type: object) -> tuple[SchemaColumn, ...]:
    if isinstance(data_type, StructType):
        return data_type.columns
    if isinstance(data_type, ListType):
        return (data_type.element,)
    return (data_type.value,) if isinstance(data_type, MapType) else ()


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
