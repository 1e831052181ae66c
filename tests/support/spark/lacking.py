"""What a Spark may lack: the newest one forced to go the other ways, and tests whose subject an older one has not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyhudi.spark.capabilities import PRESENT, Capabilities
from pyhudi.spark.reader import read_frame
from tests.support.spark.sessions import FLAVOUR

__all__ = ["NEEDS", "WITHOUT", "loaded", "missing"]

# This Spark without what 3.5 lacks. Where classes are is no choice; and frames of Connect 4 are collected in one way.
WITHOUT = replace(
    PRESENT,
    routes_by_id=False,
    has_arrow_udfs=False,
    takes_arrow=False,
    gives_arrow=PRESENT.gives_arrow and FLAVOUR == "connect",
    lists_settings=False,
    has_scalar_frames=False,
)

_NO_SOURCES = ("has_data_sources", "formats that are made in Python")
_NO_LIMITS = ("limits_streams", "several batches of a source that is made in Python in one run")

# Test → a capability that came with what the test is about, and what that is. A test that is not here runs everywhere.
NEEDS: Mapping[str, tuple[str, str]] = {
    "test_a_kept_frame_has_the_tasks_that_its_size_asks_for": ("gives_arrow", "fewer tasks for a kept frame"),
    **(
        {"test_a_load_shows_how_many_tasks_have_ended": ("tells_progress", "progress on Connect")}
        if FLAVOUR == "connect"
        else {}
    ),
    "test_the_data_source_fails_for_damaged_log_files_if_it_shall": _NO_SOURCES,
    "test_the_data_source_gives_every_change": _NO_SOURCES,
    "test_the_data_source_gives_the_rows_of_a_range": _NO_SOURCES,
    "test_the_data_source_reads_a_table_with_nothing_enabled": _NO_SOURCES,
    "test_the_data_source_refuses_to_write_and_names_the_switch": _NO_SOURCES,
    "test_a_batch_is_read_again_as_it_was_and_hudis_offsets_are_in_the_checkpoint": _NO_LIMITS,
    "test_a_stream_begins_where_its_option_says": _NO_SOURCES,
    "test_a_stream_follows_a_table_and_goes_on_after_a_restart": _NO_LIMITS,
    "test_a_name_that_stands_for_base_files_reads_no_log_files_and_goes_with_its_table": (
        "has_data_sources",
        "names of format hudi without its jar",
    ),
    "test_a_stream_by_name_goes_to_a_path_and_to_no_other_format": _NO_SOURCES,
    "test_a_stream_of_changes_has_deletes_too": _NO_LIMITS,
    "test_streams_make_write_and_follow_tables_by_name": _NO_SOURCES,
    "test_views_see_the_table_as_it_is": ("has_data_sources", "views of tables whose format is made in Python"),
}


def loaded(spark: Any, path: str) -> Any:
    """The table by the data source, where Spark has Python's; elsewhere as `enable` reads it."""
    return spark.read.format("hudi").load(path) if PRESENT.has_data_sources else read_frame(spark, path, {})


def missing(test: str, present: Capabilities = PRESENT) -> str | None:
    """Why this Spark can't run the test; None if it can."""
    capability, what = NEEDS.get(test, ("", ""))
    return f"this Spark has not: {what}" if capability and not getattr(present, capability) else None
