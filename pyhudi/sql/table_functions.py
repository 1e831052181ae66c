"""The rows of Hudi's table functions, as functions of a table and their arguments.

    hudi_query(t, 'read_optimized')                   hudi_query_timeline(t[, archived])
    hudi_table_changes(t, 'cdc', begin[, end])        hudi_metadata(t)
                                                      hudi_filesystem_view(t[, glob])
Source: Apache Hudi 1.2.0, table-valued functions of its Spark SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.sql.literals import Constant

if TYPE_CHECKING:
    from pyhudi.table import HudiTable
    from pyhudi.table.scan import Scan

__all__ = ["TABLE_FUNCTIONS", "rows_of_function"]

TABLE_FUNCTIONS = ("hudi_query", "hudi_table_changes", "hudi_query_timeline", "hudi_metadata", "hudi_filesystem_view")


def rows_of_function(
    function: str, arguments: Sequence[Constant], table_of: Callable[[str], HudiTable]
) -> Scan | pa.Table:
    """The rows of a call: a scan of the table, or what is known about it.

    Args:   table_of: finds the table that the first argument names, by name or path.
    Raises: ConfigError for wrong arguments.
    """
    if not arguments or not isinstance(arguments[0], str):
        raise ConfigError(f"{function} takes a table's name or path as its first argument.")
    table, rest = table_of(arguments[0]), tuple(arguments[1:])
    texts = [str(argument) for argument in rest]
    if function == "hudi_query" and len(rest) == 1:
        return table.scan(query_type=texts[0])
    if function == "hudi_table_changes" and len(rest) in (2, 3):
        end = texts[2] if len(rest) == 3 else None
        return table.scan(query_type="incremental", incremental_format=texts[0], begin=texts[1], end=end)
    raise ConfigError(f"{function} does not take these arguments: {', '.join(texts)!r:.200}.")
