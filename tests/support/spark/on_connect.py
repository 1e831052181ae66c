"""Which cases of the Spark tests `make test` repeats on Spark Connect; `make sparks` runs all of them there.

A classic session runs every test first. Connect differs in sessions, frames, SQL, types and options: files about these
are repeated whole. Elsewhere tasks do what those of a classic session do, and what comes before and after them is done
by this process: one case of a file shows that the road is open, the first one, and more where they are named here.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

__all__ = ["KEPT", "WHOLE", "mark_repetitions"]

WHOLE = frozenset(
    f"test_{topic}"
    for topic in (
        "engine", "fetching", "functions", "incremental", "keygen", "object_store", "read_options", "scripts",
        "sql_call", "sql_dml", "sql_lacking", "sql_names", "types",
    )
)  # fmt: skip

# Test → ids of the cases that are repeated ("": a test without cases), where the first case of the file alone would
# leave a way of Connect's untried.
KEPT: Mapping[str, tuple[str, ...]] = {
    # Column types, ids of columns, and values from paths.
    "test_a_table_of_real_hudi_reads_as_real_hudi_reads_it": (
        "0.15.0-keys_custom",
        "0.15.0-types_insert",
        "1.0.2-evolution_schema_on_read",
        "1.2.0-types_timestamp_ntz",
    ),
    "test_odd_partition_values_read_as_they_were_written": ("a{b,c}", "%41"),
    "test_inputs_over_the_limit_go_to_spark_and_under_it_do_not": ("",),
    "test_this_process_and_spark_write_the_same_table": ("SIMPLE",),
    "test_a_script_reads_and_writes_log_files_by_format_hudi": ("",),
    "test_spark_compacts_and_every_query_answers_as_before": ("",),
    "test_update_delete_and_merge_of_spark_frames_write_partial_updates": ("",),
    "test_writes_and_reads_raise_no_warning": ("MERGE_ON_READ",),
    # Streams, whose functions the server calls.
    "test_each_batch_is_written_once_however_often_spark_asks": ("",),
    "test_format_hudi_is_the_same_writer": ("",),
    "test_a_stream_follows_a_table_and_goes_on_after_a_restart": ("9-MERGE_ON_READ",),
    "test_a_stream_of_changes_has_deletes_too": ("",),
    "test_streams_make_write_and_follow_tables_by_name": ("",),
}


def mark_repetitions(items: list[pytest.Item]) -> None:
    """Mark the cases that go on Connect the road of another one as `sweep`."""
    begun_files = set()
    for item in items:
        if item.path.stem in WHOLE or item.get_closest_marker("sweep") is not None:
            continue
        test, _, case = item.nodeid.partition("[")
        is_first = item.path not in begun_files
        begun_files.add(item.path)
        if not is_first and case.removesuffix("]") not in KEPT.get(test.rpartition("::")[2], ()):
            item.add_marker(pytest.mark.sweep)
