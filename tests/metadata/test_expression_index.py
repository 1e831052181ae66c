"""Expression indexes: made from rows, kept up by all actions, against what Apache Hudi wrote."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.formats.bloom import BloomFilter
from pyhudi.metadata.build import add_partition
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.keys import bloom_filter_key, stored_partition
from pyhudi.metadata.schema import MetadataKind, kind_of
from pyhudi.metadata.table import MetadataTable
from pyhudi.metadata.table_slices import newest_slices
from pyhudi.model.options.metadata import MetadataOptions
from tests.support.golden.folder import SHARED
from tests.support.golden.metadata_tables import opened, places_with
from tests.support.tables.clustered import Clustered
from tests.support.tables.small import Row, rows_of

PREFIX = "expr_index_"
ON = {"metadata_enable": "true"}
KINDS = [(version, kind) for version in ("8", "9") for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]
Records = dict[str, dict[str, Any]]


def _open(place: Path, folder: Path) -> MetadataTable:
    table = opened(place, folder)
    assert table is not None
    return table


def _indexes(table: MetadataTable) -> list[str]:
    return [name for name in table.partitions if kind_of(name) is MetadataKind.EXPRESSION_INDEX]


def _newest(table: MetadataTable, name: str) -> Records:
    """By key, the records of the newest slices' files, and of whole partitions: Hudi keeps those of older files."""
    live = {file.name for one in newest_slices(table.data) for file in (one.base_file, *one.log_files) if file}
    found = {}
    for record in table.records(name).to_pylist():
        stats, bloom = record["ColumnStatsMetadata"], record["BloomFilterMetadata"]
        if bloom is not None:
            found[record["key"]] = {"type": record["type"], "bloom": bloom["bloomFilter"].decode(), "of": bloom["type"]}
        elif record["type"] == 6 or stats["fileName"] in live:
            found[record["key"]] = record
    return found


@pytest.mark.parametrize("place", places_with(PREFIX, (SHARED / "golden").glob("*/mdt_all_*.zip")))
def test_an_expression_index_built_from_the_rows_is_the_one_that_hudi_kept(place: Path, tmp_path: Path) -> None:
    table = built = _open(place, tmp_path)
    assert _indexes(table)
    for name in _indexes(table):
        theirs = _newest(table, name)
        built = add_partition(built, name, MetadataOptions())
        assert [s.group.file_id for s in built.slices(name)] == [s.group.file_id for s in table.slices(name)]
        ours = _newest(built, name)
        if read_index_definitions(table.data.storage).by_name[name].kind == "column_stats":
            assert ours == theirs
            continue
        assert ours
        assert set(ours) <= set(theirs)
        texts = {str(row["s"]).lower() for row in HudiTable(table.data).to_arrow().to_pylist()}
        values = pa.array(sorted(texts))
        for key, own in ours.items():
            both = [BloomFilter.from_base64(one["bloom"], one["of"]) for one in (own, theirs[key])]
            answers = [bloom.might_contain(values).tolist() for bloom in both]
            assert answers[0] == answers[1]
            assert any(answers[0])


DAY = 86_400


def indexed(version: str, kind: str, *rows: Row) -> Clustered:
    """A table with an expression index of days, of a column of seconds; copy-on-write with one of a text, too."""
    table = Clustered(version, kind, **ON)
    table.bulk_insert(*rows)
    HudiTable(table.meta).indexes.create("day", expression="from_unixtime(v, 'yyyy-MM-dd')")
    if kind == "COPY_ON_WRITE":
        HudiTable(table.meta).indexes.create("up", index_type="bloom_filters", expression="upper(p)")
    return table


