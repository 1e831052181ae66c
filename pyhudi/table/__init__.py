"""The public API: `HudiTable` and `write_hudi`. The modules below are private parts of it.

The two names are imported on first use: a description of a table needs neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyhudi.table.hudi_table import HudiTable
    from pyhudi.table.write_call import write_hudi

__all__ = ["HudiTable", "write_hudi"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'pyhudi.table' has no attribute {name!r}")
    home = {"HudiTable": "hudi_table", "write_hudi": "write_call"}[name]
    value: object = getattr(import_module(f"pyhudi.table.{home}"), name)
    return value
