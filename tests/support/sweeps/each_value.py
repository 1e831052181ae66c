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
    "tests/actions/test_consistent_hashing.py::test_each_node_is_a_file_group_and_keys_stay_in_it": ("upsert-9",),
    "tests/actions/test_first_write.py::test_a_first_write_with_a_null_key_leaves_nothing": (
        "insert_overwrite-MERGE_ON_READ-6",
        "upsert-COPY_ON_WRITE-6",
    ),
    "tests/actions/test_merge_on_read_by_hudi_rs.py::test_hudi_rs_merges_the_log_files_that_writes_left": ("8-avro",),
    "tests/actions/test_payloads.py::test_a_payload_class_makes_of_two_rows_what_the_seed_document_shows": (
        "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload-stored0-incoming0-result0-6-COPY_ON_WRITE",
    ),
    "tests/actions/test_payloads.py::test_batches_written_by_pyhudi_give_the_rows_that_real_hudi_makes_of_them": (
        "6-mysql_debezium-mor",
        "6-aws_dms-mor",
    ),
    "tests/actions/test_reported_statistics.py::test_writes_and_compactions_report_the_statistics_of_their_files": (
        "avro-8",
    ),
    "tests/actions/test_restore.py::test_a_restore_brings_back_the_rows_and_the_files_of_the_savepoint": (
        "copy on write-6-upserts",
    ),
    "tests/actions/test_restore.py::test_rollbacks_to_an_instant_bring_back_its_rows_one_by_one": (
        "merge on read-8-log compaction",
        "copy on write-9-overwrite",
        "merge on read-6-clustering",
    ),
    "tests/actions/test_rolled_back_to_nothing.py::test_it_is_written_to_again": (
        "SIMPLE-COPY_ON_WRITE-6",
        "SIMPLE-MERGE_ON_READ-8",
    ),
    "tests/actions/test_schema_history.py::test_changes_by_filters_and_merges_find_columns_by_id": (),
    "tests/concurrency/test_concurrent_reads.py::test_all_of_an_action_between_two_calls": (
        "restore, commit-9-COPY_ON_WRITE-False",
        "clustering, clean-9-COPY_ON_WRITE-True",
        "dropped partition, clean-9-COPY_ON_WRITE-False",
        "restore, commit-6-MERGE_ON_READ-False",
    ),
    "tests/concurrency/test_concurrent_reads.py::test_an_action_during_the_calls": (),
    "tests/contracts/test_indexes.py::test_a_key_has_one_location": ("6-CONSISTENT_BUCKET",),
    "tests/contracts/test_indexes.py::test_deletes_find_their_rows": ("6-CONSISTENT_BUCKET",),
    "tests/contracts/test_indexes.py::test_new_keys_are_not_found": (
        "6-CONSISTENT_BUCKET",
        "6-INMEMORY",
        "9-RECORD_LEVEL_INDEX",
    ),
    "tests/contracts/test_indexes.py::test_only_a_global_index_finds_a_key_in_another_partition": (
        "6-GLOBAL_RECORD_LEVEL_INDEX",
    ),
    "tests/contracts/test_indexes.py::test_written_keys_are_found_and_stay_in_their_file_group": (),
    "tests/faults/test_lost_lock.py::test_a_metadata_table_that_was_made_meanwhile_has_the_instant": (
        "restore-9",
        "clustering-6",
    ),
    "tests/faults/test_lost_lock.py::test_nothing_completes_and_the_next_process_goes_on": (
        "deltacommit-6-the lock is lost at once",
        "logcompaction-6-the lock is lost at once",
        "rollback of a dead writer-6-the lock is lost at once",
        "compaction-6-the lock is lost while the time is drawn",
    ),
    "tests/golden/test_golden_tables.py::test_copy_on_write_tables_return_what_real_hudi_returns": (
        "0.15.0-keys_custom",
        "0.15.0-keys_timestamp_number",
        "1.0.2-keys_timestamp_number",
        "0.15.0-hfile_blocks",
    ),
    "tests/golden/test_golden_tables.py::test_merge_on_read_tables_return_what_real_hudi_returns": (
        "0.15.0-g2_payload_partial_update_mor",
        "0.15.0-g2_payload_aws_dms_mor",
        "0.15.0-g2_compaction_pending",
        "0.15.0-g2_savepoint_restore",
        "1.0.2-g2_payload_partial_update_mor",
        "0.15.0-g2_payload_default_record_mor",
        "0.15.0-g2_payload_postgres_debezium_mor",
        "0.15.0-g2_bucket_consistent",
    ),
    "tests/golden/test_versions.py::test_rows_of_real_hudis_tables_stay": (
        "0.15.0-keys_complex_two",
        "0.15.0-history_a_mor",
        "1.2.0-g2_savepoint_restore",
    ),
    "tests/index/test_large_batches.py::test_what_an_index_says_of_rows_by_file_group_is_so": (),
    "tests/metadata/test_damage.py::test_readers_go_without_it_and_the_next_write_builds_it_anew": (
        "base file missing-6",
    ),
    "tests/metadata/test_log_compaction.py::test_a_metadata_table_that_is_log_compacted_stays_right": (),
    "tests/metadata/test_log_compaction.py::test_what_a_log_compaction_has_taken_in_can_be_rolled_back": (),
    "tests/queries/test_changes.py::test_every_operation_is_told_with_the_rows_before_and_after": (),
    "tests/services/test_clustering.py::test_groups_that_do_not_fit_into_memory_are_sorted_all_the_same": (),
    "tests/services/test_clustering.py::test_rows_and_their_meta_columns_stay_while_file_groups_become_one": (),
    "tests/services/test_index_building.py::test_what_writers_do_between_reading_the_table_and_the_end_is_in_the_"
    "index": ("up-9-MERGE_ON_READ",),
    "tests/spark/test_first_write.py::test_a_first_write_that_fails_in_spark_leaves_nothing": (),
    "tests/spark/test_golden.py::test_a_table_of_real_hudi_reads_as_real_hudi_reads_it": (),
    "tests/spark/test_golden.py::test_slices_with_log_files_are_merged_by_tasks": (),
    "tests/spark/test_golden.py::test_spark_and_arrow_return_the_same_rows_of_every_other_table": (),
}
