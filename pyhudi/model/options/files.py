"""Options of base files and log files: formats, sizes, codecs, contents of log blocks, and how damage is treated.

`DamageOptions` defines the reaction when a log file lacks bytes of a completed write. Hudi skips such bytes silently.

Source: Hudi's documented keys; docs/formats/log.md, "Damaged log files"; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyhudi.model.options.declare import Values, option, parse, row
from pyhudi.model.options.spec import ON_READ, ON_READ_AND_WRITE, Kind
from pyhudi.model.options.table import BASE_FILE_FORMAT

__all__ = [
    "DEFAULT_DAMAGE",
    "READ_DAMAGED_LOGS",
    "REWRITE_DAMAGED_LOGS",
    "DamageOptions",
    "FileOptions",
    "file_options",
]


_ORC_SIZE = row("hoodie.orc.max.file.size", 125829120, "Size in bytes at which an ORC file is full.", minimum=1)
_ORC_CODEC = row(
    "hoodie.orc.compression.codec",
    "ZSTD",
    "ORC codec. Hudi's default is ZLIB.",
    choices=("ZSTD", "ZLIB", "SNAPPY", "LZ4", "NONE"),
)


@dataclass(frozen=True)  # no slots: WriteOptions has several bases
class FileOptions:
    """`codec` and `max_file_size_bytes` are those of the table's format of base files."""

    max_file_size_bytes: int = option(
        "hoodie.parquet.max.file.size",
        125829120,
        "Size in bytes at which a Parquet file is full.",
        keyword="max_file_size_bytes",
        minimum=1,
        also=(_ORC_SIZE,),
    )
    small_file_limit_bytes: int = option(
        "hoodie.parquet.small.file.limit",
        104857600,
        "Files below this size in bytes take inserts; 0 or less: none does.",
        keyword="small_file_limit_bytes",
    )
    small_file_candidates_max: int = option(
        "hoodie.merge.small.file.group.candidates.limit",
        1,
        "Merge-on-read: at most so many small files of a partition, of those without log files, take inserts.",
        minimum=0,
    )
    log_block_format: str = option(
        "hoodie.logfile.data.block.format",
        "parquet",
        "Merge-on-read: format of updates in log files. Every Hudi since 0.11 reads both. `hfile`: Spark readers "
        "of Hudi 1.x fail on such blocks of data tables, on its own too.",
        choices=("parquet", "avro", "hfile"),
        keyword="log_block_format",
    )
    log_file_max_bytes: int = option(
        "hoodie.logfile.max.size",
        1073741824,
        "Merge-on-read: a log file that would grow past this size in bytes is followed by another one.",
        minimum=1,
    )
    log_block_max_bytes: int = option(
        "hoodie.logfile.data.block.max.size",
        268435456,
        "Merge-on-read: rows in memory that go into one block of a log file, in bytes.",
        minimum=1,
    )
    codec: str = option(
        "hoodie.parquet.compression.codec",
        "zstd",
        "Parquet codec. Hudi's default is gzip; every Hudi reader reads zstd.",
        choices=("zstd", "snappy", "gzip", "lz4_raw", "brotli", "uncompressed"),
        keyword="compression",
        also=(_ORC_CODEC,),
    )
    record_size_estimate_bytes: int = option(
        "hoodie.copyonwrite.record.size.estimate", 1024, "Bytes of a row while no commit shows better.", minimum=1
    )
    insert_auto_split: bool = option(
        "hoodie.copyonwrite.insert.auto.split", True, "Rows of a new file group come from its size and the rows' size."
    )
    insert_split_rows: int = option(
        "hoodie.copyonwrite.insert.split.size", 500000, "Rows of a new file group when auto split is off.", minimum=1
    )
    record_positions: bool | None = option(
        "hoodie.write.record.positions",
        None,
        "Merge-on-read from version 8 on: log blocks say at which rows of the base file their keys are, which "
        "saves readers a look at the base file's keys. Unset: where the index has seen the rows (SIMPLE and "
        "BLOOM), and in blocks of Parquet for PyHudi alone (docs/compatibility.md says why); `true`: always and "
        "for Hudi too, which costs writes by a bucket or global index that look; `false`: never.",
        kind=Kind.FLAG,
    )
    partial_updates: bool | None = option(
        "hoodie.spark.sql.merge.into.partial.updates",
        None,
        "Merge-on-read: update and merge write only the changed columns to log files. Unset: where no row that comes "
        "late could lend the others, which is from version 9 on with merging by commit time and without non-blocking "
        "writers; `true`: as Hudi does by default, from version 8 on with merging by event time too "
        "(docs/updating.md says what a late row does then); `false`: never. Whole rows are written in any case where "
        "rows merge column by column or by a merger of yours.",
        kind=Kind.FLAG,
    )


def file_options(values: Values) -> FileOptions:
    """The options of a write."""
    options = parse(FileOptions, values)
    orc_size_bytes, orc_codec = values.integer(_ORC_SIZE), values.text(_ORC_CODEC)
    if values.texts.get(BASE_FILE_FORMAT) != "ORC":
        return options
    return replace(options, codec=str(orc_codec).lower(), max_file_size_bytes=orc_size_bytes)


READ_DAMAGED_LOGS = "hoodie.pyhudi.read.damaged.logs"
REWRITE_DAMAGED_LOGS = "hoodie.pyhudi.rewrite.damaged.logs"


@dataclass(frozen=True, slots=True)
class DamageOptions:
    """`on_read`: for queries; `rewrite`: for actions that write merged rows; `page_checksums`: for both."""

    on_read: str = option(
        READ_DAMAGED_LOGS,
        "warn",
        "Queries that find a log file without all bytes that completed writes put into it: warn and return the rows "
        "without them, or fail.",
        choices=("warn", "fail"),
        scopes=ON_READ,
    )
    rewrite: bool = option(
        REWRITE_DAMAGED_LOGS,
        False,
        "Compaction, log compaction, clustering, updates, merges and changes of the version take rows of damaged log "
        "files for lost and go on without them, for good. Otherwise they are refused.",
    )
    page_checksums: bool = option(
        "hoodie.pyhudi.page.checksums",
        True,
        "Parquet: writes add a checksum to each page of base files and log blocks; queries and rewrites compare those "
        "that a file has, Hudi's among them, so that damage is an error with the name of the file. `false`: writes add "
        "none, and base files are read without a check, say to save the rows of a damaged one.",
        scopes=ON_READ_AND_WRITE,
    )


DEFAULT_DAMAGE = DamageOptions()
