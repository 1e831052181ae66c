"""What deltalake reads of an exported table, and what our own reader says that it must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from pyhudi import HudiTable

__all__ = ["assert_equal", "by_delta", "by_pyhudi", "instants", "live_files"]


def rows(table: pa.Table) -> list[str]:
    """Whole rows, each as a text, those that are there twice as well."""
    return sorted(repr(sorted(row.items())) for row in table.to_pylist())


def by_delta(path: str | Path, version: int | None = None) -> list[str]:
    return rows(DeltaTable(path, version).to_pyarrow_table())


def by_pyhudi(table: HudiTable) -> list[str]:
    """Of base files: what any export has."""
    return rows(table.scan(query_type="read_optimized").to_arrow())


def assert_equal(table: HudiTable) -> None:
    assert by_delta(table.path) == by_pyhudi(table)


def instants(path: str | Path) -> list[str]:
    """The commits that the versions name, oldest first."""
    return [version["hudi.instant"] for version in reversed(DeltaTable(path).history())]


def live_files(path: str | Path) -> list[str]:
    listed: list[Any] = pa.table(DeltaTable(path).get_add_actions())["path"].to_pylist()
    return sorted(map(unquote, listed))
