"""What a query asks, independent of the state of the table: said once, and handed on to whatever plans it.

Source: docs/architecture.md, "How a read flows".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timezone, tzinfo

from pyhudi.model.options.files import DEFAULT_DAMAGE, DamageOptions
from pyhudi.model.options.merging import DEFAULT_MEMORY, MemoryOptions
from pyhudi.queries.as_of import AsOf
from pyhudi.queries.filters import Where

__all__ = ["ALL_ROWS", "Query"]


@dataclass(frozen=True, slots=True)
class Query:
    """Columns, rows and moment of a query, and how its files are found and read.

    Args:
        columns: names of top-level columns in the wanted order; None: all, meta columns first.
        where: see `parse_where`.
        zone: that of times in `where` which name none; None: such are refused where the column holds moments.
        as_of: see `parse_as_of`; None: as of the table that is planned for, or later when files of then go away
            meanwhile. Of an incremental query its range says it.
        query_type: "snapshot", "read_optimized" (base files only) or "incremental".
        merger_classes: paths of the caller's mergers ("module:Class"), for tables with merge mode CUSTOM.
        memory: how many log records of a slice are held in memory.
        damage: what reading does about damaged log files.
        use_metadata: let the metadata table tell files and column statistics, where the table has one.
        unique_keys: no key is in several file groups, so that the record index may tell where rows are.
    """

    columns: Sequence[str] | None = None
    where: Where = None
    zone: tzinfo | None = timezone.utc
    as_of: AsOf | None = None
    query_type: str = "snapshot"
    merger_classes: Sequence[str] = ()
    memory: MemoryOptions = DEFAULT_MEMORY
    damage: DamageOptions = DEFAULT_DAMAGE
    use_metadata: bool = True
    unique_keys: bool = False


ALL_ROWS = Query()
