"""Tables that log changes, and what queries of their changes say."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from pyhudi.model.options.queries import IncrementalOptions
from pyhudi.queries.count import count_rows
from pyhudi.queries.incremental import plan_incremental
from pyhudi.queries.incremental_range import incremental_range
from pyhudi.queries.plan import ReadPlan
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from tests.support.tables.clustered import Clustered
from tests.support.tables.small import TestTable

VERSIONS = ("6", "8", "9")
CDC = IncrementalOptions(format="cdc")
LATEST = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
FIELDS = ("id", "p", "ts", "v")
Image = tuple[Any, ...]
Change = tuple[str, Image | None, Image | None]


def logged(
    version: str,
    table_type: str = "COPY_ON_WRITE",
    mode: str = "DATA_BEFORE_AFTER",
    *,
    small: bool = False,
    **more: str,
) -> Clustered:
    """A table with change logs. `small`: inserts fill up small files."""
    cdc = {"table_cdc_enabled": "true", "table_cdc_supplemental_logging_mode": mode}
    table = Clustered(version, table_type, **{**cdc, **more})
    if small:
        table.options = {key: text for key, text in table.options.items() if key != "hoodie.parquet.small.file.limit"}
    return table


def plan(table: TestTable, begin: str = "earliest", end: str | None = None, **query: Any) -> ReadPlan:
    wanted = incremental_range(table.meta, "incremental", begin, end, options=CDC)
    assert wanted is not None
    return plan_incremental(table.meta, wanted, Query(**query))


def image(text: str | None) -> Image | None:
    row = None if text is None else json.loads(text)
    return None if row is None else tuple(row[name] for name in FIELDS)


def changes(table: TestTable, begin: str = "earliest", end: str | None = None) -> list[Change]:
    """(op, before, after) in the order in which they come, images as (id, p, ts, v)."""
    planned = plan(table, begin, end)
    rows = pa.Table.from_batches(read_batches(planned, table.storage), planned.schema).to_pylist()
    assert count_rows(planned, table.storage) == len(rows)
    return [(row["op"], image(row["before"]), image(row["after"])) for row in rows]


def replayed(target: dict[Image, Image], found: list[Change]) -> None:
    """Do to a dict what the changes say. Each must find the row that it says was there before."""
    for op, before, after in found:
        key = (before or after or ())[:2]
        assert target.get(key) == before, (op, before, after)
        assert (before is None, after is None) == {"i": (True, False), "u": (False, False), "d": (False, True)}[op]
        if after is None:
            del target[key]
        else:
            assert after[:2] == key
            target[key] = after


def times(table: TestTable) -> list[str]:
    """Of the commits, in the order of ranges."""
    meta = table.meta
    by_completion = meta.config.table_version >= 8
    return sorted((i.completion_time or "") if by_completion else i.requested_time for i in meta.timeline.commits())


A1, B1, C1, A2, B2 = ("a", "x", 1, 1), ("b", "x", 1, 1), ("c", "x", 1, 1), ("a", "x", 2, 2), ("b", "x", 2, 2)
