"""Long tests of many cases: which cases `make test` runs; the others have the marker `sweep`.

`make sweeps` runs all of them, and with Spark `make sparks`. A test is named here because its cases share nearly all of
the code, and leaving most of them out saves half a second of processor time at least: histories, faults at every call,
tables of real Hudi, and all that is tried for each version and table type. What is kept executes the same lines of
PyHudi as all cases do; the contributing page about tests says how that is seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

import pytest

__all__ = ["SAMPLED", "examples", "mark_sweeps"]

# `make test` sets it: of random examples, rounds and places to die it takes a part. `make sweeps` takes all.
SAMPLED = os.environ.get("PYHUDI_SAMPLE") == "1"

_BOTH_ENDS = ("6-COPY_ON_WRITE", "9-MERGE_ON_READ")
_NEWEST = ("9-MERGE_ON_READ",)

# Test → ids of the cases that are kept.
KEPT: Mapping[str, tuple[str, ...]] = {
    "tests/actions/test_changes.py::test_random_changes_end_like_a_dict": (
        "COPY_ON_WRITE-6-ts",
        "COPY_ON_WRITE-9-None",
        "MERGE_ON_READ-6-None",
        "MERGE_ON_READ-8-ts",
        "MERGE_ON_READ-9-ts",
    ),
    "tests/actions/test_histories.py::test_a_history_of_writes_ends_like_a_dict": (
        "SIMPLE-EVENT_TIME_ORDERING",
        "BLOOM-COMMIT_TIME_ORDERING",
        "GLOBAL_SIMPLE-COMMIT_TIME_ORDERING",
        "GLOBAL_BLOOM-EVENT_TIME_ORDERING",
        "BUCKET-EVENT_TIME_ORDERING",
    ),
    "tests/actions/test_history_by_hudi_rs.py::test_hudi_rs_reads_what_archiving_and_restoring_left": (
        "copy on write-6",
        "merge on read-8",
        "merge on read-9",
    ),
    "tests/actions/test_lifecycle_histories.py::test_no_row_is_lost_or_comes_back": _BOTH_ENDS,
    "tests/actions/test_merge_on_read_histories.py::test_a_history_of_writes_and_rollbacks_ends_like_a_dict": (
        "SIMPLE-EVENT_TIME_ORDERING",
        "BLOOM-COMMIT_TIME_ORDERING",
        "GLOBAL_SIMPLE-EVENT_TIME_ORDERING",
        "BUCKET-COMMIT_TIME_ORDERING",
    ),
    "tests/actions/test_read_by_hudi_rs.py::test_hudi_rs_reads_what_a_clustering_left": (
        "COPY_ON_WRITE-9",
        "MERGE_ON_READ-6",
        "MERGE_ON_READ-8",
    ),
    "tests/contracts/test_kept_partitions.py::test_records_after_any_writes_are_those_of_a_partition_that_is_built_"
    "anew": (
        "6-COPY_ON_WRITE-options0-0",
        "8-MERGE_ON_READ-options3-0",
        "9-COPY_ON_WRITE-options4-0",
        "9-MERGE_ON_READ-options7-0",
    ),
    "tests/concurrency/test_many_writers.py::test_every_committed_batch_is_there_once_and_every_snapshot_has_a_"
    "serial_history": ("copy on write",),
    "tests/faults/test_clustering_faults.py::test_no_row_changes_and_the_next_run_does_it_all": (
        "clustering-9-COPY_ON_WRITE",
        "clustering of a plan-6-MERGE_ON_READ",
        "clustering after a dead run-9-COPY_ON_WRITE",
    ),
    "tests/faults/test_compaction_faults.py::test_no_row_changes_and_the_next_run_does_it_all": (
        "compaction-6",
        "compaction of a plan with a write on top-9",
        "compaction after a dead run-6",
        "log compaction-9",
    ),
    "tests/faults/test_metadata_table_faults.py::test_a_death_anywhere_leaves_rows_and_metadata_table_right": (
        "upsert-9",
        "clustering-6",
        "rollback-6",
    ),
    "tests/faults/test_version_faults.py::test_rows_stay_and_the_next_call_finishes": (
        "merge_on_read-6-8",
        "compacted-8-6",
    ),
    "tests/faults/test_every_storage_call.py::test_a_reader_never_sees_a_part_and_the_next_writer_succeeds": (
        "create and bulk_insert-9",
        "insert-6",
        "upsert-9",
        "delete-6",
        "alter-9",
        "rollback of an alter-6",
        "rollback-6",
        "rollback-9",
        "upsert after a dead writer-9",
        "upsert with a metadata table-9",
        "merge on read: create and bulk_insert-6",
        "merge on read: upsert-6",
        "merge on read: upsert-9",
        "merge on read: delete-9",
        "merge on read: rollback-6",
        "merge on read: rollback-9",
        "merge on read: upsert after a dead writer-6",
        "merge on read: upsert after a dead writer-9",
    ),
    "tests/metadata/test_compaction.py::test_an_instant_that_is_pending_is_never_in_a_base_file": ("6", "9"),
    "tests/metadata/test_expression_index.py::test_every_action_keeps_expression_indexes_up": (
        "8-COPY_ON_WRITE",
        "9-MERGE_ON_READ",
    ),
    "tests/metadata/test_maintenance.py::test_every_action_keeps_all_partitions_up": (
        "6-COPY_ON_WRITE",
        "8-MERGE_ON_READ",
        "9-MERGE_ON_READ",
    ),
    "tests/metadata/test_record_index.py::test_every_action_keeps_the_record_index_up": (
        "6-COPY_ON_WRITE",
        "8-MERGE_ON_READ",
        "9-MERGE_ON_READ",
    ),
    "tests/metadata/test_record_index.py::test_every_action_keeps_up_an_index_whose_keys_are_unique_in_their_"
    "partition": ("MERGE_ON_READ",),
    "tests/metadata/test_secondary_index.py::test_every_action_keeps_secondary_indexes_up": (
        "8-COPY_ON_WRITE",
        "9-MERGE_ON_READ",
    ),
    "tests/metadata/test_secondary_index.py::test_secondary_indexes_are_the_pairs_of_the_rows_after_any_history": (
        "8-MERGE_ON_READ-0",
        "9-COPY_ON_WRITE-1",
        "9-MERGE_ON_READ-0",
    ),
    "tests/metadata/test_services.py::test_a_metadata_table_that_is_compacted_cleaned_and_archived_stays_right": (
        "9-COPY_ON_WRITE",
    ),
    "tests/metadata/test_taken_back.py::test_a_restore_over_a_compaction_builds_the_same_partitions_anew": (
        "6-COPY_ON_WRITE-1",
        "8-MERGE_ON_READ-100",
        "9-MERGE_ON_READ-1",
        "9-MERGE_ON_READ-100",
    ),
    "tests/queries/test_expression_skipping.py::test_an_expression_index_leaves_out_files_and_no_rows": _NEWEST,
    "tests/queries/test_filter_limits.py::test_lists_have_a_hundred_thousand_values_of_any_kind": (
        "d-{}.25",
        "s-'{}'",
    ),
    "tests/queries/test_skipping.py::test_the_pruned_scan_returns_the_rows_of_the_unpruned_one": _BOTH_ENDS,
    "tests/services/test_clean_histories.py::test_whatever_may_be_read_is_as_it_was": (*_BOTH_ENDS, "8-MERGE_ON_READ"),
    "tests/services/test_compaction_histories.py::test_services_change_nothing": (
        "6-EVENT_TIME_ORDERING",
        "8-COMMIT_TIME_ORDERING",
        "9-EVENT_TIME_ORDERING",
    ),
    "tests/services/test_index_building.py::test_an_index_that_writers_wrote_to_while_it_waited_is_the_one_built_"
    "afterwards": (
        "record_index-9-MERGE_ON_READ",
        "record_index-8-COPY_ON_WRITE",
        "column_stats-9-MERGE_ON_READ",
        "bloom_filters-9-COPY_ON_WRITE",
    ),
    "tests/spark/test_capabilities.py::test_writes_without_them_leave_the_same_rows_in_the_same_files": (
        "MERGE_ON_READ",
    ),
    "tests/spark/test_first_write.py::test_writes_and_reads_raise_no_warning": ("MERGE_ON_READ",),
    "tests/spark/test_golden.py::test_time_travel_reads_the_table_as_it_was": (
        "1.2.0-g2_merge_event_time",
        "1.2.0-evolution_schema_on_read",
    ),
    "tests/spark/test_hostile_values.py::test_spark_tasks_keep_strange_partitions_and_refuse_what_would_be_lost": (
        "COPY_ON_WRITE",
    ),
    "tests/spark/test_large_batches.py::test_a_large_batch_of_spark_finds_the_keys_that_this_process_finds_and_collects_"
    "none": ("global bloom, log files, stays", "records"),
    "tests/spark/test_large_filters.py::test_a_filter_of_many_terms_keeps_the_same_rows_on_spark": (
        "or of values",
        "and",
    ),
    "tests/spark/test_merge_on_read.py::test_this_process_and_spark_write_the_same_log_files": (
        "9-parquet-SIMPLE",
        "8-avro-BUCKET",
    ),
    "tests/spark/test_merging.py::test_rows_written_and_read_by_spark_are_merged_by_the_caller_s_class": (
        "MERGE_ON_READ",
    ),
    "tests/spark/test_writes.py::test_this_process_and_spark_write_the_same_table": ("SIMPLE", "BUCKET"),
}


# File → tests whose cases are kept until each value of each parameter is in one of them: each table that real Hudi
# wrote, each version, each table type, but not each with every other.
EACH_VALUE: Mapping[str, tuple[str, ...]] = {
    "tests/spark/test_first_write.py": ("test_a_first_write_that_fails_in_spark_leaves_nothing",),
    "tests/spark/test_golden.py": (
        "test_a_table_of_real_hudi_reads_as_real_hudi_reads_it",
        "test_slices_with_log_files_are_merged_by_tasks",
        "test_spark_and_arrow_return_the_same_rows_of_every_other_table",
    ),
    "tests/actions/test_alter.py": ("test_changes_and_writes_take_turns",),
    "tests/actions/test_clustering_updates.py": ("test_a_change_of_its_file_groups_is_refused_by_name",),
    "tests/actions/test_consistent_hashing.py": ("test_each_node_is_a_file_group_and_keys_stay_in_it",),
    "tests/actions/test_first_write.py": ("test_a_first_write_with_a_null_key_leaves_nothing",),
    "tests/actions/test_golden_tables.py": ("test_a_row_written_back_is_found_and_nothing_else_changes",),
    "tests/actions/test_merge_on_read_by_hudi_rs.py": ("test_hudi_rs_merges_the_log_files_that_writes_left",),
    "tests/actions/test_merge_on_read_golden.py": ("test_a_row_written_back_changes_nothing",),
    "tests/actions/test_payloads.py": (
        "test_a_payload_class_makes_of_two_rows_what_the_seed_document_shows",
        "test_batches_written_by_pyhudi_give_the_rows_that_real_hudi_makes_of_them",
    ),
    "tests/actions/test_read_by_hudi_rs.py": ("test_hudi_rs_reads_what_writes_left",),
    "tests/actions/test_reported_statistics.py": ("test_writes_and_compactions_report_the_statistics_of_their_files",),
    "tests/actions/test_restore.py": (
        "test_a_restore_brings_back_the_rows_and_the_files_of_the_savepoint",
        "test_rollbacks_to_an_instant_bring_back_its_rows_one_by_one",
    ),
    "tests/actions/test_rolled_back_to_nothing.py": ("test_it_is_written_to_again",),
    "tests/actions/test_schema_history.py": ("test_changes_by_filters_and_merges_find_columns_by_id",),
    "tests/actions/test_table_change.py": ("test_the_changes_of_all_actions_add_up_to_the_listing",),
    "tests/actions/test_writes.py": ("test_a_partition_value_whose_folder_would_have_another_name_is_refused",),
    "tests/concurrency/test_concurrent_reads.py": (
        "test_all_of_an_action_between_two_calls",
        "test_an_action_during_the_calls",
    ),
    "tests/concurrency/test_ranges_of_partitions.py": (
        "test_a_write_that_completes_after_a_later_one_is_in_the_ranges_of_its_partition",
    ),
    "tests/contracts/test_indexes.py": (
        "test_a_key_has_one_location",
        "test_deletes_find_their_rows",
        "test_new_keys_are_not_found",
        "test_only_a_global_index_finds_a_key_in_another_partition",
        "test_written_keys_are_found_and_stay_in_their_file_group",
    ),
    "tests/faults/test_lost_lock.py": (
        "test_a_metadata_table_that_was_made_meanwhile_has_the_instant",
        "test_nothing_completes_and_the_next_process_goes_on",
    ),
    "tests/golden/test_clustering.py": ("test_a_clustering_changes_no_row",),
    "tests/golden/test_compaction.py": (
        "test_a_compaction_changes_no_row_and_leaves_no_log_file",
        "test_a_log_compaction_changes_no_row",
    ),
    "tests/golden/test_golden_tables.py": (
        "test_copy_on_write_tables_return_what_real_hudi_returns",
        "test_merge_on_read_tables_return_what_real_hudi_returns",
    ),
    "tests/golden/test_versions.py": ("test_rows_of_real_hudis_tables_stay",),
    "tests/index/test_large_batches.py": ("test_what_an_index_says_of_rows_by_file_group_is_so",),
    "tests/metadata/test_compaction.py": ("test_a_compacted_metadata_table_of_hudi_has_the_records_that_it_had",),
    "tests/metadata/test_damage.py": ("test_readers_go_without_it_and_the_next_write_builds_it_anew",),
    "tests/metadata/test_secondary_index.py": ("test_an_instant_from_before_an_index_was_built_can_be_rolled_back",),
    "tests/metadata/test_taken_back.py": ("test_a_compacted_write_that_is_rolled_back_is_gone_from_all_partitions",),
    "tests/metadata/test_version_changes.py": ("test_the_metadata_table_is_there_in_the_new_version",),
    "tests/queries/test_changes.py": ("test_every_operation_is_told_with_the_rows_before_and_after",),
    "tests/queries/test_incremental.py": ("test_tables_of_real_hudi_return_what_real_hudi_returns",),
    "tests/queries/test_two_parts.py": ("test_the_parts_of_real_hudi_s_slices_make_the_whole",),
    "tests/queries/test_value_pruning.py": ("test_a_query_for_values_opens_the_file_groups_that_have_them",),
    "tests/queries/test_wanted_keys.py": ("test_a_query_for_keys_has_the_rows_of_a_read_of_everything",),
    "tests/services/test_cleaning_golden.py": ("test_cleaning_changes_no_row_that_can_be_read",),
    "tests/services/test_clustering.py": (
        "test_groups_that_do_not_fit_into_memory_are_sorted_all_the_same",
        "test_rows_and_their_meta_columns_stay_while_file_groups_become_one",
    ),
    "tests/services/test_clustering_beside_writers.py": ("test_every_committed_row_is_there_once",),
    "tests/services/test_compaction.py": ("test_a_compaction_merges_log_files_into_base_files_and_changes_no_row",),
    "tests/services/test_damaged_logs.py": (
        "test_a_service_refuses_to_compact_a_damaged_log_file_before_it_plans_anything",
    ),
    "tests/services/test_index_building.py": (
        "test_what_writers_do_between_reading_the_table_and_the_end_is_in_the_index",
    ),
    "tests/services/test_log_compaction.py": ("test_a_log_compaction_merges_blocks_and_changes_no_row",),
    "tests/storage/test_object_stores.py": ("test_partition_values_may_have_any_characters",),
}


def examples(count: int) -> int:
    """How many random examples a long test takes: a third of them in `make test`."""
    return max(3, count // 3) if SAMPLED else count


def mark_sweeps(items: Iterable[pytest.Item]) -> None:
    """Mark the cases as `sweep` that `make test` leaves out."""
    several: dict[str, list[pytest.Item]] = {}
    for item in items:
        name, _, case = item.nodeid.partition("[")
        if not case:
            continue
        kept = KEPT.get(name)
        if kept is not None and case.removesuffix("]") not in kept:
            item.add_marker(pytest.mark.sweep)
        path, _, test = name.rpartition("::")
        if test in EACH_VALUE.get(path, ()) and item.get_closest_marker("slow") is None:
            several.setdefault(name, []).append(item)
    for cases in several.values():
        for item in set(cases) - set(_with_each_value(cases)):
            item.add_marker(pytest.mark.sweep)


def _with_each_value(cases: list[pytest.Item]) -> Iterable[pytest.Item]:
    """Cases until each value of each parameter was in one; of those that add as many values the last, for newer
    versions come later.
    """
    values = {item: set(_values(item)) for item in cases}
    missing = set().union(*values.values())
    while missing:
        best = max(reversed(cases), key=lambda item: len(values[item] & missing))
        missing -= values[best]
        yield best


def _values(item: pytest.Item) -> Iterable[tuple[str, object]]:
    """(parameter, value), of a short tuple each of its parts. What is no text or small number goes by its place."""
    callspec = item.callspec  # type: ignore[attr-defined]
    for name, value in callspec.params.items():
        if isinstance(value, tuple) and len(value) <= 4 and all(map(_is_plain, value)):
            yield from ((f"{name} {number}", part) for number, part in enumerate(value))
        else:
            yield name, value if _is_plain(value) else callspec.indices[name]


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (str, int))
