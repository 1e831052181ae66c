"""What queries skip by statistics that PyHudi itself made: never a file or a partition with a row that they want."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable
from pyhudi.expressions.binding import bind
from pyhudi.expressions.predicates import Column, Compare, Predicate
from pyhudi.expressions.where import parse_where
from pyhudi.formats.column_stats import RangesOfRows
from pyhudi.formats.stored_ranges import stats_rows
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import (
    IndexDefinitions,
    column_stats_definition,
    write_index_definitions,
)
from pyhudi.metadata.partitions.stats_updates import column_stats_update, partition_stats_update
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import BaseFile, FileGroupId, FileSlice
from pyhudi.model.keys import PARTITION_PATH
from pyhudi.model.table_format import TableFormat
from pyhudi.queries.read_slice import ReadSlice
from pyhudi.queries.skip.statistics import load_file_ranges, partitions_that_may_match, stored_ranges
from pyhudi.storage import open_storage
from pyhudi.storage.memory import MemoryStorage
from tests.support.golden.folder import SHARED, Golden
from tests.support.sweeps import examples
from tests.support.tables.file_groups import FIRST
from tests.support.values.predicates import PREDICATES, SCHEMA, VALUES, keeps

ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | st.sampled_from(values) for name, values in VALUES.items()}),
    min_size=1,
    max_size=4,
)
FILES = st.lists(st.tuples(st.sampled_from(["p", "q"]), ROWS), min_size=1, max_size=4)


@dataclass(frozen=True)
class Known:
    """Records of a metadata table, by partition, as a reader finds them."""

    records: dict[str, pa.Table]
    merges: bool = False
    version: int = 9
    is_current: bool = True
    indexed: Sequence[str] = tuple(VALUES)
    data: Any = field(init=False)

    def __post_init__(self) -> None:
        config = SimpleNamespace(is_merge_on_read=self.merges, format=TableFormat(self.version))
        storage = MemoryStorage()
        write_index_definitions(storage, IndexDefinitions().merged([column_stats_definition(9, self.indexed)]))
        data = SimpleNamespace(config=config, storage=storage, is_current=lambda: self.is_current)
        object.__setattr__(self, "data", data)

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(self.records)

    def lookup(self, partition: str, keys: Collection[str]) -> pa.Table:
        found = self.records[partition]
        return found.filter(pc.is_in(found.column("key"), pa.array(list(keys), pa.string())))

    def with_prefixes(self, partition: str, prefixes: Sequence[str]) -> pa.Table:
        found = self.records[partition]
        starts = [pc.starts_with(found.column("key"), prefix) for prefix in prefixes]
        return pa.concat_tables([found.filter(start) for start in starts])

    def table(self) -> MetadataTable:
        return cast("MetadataTable", self)


def _known(files: list[tuple[str, pa.Table]], version: int) -> tuple[Known, list[FileSlice]]:
    """What is known of these files, and where they are."""
    stats: dict[str, list[pa.Table]] = {}
    slices = []
    for number, (path, rows) in enumerate(files):
        ranges = RangesOfRows(SCHEMA.names)
        ranges.add(rows)
        base = BaseFile(f"{path}/g{number}_0-0-0_{FIRST}.parquet", path, f"g{number}", FIRST, 1)
        stats.setdefault(path, []).append(stats_rows(version, base.name, ranges.ranges()))
        slices.append(FileSlice(FileGroupId(path, f"g{number}"), FIRST, base))
    whole = {
        path: (pa.concat_tables(tables), {row["fileName"] for t in tables for row in t.to_pylist()})
        for path, tables in stats.items()
    }
    records = {
        "column_stats": column_stats_update(version, stats).records,
        "partition_stats": partition_stats_update(version, SCHEMA.names, whole).records,
    }
    return Known(records, version=version), slices


@settings(max_examples=examples(20), deadline=None)
@given(files=FILES, predicate=PREDICATES, version=st.sampled_from([8, 9]))
def test_nothing_is_skipped_that_has_a_row_that_is_wanted(
    files: list[tuple[str, list[dict[str, Any]]]], predicate: Predicate, version: int
) -> None:
    known, slices = _known([(path, pa.Table.from_pylist(rows, SCHEMA)) for path, rows in files], version)
    bound = bind(predicate, SCHEMA)
    wanted = [any(keeps(predicate, row) for row in rows) for _, rows in files]
    paths: dict[str, tuple[str, ...]] = {path: () for path, _ in files}
    ranges = load_file_ranges(known.table(), bound, SCHEMA, tuple(paths))
    left = partitions_that_may_match(known.table(), bound, SCHEMA, paths)
    for (path, _), found, has_wanted in zip(files, slices, wanted, strict=True):
        if has_wanted:
            assert ranges is None or ranges.which_may_match([ReadSlice(found)], paths).all()
            assert left is None or path in left


def _two_partitions() -> Known:
    tables = [("p", [{"i": 1, "f": 1.0}, {"i": 7, "f": 2.0}]), ("q", [{"i": -1, "f": 9.0}, {"i": 0}])]
    return _known([(path, pa.Table.from_pylist(rows, SCHEMA)) for path, rows in tables], 9)[0]


def _left(known: Known, where: str, **from_path: Collection[str]) -> frozenset[str] | None:
    paths: dict[str, Collection[str]] = {"p": (), "q": (), **from_path}
    return partitions_that_may_match(known.table(), bind(parse_where(where), SCHEMA), SCHEMA, paths)


def test_partitions_are_skipped_by_their_ranges() -> None:
    known = _two_partitions()
    assert _left(known, "i > 0") == {"p"}
    assert _left(known, "i > 7 or i < 0") == {"q"}
    assert _left(known, "i > 100") == frozenset()
    assert _left(known, "i > 0 or s = 'x'") is None  # of s there is no value in either
    assert _left(known, "f > 5.0") is None
    assert _left(known, "i is null") is None


def test_partitions_are_not_skipped_where_their_ranges_may_not_tell_of_the_rows() -> None:
    known = _two_partitions()
    assert _left(known, "i > 0", q=("i",)) is None  # its value is the path's
    records = known.records
    assert _left(Known(records, merges=True), "i > 0") == {"p"}
    assert _left(Known(records, merges=True, version=8), "i > 0") is None
    assert _left(Known(records, is_current=False), "i > 0") is None
    assert _left(Known(records, indexed=["f"]), "i > 0") is None
    assert _left(Known(records, indexed=["i"]), "i > 0 and l is null") == {"p"}
    loose = records["partition_stats"].to_pylist()
    for record in loose:
        record["ColumnStatsMetadata"]["isTightBound"] = False
    schema = records["partition_stats"].schema
    assert _left(Known({"partition_stats": pa.Table.from_pylist(loose, schema)}), "i > 0") is None
    assert _left(Known({"column_stats": records["column_stats"]}), "i > 0") is None


@pytest.mark.parametrize("hudi", ["1.0.2", "1.2.0"])
def test_partitions_of_tables_that_hudi_wrote_are_skipped_by_their_statistics(
    hudi: str, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = golden(hudi, "skipping_a_cow")
    table = HudiTable.open(path)
    read: list[str] = []
    original = MetadataTable.lookup

    def lookup(self: MetadataTable, partition: str, keys: Collection[str]) -> pa.Table:
        read.append(partition)
        return original(self, partition, keys)

    monkeypatch.setattr(MetadataTable, "lookup", lookup)
    assert table.scan(where="v > 1000000").files().num_rows == 0
    assert read == ["partition_stats"]
    newest = str(MetaClient.load(open_storage(str(path))).timeline.commits().instants[-1].requested_time)
    assert table.scan(where="v > 1000000", as_of=newest).to_arrow().num_rows == 0
    assert read == ["partition_stats"]  # those are of the newest state only


def _with_partition_statistics() -> list[Any]:
    found = []
    for place in sorted((*(SHARED / "golden").glob("*/*.zip"), *(SHARED / "fixtures" / "hudi-tables").glob("*.zip"))):
        with zipfile.ZipFile(place) as archive:
            if any("/.hoodie/metadata/partition_stats/" in name for name in archive.namelist()):
                found.append(pytest.param(place, id=f"{place.parent.name}-{place.stem}"))
    return found


@pytest.mark.parametrize("place", _with_partition_statistics())
def test_the_ranges_of_partitions_that_are_used_hold_all_rows(place: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(place) as archive:
        archive.extractall(tmp_path)
    path = next(entry for entry in tmp_path.iterdir() if entry.name != "__MACOSX")
    table = MetadataTable.open(MetaClient.load(open_storage(str(path))))
    assert table is not None
    if "partition_stats" not in table.partitions:
        return  # none are used
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = HudiTable.open(path).scan(options={"hoodie.metadata.enable": "false"}).to_arrow()
        records = replace(table, raises=False).records("partition_stats")  # of one table a log file is lost
    config = table.data.config
    merges, version = config.is_merge_on_read, config.table_version
    known = Known({"partition_stats": records}, merges, version, indexed=rows.schema.names)
    for name, kind in zip(rows.schema.names, rows.schema.types, strict=True):
        if pa.types.is_nested(kind) or pa.types.is_floating(kind):
            continue
        ends = rows.select([PARTITION_PATH, name]).rename_columns(["path", "value"]).group_by("path")
        for row in ends.aggregate([("value", "min"), ("value", "max")]).to_pylist():
            for value in (row["value_min"], row["value_max"]):
                if value is not None:
                    wanted = bind(Compare(Column((name,)), "=", value), rows.schema)
                    left = partitions_that_may_match(known.table(), wanted, rows.schema, {row["path"]: (), "other": ()})
                    assert left is None or row["path"] in left, (name, value)


@pytest.mark.parametrize(("kind", "day"), [(pa.date32(), "day"), (pa.timestamp("us", "UTC"), "moment")])
def test_bounds_before_1900_are_not_trusted_whose_calendar_nothing_says(kind: pa.DataType, day: str) -> None:
    at = date if pa.types.is_date(kind) else partial(datetime, tzinfo=timezone.utc)
    old, new = at(1500, 6, 11), at(1900, 1, 1)
    files = []
    for low, high in ((old, old), (old, at(2020, 1, 1)), (new, new)):
        ranges = RangesOfRows([day])
        ranges.add(pa.table({day: pa.array([low, high], kind)}))
        files.append(stats_rows(9, "f", ranges.ranges()))
    stats = pa.concat_tables(files).to_struct_array().combine_chunks()
    found = stored_ranges(stats, kind)
    assert found.low.cast(kind).to_pylist() == [None, None, at(1900, 1, 1)]
    assert found.high.cast(kind).to_pylist() == [None, at(2020, 1, 1), at(1900, 1, 1)]
    assert found.may_be_null.to_pylist() == [False, False, False]
