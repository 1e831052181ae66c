"""A custom merger in Spark's tasks: named by the write and the read, imported by the workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, UnsupportedTable
from pyhudi.spark.engine import collect_arrow
from pyhudi.spark.reader import read_frame
from pyhudi.spark.types import spark_from_arrow
from tests.support.values.mergers import SCHEMA, NewestParts

CLASSES = "hoodie.write.record.merge.custom.implementation.classes"
MERGER = f"{NewestParts.__module__}:NewestParts"


@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_rows_written_and_read_by_spark_are_merged_by_the_caller_s_class(
    tmp_path: Path, spark: Any, table_type: str
) -> None:
    options = {
        "hoodie.write.record.merge.mode": "CUSTOM",
        "hoodie.write.record.merge.strategy.id": NewestParts.strategy_id,
        CLASSES: MERGER,
        "hoodie.pyhudi.engine": "spark",
    }
    keys = {"record_key": "order_id", "ordering": "seq", "table_type": table_type}
    table = HudiTable.create(tmp_path / "t", SCHEMA, spark=spark, options=options, **keys)
    events = [("o", 3, "paid", None, None, "card", 3), ("o", 1, "created", "lamp", 1, None, None)]
    for event in events:
        table.upsert(
            spark.createDataFrame([event], spark_from_arrow(SCHEMA)), options={"hoodie.pyhudi.engine": "spark"}
        )

    found = collect_arrow(read_frame(spark, str(tmp_path / "t"), {CLASSES: MERGER}))

    assert found.select(SCHEMA.names).to_pylist() == [
        dict(zip(SCHEMA.names, ("o", 3, "paid", "lamp", 1, "card", 3), strict=True))
    ]
    if table_type == "MERGE_ON_READ":
        with pytest.raises(UnsupportedTable, match="no implementation"):
            read_frame(spark, str(tmp_path / "t"), {})
