"""Options of reads.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.declare import option, part, row
from pyhudi.model.options.spec import ON_READ, ON_READ_AND_WRITE

__all__ = [
    "AS_OF",
    "BEGIN",
    "DEFAULT_DRIVER_LOG_BYTES",
    "DEFAULT_INCREMENTAL",
    "END",
    "METADATA",
    "SCHEMA_HISTORY",
    "IncrementalOptions",
    "QueryOptions",
]

METADATA = "hoodie.metadata.enable"
AS_OF = "as.of.instant"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"

DEFAULT_DRIVER_LOG_BYTES = 16 << 20

SCHEMA_HISTORY = row(
    "hoodie.schema.on.read.enable",
    False,
    "Reads and writes always follow the schema history of a table that has one, and warn of `false`. Writing with "
    "`true`, which creates such histories in Hudi, is refused.",
    scopes=ON_READ_AND_WRITE,
)


@dataclass(frozen=True, slots=True)
class IncrementalOptions:
    """Options of incremental queries: missing and future commits, and filters."""

    format: str = option(
        "hoodie.datasource.query.incremental.format",
        "latest_state",
        "Result of an incremental query: the newest versions of rows or, for a table with change logs, all changes "
        "(op, ts_ms, before, after).",
        choices=("latest_state", "cdc"),
        scopes=ON_READ,
    )
    full_scan: bool = option(
        "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
        False,
        "If commits of an incremental query were archived, or their files were cleaned, search the newest state of the "
        "table for rows of these commits. `false`: the query is an error.",
        scopes=ON_READ,
    )
    filters: tuple[str, ...] = option(
        "hoodie.datasource.read.incr.filters",
        (),
        "SQL conditions, separated by commas, that every row of an incremental query must meet.",
        scopes=ON_READ,
    )
    path_glob: str = option(
        "hoodie.datasource.read.incr.path.glob",
        "",
        "An incremental query reads only files whose full path ends with a match of this pattern; `*` also matches "
        "`/`.",
        scopes=ON_READ,
    )
    holes: str = option(
        "hoodie.read.timeline.holes.resolution.policy",
        "FAIL",
        "Below table version 8: reaction of an incremental query to a running or failed write that precedes completed "
        "writes in its range: fail, read up to it, or apply the range to completion times. From version 8 on no write "
        "is missed.",
        choices=("FAIL", "BLOCK", "USE_TRANSITION_TIME"),
        scopes=ON_READ,
    )
    driver_rows: int = option(
        "hoodie.pyhudi.incremental.driver.max.rows",
        10_000,  # some 3 MB in the driver's memory, as long as the DataFrame exists
        "On a local master without Connect, an incremental query of a copy-on-write table reads its rows when it is "
        "loaded, if its commits wrote at most this many rows and their files have at most 64 MB. Such a DataFrame has "
        "no `_metadata` column. 0: Spark always reads the files, when rows are fetched.",
        scopes=ON_READ,
        minimum=0,
    )

    @property
    def returns_changes(self) -> bool:
        """True if the query returns changes instead of rows."""
        return self.format == "cdc"


DEFAULT_INCREMENTAL = IncrementalOptions()


@dataclass(frozen=True)  # no slots: ReadOptions has several bases
class QueryOptions:
    """`as_of`: instant time, timestamp or date as text, None = now. `begin`, `end`: of an incremental query."""

    query_type: str = option(
        "hoodie.datasource.query.type",
        "snapshot",
        "The result of a read. On copy-on-write tables read_optimized is the same as snapshot.",
        aliases=("hoodie.datasource.view.type",),
        choices=("snapshot", "read_optimized", "incremental"),
        scopes=ON_READ,
    )
    as_of: str | None = option(
        AS_OF, None, "Read the table as of an instant time, a timestamp or a date.", scopes=ON_READ
    )
    use_metadata: bool = option(
        METADATA,
        True,
        "Queries take files and column statistics from the metadata table if it is up to date. A new table gets one "
        "with its first write, unless the creating call sets `false`. A write with `true` creates a missing metadata "
        "table, a write with `false` removes it; otherwise a table keeps its metadata table or has none.",
        scopes=ON_READ_AND_WRITE,
        keyword="metadata_table",
    )
    unique_keys: bool = option(
        "hoodie.pyhudi.read.unique.keys",
        False,
        "Promise that no key is in more than one file group, which inserts of existing keys could cause. Queries for "
        "keys, and for values with a secondary index, then open only the file groups that the record index names. If "
        "the promise is broken, they miss rows.",
        scopes=ON_READ,
    )
    begin: str | None = option(
        BEGIN,
        None,
        "An incremental query returns changes committed after this time: a completion time from table version 8 on, an "
        "instant time below. `earliest`: all commits.",
        scopes=ON_READ,
    )
    end: str | None = option(
        END,
        None,
        "An incremental query returns changes committed up to and including this time. Unset: until now.",
        scopes=ON_READ,
    )
    driver_log_bytes: int = option(
        "hoodie.pyhudi.read.log.driver.max.bytes",
        DEFAULT_DRIVER_LOG_BYTES,
        "If the log files of a query on Spark have at most this many bytes, they are read when its DataFrame is "
        "created, and their rows stay in the driver's memory as long as the DataFrame exists; on Spark Connect at most "
        "1 MiB. Larger log files, or all with 0, are read by Spark's tasks when rows are fetched.",
        scopes=ON_READ,
        minimum=0,
    )
    incremental: IncrementalOptions = part(IncrementalOptions)
