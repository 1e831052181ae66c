"""Each condition is seen true and false, on small tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, time
from operator import attrgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import HudiTable, write_hudi
from pyhudi.formats.properties import parse_properties, print_properties
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import BaseFileName
from pyhudi.model.new_table import NewTable, new_table_properties
from pyhudi.queries.query import Query
from pyhudi.storage import FixedClock, open_storage
from pyhudi.sync.check.conditions import CONDITIONS, Seen
from pyhudi.sync.check.facts import TableFacts
from pyhudi.sync.check.rules import ENGINES, RULES
from pyhudi.timeline.table_properties import create_table

ROWS = [{"id": i, "city": "ab"[i % 2], "ts": 1} for i in range(4)]
NO_METADATA = {"hoodie.metadata.enable": "false"}
Made = Callable[[str], HudiTable]


def written(path: str, rows: Any = ROWS, options: dict[str, str] | None = None, **arguments: Any) -> HudiTable:
    given = {"record_key": "id", "partition_by": "city", "ordering": "ts", **arguments}
    write_hudi(path, rows, options={**NO_METADATA, **(options or {})}, **given)
    return HudiTable.open(path)


def table(**arguments: Any) -> Made:
    return lambda path: written(path, **arguments)


def logged(version: int = 9) -> Made:
    def make(path: str) -> HudiTable:
        made = written(path, table_type="MERGE_ON_READ", table_version=version)
        made.upsert([{"id": 1, "city": "b", "ts": 2}], options=NO_METADATA)
        return made

    return make


def compacted(path: str) -> HudiTable:
    made = logged()(path)
    made.compact(options=NO_METADATA)
    return made


def with_column(value: Any) -> Made:
    rows = pa.table({"id": [1], "city": ["a"], "ts": [1], "odd": value})
    return lambda path: written(path, rows)


def with_property(key: str, value: str | None) -> Made:
    """`value`: None takes it out."""

    def make(path: str) -> HudiTable:
        made = written(path, table_version=6)
        storage = open_storage(path)
        properties = parse_properties(storage.read(".hoodie/hoodie.properties"), path)
        properties = {name: text for name, text in properties.items() if name != key}
        storage.write(".hoodie/hoodie.properties", print_properties(properties | ({key: value} if value else {})))
        return made

    return make


def base_files(made: HudiTable) -> list[str]:
    return [str(path) for path in made.inspect.files()["path"].to_pylist()]


def with_file_like_another(name: Callable[[BaseFileName], str]) -> Made:
    """A copy of a base file, under another name."""

    def make(path: str) -> HudiTable:
        made, storage = written(path), open_storage(path)
        first = base_files(made)[0]
        folder, _, last = first.rpartition("/")
        parsed = BaseFileName.parse(last)
        assert parsed is not None
        storage.write(f"{folder}/{name(parsed)}", storage.read(first))
        return made

    return make


def encrypted(path: str) -> HudiTable:
    made, storage = written(path), open_storage(path)
    first = base_files(made)[0]
    storage.write(first, storage.read(first)[:-4] + b"PARE")
    return made


def bootstrapped(path: str) -> HudiTable:
    source = f"{path}-source"
    Path(source).mkdir()
    pq.write_table(pa.Table.from_pylist(ROWS), f"{source}/rows.parquet")
    pyhudi.bootstrap(source, path, record_key="id", options=NO_METADATA)
    return HudiTable.open(path)


def archived(path: str) -> HudiTable:
    made = written(path)
    for number in range(8):
        made.upsert([{"id": 1, "city": "b", "ts": number}], options=NO_METADATA)
    made.clean(commits_retained=1, options=NO_METADATA)
    keep = {**NO_METADATA, "hoodie.clean.commits.retained": "1"}
    made.maintenance.archive(min_commits=2, max_commits=3, options=keep)
    return made


def replaced(path: str) -> HudiTable:
    made = written(path)
    made.cluster(options=NO_METADATA)
    return made


def with_delta_log(path: str) -> HudiTable:
    made = written(path, partition_by=None)
    open_storage(path).write("_delta_log/00000000000000000010.checkpoint.parquet", b"")
    return made


def same_ids_in_two_partitions(path: str) -> HudiTable:
    """As bucket indexes with fixed ids make them: the last folders of both partitions are called x."""
    made, storage = written(path, [{"id": 1, "city": "a/x", "ts": 1}]), open_storage(path)
    first = base_files(made)[0]
    storage.write(first.replace("a/x/", "b/x/"), storage.read(first))
    storage.write("b/x/.hoodie_partition_metadata", storage.read("a/x/.hoodie_partition_metadata"))
    return made


CASES: dict[str, tuple[Any, Made, Made]] = {
    "version above": (6, table(), table(table_version=6)),
    "version": ((8,), table(table_version=8), table()),
    "version not among": ((5, 6), table(), table(table_version=6)),
    "merge-on-read": (None, table(table_type="MERGE_ON_READ"), table()),
    "base files not": (("PARQUET",), table(options={"hoodie.table.base.file.format": "ORC"}), table()),
    "dropped partition columns": (
        None,
        table(options={"hoodie.datasource.write.drop.partition.columns": "true"}),
        table(),
    ),
    "not hive style": (None, table(), table(options={"hoodie.datasource.write.hive_style_partitioning": "true"})),
    "merge mode": ("CUSTOM", with_property("hoodie.record.merge.mode", "CUSTOM"), table()),
    "= in a property": (None, with_property("hoodie.note", "a=b"), table(table_version=6)),
    "lacks property": (
        ("hoodie.table.keygenerator.class",),
        with_property("hoodie.table.keygenerator.class", None),
        table(table_version=6),
    ),
    "columns of type": ("time", with_column(pa.array([time(1)])), with_column([datetime(2026, 1, 1)])),
    "timestamps in merge-on-read": (
        None,
        table(rows=[{**ROWS[0], "at": datetime(2026, 1, 1)}], table_type="MERGE_ON_READ"),
        with_column([datetime(2026, 1, 1)]),
    ),
    "rows in log files": (None, logged(), compacted),
    "codec not among": (("ZSTD",), table(options={"hoodie.parquet.compression.codec": "gzip"}), table()),
    "encrypted": (None, encrypted, table()),
    "bootstrapped": (None, bootstrapped, table()),
    "shows other files": (
        "clickhouse",
        with_file_like_another(lambda name: str(replace(name, instant_time="99990101000000000"))),
        table(),
    ),
    "hides files": (
        "clickhouse",
        with_file_like_another(lambda name: str(replace(name, instant_time="99990101000000000"))),
        table(),
    ),
    "odd file names": (None, with_file_like_another(lambda name: f"my_{name}"), table()),
    "other folders": (None, with_delta_log, table(partition_by=None)),
    "history in Parquet": (None, archived, table()),
    "newest commit without file": (None, table(table_type="MERGE_ON_READ"), table()),
}
ON_DISK = ("bootstrapped",)


def seen(made: HudiTable, condition: str, argument: Any) -> Seen | None:
    if condition == "merge mode":  # of a copy-on-write table nothing is merged by readers
        meta = MetaClient.load(open_storage(made.path))
        meta = replace(meta, config=meta.config.with_changes({"hoodie.table.type": "MERGE_ON_READ"}))
    else:
        meta = MetaClient.load(open_storage(made.path))
    return CONDITIONS[condition](TableFacts(meta, Query()), argument)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_is_seen_where_it_holds_and_not_elsewhere(condition: str, tmp_path: Path) -> None:
    argument, true, false = CASES[condition]
    place = str(tmp_path) if condition in ON_DISK else f"memory://check-{list(CONDITIONS).index(condition)}"

    found = seen(true(f"{place}/true"), condition, argument)
    assert found is not None
    assert found.text
    assert seen(false(f"memory://check-{place.rpartition('/')[2]}/false"), condition, argument) is None


def test_every_rule_names_a_condition_engines_what_happens_and_who_says_so() -> None:
    assert {rule.condition for rule in RULES} == CONDITIONS.keys()
    for rule in RULES:
        assert set(rule.engines) <= ENGINES.keys()
        assert "{seen}" in rule.what
        assert rule.source.startswith("https://")
        assert rule.run or rule.level in ("note", "unknown"), rule
    assert {engine for rule in RULES for engine in rule.engines} == ENGINES.keys()


def test_every_call_that_a_rule_advises_is_there() -> None:
    made = written("memory://check-advised")
    for rule in RULES:
        for call in re.findall(r"table\.([\w.]+)\(", rule.run):
            assert callable(attrgetter(call)(made)), call


def test_replaced_files_count_as_shown_with_their_rows() -> None:
    found = seen(replaced("memory://check-replaced"), "shows other files", "clickhouse")

    assert found is not None
    assert found.rows == len(ROWS)


def test_a_checkpoint_of_a_delta_log_is_an_odd_file() -> None:
    found = seen(with_delta_log("memory://check-delta"), "odd file names", None)

    assert found is not None
    assert found.text.startswith("_delta_log/")


def test_two_partitions_with_the_same_last_folder_hide_files_of_each_other_from_clickhouse_alone() -> None:
    made = same_ids_in_two_partitions("memory://check-same-ids")

    found = seen(made, "hides files", "clickhouse")
    assert found is not None
    assert found.rows == 1
    assert seen(made, "hides files", "daft") is None


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("local timestamp", pa.array([1], pa.timestamp("us"))),
        ("timestamp", pa.array([1], pa.timestamp("us", "UTC"))),
        ("time", pa.array([[{"at": time(1)}]])),
    ],
)
def test_types_are_found_in_nested_columns_too(kind: str, column: pa.Array) -> None:
    found = seen(with_column(column)(f"memory://check-type {kind}"), "columns of type", kind)

    assert found is not None
    assert found.text.startswith("odd")


def test_nanoseconds_of_a_table_that_another_hudi_made_are_found() -> None:
    schema = {"type": "long", "logicalType": "timestamp-nanos"}
    text = json.dumps({"type": "record", "name": "t", "fields": [{"name": "at", "type": schema}]})
    storage = open_storage("memory://check-nanoseconds")
    create_table(storage, new_table_properties(NewTable("t", "COPY_ON_WRITE", 9, create_schema=text)), FixedClock(0))

    facts = TableFacts(MetaClient.load(storage), Query())
    assert facts.columns_by_kind == {"nanoseconds": ("at",)}


def test_a_partition_that_was_dropped_leaves_the_newest_commit_as_it_is_and_a_cleaned_file_does_not() -> None:
    made = written("memory://check-gone", table_version=6)
    assert seen(made, "newest commit without file", None) is None
    made.cluster(options=NO_METADATA)
    made.upsert([ROWS[0]], options=NO_METADATA)
    open_storage(made.path).delete(
        next(stat for stat in base_files(made) if stat.rpartition("_")[2][:17] == made.history()[0].instant_time)
    )

    found = seen(made, "newest commit without file", None)
    assert found is not None
    assert "no longer exists" in found.text
