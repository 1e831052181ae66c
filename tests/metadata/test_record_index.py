"""A table with a record index keeps it through all actions."""

from __future__ import annotations

from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.metadata.record_places import file_ids, partition_paths
from pyhudi.metadata.table import MetadataTable
from pyhudi.queries.metadata_validation import validate
from tests.support.tables.clustered import Clustered
from tests.support.tables.small import rows_of

ON = {"metadata_enable": "true", "metadata_global_record_level_index_enable": "true"}
KINDS = [(version, kind) for version in ("6", "8", "9") for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]


def table_of(version: str, kind: str, **options: str) -> Clustered:
    return Clustered(version, kind, index_type="GLOBAL_RECORD_LEVEL_INDEX", **ON, **options)


def check(table: Clustered, what: str) -> None:
    assert "record_index" in table.meta.config.metadata_partitions, what
    assert validate(table.meta) == (), what


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_every_action_keeps_the_record_index_up(version: str, kind: str) -> None:
    table = table_of(version, kind)
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 1, 30), ("e", "y", 1, 5))
    check(table, "bulk insert")
    steps: list[tuple[str, Any]] = [
        ("upsert", lambda: table.upsert(("a", "x", 2, 11), ("d", "z", 1, 40))),
        ("delete", lambda: table.delete(("b", "x"))),
        ("flagged", lambda: table.mark_deleted(("e", "y", 0, 5), ("d", "z", 9, 1))),
        ("back again", lambda: table.upsert(("b", "x", 3, 21), ("d", "z", 10, 41))),
        ("cluster", lambda: table.cluster(clustering_plan_strategy_small_file_limit="1000000")),
        ("insert overwrite", lambda: table.write("insert_overwrite", rows_of(("a", "x", 4, 12), ("f", "x", 1, 7)))),
        ("rollback", lambda: HudiTable(table.meta).rollback()),
        ("delete partition", lambda: table.write("delete_partition", rows_of(("c", "y", 1, 1)))),
        ("moves", lambda: table.upsert(("a", "w", 5, 13), record_index_update_partition_path="true")),
        ("compaction", lambda: table.compact_now() if kind == "MERGE_ON_READ" else None),
        ("upsert again", lambda: table.upsert(("a", "w", 6, 14), ("g", "v", 1, 1))),
    ]
    for what, act in steps:
        act()
        check(table, what)
    assert table.rows(("id", "p", "v")) == [("a", "w", 14), ("b", "x", 21), ("d", "z", 41), ("g", "v", 1)]


def places(table: Clustered) -> dict[str, tuple[str, str]]:
    found = MetadataTable.open(table.meta)
    assert found is not None
    records = found.records("record_index")
    payload = records.column("recordIndexMetadata").combine_chunks()
    rows = zip(partition_paths(payload).to_pylist(), file_ids(payload).to_pylist(), strict=True)
    return dict(zip(records.column("key").to_pylist(), rows, strict=True))  # type: ignore[arg-type]
