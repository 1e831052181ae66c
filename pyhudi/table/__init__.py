"""The public API: `HudiTable` and `write_hudi`. The modules below are its parts, and nobody else's.

The two names are imported on first use: a description of a table needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyhudi.table.hudi_table import HudiTable, write_hudi

__all__ = ["HudiTable", "write_hudi"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'pyhudi.table' has no attribute {name!r}")
    from pyhudi.table import hudi_table

    return getattr(hudi_table, name)
