"""Rows of the option table: what log blocks hold.

Source: Hudi's documented keys; the side taken is in docs/compatibility.md.
"""

from __future__ import annotations

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Kind, OptionSpec

__all__ = ["LOG_BLOCK_OPTIONS"]

LOG_BLOCK_OPTIONS: tuple[OptionSpec, ...] = (
    honoured(
        "Files",
        "hoodie.write.record.positions",
        Kind.FLAG,
        None,
        "Merge-on-read from version 8 on: log blocks say at which rows of the base file their keys stand, which saves "
        "readers a look at the base file's keys. Unset: where the index has seen the rows (SIMPLE and BLOOM), and in "
        "blocks of Parquet for PyHudi alone (docs/compatibility.md says why); `true`: always and for Hudi too, which "
        "costs writes by a bucket or global index that look; `false`: never.",
    ),
    honoured(
        "Files",
        "hoodie.spark.sql.merge.into.partial.updates",
        Kind.FLAG,
        "true",
        "Merge-on-read from version 8 on: update and merge write only the changed columns to log files; false: whole "
        "rows, which are written in any case where rows merge column by column or by a merger of yours.",
    ),
)
