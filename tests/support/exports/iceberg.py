"""An Iceberg catalog for a test, what pyiceberg reads of an exported table, and what our own reader says it must be."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

from pyhudi import HudiTable
from pyhudi.exports.result import ExportResult

__all__ = ["Lake", "by_pyhudi", "rows"]

ICEBERG = "hoodie.pyhudi.export.iceberg."


def rows(table: pa.Table) -> list[str]:
    """Whole rows, each as a text, those that are there twice as well."""
    return sorted(repr(sorted(row.items())) for row in table.to_pylist())


def by_pyhudi(table: HudiTable) -> list[str]:
    """Of base files: what any export has."""
    return rows(table.scan(query_type="read_optimized", meta_columns=True).to_arrow())


@dataclass(frozen=True)
class Lake:
    """A SQLite catalog in a folder. `more`: options of each export. `other`: properties of another catalog."""

    folder: Path
    name: str = "lake.rides"
    more: Mapping[str, str] = field(default_factory=dict)
    other: Mapping[str, str] = field(default_factory=dict)

    @property
    def properties(self) -> dict[str, str]:
        return dict(self.other) or {
            "type": "sql",
            "uri": f"sqlite:///{self.folder}/catalog.db",
            "warehouse": f"file://{self.folder}/wh",
        }

    @property
    def options(self) -> dict[str, str]:
        catalog = {f"{ICEBERG}catalog.{key}": value for key, value in self.properties.items()}
        return {**catalog, f"{ICEBERG}table": self.name, **self.more}

    def catalog(self) -> closing[Catalog]:
        return closing(load_catalog("default", **self.properties))

    def export(self, table: HudiTable) -> ExportResult:
        return table.export_metadata("iceberg", options=self.options)

    def table(self) -> Table:
        with self.catalog() as catalog:
            return catalog.load_table(self.name)

    def exists(self) -> bool:
        with self.catalog() as catalog:
            return catalog.table_exists(self.name)

    def read(self, snapshot_id: int | None = None) -> list[str]:
        return rows(self.table().scan(snapshot_id=snapshot_id).to_arrow())

    def instants(self) -> list[str | None]:
        """The commits that the snapshots name, oldest first."""
        snapshots = sorted(self.table().snapshots(), key=lambda one: one.sequence_number or 0)
        return [one.summary["hudi.instant"] for one in snapshots if one.summary is not None]

    def files(self) -> list[str]:
        return sorted(task.file.file_path for task in self.table().scan().plan_files())

    def assert_equal(self, table: HudiTable) -> None:
        """The export has the rows of the table, its columns in their order, and no file twice."""
        assert self.read() == by_pyhudi(table)
        assert self.table().schema().as_arrow().names == table.scan(meta_columns=True).schema.names
        assert len(set(self.files())) == len(self.files())
