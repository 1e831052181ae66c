"""Rows of the option table: overwriting and deleting partitions.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Kind, OptionSpec

__all__ = ["REPLACING_OPTIONS"]

_GROUP = "Overwriting and deleting partitions"

REPLACING_OPTIONS: tuple[OptionSpec, ...] = (
    honoured(
        _GROUP,
        "hoodie.datasource.overwrite.mode",
        Kind.TEXT,
        None,
        "What save mode overwrite does to a table when no operation is named: STATIC replaces all rows in one commit "
        "(insert_overwrite_table), DYNAMIC those of the partitions that get rows (insert_overwrite). Unset: the table "
        "is made anew. A named operation wins, as in Hudi.",
        choices=("STATIC", "DYNAMIC"),
    ),
    honoured(
        _GROUP,
        "hoodie.static.overwrite.partition.paths",
        Kind.NAMES,
        None,
        "insert_overwrite: the partition paths that are replaced, whether rows go to them or not. Rows may go to no "
        "others.",
    ),
    honoured(
        _GROUP,
        "hoodie.datasource.write.partitions.to.delete",
        Kind.NAMES,
        None,
        "delete_partition: partition paths, with `*` for any text unless a partition has that very path. Unset: the "
        "partitions of the rows that are given.",
    ),
)
