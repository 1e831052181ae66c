"""Tests of which `make test` runs the cases that are named here: with the other tests of their file these execute every
line of PyHudi that all cases of the file do.

Their cases are versions, types of tables, and tables of real Hudi. What is kept has each type and the oldest and the
newest version, where the test knows them. Which they are was recorded by `pytest -p mutants.recorder`: the dearest that
adds no line goes first.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["BY_FILE"]

# Test → ids of the cases that are kept.
BY_FILE: Mapping[str, tuple[str, ...]] = {
    "tests/actions/test_alter.py::test_a_change_that_is_rolled_back_leaves_nothing": (
        "6",
        "9",
    ),
    "tests/actions/test_alter.py::test_changes_and_writes_take_turns": (
        "COPY_ON_WRITE-6",
        "MERGE_ON_READ-6",
        "MERGE_ON_READ-9",
    ),
    "tests/actions/test_alter.py::test_the_same_changes_make_the_history_and_the_rows_of_real_hudi": (
        "0.15.0",
        "1.2.0",
    ),
    "tests/actions/test_payloads.py::test_a_field_and_its_marker_say_which_rows_are_deletes": (
        "6-MERGE_ON_READ",
        "9-COPY_ON_WRITE",
    ),
    "tests/actions/test_reported_keys.py::test_the_places_that_commits_report_are_those_of_the_live_rows": (
        "copy on write",
        "copy on write, virtual keys",
        "merge on read",
        "merge on read, global",
        "merge on read, version 6",
        "buckets, merge on read",
    ),
    "tests/actions/test_schema_history.py::test_compaction_writes_the_newest_schema_and_says_so": (
        "6",
        "9",
    ),
    "tests/actions/test_schema_history.py::test_log_files_are_compacted_when_the_version_changes": (
        "6-8",
        "8-9",
        "9-6",
    ),
    "tests/actions/test_schema_history.py::test_rows_are_written_to_log_files_under_the_newest_schema": (
        "6",
        "9",
    ),
    "tests/metadata/test_compaction.py::test_a_compacted_metadata_table_of_hudi_has_the_records_that_it_had": (
        "1.0.2-mdt_all_cow",
        "1.2.0-history_a_mor",
        "1.2.0-mdt_all_mor_prli",
        "0.15.0-mdt_all_mor",
    ),
    "tests/metadata/test_damage.py::test_what_only_reading_shows_is_found_by_the_next_compaction": (
        "6",
        "9",
    ),
    "tests/metadata/test_log_compaction.py::test_a_log_compacted_metadata_table_of_hudi_has_the_records_that_it_had": (
        "0.15.0-mdt_all_cow",
        "1.0.2-mdt_all_cow",
        "1.2.0-mdt_all_cow",
        "1.2.0-history_a_mor",
    ),
    "tests/metadata/test_log_compaction.py::test_there_is_none_while_an_earlier_write_is_pending": (
        "6",
        "9",
    ),
    "tests/metadata/test_maintenance.py::test_an_update_completes_before_the_instant_that_it_is_of": (
        "6-COPY_ON_WRITE",
        "6-MERGE_ON_READ",
        "8-MERGE_ON_READ",
        "9-MERGE_ON_READ",
    ),
    "tests/metadata/test_maintenance.py::test_every_action_keeps_all_partitions_up": (
        "6-COPY_ON_WRITE",
        "9-MERGE_ON_READ",
    ),
    "tests/metadata/test_record_index.py::test_a_call_that_wants_a_record_index_gets_one_of_all_rows": (
        "before0-options1",
        "before1-options1",
    ),
    "tests/metadata/test_records.py::test_all_records_of_every_partition_are_those_that_hudi_shows": (
        "0.15.0",
        "1.2.0",
    ),
    "tests/metadata/test_secondary_index.py::test_a_secondary_index_built_from_the_rows_is_the_one_that_hudi_kept": (
        "hudi-tables-sample_table__mor__avro__v9_txns_nonpart_meta",
        "1.0.2-secondary_a",
        "1.2.0-mdt_all_cow",
        "1.2.0-mdt_all_mor",
    ),
    "tests/metadata/test_secondary_index.py::test_an_instant_from_before_an_index_was_built_can_be_rolled_back": (
        "8-MERGE_ON_READ",
        "9-COPY_ON_WRITE",
    ),
    "tests/metadata/test_secondary_index.py::test_secondary_indexes_are_the_pairs_of_the_rows_after_any_history": (
        "8-MERGE_ON_READ-0",
        "9-COPY_ON_WRITE-1",
    ),
    "tests/metadata/test_statistics.py::test_bloom_filters_are_the_records_that_hudi_wrote": (
        "0.15.0-mdt_all_mor",
        "1.0.2-skipping_a_cow",
        "1.2.0-mdt_all_mor_prli",
    ),
    "tests/metadata/test_statistics.py::test_statistics_of_files_are_the_records_that_hudi_wrote": (
        "hudi-tables-quickstart_trips_table__mor__avro__v8_trips_8i3u1d",
        "hudi-tables-sample_table__cow__v9_txns_simple_overwrite",
        "0.15.0-mdt_all_cow",
        "0.15.0-mdt_all_mor",
        "0.15.0-mdt_compacted_a",
        "1.2.0-mdt_compacted_a",
        "1.2.0-upgrade_a_mor_4_v9",
        "1.2.0-upgrade_a_mor_6_v6",
    ),
    "tests/metadata/test_statistics.py::test_statistics_of_partitions_are_the_records_that_hudi_wrote": (
        "1.0.2-g2_savepoint_restore",
        "1.0.2-mdt_all_cow",
        "1.2.0-mdt_all_mor",
        "1.2.0-upgrade_a_mor_4_v9",
    ),
    "tests/metadata/test_statistics.py::test_the_columns_that_hudi_lists_are_kept": (
        "0.15.0-mdt_all_mor",
        "1.2.0-skipping_a_cow",
        "1.2.0-upgrade_a_mor_4_v9",
        "1.2.0-upgrade_a_mor_6_v6",
    ),
    "tests/metadata/test_taken_back.py::test_a_compacted_write_that_is_rolled_back_is_gone_from_all_partitions": (
        "6-MERGE_ON_READ",
        "9-COPY_ON_WRITE",
    ),
    "tests/metadata/test_taken_back.py::test_a_restore_over_a_compaction_builds_the_same_partitions_anew": (
        "6-COPY_ON_WRITE-1",
        "9-MERGE_ON_READ-100",
    ),
    "tests/metadata/test_taken_back.py::test_statistics_and_keys_are_built_anew_without_the_files_that_a_"
    "rollback_deleted": (
        "8-MERGE_ON_READ",
        "9-COPY_ON_WRITE",
    ),
    "tests/metadata/test_version_changes.py::test_the_metadata_table_is_there_in_the_new_version": (
        "6-8-COPY_ON_WRITE",
        "8-6-MERGE_ON_READ",
        "6-9-MERGE_ON_READ",
        "9-6-COPY_ON_WRITE",
    ),
    "tests/queries/test_changes.py::test_changes_of_a_table_without_meta_columns_are_those_of_one_with_them": (
        "DATA_BEFORE-MERGE_ON_READ-8",
        "DATA_BEFORE_AFTER-COPY_ON_WRITE-6",
        "DATA_BEFORE_AFTER-COPY_ON_WRITE-9",
    ),
    "tests/queries/test_changes.py::test_changes_of_tables_of_other_layouts_lead_to_the_snapshot": (
        "options0-OP_KEY_ONLY",
        "options1-DATA_BEFORE_AFTER",
        "options2-DATA_BEFORE_AFTER",
    ),
    "tests/queries/test_changes.py::test_inserts_into_a_small_file_and_rows_that_lose_change_nothing_else": (
        "DATA_BEFORE-6",
        "DATA_BEFORE_AFTER-9",
    ),
    "tests/queries/test_changes.py::test_rows_before_and_after_are_those_of_the_moment": (
        "COPY_ON_WRITE-6",
        "COPY_ON_WRITE-9",
        "MERGE_ON_READ-6",
        "MERGE_ON_READ-8",
    ),
    "tests/queries/test_changes_followed.py::test_changes_by_filters_and_merges_are_found_too": (
        "OP_KEY_ONLY-COPY_ON_WRITE",
        "DATA_BEFORE-COPY_ON_WRITE",
        "DATA_BEFORE_AFTER-MERGE_ON_READ",
    ),
    "tests/queries/test_data_skipping.py::test_queries_return_all_rows_and_open_the_files_that_hudi_opens": (
        "0.15.0",
        "1.2.0",
    ),
    "tests/queries/test_incremental.py::test_a_range_opens_only_the_files_of_its_commits": (
        "COPY_ON_WRITE-6",
        "MERGE_ON_READ-9",
    ),
    "tests/queries/test_incremental.py::test_clustering_and_compaction_add_no_rows_and_hide_none": (
        "COPY_ON_WRITE-6",
        "MERGE_ON_READ-6",
        "MERGE_ON_READ-9",
    ),
    "tests/queries/test_incremental.py::test_tables_of_real_hudi_return_what_real_hudi_returns": (
        "0.15.0-g2_clustering_pending",
        "0.15.0-g2_compaction_pending",
        "0.15.0-g2_savepoint_restore",
        "0.15.0-history_a_mor",
        "1.0.2-g2_compaction_executed",
        "1.2.0-cow_insert_overwrite_table",
        "1.2.0-evolution_add_columns",
        "1.2.0-g2_compaction_pending",
        "1.2.0-g2_merge_event_time",
        "1.2.0-g2_schema_change",
        "1.2.0-history_a_cow",
        "1.2.0-history_a_mor",
        "1.2.0-keys_simple_int_partition",
    ),
    "tests/queries/test_incremental.py::test_the_begin_is_left_out_and_the_end_is_in": (
        "COPY_ON_WRITE-9",
        "MERGE_ON_READ-6",
    ),
}
