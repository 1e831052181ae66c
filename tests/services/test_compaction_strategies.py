"""Triggers and strategies of compaction, without a table."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timezone

import pytest

from pyhudi.errors import ConfigError
from pyhudi.model.file_group import BaseFile, FileGroupId, FileSlice, LogFile
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.options.services import CompactionOptions
from pyhudi.model.plans import CompactionOperation
from pyhudi.model.timeline import Timeline
from pyhudi.services.compact.compaction import delta_commits
from pyhudi.services.compact.strategies import (
    STRATEGIES,
    DeltaCommits,
    is_due,
    narrowed,
    ordered,
)
from pyhudi.view.pending_plans import metrics_of

MB = 1024 * 1024
TODAY = date(2024, 3, 10)
DAYS = ("2024/03/10", "2024/03/01", "day=2024-02-29", "2023/12/31", "2024/03/11")


def options(strategy: str = "LOG_FILE_SIZE", **more: object) -> CompactionOptions:
    return replace(CompactionOptions(strategies=tuple(strategy.split(","))), **more)


def operation(name: str, log_bytes: int = 0, log_files: int = 1, io_mb: int = 0, path: str = "") -> CompactionOperation:
    logs = tuple(f".{name}_1.log.{n}_0-0-0" for n in range(log_files))
    return CompactionOperation(
        path, name, "1", None, logs, {"TOTAL_LOG_FILES_SIZE": float(log_bytes), "TOTAL_IO_MB": float(io_mb)}
    )


def names(operations: tuple[CompactionOperation, ...]) -> str:
    return "".join(operation.file_id for operation in operations)


# ---- triggers


@pytest.mark.parametrize(
    ("trigger", "counts", "due"),
    [
        ("NUM_COMMITS", DeltaCommits(4, 9, 9e9), False),
        ("NUM_COMMITS", DeltaCommits(5, 0, 0), True),
        ("NUM_COMMITS_AFTER_LAST_REQUEST", DeltaCommits(9, 4, 9e9), False),
        ("NUM_COMMITS_AFTER_LAST_REQUEST", DeltaCommits(5, 5, 0), True),
        ("TIME_ELAPSED", DeltaCommits(1, 1, 3599.9), False),
        ("TIME_ELAPSED", DeltaCommits(1, 1, 3600), True),
        ("TIME_ELAPSED", DeltaCommits(0, 0, 9e9), False),
        ("NUM_AND_TIME", DeltaCommits(5, 5, 3599), False),
        ("NUM_AND_TIME", DeltaCommits(4, 4, 3600), False),
        ("NUM_AND_TIME", DeltaCommits(5, 5, 3600), True),
        ("NUM_OR_TIME", DeltaCommits(4, 4, 3599), False),
        ("NUM_OR_TIME", DeltaCommits(5, 5, 0), True),
        ("NUM_OR_TIME", DeltaCommits(1, 1, 3600), True),
    ],
)
def test_a_trigger_waits_for_commits_and_seconds(trigger: str, counts: DeltaCommits, due: bool) -> None:
    assert is_due(counts, options(trigger=trigger)) is due


def instant(time: str, action: ActionKind, completed: str | None = None) -> Instant:
    return Instant(time, action, State.REQUESTED if completed is None else State.COMPLETED, completed)


def test_delta_commits_count_from_the_last_compaction_by_completion() -> None:
    deltas = [("20240101000000000", "20240101000001000"), ("20240101000100000", "20240101000500000")]
    timeline = Timeline(
        (
            *(instant(time, ActionKind.DELTACOMMIT, done) for time, done in deltas),
            instant("20240101000200000", ActionKind.COMMIT, "20240101000600000"),
            instant("20240101000300000", ActionKind.DELTACOMMIT, "20240101000301000"),
            instant("20240101000700000", ActionKind.COMPACTION),
            instant("20240101000800000", ActionKind.DELTACOMMIT, "20240101000801000"),
            instant("20240101000900000", ActionKind.DELTACOMMIT),
        )
    )
    counts = delta_commits(timeline, datetime(2024, 1, 1, 1, 2, tzinfo=timezone.utc))
    assert counts == DeltaCommits(since_compaction=3, since_request=1, elapsed_s=3600.0)


def test_without_a_compaction_all_delta_commits_count_and_time_runs_from_the_first() -> None:
    timeline = Timeline((instant("20240101000000000", ActionKind.DELTACOMMIT, "20240101000001000"),))
    counts = delta_commits(timeline, datetime(2024, 1, 1, 0, 1, tzinfo=timezone.utc))
    assert counts == DeltaCommits(1, 1, 60.0)


def test_an_empty_timeline_triggers_nothing() -> None:
    counts = delta_commits(Timeline(), datetime(2024, 1, 1, tzinfo=timezone.utc))
    assert not any(is_due(counts, options(trigger=t, delta_seconds_max=0)) for t in ("NUM_OR_TIME", "TIME_ELAPSED"))


# ---- strategies


def test_by_size_takes_the_most_bytes_of_logs_first_and_leaves_small_ones() -> None:
    operations = [operation("a", 10), operation("b", 30), operation("c", 20), operation("d", 30)]
    assert names(ordered(operations, options())) == "bdca"
    assert names(ordered(operations, options(log_size_threshold_bytes=20))) == "bdc"


def test_by_number_takes_the_most_log_files_first_and_leaves_few_ones() -> None:
    operations = [operation("a", log_files=1), operation("b", log_files=3), operation("c", log_files=2)]
    assert names(ordered(operations, options("LOG_FILE_NUM"))) == "bca"
    assert names(ordered(operations, options("LOG_FILE_NUM", log_num_threshold=2))) == "bc"


@pytest.mark.parametrize("strategy", ["BOUNDED_IO", "LOG_FILE_SIZE", "LOG_FILE_NUM"])
def test_bounded_io_ends_with_the_slice_that_passes_the_bound(strategy: str) -> None:
    operations = [operation(name, io_mb=50) for name in "abcd"]
    assert names(ordered(operations, options(strategy, target_io_mb=51))) == "ab"
    assert names(ordered(operations, options(strategy, target_io_mb=50))) == "a"
    assert names(ordered(operations, options(strategy, target_io_mb=500))) == "abcd"


def test_unbounded_takes_everything_as_it_comes() -> None:
    operations = [operation(name, io_mb=10**6) for name in "abc"]
    assert names(ordered(operations, options("UNBOUNDED", target_io_mb=1))) == "abc"


def test_by_day_takes_the_newest_partitions_first() -> None:
    assert narrowed(DAYS, options("DAY_BASED", day_partitions=3), TODAY) == ("2024/03/11", "2024/03/10", "2024/03/01")


def test_partition_aware_takes_the_last_days_and_its_inverse_the_others() -> None:
    recent = narrowed(DAYS, options("BOUNDED_PARTITION_AWARE", day_partitions=9), TODAY)
    assert recent == ("2024/03/11", "2024/03/10", "2024/03/01")
    rest = narrowed(DAYS, options("UNBOUNDED_PARTITION_AWARE", day_partitions=9), TODAY)
    assert set(rest) | set(recent) == set(DAYS)
    assert not set(rest) & set(recent)


@pytest.mark.parametrize("path", ["x", "", "2024/13/01", "2024/03"])
def test_a_strategy_by_day_refuses_partitions_without_days(path: str) -> None:
    with pytest.raises(ConfigError, match="needs partitions named"):
        narrowed((path,), options("DAY_BASED"), TODAY)


def test_a_regex_finds_partitions() -> None:
    regex = options("PARTITION_REGEX", partition_regex="^2024/03|12/31$")
    assert narrowed(DAYS, regex, TODAY) == ("2024/03/10", "2024/03/01", "2023/12/31", "2024/03/11")
    with pytest.raises(ConfigError, match="needs"):
        narrowed(DAYS, options("PARTITION_REGEX"), TODAY)
    with pytest.raises(ConfigError, match="regex"):
        narrowed(DAYS, options("PARTITION_REGEX", partition_regex="("), TODAY)


def test_several_strategies_are_applied_one_after_the_other() -> None:
    both = options("PARTITION_REGEX,DAY_BASED", partition_regex="2024/", day_partitions=1)
    assert narrowed(DAYS, both, TODAY) == ("2024/03/11",)
    operations = [operation("a", 5, 3), operation("b", 50, 1), operation("c", 60, 2)]
    chosen = options("LOG_FILE_SIZE,LOG_FILE_NUM", log_size_threshold_bytes=10, log_num_threshold=2)
    assert names(ordered(operations, chosen)) == "c"


def test_hudis_class_names_name_the_strategies() -> None:
    package = "org.apache.hudi.table.action.compact.strategy."
    assert STRATEGIES.canonical(f"{package}LogFileSizeBasedCompactionStrategy") == "LOG_FILE_SIZE"
    assert STRATEGIES.canonical("UnBoundedCompactionStrategy") == "UNBOUNDED"
    assert {STRATEGIES.load(name).__module__ for name in STRATEGIES.entries} == {"pyhudi.services.compact.strategies"}
    with pytest.raises(ConfigError, match="compaction strategy"):
        ordered((), options("NO_SUCH"))


def slice_of(base_bytes: int | None, *log_bytes: int) -> FileSlice:
    base = None if base_bytes is None else BaseFile("p/f_0-0-0_1.parquet", "p", "f", "1", base_bytes)
    logs = tuple(LogFile(f"p/.f_1.log.{n}", "p", "f", "1", n, "", size) for n, size in enumerate(log_bytes))
    return FileSlice(FileGroupId("p", "f"), "1", base, logs)


def test_metrics_are_whole_megabytes_but_for_the_bytes_of_logs() -> None:
    assert metrics_of(slice_of(10 * MB - 1, MB, 2)) == {
        "TOTAL_LOG_FILES": 2.0,
        "TOTAL_LOG_FILES_SIZE": float(MB + 2),
        "TOTAL_IO_READ_MB": 11.0,
        "TOTAL_IO_WRITE_MB": 9.0,
        "TOTAL_IO_MB": 20.0,
    }


def test_a_slice_of_logs_only_is_taken_for_a_full_base_file_to_write() -> None:
    assert metrics_of(slice_of(None, MB))["TOTAL_IO_WRITE_MB"] == 120.0
