"""Tests whose cases are kept until each value of each parameter is in one of them.

Each table that real Hudi wrote, each version, each table type, but not each with every other; and the cases that are
named here, without which a line of PyHudi would not be executed.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["EACH_VALUE"]

# Test → ids of more cases that are kept.
EACH_VALUE: Mapping[str, tuple[str, ...]] = {
    "tests/actions/test_clustering_updates.py::test_a_change_of_its_file_groups_is_refused_by_name": (
        "upsert-COPY_ON_WRITE-6",
    ),
    "tests/actions/test_merge_on_read_by_hudi_rs.py::test_hudi_rs_merges_the_log_files_that_writes_left": ("8-avro",),
    "tests/concurrency/test_concurrent_reads.py::test_all_of_an_action_between_two_calls": (
        "restore, commit-9-COPY_ON_WRITE-False",
        "clustering, clean-9-COPY_ON_WRITE-True",
        "dropped partition, clean-9-COPY_ON_WRITE-False",
        "restore, commit-6-MERGE_ON_READ-False",
    ),
    "tests/concurrency/test_concurrent_reads.py::test_an_action_during_the_calls": (),
    "tests/faults/test_lost_lock.py::test_a_metadata_table_that_was_made_meanwhile_has_the_instant": (
        "restore-9",
        "clustering-6",
    ),
    "tests/metadata/test_damage.py::test_readers_go_without_it_and_the_next_write_builds_it_anew": (
        "base file missing-6",
    ),
    "tests/metadata/test_log_compaction.py::test_a_metadata_table_that_is_log_compacted_stays_right": (),
    "tests/spark/test_first_write.py::test_a_first_write_that_fails_in_spark_leaves_nothing": (),
    "tests/spark/test_golden.py::test_a_table_of_real_hudi_reads_as_real_hudi_reads_it": (),
    "tests/spark/test_golden.py::test_slices_with_log_files_are_merged_by_tasks": (),
    "tests/spark/test_golden.py::test_spark_and_arrow_return_the_same_rows_of_every_other_table": (),
}
