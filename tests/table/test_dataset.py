"""A table as a pyarrow dataset, in the hands of the libraries that take one."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from pyhudi import ConfigError, HudiTable, write_hudi
from pyhudi.table.dataset import HudiDataset

N = 300
ROWS = [
    {"id": i, "city": "abc"[i % 3], "n": i * 2, "fare": i / 2, "s": {"a": i, "b": [str(i)]}, "note": "x" * 50}
    for i in range(N)
]
DATA = ["id", "city", "n", "fare", "s", "note"]


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def trips(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    """Three partitions; the row 5 was changed, and a merge-on-read table has that in a log file."""
    path = tmp_path_factory.mktemp("dataset") / "trips"
    write_hudi(path, ROWS, record_key="id", partition_by="city", table_type=request.param)
    write_hudi(path, [{**ROWS[5], "n": -1}])
    return HudiTable.open(path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], int]]:
    """The columns that were read, those of the filter too, and the number of files: of each stream."""
    import pyhudi.table.dataset as module

    seen: list[tuple[list[str], int]] = []
    read = module.read_batches

    def spied(plan: Any, *arguments: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        seen.append((plan.read_schema.names, len(plan.slices)))
        return read(plan, *arguments, **options)

    monkeypatch.setattr(module, "read_batches", spied)
    return seen


def expected(keep: Any = lambda row: True) -> list[int]:
    rows = [{**row, "n": -1} if row["id"] == 5 else row for row in ROWS]
    return sorted(row["id"] for row in rows if keep(row))


@pytest.mark.thorough
def test_a_dataset_gives_the_rows_of_the_scan(trips: HudiTable) -> None:
    dataset = trips.to_dataset(DATA)
    assert isinstance(dataset, ds.Dataset)
    assert dataset.schema == trips.scan(DATA).schema
    table = dataset.to_table()
    assert table.schema == dataset.schema
    assert sorted(table["id"].to_pylist()) == expected()
    assert table.filter(pc.field("id") == 5)["n"].to_pylist() == [-1]
    assert sum(batch.num_rows for batch in dataset.to_batches(columns=["id"], batch_size=10)) == N
    assert max(batch.num_rows for batch in dataset.to_batches(columns=["id"], batch_size=10)) == 10


def test_columns_and_filters_reach_the_files(trips: HudiTable, asked: list[tuple[list[str], int]]) -> None:
    dataset = trips.to_dataset()
    found = dataset.to_table(columns=["id"], filter=(pc.field("city") == "c") & (pc.field("n") < 0))
    assert found.to_pydict() == {"id": [5]}
    assert asked == [(["id", "city", "n"], 1)]


@pytest.mark.thorough
def test_columns_may_be_expressions(trips: HudiTable, asked: list[tuple[list[str], int]]) -> None:
    table = trips.to_dataset().to_table(columns={"twice": pc.field("fare") * 4}, filter=pc.field("id") == 7)
    assert table.to_pydict() == {"twice": [14.0]}
    assert asked[0][0] == ["id", "fare"]


@pytest.mark.thorough
def test_rows_are_counted_and_looked_at(trips: HudiTable) -> None:
    dataset = trips.to_dataset()
    assert dataset.count_rows() == N
    assert dataset.count_rows(filter=pc.field("n") < 0) == 1
    assert dataset.to_table(columns=[]).num_rows == dataset.scanner(columns=[]).count_rows() == N
    assert dataset.head(7, columns=["id"]).shape == (7, 1)
    assert dataset.head(N * 2).num_rows == N
    assert dataset.take([3, 1], columns=["id"]).num_rows == 2
    assert dataset.filter(pc.field("id") < 10).filter(pc.field("n") < 0).to_table(columns=["city"]).to_pydict() == {
        "city": ["c"]
    }
    assert dataset.sort_by("id").to_table()["id"].to_pylist() == expected()


def test_a_dataset_takes_another_schema(trips: HudiTable) -> None:
    schema = pa.schema([("n", pa.float64()), ("new", pa.string())])
    other = trips.to_dataset().replace_schema(schema)
    assert other.schema == other.to_table().schema == schema
    assert other.to_table(filter=pc.field("n") < 0).to_pylist() == [{"n": -1.0, "new": None}]
    assert other.to_table(columns=["new"]).num_rows == N


def test_a_dataset_joins_others(trips: HudiTable) -> None:
    cities = ds.dataset(pa.table({"city": ["a", "c"], "name": ["Ay", "Sea"]}))
    joined = trips.to_dataset(["id", "city"]).join(cities, "city", join_type="inner").to_table()
    assert joined.num_rows == 200
    assert set(joined["name"].to_pylist()) == {"Ay", "Sea"}
    other = trips.to_dataset(["id", "n"])
    assert trips.to_dataset(["id", "city"]).join(other, "id").to_table().num_rows == N


def test_a_fragment_is_a_file_slice_that_another_process_reads(trips: HudiTable) -> None:
    dataset = trips.to_dataset()
    assert len(list(dataset.get_fragments())) == 3
    (fragment,) = dataset.get_fragments(filter=pc.field("city") == "c")
    assert str(fragment.partition_expression) == '(city == "c")'
    fragment = pickle.loads(pickle.dumps(fragment))
    assert fragment.count_rows() == N // 3
    assert fragment.to_table(columns=["id"], filter=pc.field("n") < 0).to_pydict() == {"id": [5]}
    assert fragment.head(2, columns=["id"]).shape == (2, 1)
    rows = pa.concat_tables(part.to_table(columns=["id"]) for part in dataset.get_fragments())
    assert sorted(rows["id"].to_pylist()) == expected()
    again = pickle.loads(pickle.dumps(dataset))
    assert again.to_table(columns=["id"], filter=pc.field("n") < 0).to_pydict() == {"id": [5]}


def test_fragments_of_changes_are_read_one_by_one(trips: HudiTable) -> None:
    dataset = trips.changes().to_dataset()
    rows = pa.concat_tables(part.to_table(columns=["id"]) for part in dataset.get_fragments())
    assert sorted(rows["id"].to_pylist()) == expected()


def test_a_dataset_keeps_its_moment(tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", ROWS[:3], record_key="id")
    table = HudiTable.open(tmp_path / "t")
    dataset = table.to_dataset()
    table.delete(where="id = 1")
    assert dataset.count_rows() == 3
    assert table.to_dataset().count_rows() == 2


def test_arrow_s_own_scanner_says_the_way_out(trips: HudiTable) -> None:
    dataset = trips.to_dataset(["id", "city"])
    for use in (
        lambda: ds.Scanner.from_dataset(dataset).to_table(),
        lambda: ds.dataset([dataset, ds.dataset(pa.table({"id": [1]}))]).to_table(),
        lambda: ds.dataset(pa.table({"id": [1]})).join(dataset, "id").to_table(),
    ):
        with pytest.raises(ConfigError, match="to_batches"):
            use()


def test_every_method_of_pyarrow_s_datasets_is_ours() -> None:
    public = {name for name, _ in inspect.getmembers(ds.Dataset) if not name.startswith("_")}
    inherited = {name for name in public if getattr(HudiDataset, name) is getattr(ds.UnionDataset, name, None)}
    assert inherited == set()


def test_pyarrow_writes_a_dataset(trips: HudiTable, tmp_path: Path) -> None:
    ds.write_dataset(trips.to_dataset(), tmp_path / "out", format="parquet")
    assert ds.dataset(tmp_path / "out").count_rows() == N


def test_a_table_is_taken_by_arrow_s_c_stream(trips: HudiTable) -> None:
    for source in (trips, trips.scan(), trips.to_dataset()):
        assert pa.table(source).num_rows == N
    assert pa.schema(trips) == trips.scan().schema
    few = pa.schema([("n", pa.float64()), ("city", pa.string())])
    rows = pa.RecordBatchReader.from_stream(trips, schema=few).read_all()
    assert rows.schema == few
    assert rows.num_rows == N


def test_duckdb_queries_a_dataset_and_a_table_by_its_name(trips: HudiTable, asked: list[tuple[list[str], int]]) -> None:
    duckdb = pytest.importorskip("duckdb")
    dataset = trips.to_dataset()  # noqa: F841  # DuckDB finds it by its name
    query = "SELECT count(*), sum(n) FROM dataset WHERE city IN ('c', 'd') AND id < 100"
    ids = expected(lambda row: row["city"] == "c" and row["id"] < 100)
    assert duckdb.sql(query).fetchall() == [(len(ids), sum(-1 if i == 5 else i * 2 for i in ids))]
    assert all(files == 1 for _, files in asked)
    assert all(set(columns) <= {"id", "city", "n"} for columns, _ in asked)
    assert duckdb.sql("SELECT s.a, s.b FROM dataset WHERE id = 4").fetchall() == [(4, ["4"])]
    assert duckdb.sql("SELECT city, count(*) FROM trips GROUP BY city ORDER BY city").fetchall() == [
        ("a", 100),
        ("b", 100),
        ("c", 100),
    ]


def test_polars_queries_a_dataset_and_a_table(trips: HudiTable, asked: list[tuple[list[str], int]]) -> None:
    pl = pytest.importorskip("polars")
    dataset = trips.to_dataset()
    city = pl.col("city") == "c"
    assert pl.scan_pyarrow_dataset(dataset).filter(city, pl.col("n") < 0).select("id").collect().rows() == [(5,)]
    assert asked == [(["id", "city", "n"], 1)]
    assert trips.to_polars(lazy=True).filter(city).select(pl.len()).collect().item() == 100
    assert trips.to_polars(["id"], lazy=True).head(3).collect().shape == (3, 1)
    assert pl.DataFrame(trips).height == N
    assert pl.DataFrame(trips.scan(["id"])).shape == (N, 1)


def test_pandas_takes_the_rows(trips: HudiTable) -> None:
    pandas = pytest.importorskip("pandas")
    frame = trips.to_dataset().to_table(columns=["id", "n"], filter=pc.field("n") < 10).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert sorted(frame["id"]) == expected(lambda row: row["n"] < 10)


def test_datafusion_queries_a_dataset(trips: HudiTable, asked: list[tuple[list[str], int]]) -> None:
    datafusion = pytest.importorskip("datafusion", reason="DataFusion is not installed")
    context = datafusion.SessionContext()
    context.register_dataset("trips", trips.to_dataset())
    rows = context.sql("SELECT sum(n) AS total FROM trips WHERE city = 'c' AND id < 9").to_pydict()
    assert rows == {"total": [2 * 2 - 1 + 8 * 2]}
    assert {files for _, files in asked} == {1}
    assert context.sql("SELECT count(*) AS rows FROM trips").to_pydict() == {"rows": [N]}


def test_ibis_queries_a_dataset(trips: HudiTable) -> None:
    ibis = pytest.importorskip("ibis", reason="Ibis is not installed")
    rows = ibis.memtable(trips.to_dataset(DATA))
    assert rows.filter(rows.city == "c", rows.id < 9).n.sum().execute() == 2 * 2 - 1 + 8 * 2


def test_daft_takes_the_fragments(trips: HudiTable) -> None:
    daft = pytest.importorskip("daft", reason="Daft is not installed")
    fragments = trips.to_dataset(["id", "city", "n"]).get_fragments(filter=pc.field("city") == "c")
    frame = daft.from_arrow([fragment.to_table() for fragment in fragments])
    assert sorted(frame.where(daft.col("n") < 20).to_pydict()["id"]) == [2, 5, 8]


def test_ray_data_reads_fragments_in_its_workers(trips: HudiTable) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    fragments = list(trips.to_dataset(["id", "city", "n"]).get_fragments())
    rows = ray.data.from_items([{"fragment": fragment} for fragment in fragments]).flat_map(
        lambda item: item["fragment"].to_table(filter=pc.field("n") < 20).to_pylist()
    )
    assert sorted(row["id"] for row in rows.take_all()) == expected(lambda row: row["n"] < 20)
