"""Which cases of the Spark tests `make test` repeats on Spark Connect; `make sparks` runs all of them there.

A classic session runs every test first. Connect differs in sessions, frames, SQL, streams, types and options: files
about these are repeated whole. Elsewhere the rows of a case take the same road as those of its neighbours, and one case
of each test function shows that the road is open: the first one, or those named here.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

__all__ = ["KEPT", "WHOLE", "mark_repetitions"]

WHOLE = frozenset(
    f"test_{topic}"
    for topic in (
        "engine", "fetching", "functions", "incremental", "keygen", "object_store", "read_options", "scripts",
        "sql_call", "sql_dml", "sql_lacking", "sql_names", "streams", "types", "worker_python",
    )
)  # fmt: skip

# Test → ids of the cases that are repeated, where the first one alone would leave a way of Connect's untried.
KEPT: Mapping[str, tuple[str, ...]] = {
    # Column types, ids of columns, and values from paths.
    "test_a_table_of_real_hudi_reads_as_real_hudi_reads_it": (
        "0.15.0-keys_custom",
        "0.15.0-types_insert",
        "1.0.2-evolution_schema_on_read",
        "1.2.0-types_timestamp_ntz",
    ),
    "test_a_large_batch_of_spark_finds_the_keys_that_this_process_finds_and_collects_none": (
        "global bloom, log files, stays",
    ),
    "test_odd_partition_values_read_as_they_were_written": ("a{b,c}", "%41"),
}


def mark_repetitions(items: list[pytest.Item]) -> None:
    """Mark the cases that go on Connect the road of another one as `sweep`."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.path.stem not in WHOLE and item.get_closest_marker("sweep") is None:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in tests.items():
        named = KEPT.get(name.rpartition("::")[2], ())
        kept = [item for item in cases if item.nodeid.partition("[")[2].removesuffix("]") in named] or cases[:1]
        for item in cases:
            if item not in kept:
                item.add_marker(pytest.mark.sweep)
