"""The meaning of a table's version: callers ask `TableFormat` and `TimelineLayout` instead of comparing versions.

    config.format.has_own_log_files           a table's
    TableFormat(9).has_value_types            a version's

Each attribute names a property that Hudi's format has from some version on. A new version gets its attributes here.

Source: docs/formats/table-config.md, "Table versions"; docs/formats/metadata-table.md, "Timeline",
"Which blocks count", "Partitions", "Index definitions", "Secondary index", "Taking back",
"Built while writers go on", "Log compaction".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, overload

__all__ = ["TableFormat", "TimelineLayout"]


class _Versioned(Protocol):
    @property
    def version(self) -> int: ...


class _Since:
    """True from the version `first` on."""

    def __init__(self, first: int) -> None:
        self.first = first

    @overload
    def __get__(self, of: None, kind: type[object]) -> _Since: ...
    @overload
    def __get__(self, of: _Versioned, kind: type[object]) -> bool: ...
    def __get__(self, of: _Versioned | None, kind: type[object]) -> _Since | bool:
        return self if of is None else of.version >= self.first


@dataclass(frozen=True, slots=True)
class TimelineLayout:
    """The storage of a timeline: layout 1 of Hudi 0.x, 2 of 1.x."""

    version: int

    # Names of completed files have the completion time; before, only the file's modification time tells it.
    names_completion_times = _Since(2)
    # Names of pending clusterings have a separate action; before, they are called replacecommit.
    names_clusterings = _Since(2)
    # `.hoodie/timeline` has the files, its subfolder `history` the archived ones; before, `.hoodie` and
    # `.hoodie/archived`.
    has_own_folder = _Since(2)
    # Archived instants are in a merge tree; before, in log files.
    has_history_tree = _Since(2)


@dataclass(frozen=True, slots=True)
class TableFormat:
    """The format of a table version: 4, 5, 6, 8 or 9."""

    version: int

    @property
    def layout(self) -> TimelineLayout:
        """The timeline layout that belongs to it."""
        return TimelineLayout(2 if self.has_completion_times else 1)

    # ---- the timeline

    has_completion_times = _Since(8)
    # Completion times decide which write is newer, and which slice a file belongs to; before, instant times do. In the
    # metadata table their last three digits tell the kind of the instant.
    orders_by_completion = _Since(8)
    # Bodies of commits are Avro; before, JSON.
    has_avro_commits = _Since(8)
    # Plans of compactions and clusterings name the partitions that they leave out.
    plans_name_missing_partitions = _Since(8)
    # A commit's write stats of base files name the previous file.
    stats_name_previous_file = _Since(8)
    # The inflight file of a clean is empty; before, it repeats the plan.
    has_empty_inflight_cleans = _Since(9)
    # The requested file of a deletion of partitions names the operation.
    requests_name_operation = _Since(9)
    # Archiving keeps the newest instants of the whole timeline; before, of each action.
    archives_whole_timeline = _Since(8)

    # ---- log files

    # Each delta commit writes its own log files, with its instant in their names. Before, log files are named after
    # their slice and have blocks of several writes: the timeline decides for each block whether it counts, and a
    # pending compaction starts the slice of later writes.
    has_own_log_files = _Since(8)
    # Log blocks may have the positions of their rows in the base file.
    has_record_positions = _Since(8)
    # Several writers may append to one file group at the same time.
    has_non_blocking_writers = _Since(8)
    # The schema of change logs has an empty `doc`.
    documents_change_logs = _Since(9)

    @property
    def has_decimals_in_delete_blocks(self) -> bool:
        """True except in version 8, whose reader, Hudi 1.0, fails on decimals in delete blocks, even its own."""
        return self.version != 8

    def has_partial_updates(self, by_ordering: bool) -> bool:
        """True if log blocks may have only some columns of changed rows. `by_ordering`: rows merge by ordering."""
        return self.version >= (8 if by_ordering else 9)

    # ---- hoodie.properties

    # They have the table's initial version, the folders of its timeline, and its single format of base files.
    stores_initial_version = _Since(8)
    # A missing database is left out; before, its name is empty.
    leaves_out_empty_database = _Since(8)
    # The key generator is a type; before, a class.
    stores_key_generator_type = _Since(8)
    # They have the types of partition fields for the generator CUSTOM, and of its input for TIMESTAMP.
    stores_field_types = _Since(8)
    # They name Hive's class for partition values, and the pluggable table format.
    stores_partition_extractor = _Since(9)
    # There may be several ordering fields, under a separate key.
    has_many_ordering_fields = _Since(9)

    # ---- keys, partitions and merging

    # Null values belong to the partition __HIVE_DEFAULT_PARTITION__; before, to `default`.
    has_hive_default_partition = _Since(5)
    # The key generator COMPLEX with one field always writes `field:value`.
    prefixes_single_complex_key = _Since(9)
    # The properties define how rows merge; before, each write of a copy-on-write table does, by its payload class.
    stores_merging = _Since(8)
    # If the merge mode is stored, only it counts, not an id from before an upgrade.
    merges_by_stored_mode = _Since(9)
    # Rows of one write with one key are combined by the merge mode; before, the greater ordering value wins.
    combines_input_by_mode = _Since(8)
    # Deletes in log files compare their ordering value with base rows; before, with log records only.
    orders_log_deletes = _Since(8)

    @property
    def prefers_strategy_id(self) -> bool:
        """True if the id of the merge strategy takes precedence over the payload class."""
        return self.version == 8

    # ---- indexes

    # `.hoodie/.index_defs` lists the indexes and their columns.
    has_index_definitions = _Since(8)
    # The definitions have a version, and include the record index.
    has_versioned_definitions = _Since(9)
    # Statistics of partitions, secondary and expression indexes.
    has_partition_stats = _Since(8)
    has_secondary_indexes = _Since(8)
    has_expression_indexes = _Since(8)
    # Only the value determines the file group of a pair in a secondary index.
    shards_pairs_by_value = _Since(9)
    # A secondary index also has records of rows without a value; dates are numbers of days, and times can be indexed.
    has_secondary_nulls = _Since(9)
    # Entries of the record index have a position.
    has_index_positions = _Since(8)
    # An index can be built while writers are active: a base file of the build precedes earlier log files.
    builds_beside_writers = _Since(8)
    # Markers of consistent hashing rings are next to the rings; before, in the partition.
    marks_rings_beside_them = _Since(8)
    # A bootstrapped table names the type of its index; before, its class.
    names_bootstrap_index_type = _Since(8)

    # ---- the metadata table

    # Records of deleted files are deleted; before, new records mark them as deleted.
    deletes_metadata_records = _Since(8)
    # Statistics tell whether bounds are exact, and have a kind of bound for local dates.
    has_tight_bounds = _Since(8)
    # Statistics name the type of their bounds, which have the form that files store.
    has_value_types = _Since(9)
    # Statistics cover data columns; before, meta columns, too.
    leaves_out_meta_columns = _Since(8)
    # Statistics of partitions include rows in log files.
    counts_logs_in_partition_stats = _Since(9)
    # Statistics in log-compacted blocks replace the merged ones; Hudi 1.0 reads both, which doubles counts.
    compacts_logs_of_statistics = _Since(9)
