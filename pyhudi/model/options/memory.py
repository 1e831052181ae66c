"""MemoryOptions: how much of a slice's log files is held in memory, and where the rest waits.

Source: Hudi's documented keys. Its defaults are shares of a JVM's heap or 1 GiB; several tasks share a machine here, so
ours are smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.declare import option
from pyhudi.model.options.spec import ON_READ_AND_WRITE

__all__ = ["DEFAULT_MEMORY", "MemoryOptions"]


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """Bytes of log rows of one slice that stay in memory. `spill_folder`: None is the system's temporary folder."""

    merge_bytes: int = option(
        "hoodie.memory.merge.max.size",
        268435456,
        "Queries and writes that merge a slice: bytes of log rows in memory, per slice; the rest waits in a "
        "temporary file. Hudi: 1073741824.",
        scopes=ON_READ_AND_WRITE,
        minimum=0,
    )
    compaction_bytes: int = option(
        "hoodie.memory.compaction.max.size",
        268435456,
        "Compaction, log compaction and clustering: as hoodie.memory.merge.max.size. Hudi: a share of the heap.",
        minimum=0,
    )
    spill_folder: str | None = option(
        "hoodie.memory.spillable.map.path",
        None,
        "Folder for log rows that do not fit into memory, on every machine; None: the system's temporary folder.",
        scopes=ON_READ_AND_WRITE,
    )


DEFAULT_MEMORY = MemoryOptions()
