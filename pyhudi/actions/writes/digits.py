"""Incoming values with more digits than their columns hold: finer times, integers too large for floats.

Such values are refused, those in memory before anything is written. Only for columns of milliseconds are microseconds
cut, with a warning: Spark's times always have microseconds.
"""

from __future__ import annotations

import pyarrow as pa

from pyhudi.schema.casts import first_inexact, may_be_inexact
from pyhudi.schema.column_paths import column_paths
from pyhudi.schema.projection import project
from pyhudi.warnings import warn_caller

__all__ = ["check_digits"]


def check_digits(rows: pa.Table | pa.RecordBatch | None, incoming: pa.Schema, stored: pa.Schema) -> None:
    """Raise SchemaMismatch for values in memory that a column can't hold; others are refused as they are written.

    Args:   rows: None: not in memory. incoming: their columns. stored: the table's.
    """
    targets = {field.name: field.type for field in stored}
    stored_paths, incoming_paths = column_paths(stored), column_paths(incoming)
    loses = {
        path
        for path in stored_paths.keys() & incoming_paths.keys()
        if may_be_inexact(incoming_paths[path], stored_paths[path])
    }
    names = sorted({path.partition(".")[0] for path in loses})
    if rows is not None and names:
        project(pa.table(rows.select(names)), pa.schema([stored.field(name) for name in names]), exact=True)
    for path in sorted(loses):
        kind = incoming_paths[path]
        if not isinstance(kind, pa.TimestampType) or kind.unit != "us":
            continue
        if (
            rows is not None
            and path in targets
            and first_inexact(_whole(rows.column(path)), stored_paths[path]) is None
        ):
            continue
        warn_caller(f"Column {path!r} holds milliseconds: the microseconds of its new values are cut.")


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
