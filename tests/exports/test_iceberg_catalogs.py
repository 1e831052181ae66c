"""Iceberg exports in a Hive metastore and in AWS Glue: what those of a SQL catalog have."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import ConfigError, StorageError, TableExists
from pyhudi.schema.changes import ChangeType, DropColumn, RenameColumn
from tests.support.exports.iceberg import Lake
from tests.support.servers.metastore import hive_metastore
from tests.support.servers.s3_server import SECRET, s3_server

OFF = {"hoodie.metadata.enable": "false"}
_NUMBERS = count()
Catalog = dict[str, str]


@pytest.fixture(scope="module", params=["glue", pytest.param("hive", marks=pytest.mark.servers)])
def catalog(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """Properties of a catalog."""
    if request.param == "hive":
        pytest.importorskip("thrift")
        with hive_metastore(tmp_path_factory.mktemp("metastore"), 300) as uri:
            yield {"type": "hive", "uri": uri}
    else:
        pytest.importorskip("boto3")
        with s3_server() as port:
            yield of_glue(port)


def of_glue(port: int) -> Catalog:
    keys = {"glue.access-key-id": "test-access", "glue.secret-access-key": SECRET, "glue.region": "us-east-1"}
    return {"type": "glue", "glue.endpoint": f"http://127.0.0.1:{port}", **keys}


@pytest.fixture
def lake(catalog: Catalog, tmp_path: Path) -> Lake:
    return Lake(tmp_path, f"lake{next(_NUMBERS)}.rides", other={**catalog, "warehouse": f"file://{tmp_path}/wh"})


def row(id: int, city: str = "a", v: int = 1) -> dict[str, Any]:
    return {"id": id, "city": city, "v": v}


def written(path: Path) -> HudiTable:
    write_hudi(str(path), [row(1), row(2), row(3, "b")], record_key="id", partition_by="city", options=OFF)
    return HudiTable.open(path)


def commits(table: HudiTable) -> list[str]:
    return [one.requested_time for one in table.state().timeline.commits()]


def test_each_commit_is_a_snapshot_with_the_tables_rows(lake: Lake, tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    lake.export(table)
    lake.assert_equal(table)
    table.upsert([row(1, v=2), row(4, "c")], options=OFF)
    table.delete(where="id = 2", options=OFF)

    assert lake.export(table).commits == 2

    lake.assert_equal(table)
    assert lake.instants() == commits(table)
    assert lake.export(table).commits == 0


def test_columns_change_with_the_table(lake: Lake, tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "n": pa.array([1, 2], pa.int32()), "old": ["x", "y"], "gone": [1, 2]})
    write_hudi(str(tmp_path / "t"), rows, record_key="id", options=OFF)
    table = HudiTable.open(tmp_path / "t")
    lake.export(table)
    for change in (ChangeType("n", pa.int64()), RenameColumn("old", "new"), DropColumn("gone")):
        table.alter(change, options=OFF)
    table.upsert([{"id": 3, "n": 2**40, "new": "z"}], options=OFF)

    assert lake.export(table).replaced == ""

    lake.assert_equal(table)


def test_of_two_exports_at_once_each_commit_is_one_snapshot(lake: Lake, tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    for number in range(2):
        table.upsert([row(1, v=number)], options=OFF)
        with ThreadPoolExecutor() as both:
            list(both.map(lambda _: lake.export(HudiTable.open(tmp_path / "t")), range(2)))
        lake.assert_equal(table)

    named = lake.instants()
    assert len(named) == len(set(named)) == 2


def test_a_table_of_that_name_that_is_not_of_iceberg_is_left_as_it_is(
    lake: Lake, catalog: Catalog, tmp_path: Path
) -> None:
    table = written(tmp_path / "t")
    database = lake.name.partition(".")[0]
    make_other_table(catalog, database, str(tmp_path))

    with pytest.raises(TableExists, match=r"not of Iceberg\. Nothing was exported\. Give another name by"):
        lake.export(table)

    assert not (tmp_path / "wh").exists()


def make_other_table(catalog: Catalog, database: str, folder: str) -> None:
    if catalog["type"] == "glue":
        import boto3

        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
        glue = boto3.client("glue", endpoint_url=catalog["glue.endpoint"], **keys)
        glue.create_database(DatabaseInput={"Name": database})
        glue.create_table(DatabaseName=database, TableInput={"Name": "rides", "Parameters": {"a": "b"}})
        return
    from pyiceberg.catalog import load_catalog
    from pyiceberg.catalog.hive import HiveCatalog
    from pyiceberg.schema import Schema

    other = load_catalog("other", **catalog)
    assert isinstance(other, HiveCatalog)
    other.create_namespace(database)
    other.create_table(f"{database}.rides", Schema(), f"file://{folder}/other")
    with other._client as client:
        stored = client.get_table(database, "rides")
        stored.parameters = {"a": "b"}
        client.alter_table_with_environment_context(database, "rides", stored, None)


def test_a_catalog_that_does_not_answer_is_an_error_without_its_keys(tmp_path: Path) -> None:
    pytest.importorskip("boto3")
    table = written(tmp_path / "t")
    lake = Lake(tmp_path, other={**of_glue(1), "warehouse": f"file://{tmp_path}/wh", "glue.max-retries": "1"})

    with pytest.raises(StorageError, match="the catalog refused") as raised:
        lake.export(table)

    assert SECRET not in str(raised.value) + repr(raised.value.__cause__)
    assert not (tmp_path / "wh").exists()


@pytest.mark.parametrize("properties", [{"type": "nessie"}, {"type": "glue", "glue.max-retries": "many"}])
def test_properties_that_the_catalog_does_not_take_are_refused(properties: Catalog, tmp_path: Path) -> None:
    table = written(tmp_path / "t")

    with pytest.raises(ConfigError, match="can't be opened"):
        Lake(tmp_path, other={"glue.region": "us-east-1", **properties}).export(table)
