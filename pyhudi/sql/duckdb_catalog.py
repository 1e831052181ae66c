"""The catalog of a session without Spark: the names of its `tables`, and the subfolders of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.sql.session import CatalogEntry, TableName
from pyhudi.table import HudiTable

__all__ = ["FolderCatalog"]


class FolderCatalog:
    """The names of one session. A name made by a statement ends with the session; the folder's tables are kept."""

    def __init__(
        self,
        tables: Mapping[str, str | os.PathLike[str] | HudiTable],
        folder: str | os.PathLike[str] | None,
        storage_options: Mapping[str, object] | None,
    ) -> None:
        """`tables`: name → path, or the table; `folder`: its subfolders are tables by their names."""
        self._tables: dict[str, HudiTable | str | None] = {
            name.lower(): place if isinstance(place, HudiTable) else os.fspath(place) for name, place in tables.items()
        }
        self._details: dict[str, tuple[Mapping[str, str], str | None]] = {}
        self._folder = None if folder is None else os.fspath(folder).rstrip("/")
        self._storage_options = storage_options

    def location(self, name: TableName) -> str | None:
        """The folder of a name, whether or not a table is in it; None for a name without a folder."""
        if name.path is not None:
            return name.path
        place = self._tables.get(_key(name), self._place(name))
        return place.path if isinstance(place, HudiTable) else place

    def passed_table(self, name: TableName) -> HudiTable | None:
        """The table that the caller passed under this name, with its storage and options; None for any other name."""
        place = self._tables.get(_key(name)) if name.path is None else None
        return place if isinstance(place, HudiTable) else None

    def find(self, name: TableName) -> CatalogEntry | None:
        """The Hudi table of a name, or None."""
        location, is_open = self.location(name), self.passed_table(name) is not None
        if location is None or not (is_open or HudiTable.exists(location, storage_options=self._storage_options)):
            return None
        properties, comment = self.details(name)
        is_managed = location == self._place(name)
        return CatalogEntry(name, True, location, properties, comment, is_managed)

    def details(self, name: TableName) -> tuple[Mapping[str, str], str | None]:
        """The properties and the comment that statements of this session gave a name."""
        return self._details.get(_key(name), ({}, None))

    def expect(self, names: Iterable[TableName]) -> None:
        """Do nothing: a look-up of several names costs as much as one look-up for each."""

    def place_of(self, name: TableName) -> str:
        """The folder of a new table. Raises ConfigError if the session has no folder for tables."""
        place = self._place(name)
        if place is None:
            raise ConfigError(
                f"SQL: where is {name} to be made? Say LOCATION '…', or give the session a folder for tables: "
                "DuckDbSession(catalog='/lake')."
            )
        return place

    def register(self, entry: CatalogEntry, columns: pa.Schema, partition_fields: Sequence[str]) -> None:
        """Remember a table's name, properties and comment. Its columns are in its folder."""
        self._tables[_key(entry.name)] = entry.location
        self._details[_key(entry.name)] = (entry.properties, entry.comment)

    def update(self, entry: CatalogEntry, columns: pa.Schema, partition_fields: Sequence[str]) -> None:
        """Replace the remembered properties and comment. The columns are in the folder."""
        self.register(entry, columns, partition_fields)

    def remove(self, name: TableName) -> None:
        """Remove a name; files are kept."""
        self._tables[_key(name)] = None
        self._details.pop(_key(name), None)

    def rename(self, name: TableName, new: TableName) -> None:
        """Move a table to another name."""
        place = self.location(name) if (table := self.passed_table(name)) is None else table
        self._tables[_key(new)], self._tables[_key(name)] = place, None
        self._details[_key(new)] = self._details.pop(_key(name), ({}, None))

    def __str__(self) -> str:
        names = ", ".join(sorted(name for name, place in self._tables.items() if place is not None)) or "none"
        return f"Known by name: {names}; the folder of tables: {self._folder or 'none'}; or write hudi.`/path`."

    def _place(self, name: TableName) -> str | None:
        if self._folder is None or any(part in ("", ".", "..") or "/" in part for part in name.parts):
            return None
        return "/".join((self._folder, *name.parts))


def _key(name: TableName) -> str:
    return ".".join(name.parts).lower()
