"""What every partition of the metadata table promises, run over each row of the registry: after any writes its records
are those of one that is built from the table as it is then.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.build import rebuild_table
from pyhudi.metadata.keys import ALL_PARTITIONS_KEY
from pyhudi.metadata.partitions.registry import PARTITIONS, is_supported_in
from pyhudi.metadata.schema import MetadataKind, kind_of
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.options.metadata import DEFAULT_METADATA
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.clustered import Clustered
from tests.support.tables.small import Row, rows_of

# Partitions that options ask for, in a table of their own where they need a record index of their own kind.
ON = {
    "metadata_enable": "true",
    "metadata_index_column_stats_enable": "true",
    "metadata_index_partition_stats_enable": "true",
    "metadata_index_bloom_filter_enable": "true",
    "metadata_index_bloom_filter_file_group_count": "2",
    "metadata_global_record_level_index_min_filegroup_count": "2",
}
GLOBAL = {**ON, "metadata_global_record_level_index_enable": "true", "index_type": "GLOBAL_RECORD_LEVEL_INDEX"}
PARTITIONED = {**ON, "metadata_record_level_index_enable": "true", "index_type": "RECORD_LEVEL_INDEX"}
# Kinds of which a partition is made by name.
BY_NAME: Mapping[MetadataKind, Callable[[HudiTable], object]] = {
    MetadataKind.SECONDARY_INDEX: lambda table: table.indexes.create("by_v", columns="v"),
    MetadataKind.EXPRESSION_INDEX: lambda table: table.indexes.create("day", expression="from_unixtime(ts, 'yyyy')"),
}
# What of a record tells when it was written, and not what is so.
WHEN = {MetadataKind.BLOOM_FILTERS: "timestamp", MetadataKind.RECORD_INDEX: "instantTime"}
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
CASES = [
    *((version, kind, GLOBAL) for version in ("6", "8", "9") for kind in KINDS),
    *(("9", kind, PARTITIONED) for kind in KINDS),
]
PLACES = "xyz"


def table_of(version: str, table_type: str, options: Mapping[str, str], rows: list[Row]) -> Clustered:
    """A table with a partition of every kind that its version has and this release keeps up."""
    table = Clustered(version, table_type, **options)
    table.insert(*rows)
    for kind, make in BY_NAME.items():
        if is_supported_in(f"{kind.value.prefix}x", int(version)) and options is GLOBAL:  # they need unique keys
            make(HudiTable(table.meta))
    there = {kind_of(name) for name in metadata_of(table.meta).partitions}
    wanted = {
        kind for kind in PARTITIONS if is_supported_in(f"{kind.value.prefix}{'x' * kind.value.has_many}", int(version))
    }
    assert wanted - there <= (set() if options is GLOBAL else set(BY_NAME)), (
        "say above how a table gets one of its kind"
    )
    return table


def metadata_of(meta: MetaClient) -> MetadataTable:
    found = MetadataTable.open(meta)
    assert found is not None
    return found


def written(meta: MetaClient) -> set[str]:
    """Names of the files that completed writes made."""
    stats = (stat for i in meta.timeline.completed().commits() for stat in meta.commits.metadata(i).stats())
    return {(stat.path or "").rpartition("/")[2] for stat in stats}


def visible(meta: MetaClient) -> set[str]:
    """Names of the files that a query of the newest rows reads."""
    slices = FileSystemView.load(meta).all_slices()
    files = [file for found in slices for file in (found.base_file, *found.log_files) if file is not None]
    return {file.path.rpartition("/")[2] for file in files}


def records(table: MetadataTable, partition: str) -> dict[str, object]:
    """Key → what the record says. Of `files` only what is there: marks of what is gone, and folders without files, say
    the same as no record. Below version 8 a rollback leaves the log files of what it undoes, and adds some: one that is
    built later has statistics of them, which nobody needs. An expression index is built of the newest files; what it
    has of replaced ones stays until they are cleaned.
    """
    names = written(table.data)
    replaced = names - visible(table.data)
    kind = kind_of(partition)
    payloads = [name for name in kind.payloads if name in table.records(partition).column_names]
    found: dict[str, object] = {}
    for row in table.records(partition).to_pylist():
        content: Any = next(row[name] for name in payloads if row[name] is not None)
        if kind is MetadataKind.FILES:
            content = sorted((name, entry["size"]) for name, entry in content if not entry["isDeleted"])
            if not content or row["key"] == ALL_PARTITIONS_KEY:
                continue
        elif kind in WHEN:
            del content[WHEN[kind]]
        if kind is MetadataKind.EXPRESSION_INDEX and content["fileName"] in replaced:
            continue
        if kind is MetadataKind.COLUMN_STATS and content["fileName"] not in names:
            assert table.data.config.table_version < 8, content["fileName"]
            continue
        assert row["key"] not in found, (partition, row)
        found[row["key"]] = (row["type"], content)
    return found


def check(table: Clustered, what: object, without: tuple[MetadataKind, ...] = ()) -> None:
    """The records are those of a metadata table that is built anew, and each is found by its key."""
    kept = metadata_of(table.meta)
    copy = MetaClient.load(table.memory.clone())
    fresh = metadata_of(rebuild_table(copy, DEFAULT_METADATA))
    assert set(fresh.partitions) == set(kept.partitions), what
    for partition in kept.partitions:
        if kind_of(partition) not in without:
            own = records(kept, partition)
            assert own == records(fresh, partition), (what, partition)
            found = {str(key) for key in kept.lookup(partition, list(own)).column("key").to_pylist()}
            assert found == set(own), (what, partition)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("version", "table_type", "options"), CASES)
def test_records_after_any_writes_are_those_of_a_partition_that_is_rebuilt(
    version: str, table_type: str, options: Mapping[str, str], seed: int
) -> None:
    chance = random.Random(f"{version} {table_type} {seed}")
    home = {key: chance.choice(PLACES) for key in "abcdefgh"}
    table = table_of(version, table_type, options, [(key, home[key], 1, n % 2) for n, key in enumerate("abcd")])
    check(table, "made")

    def some(ts: int, count: int = 3) -> list[Row]:
        return [(key, home[key], ts, chance.randrange(5)) for key in chance.sample("abcdefgh", count)]

    def roll_back(ts: int) -> None:
        table.upsert(*some(ts))
        HudiTable(table.meta).rollback()

    acts: dict[str, Callable[[int], object]] = {
        "upsert": lambda ts: table.upsert(*some(ts)),
        "delete": lambda ts: table.delete(*((key, home[key]) for key, *_ in some(ts, 2))),
        "roll back": roll_back,
        "compact": lambda ts: table.compact_now() if table_type == "MERGE_ON_READ" else None,
        "cluster": lambda ts: table.cluster(clustering_plan_strategy_small_file_limit="1000000"),
        "clean": lambda ts: HudiTable(table.meta).clean(options={"hoodie.clean.commits.retained": 1}),
        "overwrite": lambda ts: table.write("insert_overwrite", rows_of(("a", home["a"], ts, 1))),
    }
    for step in range(2, 7):
        act = chance.choice(sorted(acts))
        acts[act](step)
        # A compaction leaves the ranges of partitions as they are, as Hudi's does: they hold, but may be wider.
        check(table, (step, act), without=(MetadataKind.PARTITION_STATS,))
    table.upsert(*((key, home[key], 9, 1) for key in home))  # every partition is touched
    check(table, "all")
