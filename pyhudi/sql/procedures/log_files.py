"""Log files: their blocks, and the records in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.formats.log.envelope import CorruptRange
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.model.filenames import LogFileName
from pyhudi.sql.procedures.procedure import Procedure, ProcedureCall, Row, Rows
from pyhudi.view.file_system_view import listed_partitions

__all__ = ["PROCEDURES"]

_FILES = "table string, path string, log_file_path_pattern string!"


def _log_files(call: ProcedureCall) -> list[str]:
    """The log files whose paths fit the pattern, which may begin with the table's folder."""
    root = call.storage.full_path("").rstrip("/")
    pattern = call.text("log_file_path_pattern")
    for start in (root, root.partition(":")[2], call.storage.root):
        pattern = pattern.removeprefix(start.rstrip("/"))
    pattern = pattern.lstrip("/")
    paths = [
        file.path
        for _, files in listed_partitions(call.storage)
        for file in files
        if LogFileName.parse(file.name) is not None and fnmatchcase(file.path, pattern)
    ]
    return sorted(paths)


def _blocks(call: ProcedureCall) -> Iterator[LogBlock | CorruptRange]:
    for path in _log_files(call):
        yield from scan_log(call.storage, path)


def _show_logfile_metadata(call: ProcedureCall) -> Rows:
    return call.limited(_block_rows(call))


def _block_rows(call: ProcedureCall) -> Iterator[Row]:
    for block in _blocks(call):
        if isinstance(block, CorruptRange):
            yield "", 0, "CORRUPT_BLOCK", "{}", "{}"
            continue
        records = block.rows().num_rows if block.is_data else block.deletes().keys.num_rows if block.is_delete else 0
        header = json.dumps({key.name: value for key, value in block.frame.header.items()}, separators=(",", ":"))
        yield block.instant_time, records, f"{block.frame.block_type.name}_BLOCK", header, "{}"


def _show_logfile_records(call: ProcedureCall) -> Rows:
    if not _log_files(call):
        raise ConfigError(f"{call.procedure}: no log file has the form {call.text('log_file_path_pattern')!r:.300}.")
    return call.limited(_records(call))


def _records(call: ProcedureCall) -> Iterator[Row]:
    newest: dict[object, str] = {}
    for block in _blocks(call):
        if isinstance(block, CorruptRange) or not block.is_data:
            continue
        for batch in _plain(block.rows()).to_batches():
            for record in batch.to_pylist():
                text = json.dumps(record, default=_text, ensure_ascii=False)
                if call.flag("merge"):
                    newest[record.get("_hoodie_record_key")] = text
                else:
                    yield (text,)
    yield from ((text,) for text in newest.values())


def _plain(rows: pa.Table) -> pa.Table:
    """Dates as days and times as their stored numbers, as in Avro."""
    for place, column in enumerate(rows.schema):
        if pa.types.is_temporal(column.type):
            kind = pa.int32() if column.type.bit_width == 32 else pa.int64()
            rows = rows.set_column(place, column.name, rows.column(place).cast(kind))
    return rows


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


PROCEDURES = (
    Procedure.of(
        "show_logfile_metadata",
        f"{_FILES}, limit integer=10, filter string=",
        "instant_time string, record_count integer, block_type string, header_metadata string, footer_metadata string",
        _show_logfile_metadata,
        "The blocks of log files; the pattern is a path with `*`.",
    ),
    Procedure.of(
        "show_logfile_records",
        f"{_FILES}, merge boolean=false, limit integer=10, filter string=",
        "records string",
        _show_logfile_records,
        "The records of log files as JSON; merged: the last one of each key.",
    ),
)
