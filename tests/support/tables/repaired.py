"""Small tables for repairs, and what is asked of them behind one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from pyhudi import HudiTable, write_hudi
from pyhudi.services.repair.result import RepairResult

__all__ = ["KEYS", "START", "VERSIONS", "Rows", "is_right", "mended", "read", "rows", "table_of"]

VERSIONS = ["6", "8", "9"]
Rows = list[tuple[Any, ...]]
KEYS = {"record_key": "id", "partition_by": "p", "ordering": "ts"}


def rows(*given: tuple[str, str | None, int, int]) -> pa.Table:
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in given], schema)


START = [("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 1, 30)]


def table_of(path: Path, version: str, kind: str = "COPY_ON_WRITE", **more: Any) -> HudiTable:
    options = {"hoodie.write.table.version": version, "hoodie.compact.inline": "false", **more.pop("options", {})}
    write_hudi(path, rows(*START), **{**KEYS, **more}, table_type=kind, options=options)
    return HudiTable.open(path)


def read(table: HudiTable) -> Rows:
    dicts = table.to_arrow(["id", "p", "ts", "v"]).to_pylist()
    return sorted((tuple(row.values()) for row in dicts), key=repr)


def mended(result: RepairResult) -> RepairResult:
    assert result.is_done, result
    return result


def is_right(table: HudiTable) -> bool:
    return table.metadata.validate() == ()
