"""The long life of a HudiTable: undoing writes, savepoints, versions."""

from __future__ import annotations

from pyhudi.table_calls import TableCalls

__all__ = ["TableLifecycle"]


class TableLifecycle(TableCalls):
    """rollback, savepoint, restore, upgrade."""
