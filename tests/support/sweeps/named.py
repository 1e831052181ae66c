"""Long tests of which `make test` runs the cases that are named here.

Their cases go through the same code: histories, faults at every call, records of metadata tables, for each version and
table type. What is kept has both table types and the oldest and the newest version, where the test knows them.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["NAMED"]

# Test → ids of the cases that are kept.
NAMED: Mapping[str, tuple[str, ...]] = {
    "tests/actions/test_history_by_hudi_rs.py::test_hudi_rs_reads_what_archiving_and_restoring_left": (
        "copy on write-6",
        "merge on read-8",
        "merge on read-9",
    ),
    "tests/actions/test_lifecycle_histories.py::test_no_row_is_lost_or_comes_back": (
        "6-COPY_ON_WRITE",
        "9-MERGE_ON_READ",
    ),
    "tests/actions/test_merge_on_read_histories.py::test_a_history_of_writes_and_rollbacks_ends_like_a_dict": (
        "SIMPLE-EVENT_TIME_ORDERING",
        "BLOOM-COMMIT_TIME_ORDERING",
        "GLOBAL_SIMPLE-EVENT_TIME_ORDERING",
        "BUCKET-COMMIT_TIME_ORDERING",
    ),
    "tests/actions/test_read_by_hudi_rs.py::test_hudi_rs_reads_what_writes_left": (
        "partitioned-6",
        "not partitioned-6",
        "not partitioned-9",
        "url encoded-9",
        "two keys-8",
    ),
    "tests/actions/test_read_by_hudi_rs.py::test_hudi_rs_reads_what_a_clustering_left": (
        "COPY_ON_WRITE-9",
        "MERGE_ON_READ-6",
        "MERGE_ON_READ-8",
    ),
    "tests/actions/test_merging_anywhere.py::test_whole_rows_end_alike_but_for_a_row_that_comes_late_behind_a_delete": (
        "6-DefaultHoodieRecordPayload",
        "9-DefaultHoodieRecordPayload",
        "9-OverwriteWithLatestAvroPayload",
    ),
    "tests/actions/test_merging_anywhere.py::test_rows_that_fill_each_other_end_alike_where_none_comes_late_and_none_"
    "behind_a_delete": ("9-PartialUpdateAvroPayload",),
    "tests/concurrency/test_many_writers.py::test_every_committed_batch_is_there_once_and_every_snapshot_has_a_se"
    "rial_history": ("copy on write",),
    "tests/contracts/test_kept_partitions.py::test_records_after_any_writes_are_those_of_a_partition_that_is_buil"
    "t_anew": (
        "6-COPY_ON_WRITE-options0-0",
        "8-MERGE_ON_READ-options3-0",
        "9-COPY_ON_WRITE-options4-0",
        "9-MERGE_ON_READ-options7-0",
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
    "tests/index/test_large_batches.py::test_a_large_batch_finds_the_keys_that_a_small_one_finds_and_none_comes_to_the_"
    "planner": (
        "simple, keys in two places",
        "global bloom",
        "bloom",
        "in memory",
        "records",
        "global records, log files",
    ),
    "tests/metadata/test_compaction.py::test_an_instant_that_is_pending_is_never_in_a_base_file": (
        "6",
        "9",
        "8",
    ),
    "tests/metadata/test_expression_index.py::test_every_action_keeps_expression_indexes_up": (
        "8-COPY_ON_WRITE",
        "9-MERGE_ON_READ",
    ),
    "tests/metadata/test_record_index.py::test_every_action_keeps_the_record_index_up": (
        "6-COPY_ON_WRITE",
        "8-MERGE_ON_READ",
        "9-MERGE_ON_READ",
    ),
    "tests/metadata/test_record_index.py::test_every_action_keeps_up_an_index_whose_keys_are_unique_in_their_part"
    "ition": ("MERGE_ON_READ",),
    "tests/metadata/test_secondary_index.py::test_every_action_keeps_secondary_indexes_up": (
        "8-COPY_ON_WRITE",
        "9-MERGE_ON_READ",
    ),
    "tests/metadata/test_services.py::test_a_metadata_table_that_is_compacted_cleaned_and_archived_stays_right": (
        "9-COPY_ON_WRITE",
    ),
    "tests/queries/test_expression_skipping.py::test_an_expression_index_leaves_out_files_and_no_rows": (
        "9-MERGE_ON_READ",
    ),
    "tests/queries/test_skipping.py::test_the_pruned_scan_returns_the_rows_of_the_unpruned_one": (
        "6-COPY_ON_WRITE",
        "9-MERGE_ON_READ",
    ),
    "tests/services/test_clean_histories.py::test_whatever_may_be_read_is_as_it_was": (
        "6-COPY_ON_WRITE",
        "9-MERGE_ON_READ",
        "8-MERGE_ON_READ",
    ),
    "tests/services/test_compaction_histories.py::test_services_change_nothing": (
        "6-EVENT_TIME_ORDERING",
        "8-COMMIT_TIME_ORDERING",
        "9-EVENT_TIME_ORDERING",
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
    "tests/spark/test_large_batches.py::test_a_large_batch_of_spark_finds_the_keys_that_this_process_finds_and_co"
    "llects_none": (
        "global bloom, log files, stays",
        "records",
    ),
    "tests/spark/test_large_filters.py::test_a_filter_of_many_terms_keeps_the_same_rows_on_spark": (
        "or of values",
        "and",
    ),
    "tests/spark/test_merge_on_read.py::test_this_process_and_spark_write_the_same_log_files": ("9-parquet-SIMPLE",),
    "tests/spark/test_merging.py::test_rows_written_and_read_by_spark_are_merged_by_the_caller_s_class": (
        "MERGE_ON_READ",
    ),
    "tests/spark/test_writes.py::test_odd_partition_values_read_as_they_were_written": (
        "a{b,c}",
        "%41",
        "a:b",
    ),
    "tests/spark/test_writes.py::test_this_process_and_spark_write_the_same_table": (
        "SIMPLE",
        "BUCKET",
    ),
}
