"""Rows of the option table: memory for log records.

Source: Hudi's documented keys. Its defaults are shares of a JVM's heap or 1 GiB; several tasks share a machine here, so
ours are smaller.
"""

from __future__ import annotations

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Door, Kind, OptionSpec

__all__ = ["MEMORY_OPTIONS"]

_GROUP = "Memory and executors"
_BOTH = frozenset({Door.READ, Door.WRITE})

MEMORY_OPTIONS: tuple[OptionSpec, ...] = (
    honoured(
        _GROUP,
        "hoodie.memory.merge.max.size",
        Kind.INTEGER,
        "268435456",
        "Queries and writes that merge a slice: bytes of log rows in memory, per slice; the rest waits in a temporary "
        "file. Hudi: 1073741824.",
        doors=_BOTH,
    ),
    honoured(
        _GROUP,
        "hoodie.memory.compaction.max.size",
        Kind.INTEGER,
        "268435456",
        "Compaction, log compaction and clustering: as hoodie.memory.merge.max.size. Hudi: a share of the heap.",
    ),
    honoured(
        _GROUP,
        "hoodie.memory.spillable.map.path",
        Kind.TEXT,
        None,
        "Folder for log rows that do not fit into memory, on every machine; None: the system's temporary folder.",
        doors=_BOTH,
    ),
)
