"""Names as one statement finds them: each is looked up once, however many of its pieces Spark evaluates.

A look into the catalog costs as much as a small query, and a MERGE INTO names its source in three of its pieces. Names
that a statement is seen to have are looked up together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from pyhudi.session.catalog import SparkCatalog
from pyhudi.sql.session import CatalogEntry, TableName

__all__ = ["StatementNames"]


class StatementNames:
    """`SqlCatalog` for the length of a statement, on the catalog of its session."""

    def __init__(self, catalog: SparkCatalog) -> None:
        self._catalog = catalog
        self._found: dict[tuple[str, ...], CatalogEntry | None] = {}
        self._expected: dict[tuple[str, ...], TableName] = {}

    def expect(self, names: Iterable[TableName]) -> None:
        self._expected |= {name.parts: name for name in names if name.parts not in self._found}

    def find(self, name: TableName) -> CatalogEntry | None:
        if name.parts not in self._found:
            together = {**self._expected, name.parts: name}
            self._expected = {}
            self._found |= self._catalog.find_all(together.values())
        return self._found[name.parts]

    def is_of_the_statement(self, view: str) -> None:
        """A temporary view of the statement's own: there is nothing to look up."""
        self._found[(view,)] = None

    def place_of(self, name: TableName) -> str:
        return self._catalog.place_of(name)

    def register(self, entry: CatalogEntry, columns: pa.Schema, partition_fields: Sequence[str]) -> None:
        self._found.clear()
        self._catalog.register(entry, columns, partition_fields)

    def update(self, entry: CatalogEntry, columns: pa.Schema, partition_fields: Sequence[str]) -> None:
        self._found.clear()
        self._catalog.update(entry, columns, partition_fields)

    def forget(self, name: TableName) -> None:
        self._found.clear()
        self._catalog.forget(name)

    def rename(self, name: TableName, new: TableName) -> None:
        self._found.clear()
        self._catalog.rename(name, new)
