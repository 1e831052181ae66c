"""Tables whose files leave out the partition columns, where a schema of the table names these columns all the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import KeyGenError
from pyhudi.model.table_config import TableConfig
from pyhudi.queries.skip.paths import PathColumns

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("a", pa.string())])


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HudiTable:
    # As after CREATE TABLE, the schema at creation has the partition column.
    return HudiTable.create(
        tmp_path / "t",
        SCHEMA,
        record_key="id",
        partition_by="p",
        table_type=request.param,
        options={"hoodie.datasource.write.drop.partition.columns": True},
    )


def rows(table: HudiTable) -> list[tuple[str, ...]]:
    return sorted((row["id"], row["p"], row["a"]) for row in table.to_arrow(["id", "p", "a"]).to_pylist())


def test_a_table_that_was_created_without_rows_is_written_to(table: HudiTable) -> None:
    table.upsert([{"id": "1", "p": "x", "a": "old"}, {"id": "2", "p": "y", "a": "old"}])
    table.upsert([{"id": "1", "p": "x", "a": "new"}])
    table.delete([{"id": "2", "p": "y"}])

    assert rows(table) == [("1", "x", "new")]


def test_services_and_filters_find_the_columns_in_the_path(table: HudiTable) -> None:
    table.upsert([{"id": "1", "p": "x", "a": "old"}, {"id": "2", "p": "y", "a": "old"}])
    table.update("p = 'x'", values={"a": "set"})
    table.delete(where="p = 'y'")
    if table.state().config.is_merge_on_read:
        table.compact()
    table.cluster()

    assert rows(table) == [("1", "x", "set")]


def test_a_value_that_early_releases_wrote_for_nothing_is_a_value(table: HudiTable) -> None:
    table.upsert([{"id": "1", "p": "default", "a": "x"}])

    assert rows(table) == [("1", "default", "x")]
    assert table.scan(where="p = 'default'").count() == 1


@pytest.mark.parametrize(("version", "value"), [("4", None), ("5", "default")])
def test_below_version_5_it_is_nothing_and_nothing_is_pruned_by_it(version: str, value: str | None) -> None:
    properties = {"hoodie.table.name": "t", "hoodie.table.version": version, "hoodie.table.partition.fields": "p"}
    dropped = TableConfig({**properties, "hoodie.datasource.write.drop.partition.columns": "true"})

    assert PathColumns(dropped, SCHEMA).values("default") == (("p", value),)
    assert len(PathColumns(TableConfig(properties), SCHEMA).ranges("default")) == (1 if value is None else 2)


def test_a_value_that_the_path_could_not_tell_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("q", pa.string()))
    table = HudiTable.create(
        tmp_path / "t",
        schema,
        record_key="id",
        partition_by=["p", "q"],
        options={"hoodie.datasource.write.drop.partition.columns": True},
    )
    table.upsert([{"id": "1", "p": "x", "q": "y", "a": "kept"}])

    with pytest.raises(KeyGenError, match="x/x/y"):
        table.upsert([{"id": "2", "p": "x/x", "q": "y", "a": "refused"}])

    assert rows(table) == [("1", "x", "kept")]
    assert len(table.state().timeline.instants) == 1
