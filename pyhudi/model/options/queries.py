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
    "Reading and writing follow the schema history of a table that has one, and warn of false. Writing with true, "
    "which makes such histories, is refused.",
    scopes=ON_READ_AND_WRITE,
)


@dataclass(frozen=True, slots=True)
class IncrementalOptions:
    """How an incremental query handles missing and future commits, and which rows it leaves out."""

    format: str = option(
        "hoodie.datasource.query.incremental.format",
        "latest_state",
        "What an incremental query returns: rows in their newest version, or, of a table with change logs, all changes "
        "(op, ts_ms, before, after).",
        choices=("latest_state", "cdc"),
        scopes=ON_READ,
    )
    full_scan: bool = option(
        "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
        False,
        "An incremental query whose commits were archived, or whose files were cleaned, looks through the newest state "
        "of the table for rows of these commits. Otherwise it is an error.",
        scopes=ON_READ,
    )
    filters: tuple[str, ...] = option(
        "hoodie.datasource.read.incr.filters",
        (),
        "Conditions in SQL with commas between them, all of which a row of an incremental query must meet.",
        scopes=ON_READ,
    )
    path_glob: str = option(
        "hoodie.datasource.read.incr.path.glob",
        "",
        "An incremental query reads only files whose full path ends as this pattern says; a star goes over folders.",
        scopes=ON_READ,
    )
    holes: str = option(
        "hoodie.read.timeline.holes.resolution.policy",
        "FAIL",
        "What an incremental query below table version 8 does about a running or failed write before complete ones in "
        "its range: fail, read up to it, or take completion times for the range. From version 8 on none is missed.",
        choices=("FAIL", "BLOCK", "USE_TRANSITION_TIME"),
        scopes=ON_READ,
    )
    driver_rows: int = option(
        "hoodie.pyhudi.incremental.driver.max.rows",
        10_000,  # some 3 MB in the driver's memory, as long as the DataFrame exists
        "On a local master without Connect, an incremental query of a copy-on-write table whose commits say that they "
        "wrote no more rows than this reads them when it is loaded, if their files have at most 64 MB. Such a "
        "DataFrame has no `_metadata` column. With 0, Spark always reads the files, when rows are fetched.",
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
        "What a read returns. On copy-on-write tables read_optimized is the same as snapshot.",
        aliases=("hoodie.datasource.view.type",),
        choices=("snapshot", "read_optimized", "incremental"),
        scopes=ON_READ,
    )
    as_of: str | None = option(
        AS_OF, None, "Read the table as it was then: an instant time, a timestamp or a date.", scopes=ON_READ
    )
    use_metadata: bool = option(
        METADATA,
        True,
        "Queries take files and column statistics from the metadata table, if it is up to date. A new table gets one "
        "with its first write, unless the call that makes it says false. A write that says true makes one if there is "
        "none, one that says false takes it out; else a table keeps what it has.",
        scopes=ON_READ_AND_WRITE,
        keyword="metadata_table",
    )
    unique_keys: bool = option(
        "hoodie.pyhudi.read.unique.keys",
        False,
        "No key is in several file groups, as inserts of known keys leave it. Queries for keys, and for values with a "
        "secondary index, then open only the file groups that the record index names; of keys that are in several, "
        "rows would be missing.",
        scopes=ON_READ,
    )
    begin: str | None = option(
        BEGIN,
        None,
        "An incremental query returns what was committed after this time, which is a completion time from table "
        "version 8 on and an instant time below; `earliest` takes all commits.",
        scopes=ON_READ,
    )
    end: str | None = option(
        END,
        None,
        "An incremental query returns what was committed until this time, itself included; none: until now.",
        scopes=ON_READ,
    )
    driver_log_bytes: int = option(
        "hoodie.pyhudi.read.log.driver.max.bytes",
        DEFAULT_DRIVER_LOG_BYTES,
        "Log files of a query on Spark that have at most so many bytes are read when its DataFrame is made, and their "
        "rows are kept in the driver's memory as long as the DataFrame exists; on Spark Connect at most 1 MiB. Larger "
        "ones, and all with 0, are read by Spark's tasks, when rows are fetched.",
        scopes=ON_READ,
        minimum=0,
    )
    incremental: IncrementalOptions = part(IncrementalOptions)
