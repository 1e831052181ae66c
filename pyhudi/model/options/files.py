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
        "Files below this size in bytes take inserts. 0 or less: no file does.",
        keyword="small_file_limit_bytes",
    )
    small_file_candidates_max: int = option(
        "hoodie.merge.small.file.group.candidates.limit",
        1,
        "Merge-on-read: maximum number of small files of a partition that take inserts; only files without log files "
        "do.",
        minimum=0,
    )
    log_block_format: str = option(
        "hoodie.logfile.data.block.format",
        "parquet",
        "Merge-on-read: format of updates in log files. Every Hudi since 0.11 reads Parquet and Avro. `hfile`: Spark "
        "readers of Hudi 1.x fail on such blocks in data tables, even on those that Hudi wrote.",
        choices=("parquet", "avro", "hfile"),
        keyword="log_block_format",
    )
    log_file_max_bytes: int = option(
        "hoodie.logfile.max.size",
        1073741824,
        "Merge-on-read: maximum size in bytes of a log file; a new file is started before it would grow larger.",
        minimum=1,
    )
    log_block_max_bytes: int = option(
        "hoodie.logfile.data.block.max.size",
        268435456,
        "Merge-on-read: maximum bytes of rows, measured in memory, in one block of a log file.",
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
        "hoodie.copyonwrite.record.size.estimate", 1024, "Assumed bytes of a row until commits tell.", minimum=1
    )
    insert_auto_split: bool = option(
        "hoodie.copyonwrite.insert.auto.split", True, "Derive the rows of a new file group from file size and row size."
    )
    insert_split_rows: int = option(
        "hoodie.copyonwrite.insert.split.size", 500000, "Rows of a new file group if auto split is off.", minimum=1
    )
    record_positions: bool | None = option(
        "hoodie.write.record.positions",
        None,
        "Merge-on-read from version 8 on: log blocks store the row numbers of their keys in the base file, so that "
        "readers need not read the base file's keys. Unset: if the index knows the row numbers (SIMPLE and BLOOM); in "
        "Parquet blocks only PyHudi reads them (docs/compatibility.md says why). `true`: always, and for Hudi too; "
        "writes with a bucket or global index then have to look them up. `false`: never.",
        kind=Kind.FLAG,
    )
    partial_updates: bool | None = option(
        "hoodie.spark.sql.merge.into.partial.updates",
        None,
        "Merge-on-read: update and merge write only the changed columns to log files. Unset: if a late row can't "
        "affect the other columns, that is from version 9 on with merging by commit time and without non-blocking "
        "writers. `true`: as Hudi does by default, from version 8 on and with merging by event time too "
        "(docs/updating.md explains the effect of a late row). `false`: never. If rows merge column by column or by "
        "your own merger, whole rows are always written.",
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
        "Reaction of queries to a log file that lacks bytes of completed writes: warn and return the other rows, or "
        "fail.",
        choices=("warn", "fail"),
        scopes=ON_READ,
    )
    rewrite: bool = option(
        REWRITE_DAMAGED_LOGS,
        False,
        "Compaction, log compaction, clustering, updates, merges and version changes accept the permanent loss of rows "
        "in damaged log files. With `false` they are refused.",
    )
    page_checksums: bool = option(
        "hoodie.pyhudi.page.checksums",
        True,
        "Parquet: writes add a checksum to each page of base files and log blocks. Queries and rewrites verify the "
        "checksums that a file has, including Hudi's, and damage is an error with the file's name. `false`: writes add "
        "no checksums, and base files are read without a check, for example to rescue rows of a damaged file.",
        scopes=ON_READ_AND_WRITE,
    )


DEFAULT_DAMAGE = DamageOptions()
