"""Tables on S3 whose place and credentials are told to Spark alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi import HudiTable, write_hudi
from pyhudi.spark.session import has_file_system, store_options
from pyhudi.storage import open_storage
from tests.support.servers.s3_server import make_bucket, options_of, s3_server
from tests.support.spark.sessions import FLAVOUR

OPTIONS = {"hoodie.table.name": "rides", "hoodie.datasource.write.recordkey.field": "id"}


@pytest.fixture(scope="module")
def keys() -> Iterator[dict[str, str]]:
    pytest.importorskip("moto.server")
    with s3_server() as port:
        make_bucket(port, "lake")
        yield options_of(port)


@pytest.fixture
def secrets(keys: dict[str, str]) -> dict[str, str]:
    """What a session over Connect, which tells nobody its secrets, can't give."""
    return {key: keys[key] for key in ("fs.s3a.access.key", "fs.s3a.secret.key")} if FLAVOUR == "connect" else {}


@pytest.fixture
def session_with_keys(spark: Any, keys: dict[str, str]) -> Iterator[Any]:
    """A session that knows the server."""
    for key, text in keys.items():
        spark.conf.set(f"spark.hadoop.{key}", text)
    yield spark
    for key in keys:
        spark.conf.unset(f"spark.hadoop.{key}")


def test_the_sessions_keys_count_and_those_of_the_call_before_them(
    session_with_keys: Any, keys: dict[str, str], secrets: dict[str, str]
) -> None:
    assert store_options(session_with_keys, secrets).items() >= keys.items()
    assert (
        store_options(session_with_keys, {"fs.s3a.access.key": "other", "hoodie.table.name": "t"})["fs.s3a.access.key"]
        == "other"
    )
    assert store_options(None, {"path": "s3a://lake/t", **keys}) == keys


@pytest.mark.thorough
def test_rows_of_a_session_come_and_go_by_its_keys(session_with_keys: Any, secrets: dict[str, str]) -> None:
    pyhudi.enable(session_with_keys)
    path = "s3a://lake/by-session"
    frame = session_with_keys.createDataFrame([("a", 1), ("b", 2)], "id string, v int")
    frame.write.format("hudi").options(**OPTIONS, **secrets).mode("append").save(path)
    write_hudi(path, session_with_keys.createDataFrame([("b", 3)], "id string, v int"), storage_options=secrets)

    table = HudiTable.open(path, spark=session_with_keys, storage_options=secrets)
    assert sorted(map(tuple, table.to_arrow(["id", "v"]).to_pandas().values.tolist())) == [("a", 1), ("b", 3)]


@pytest.mark.thorough
def test_options_of_a_call_are_enough(spark: Any, keys: dict[str, str]) -> None:
    pyhudi.enable(spark)
    path = "s3a://lake/by-options"
    frame = spark.createDataFrame([("a", 1)], "id string, v int")
    frame.write.format("hudi").options(**OPTIONS, **keys).mode("append").save(path)

    assert HudiTable.open(path, storage_options=keys).to_arrow(["id", "v"]).to_pylist() == [{"id": "a", "v": 1}]


@pytest.mark.thorough
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_spark_reads_tables_of_a_store_that_its_jvm_has_no_file_system_for(
    spark: Any, keys: dict[str, str], table_type: str
) -> None:
    pyhudi.enable(spark)
    path = f"s3a://lake/{table_type.lower()}"
    options = {**OPTIONS, **keys, "hoodie.datasource.write.table.type": table_type}
    for rows in ([("a", 1), ("b", 2), ("c", 3)], [("b", 5)]):
        frame = spark.createDataFrame(rows, "id string, v int")
        frame.write.format("hudi").options(**options).mode("append").save(path)

    read = spark.read.format("hudi").options(**keys).load(path).where("v > 1").select("v", "id")

    assert sorted(map(tuple, read.collect())) == [(3, "c"), (5, "b")]
    assert read.schema.simpleString() == "struct<v:int,id:string>"
    explained = HudiTable.open(path, spark=spark, storage_options=keys).scan(columns=["id"]).explain()
    assert "on Spark    by Python tasks" in explained


def test_a_session_is_asked_once_for_its_file_system(spark: Any, keys: dict[str, str], tmp_path: Path) -> None:
    storage = open_storage("s3a://lake/asked", keys)
    assert not has_file_system(spark, storage)

    asked = Asked(spark)
    assert not has_file_system(asked, storage)
    assert not has_file_system(asked, storage)
    assert has_file_system(asked, open_storage(tmp_path))
    assert asked.reads == 1


class Asked:
    """A session that counts its readers."""

    def __init__(self, spark: Any) -> None:
        self._spark, self.reads = spark, 0

    @property
    def read(self) -> Any:
        self.reads += 1
        return self._spark.read
