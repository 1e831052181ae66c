"""SQL and streams on a Spark without formats that are made in Python: what does not go says how else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import ConfigError
from pyhudi.spark import capabilities

BARE = replace(capabilities.PRESENT, has_data_sources=False)


def test_names_and_streams_are_refused_and_statements_on_paths_go(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capabilities, "PRESENT", BARE)
    path = str(tmp_path / "t")
    pyhudi.write_hudi(path, [{"id": "a", "v": 1}, {"id": "b", "v": 2}], record_key="id")
    pyhudi.enable(spark)
    try:
        with pytest.raises(ConfigError, match=r"hudi\.`/path/of/the/table`"):
            spark.sql(f"CREATE TABLE lacking (id STRING, v BIGINT) USING hudi LOCATION '{tmp_path / 'new'}'")
        with pytest.raises(ConfigError, match="foreachBatch"):
            spark.readStream.format("hudi").load(path)
        with pytest.raises(ConfigError, match="foreachBatch"):
            spark.readStream.table(f"hudi.`{path}`")
        stream = spark.readStream.format("rate").load()
        with pytest.raises(ConfigError, match=r"hudi\.`/path/of/the/table`"):
            stream.writeStream.format("hudi").toTable("lacking")
        spark.sql(f"UPDATE hudi.`{path}` SET v = v + 10 WHERE id = 'b'")
        found = spark.sql(f"SELECT sum(v) AS s FROM hudi.`{path}`").collect()
    finally:
        pyhudi.disable(spark)

    assert [row.s for row in found] == [13]
    assert not (tmp_path / "new").exists() or not HudiTable.exists(str(tmp_path / "new"))
