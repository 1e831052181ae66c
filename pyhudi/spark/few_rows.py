"""A small increment is read by this process when it is loaded, and handed to Spark as rows.

Spark's job over the files that a commit of a few rows wrote takes longer than reading these rows here: on a local
master with the same cores. What is not small is not begun: the commits say how many rows they wrote, and their files
are bounded, too. Source: docs/decisions/0002-two-engines.md; measured in docs/benchmarks.md.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.errors import HudiError
from pyhudi.queries.plan import ReadPlan
from pyhudi.queries.snapshot import read_batches
from pyhudi.spark import capabilities
from pyhudi.spark.engine import SparkEngine
from pyhudi.storage.base import Storage

__all__ = ["few_rows"]

_FILES_BYTES = 64 << 20  # as stored: what two cores decode in some 0.2 s
_ROWS_BYTES = 8 << 20  # of Arrow data, which the frame holds on to


def few_rows(engine: SparkEngine, storage: Storage, plan: ReadPlan) -> DataFrame | None:
    """The rows of a plan, where it may be read at once, as a frame; None where Spark has to read them.

    What can't be read is left to Spark as well, so that errors come when rows are fetched.
    """
    if not plan.driver_rows or plan.size_bytes > _FILES_BYTES or any(read.merges for read in plan.slices):
        return None
    # An older Spark takes no Arrow table, so that its Python workers would have to hand the rows over.
    if not capabilities.PRESENT.takes_arrow or not engine.is_local_master:
        return None
    if type(engine.spark).__module__.startswith("pyspark.sql.connect"):
        return None  # the rows would be sent to the server with each plan
    try:
        rows = _at_most(plan, storage, _ROWS_BYTES)
    except (HudiError, OSError):
        return None
    return None if rows is None else engine.from_arrow(rows)


def _at_most(plan: ReadPlan, storage: Storage, most_bytes: int) -> pa.Table | None:
    """All rows; None as soon as they are more than the plan says, or more bytes."""
    batches: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for batch in read_batches(plan, storage):
        rows += batch.num_rows
        size_bytes += batch.nbytes
        if rows > plan.driver_rows or size_bytes > most_bytes:
            return None
        batches.append(batch)
    return pa.Table.from_batches(batches, plan.schema)
