"""The public API: `HudiTable` and `write_hudi`. The modules below are its parts, and nobody else's."""

from pyhudi.table.hudi_table import HudiTable, write_hudi

__all__ = ["HudiTable", "write_hudi"]
