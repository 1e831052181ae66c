"""SQL and streams on a Spark without formats that are made in Python: what does not go says how else."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import ConfigError
from pyhudi.spark import capabilities
from tests.support.spark.sessions import FLAVOUR
from tests.support.sql.on_spark import kinds_of_names

BARE = replace(capabilities.PRESENT, has_data_sources=False)


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    pyhudi.write_hudi(path, [{"id": "a", "v": 1}, {"id": "b", "v": 2}], record_key="id")
    return path


def test_views_and_streams_are_refused_and_statements_on_paths_go(
    spark: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capabilities, "PRESENT", BARE)
    pyhudi.enable(spark)
    try:
        with pytest.raises(ConfigError, match="createOrReplaceTempView"):
            spark.sql(f"CREATE VIEW lacking AS SELECT v FROM hudi.`{path}`")
        with pytest.raises(ConfigError, match="foreachBatch"):
            spark.readStream.format("hudi").load(path)
        with pytest.raises(ConfigError, match="foreachBatch"):
            spark.readStream.table(f"hudi.`{path}`")
        spark.sql(f"UPDATE hudi.`{path}` SET v = v + 10 WHERE id = 'b'")
        found = spark.sql(f"SELECT sum(v) AS s FROM hudi.`{path}`").collect()
    finally:
        pyhudi.disable(spark)

    assert [row.s for row in found] == [13]


@pytest.mark.skipif(FLAVOUR != "connect", reason="classic sessions of every Spark take frames")
def test_frames_in_a_text_become_views_that_last_as_long_as_what_reads_them(
    spark: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capabilities, "PRESENT", replace(capabilities.PRESENT, connect_takes_frames=False))
    pyhudi.enable(spark)
    try:
        numbers = spark.range(3)
        text = f"SELECT t.v FROM hudi.`{path}` t JOIN {{more}} m ON m.id = t.v WHERE t.id <> '{{{{}}}}'"
        found = spark.sql(text, more=numbers).where("v > 1")
        gc.collect()
        spark.sql(f"SELECT * FROM hudi.`{path}`").collect()
        kept = [tuple(row) for row in found.collect()]
        del found
        gc.collect()
        last = spark.sql(f"SELECT * FROM hudi.`{path}`")
        names = [name for name in kinds_of_names(spark) if name.startswith("pyhudi_")]
    finally:
        pyhudi.disable(spark)

    assert kept == [(2,)]
    assert len(names) == 1, "the view of the last text alone"
    assert last.count() == 2


@pytest.mark.thorough
def test_a_session_without_pyhudi_refuses_a_name(spark: Any, path: str) -> None:
    """Nobody gets other rows, or loses some, because he forgot to call `enable`."""
    pyhudi.enable(spark)
    spark.sql(f"CREATE TABLE registered USING hudi LOCATION '{path}' TBLPROPERTIES (spoken = 'yes')")
    pyhudi.disable(spark)
    try:
        for text in ("SELECT * FROM registered", "SELECT count(*) FROM registered"):
            with pytest.raises(Exception):  # noqa: B017, PT011 - each Spark has its own
                spark.sql(text).collect()
        with pytest.raises(Exception):  # noqa: B017, PT011
            spark.sql("INSERT INTO registered SELECT * FROM VALUES ('', '', '', '', '', 'c', 3L)").collect()
        assert pyhudi.HudiTable.open(path).scan(["id", "v"]).to_arrow().num_rows == 2
        pyhudi.enable(spark)
        spark.sql("ALTER TABLE registered RENAME TO called")
        found = spark.sql("SELECT id, v FROM called ORDER BY id").collect()
        properties = {row[0]: row[1] for row in spark.sql("SHOW TBLPROPERTIES called").collect()}
    finally:
        pyhudi.enable(spark)
        for name in ("registered", "called"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")
        pyhudi.disable(spark)

    assert [tuple(row) for row in found] == [("a", 1), ("b", 2)]
    assert properties["spoken"] == "yes"
    assert not {"host", "port", "hoodie.pyhudi.provider"} & set(properties)
    assert HudiTable.exists(path)
