"""MemoryOptions: how much of a slice's log files is held in memory, and where the rest waits, typed."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.values import Values

__all__ = ["DEFAULT_MEMORY", "MemoryOptions", "memory_options"]


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """Bytes of log rows of one slice that stay in memory. `spill_folder`: None is the system's temporary folder."""

    merge_bytes: int = 268435456
    compaction_bytes: int = 268435456
    spill_folder: str | None = None


DEFAULT_MEMORY = MemoryOptions()


def memory_options(values: Values) -> MemoryOptions:
    """The options of a read, a write or a call of a service."""
    return MemoryOptions(
        merge_bytes=values.integer("hoodie.memory.merge.max.size", minimum=0),
        compaction_bytes=values.integer("hoodie.memory.compaction.max.size", minimum=0),
        spill_folder=values.text("hoodie.memory.spillable.map.path"),
    )