def day_of(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d")


def check(table: Clustered, what: object) -> None:
    """Each file of the newest slices with rows has its range, which holds its live rows; no file that went has one."""
    found = MetadataTable.open(table.meta)
    assert found is not None, what
    records = found.records(f"{PREFIX}day").to_pylist()
    stats = {r["ColumnStatsMetadata"]["fileName"]: r["ColumnStatsMetadata"] for r in records}
    there = {entry.path.rpartition("/")[2] for entry in table.storage.walk("")}
    assert {r["ColumnStatsMetadata"]["fileName"] for r in records if r["type"] == 3} <= there, what
    slices = newest_slices(table.meta)
    assert {one.base_file.name for one in slices if one.base_file is not None} <= set(stats), what
    days: dict[tuple[str, str], list[str]] = {}
    for row in table.read().to_pylist():
        path, file_id = row["_hoodie_partition_path"], row["_hoodie_file_name"][:36]
        for key in ((path, file_id), (path, "")):
            days.setdefault(key, []).append(day_of(row["v"]))
    is_whole = not table.meta.config.is_merge_on_read
    for one in slices:
        own = sorted(days.get((one.group.partition_path, one.group.file_id[:36]), []))
        files = [file.name for file in (one.base_file, *one.log_files) if file is not None]
        check_range([stats[name] for name in files if name in stats], own, is_whole, (what, files))
    for path in {one.group.partition_path for one in slices}:
        check_range([stats[path]], sorted(days.get((path, ""), [])), is_whole, (what, path))
    if f"{PREFIX}up" in found.partitions:
        blooms = {r["key"]: r["BloomFilterMetadata"] for r in found.records(f"{PREFIX}up").to_pylist()}
        for one in slices:
            assert one.base_file is not None
            path = one.group.partition_path
            bloom = blooms[bloom_filter_key(stored_partition(path), one.base_file.name)]
            filled = BloomFilter.from_base64(bloom["bloomFilter"].decode(), bloom["type"])
            assert filled.might_contain(pa.array([path.upper(), "other"])).tolist() == [True, False], what


def check_range(stats: list[Any], days: list[str], is_whole: bool, what: object) -> None:
    lows = [text for one in stats for text in bounds_of(one, "minValue")]
    highs = [text for one in stats for text in bounds_of(one, "maxValue")]
    if days:
        assert min(lows) <= days[0] <= days[-1] <= max(highs), what
    if is_whole and days:
        assert (min(lows), max(highs)) == (days[0], days[-1]), what


def bounds_of(stats: Any, name: str) -> list[str]:
    return [] if stats[name] is None else [stats[name]["member6"]["value"]]


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_every_action_keeps_expression_indexes_up(version: str, kind: str) -> None:
    rows = [("a", "x", 1, DAY), ("b", "x", 1, 20 * DAY), ("c", "y", 1, 30 * DAY), ("e", "y", 1, 5 * DAY)]
    table = indexed(version, kind, *rows)
    check(table, "built")
    steps: list[tuple[str, Any]] = [
        ("upsert", lambda: table.upsert(("a", "x", 2, 11 * DAY), ("d", "z", 1, 40 * DAY))),
        ("delete", lambda: table.delete(("b", "x"))),
        ("back again", lambda: table.upsert(("b", "x", 3, 21 * DAY))),
        ("cluster", lambda: table.cluster(clustering_plan_strategy_small_file_limit="1000000")),
        ("insert overwrite", lambda: table.write("insert_overwrite", rows_of(("a", "x", 4, DAY), ("f", "x", 1, DAY)))),
        ("rollback", lambda: HudiTable(table.meta).rollback()),
        ("delete partition", lambda: table.write("delete_partition", rows_of(("c", "y", 1, 1)))),
        ("compaction", lambda: table.compact_now() if kind == "MERGE_ON_READ" else None),
        ("upsert again", lambda: table.upsert(("a", "x", 6, 14 * DAY), ("g", "v", 1, -DAY))),
        ("clean", lambda: HudiTable(table.meta).clean(options={"hoodie.clean.commits.retained": "1"})),
    ]
    for what, act in steps:
        act()
        check(table, what)
    ids = table.rows(("id", "v"))
    assert ids == [("a", 14 * DAY), ("b", 21 * DAY), ("d", 40 * DAY), ("g", -DAY)]
