"""A new table has the metadata table that Apache Hudi's writers make, whichever way it is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import DuckDbSession, HudiTable, write_hudi
from pyhudi.meta_client import MetaClient
from pyhudi.storage import open_storage
from tests.support.arguments import arguments
from tests.support.golden.folder import Golden
from tests.support.tables.rides import ROWS, SCHEMA

pytestmark = pytest.mark.metadata_table

KEYS = {"record_key": "id", "ordering": "ts"}
PARTITIONED = {**KEYS, "partition_by": "city"}
ON, OFF = {"hoodie.metadata.enable": "true"}, {"hoodie.metadata.enable": "false"}
OF_FILES = ("column_stats", "files")
ALL = (*OF_FILES, "partition_stats")


def written(place: Path, **options: object) -> HudiTable:
    write_hudi(place, ROWS, **arguments(options))
    return HudiTable.open(place)


def made_first(place: Path, **options: object) -> HudiTable:
    table = HudiTable.create(place, SCHEMA, **arguments(options))
    assert table.metadata.partitions == ()
    table.upsert(ROWS)
    return HudiTable.open(place)


def replaced(place: Path, **options: object) -> HudiTable:
    write_hudi(place, ROWS[:1], **arguments(options, OFF))
    write_hudi(place, ROWS, mode="replace", **arguments(options))
    return HudiTable.open(place)


def inserted_by_sql(place: Path, **options: object) -> HudiTable:
    HudiTable.create(place, SCHEMA, **arguments(options))
    source = written(place.parent / "source", **KEYS).path
    statement = "INSERT INTO rides (id, city, v, ts) SELECT id, city, v, ts FROM source"
    DuckDbSession({"rides": place, "source": source}).sql(statement)
    return HudiTable.open(place)


def made_by_sql(place: Path, **options: object) -> HudiTable:
    source = written(place.parent / "source", **KEYS).path
    by = "PARTITIONED BY (city)" if "partition_by" in options else ""
    DuckDbSession({"source": source}, catalog=place.parent).sql(
        f"CREATE TABLE rides USING hudi {by} TBLPROPERTIES (primaryKey = 'id') AS SELECT id, city, v, ts FROM source"
    )
    return HudiTable.open(place)


@pytest.mark.parametrize("make", [written, made_first, replaced, inserted_by_sql, made_by_sql])
@pytest.mark.parametrize(("keys", "partitions"), [(KEYS, OF_FILES), (PARTITIONED, ALL)])
def test_a_new_table_has_the_metadata_table_that_hudi_s_writers_make(
    tmp_path: Path, make: Callable[..., HudiTable], keys: dict[str, str], partitions: tuple[str, ...]
) -> None:
    table = make(tmp_path / "rides", **keys)
    assert table.metadata.partitions == partitions
    assert table.metadata.validate() == ()
    assert not table.state().config.metadata_to_build
    assert table.to_arrow().num_rows == len(ROWS)


@pytest.mark.parametrize(("release", "version"), [("0.15.0", 6), ("1.0.2", 8), ("1.2.0", 9)])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_new_table_has_the_partitions_that_a_release_of_hudi_makes_by_default(
    tmp_path: Path, golden: Golden, release: str, version: int, kind: str
) -> None:
    theirs = HudiTable.open(golden(release, "g2_compaction_executed")[0])
    ours = written(tmp_path / "rides", **PARTITIONED, table_type=kind, table_version=version)
    assert ours.metadata.partitions == theirs.metadata.partitions
    assert ours.metadata.validate() == ()


@pytest.mark.thorough
def test_options_choose_the_partitions_of_a_new_table(tmp_path: Path) -> None:
    none = {"hoodie.metadata.index.column.stats.enable": "false"}
    assert written(tmp_path / "a", **PARTITIONED, **none).metadata.partitions == ("files",)
    assert made_first(tmp_path / "b", **PARTITIONED, **none).metadata.partitions == ("files",)
    keys = {"hoodie.metadata.global.record.level.index.enable": "true"}
    assert written(tmp_path / "c", **KEYS, **keys).metadata.partitions == (*OF_FILES, "record_index")
    older = written(tmp_path / "d", **PARTITIONED, **ON, table_version=6)
    assert older.metadata.partitions == OF_FILES


@pytest.mark.thorough
@pytest.mark.parametrize("make", [written, made_first])
def test_a_table_that_is_made_without_a_metadata_table_keeps_none_until_a_write_wants_it(
    tmp_path: Path, make: Callable[..., HudiTable]
) -> None:
    table = make(tmp_path / "rides", **PARTITIONED, **OFF)
    table.upsert(ROWS)
    table.delete(where="id = 99")
    assert HudiTable.open(table.path).metadata.partitions == ()
    table.upsert(ROWS, options=ON)
    assert HudiTable.open(table.path).metadata.partitions == ALL


def test_a_first_write_that_wants_none_leaves_none(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    table = HudiTable.create(tmp_path / "rides", SCHEMA, **PARTITIONED)
    table.upsert(ROWS, options=OFF)
    assert not recwarn.list
    table.upsert(ROWS)
    assert HudiTable.open(table.path).metadata.partitions == ()
    assert not HudiTable.open(table.path).state().config.metadata_to_build


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_table_without_rows_can_be_served_and_upgraded_before_its_first_write(tmp_path: Path, version: int) -> None:
    table = HudiTable.create(
        tmp_path / "rides", SCHEMA, **PARTITIONED, table_version=version, table_type="MERGE_ON_READ"
    )
    table.clean()
    table.compact()
    if version < 9:
        table.maintenance.upgrade()
    table = HudiTable.open(table.path)
    table.upsert(ROWS)
    found = HudiTable.open(table.path)
    assert found.metadata.partitions == (("files",) if version == 6 else ALL)
    assert found.metadata.validate() == ()
    assert found.to_arrow().num_rows == len(ROWS)


def test_a_first_write_that_fails_takes_its_metadata_table_back(tmp_path: Path) -> None:
    place = tmp_path / "rides"
    nulls = [{**row, "id": None} for row in ROWS]
    with pytest.raises(Exception, match="id"):
        write_hudi(place, pa.Table.from_pylist(nulls, SCHEMA), **PARTITIONED)
    assert not list(place.rglob("*"))
    assert written(place, **PARTITIONED).metadata.partitions == ALL


def test_the_properties_of_a_written_table_have_nothing_of_our_own(tmp_path: Path) -> None:
    written(tmp_path / "rides", **PARTITIONED)
    properties = MetaClient.load(open_storage(str(tmp_path / "rides"))).config.properties
    assert not [key for key in properties if "pyhudi" in key]
