"""Repairs of tables: each finds one kind of damage and repairs it. One file per repair, one row in `REPAIRS`.

A repair is a function of an ActionContext with `dry_run`, which returns a `RepairResult`.
Source: docs/repairs.md.
"""

from __future__ import annotations

from collections.abc import Callable

from pyhudi.registry import Registry
from pyhudi.services.repair.result import RepairResult

__all__ = ["REPAIRS"]

_ROOM = "pyhudi.services.repair"
REPAIRS: Registry[Callable[..., RepairResult]] = Registry(
    kind="repair",
    entries={
        "orphans": f"{_ROOM}.orphans:orphans",
        "partition_metadata": f"{_ROOM}.partition_metadata:partition_metadata",
        "empty_instants": f"{_ROOM}.empty_instants:empty_instants",
        "deprecated_partition": f"{_ROOM}.partitions:deprecated_partition",
        "duplicates": f"{_ROOM}.duplicates:duplicates",
        "log_checksums": f"{_ROOM}.log_checksums:log_checksums",
    },
)
