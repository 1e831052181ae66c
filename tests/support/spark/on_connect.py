"""Which cases of the Spark tests `make test` repeats on Spark Connect; `make sparks` runs all of them there.

A classic session runs every test first, but for the long cases that it leaves to Connect. Connect differs in sessions,
frames, SQL, types and options: files about these are repeated whole, or the tests of them whose way is another one
there. Elsewhere tasks do what those of a classic session do, and what comes before and after them is done by this
process: one case of a file shows that the road is open, the first one, or those that are named here; where other files
have shown it, none.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

__all__ = ["KEPT", "LEFT", "SHOWN", "WHOLE", "is_named", "mark_left", "mark_repetitions"]

WHOLE = frozenset(f"test_{topic}" for topic in ("fetching", "functions", "keygen", "sql_call", "sql_lacking", "types"))

# Files of which no case is repeated: they write by tasks and read as the files that are repeated do.
SHOWN = frozenset(
    f"test_{topic}"
    for topic in (
        "capabilities", "clustering", "damaged_logs", "hostile_values", "large_batches", "merging", "readme",
 "replace_and_clean", "save_modes", "small_increments", "sql_listed",
    )
)  # fmt: skip

# Test → ids of the cases that are repeated ("": a test without cases). The others of its file are not.
KEPT: Mapping[str, tuple[str, ...]] = {
    # Column types, ids of columns, and values from paths.
    "test_a_table_of_real_hudi_reads_as_real_hudi_reads_it": (
        "0.15.0-keys_custom",
        "0.15.0-types_insert",
        "1.0.2-evolution_schema_on_read",
        "1.2.0-types_timestamp_ntz",
    ),
    "test_odd_partition_values_read_as_they_were_written": ("a{b,c}", "%41"),
    "test_a_filter_of_many_terms_keeps_the_same_rows_on_spark": ("and",),
    # The command line, with a server of its own.
    "test_the_session_is_that_of_a_server_of_spark_connect": ("True",),
    # What is fetched and what is left to tasks.
    "test_inputs_over_the_limit_go_to_spark_and_under_it_do_not": ("",),
    "test_this_process_and_spark_write_the_same_table": ("SIMPLE",),
    "test_a_script_reads_and_writes_log_files_by_format_hudi": ("",),
    "test_update_delete_and_merge_of_spark_frames_write_partial_updates": ("",),
    "test_writes_and_reads_raise_no_warning": ("MERGE_ON_READ",),
    # Frames, tasks and what becomes of their errors.
    "test_extend_adds_columns_computed_from_some_of_the_columns": ("spark",),
    "test_map_groups_brings_each_slot_to_one_call_sorted": ("spark-4",),
    "test_a_path_with_the_characters_of_patterns_is_read_as_it_stands": ("",),
    "test_fan_out_takes_tasks_that_are_not_small": ("spark",),
    "test_arrange_sorts_the_whole_frame_or_each_task": ("spark",),
    "test_rows_that_work_makes_are_not_broadcast_when_they_are_said_to_be_many": ("",),
    "test_a_cached_frame_is_given_back": ("spark",),
    "test_an_error_of_the_family_comes_back_as_itself_with_its_own_words": ("",),
    "test_any_other_error_of_a_worker_becomes_task_failed_with_the_workers_words": ("",),
    "test_an_error_of_spark_itself_is_left_alone": ("",),
    "test_parallelism_is_what_the_master_says": ("",),
    "test_a_load_shows_how_many_tasks_have_ended": ("",),
    "test_a_job_that_fails_fails_with_its_own_error_and_leaves_no_handler": ("",),
    "test_a_kept_frame_has_the_tasks_that_its_size_asks_for": ("",),
    # Readers and writers that `enable` puts in the place of Spark's, and the settings of a session.
    "test_the_quick_start_of_hudi_runs": ("",),
    "test_partition_by_names_the_partition_fields": ("",),
    "test_session_wide_options_stand_behind_those_of_the_call": ("",),
    "test_an_empty_table_is_an_empty_frame": ("",),
    "test_a_null_key_is_refused_and_nothing_is_written": ("spark",),
    "test_a_failing_input_fails_with_sparks_own_words": ("",),
    "test_other_formats_are_sparks_own": ("",),
    "test_enabling_twice_and_disabling_leaves_spark_as_it_was": ("",),
    "test_calls_without_a_meaning_for_hudi_are_refused": ("",),
    "test_a_table_takes_frames_and_arrow_and_gives_frames": ("",),
    "test_nothing_warns_on_the_way": ("",),
    "test_the_data_source_gives_every_change": ("MERGE_ON_READ",),
    "test_hudis_options_give_the_rows_of_a_range": ("MERGE_ON_READ",),
    "test_rows_of_a_session_come_and_go_by_its_keys": ("",),
    "test_the_sessions_options_stand_behind_those_of_a_scan": ("",),
    # Names and frames in statements become views of the session.
    "test_a_table_is_made_described_and_dropped_with_its_files": ("",),
    "test_parameters_and_frames_stay_what_they_are": ("",),
    "test_a_dataframe_merges_on_a_condition_as_arrow_rows_do": (
        "every clause-COPY_ON_WRITE",
        "constants-MERGE_ON_READ",
    ),
    "test_options_of_the_call_and_a_place_of_any_name_are_taken": ("",),
    "test_frames_in_braces_change_rows": ("",),
    "test_views_see_the_table_as_it_is": ("",),
    "test_a_temporary_view_of_a_frame_hides_a_table_at_once": ("",),
    "test_what_spark_does_not_know_either_is_sparks_error": ("",),
    "test_frames_are_saved_as_tables": ("",),
    "test_a_statement_does_what_the_list_says": (
        "update of a field of a struct",
        "merge updates, deletes and inserts",
    ),
    "test_a_statement_looks_a_name_up_once": ("",),
    "test_spark_reads_and_filters_copied_row_groups": ("",),
    "test_a_query_of_the_session_decides_whether_a_write_stays": ("local-MERGE_ON_READ",),
    "test_dataframes_go_the_ways_of_deltalake": ("auto",),
    # Streams, whose functions the server calls: one that writes to a table, by either way, and one that follows one.
    "test_each_batch_is_written_once_however_often_spark_asks": ("",),
    "test_format_hudi_is_the_same_writer": ("",),
    "test_a_function_of_a_batch_reads_and_writes_by_format_hudi_and_by_sql": ("",),
    "test_a_stream_follows_a_table_and_goes_on_after_a_restart": ("9-MERGE_ON_READ",),
}

# Of KEPT, tests whose cases are long, so that they run on Connect and not on a classic session: it has others of the
# test, or does the same in other tests: with the session's settings, `format("hudi")`, names and frames in statements.
LEFT = frozenset(
    {
        "test_a_script_reads_and_writes_log_files_by_format_hudi",
        "test_rows_of_a_session_come_and_go_by_its_keys",
        "test_the_sessions_options_stand_behind_those_of_a_scan",
        "test_a_filter_of_many_terms_keeps_the_same_rows_on_spark",
        "test_a_stream_follows_a_table_and_goes_on_after_a_restart",
        "test_this_process_and_spark_write_the_same_table",
        "test_update_delete_and_merge_of_spark_frames_write_partial_updates",
        "test_writes_and_reads_raise_no_warning",
        "test_odd_partition_values_read_as_they_were_written",
        "test_a_dataframe_merges_on_a_condition_as_arrow_rows_do",
        "test_options_of_the_call_and_a_place_of_any_name_are_taken",
        "test_frames_in_braces_change_rows",
        "test_views_see_the_table_as_it_is",
        "test_frames_are_saved_as_tables",
        "test_parameters_and_frames_stay_what_they_are",
        "test_a_statement_does_what_the_list_says",
        "test_spark_reads_and_filters_copied_row_groups",
        "test_a_query_of_the_session_decides_whether_a_write_stays",
        "test_dataframes_go_the_ways_of_deltalake",
    }
)


def mark_left(items: list[pytest.Item]) -> None:
    """Mark the cases that a classic session leaves to Connect as `sweep`."""
    for item in items:
        if _test(item) in LEFT and _is_kept(item):
            item.add_marker(pytest.mark.sweep)


def mark_repetitions(items: list[pytest.Item]) -> None:
    """Mark the cases that go on Connect the road of another one as `sweep`."""
    candidates = [item for item in items if item.path.stem not in WHOLE and not item.get_closest_marker("sweep")]
    named_files = {item.path for item in candidates if _is_kept(item)}
    begun_files = set()
    for item in candidates:
        is_first = item.path not in begun_files | named_files and item.path.stem not in SHOWN
        begun_files.add(item.path)
        if not is_first and not _is_kept(item):
            item.add_marker(pytest.mark.sweep)


def is_named(item: pytest.Item) -> bool:
    """Is this a case that runs on Connect, whatever its hash is?"""
    return "tests/spark" in item.path.as_posix() and _is_kept(item)


def _is_kept(item: pytest.Item) -> bool:
    case = item.nodeid.partition("[")[2]
    return case.removesuffix("]") in KEPT.get(_test(item), ())


def _test(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0].rpartition("::")[2]
