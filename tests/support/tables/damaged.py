"""Merge-on-read tables on this machine whose newest log file is damaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from pyhudi import HudiTable
from tests.support.values.damaged_logs import damage, log_files

__all__ = ["NEW", "OLD", "OPTIONS", "SCHEMA", "damaged", "values"]

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
OPTIONS = {"hoodie.compact.inline": "false", "hoodie.write.set.null.for.missing.columns": "true"}
OLD = {"a": 1, "b": 1}
NEW = {"a": 2, "b": 1}


def damaged(
    path: Path,
    kind: str | None,
    version: str = "9",
    *,
    partitions: Sequence[str] = ("x",),
    updates: int = 1,
    metadata_table: bool = False,
) -> Path:
    """Make a table of the rows OLD in a base file, updated to NEW in log files; damage the newest of these.

    Args:    kind: of DAMAGES; None leaves the file whole. updates: how often the row is updated to NEW, log by log.
             metadata_table: it lists the files, also one that was deleted.
    """
    table = HudiTable.create(
        path, SCHEMA, record_key="id", partition_by="p", ordering="ts", table_type="MERGE_ON_READ",
        options={"hoodie.write.table.version": version, "hoodie.metadata.enable": str(metadata_table)},
    )  # fmt: skip
    first = [{"id": name, "p": p, "ts": 1, "v": 1} for p in partitions for name in OLD]
    table.bulk_insert(first, options=OPTIONS)
    for number in range(updates):
        table.upsert([{"id": "a", "p": p, "ts": 2 + number, "v": 2} for p in partitions], options=OPTIONS)
    return damage(path, kind) if kind is not None else log_files(path)[-1]


def values(path: Path, options: Mapping[str, str] | None = None) -> dict[str, int]:
    """The value of each row."""
    rows = HudiTable.open(path).scan(["id", "v"], options=options).to_arrow().to_pylist()
    return {row["id"]: row["v"] for row in rows}
