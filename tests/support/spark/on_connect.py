"""Which cases of the Spark tests `make test` repeats on Spark Connect; `make sparks` runs all of them there.

A classic session runs every test first. Connect differs in sessions, frames, SQL, streams, types and options: files
about these are repeated whole. Elsewhere the rows of a case take the same road as those of its neighbours, and one case
of a test function shows that the road is open: the first one, or those named here. Where other tests have shown it, and
what is left of a test has nothing of the session in it, it is not repeated at all.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

__all__ = ["KEPT", "NOT_REPEATED", "WHOLE", "mark_repetitions"]

WHOLE = frozenset(
    f"test_{topic}"
    for topic in (
        "engine", "fetching", "functions", "incremental", "keygen", "object_store", "read_options", "scripts",
        "sql_call", "sql_dml", "sql_lacking", "sql_names", "types", "worker_python",
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
    "test_a_stream_follows_a_table_and_goes_on_after_a_restart": ("9-MERGE_ON_READ",),
    "test_odd_partition_values_read_as_they_were_written": ("a{b,c}", "%41"),
}

NOT_REPEATED = frozenset(
    {
        # What tasks do, which are those of a classic session.
        "test_sparks_own_hash_puts_every_number_into_its_partition",
        "test_writes_without_them_leave_the_same_rows_in_the_same_files",
        "test_a_large_batch_of_spark_finds_the_keys_that_this_process_finds_and_collects_none",
        "test_a_payload_class_fills_nulls_in_spark_s_tasks",
        "test_spark_tasks_keep_strange_partitions_and_refuse_what_would_be_lost",
        "test_this_process_and_spark_write_the_same_log_files",
        # What this process does before and after.
        "test_a_plan_that_waits_is_run_by_spark_under_the_delta_commits_on_top_of_it",
        "test_base_files_under_log_files_are_scanned_by_spark_with_pruned_columns",
        "test_log_files_of_older_schemas_are_read_and_compacted_by_column_id",
        "test_the_data_source_fails_for_damaged_log_files_if_it_shall",
        # Streams: other tests of them begin, follow, write and start again here.
        "test_a_batch_is_read_again_as_it_was_and_hudis_offsets_are_in_the_checkpoint",
        "test_a_stream_begins_where_it_is_told",
        "test_output_mode_complete_replaces_all_rows_in_one_commit",
    }
)


def mark_repetitions(items: list[pytest.Item]) -> None:
    """Mark the cases that go on Connect the road of another one as `sweep`."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.path.stem not in WHOLE and item.get_closest_marker("sweep") is None:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in tests.items():
        function = name.rpartition("::")[2]
        named = KEPT.get(function, ())
        kept = [item for item in cases if item.nodeid.partition("[")[2].removesuffix("]") in named] or cases[:1]
        for item in cases:
            if item not in kept or function in NOT_REPEATED:
                item.add_marker(pytest.mark.sweep)
