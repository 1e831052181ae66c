"""Write stats under Hudi's field names, in their JSON and Avro forms.

A stat without a path belongs to a workload profile and has no runtime stats. The four keys of log files are absent from
the JSON of base files, but null in Avro. Source: docs/formats/timeline.md, "Records", "Bodies", "Commit metadata".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pyhudi.errors import CorruptFile
from pyhudi.formats.timeline.bodies import LONG_MAX, Body, NewBody, shown
from pyhudi.model.commit import WriteStat

__all__ = ["SUMMED", "decode_stat", "stat_to_avro", "stat_to_json", "sums_of_stats"]

Kind = TypeVar("Kind")

# Hudi's name → (ours, default when null or absent), in the order of the JSON form.
_COUNTERS: Mapping[str, str] = {
    "numWrites": "num_writes",
    "numDeletes": "num_deletes",
    "numUpdateWrites": "num_update_writes",
    "numInserts": "num_inserts",
    "totalWriteBytes": "total_write_bytes",
    "totalWriteErrors": "total_write_errors",
}
# The counters that histories show.
SUMMED = ("numWrites", "numInserts", "numUpdateWrites", "numDeletes", "totalWriteBytes")
_LOG_COUNTERS: Mapping[str, str] = {
    "totalLogRecords": "total_log_records",
    "totalLogFilesCompacted": "total_log_files_compacted",
    "totalLogSizeCompacted": "total_log_size_compacted",
    "totalUpdatedRecordsCompacted": "total_updated_records_compacted",
    "totalLogBlocks": "total_log_blocks",
    "totalCorruptLogBlock": "total_corrupt_log_block",
    "totalRollbackBlocks": "total_rollback_blocks",
    "fileSizeInBytes": "file_size_in_bytes",
}
_ALL_COUNTERS = {**_COUNTERS, **_LOG_COUNTERS, "totalLogReadTimeMs": "total_log_read_time_ms"}
_OPTIONAL_NUMBERS: Mapping[str, str] = {
    "totalLogFiles": "total_log_files",
    "minEventTime": "min_event_time",
    "maxEventTime": "max_event_time",
    "logVersion": "log_version",
    "logOffset": "log_offset",
}
_OPTIONAL_TEXTS: Mapping[str, str] = {
    "path": "path",
    "partitionPath": "partition_path",
    "prevCommit": "prev_commit",
    "prevBaseFile": "prev_base_file",
    "baseFile": "base_file",
}


def stat_to_json(stat: WriteStat) -> NewBody:
    """Return the JSON form, keys in Hudi's order."""
    body: NewBody = {
        "fileId": stat.file_id,
        "path": stat.path,
        "cdcStats": None if stat.cdc_stats is None else dict(stat.cdc_stats),
        "prevCommit": stat.prev_commit,
        **{name: getattr(stat, ours) for name, ours in _COUNTERS.items()},
        "tempPath": None,
        "partitionPath": stat.partition_path,
        **{name: getattr(stat, ours) for name, ours in _LOG_COUNTERS.items()},
        "minEventTime": stat.min_event_time,
        "maxEventTime": stat.max_event_time,
        "runtimeStats": None,
    }
    if stat.path is not None:
        body["runtimeStats"] = {
            "totalScanTime": stat.scan_time_ms,
            "totalUpsertTime": stat.upsert_time_ms,
            "totalCreateTime": stat.create_time_ms,
        }
    if stat.log_files is not None:
        body["logVersion"] = stat.log_version
        body["logOffset"] = stat.log_offset
        body["baseFile"] = stat.base_file
        body["logFiles"] = list(stat.log_files)
        body["recordsStats"] = {"val": None}
    return body


def stat_to_avro(stat: WriteStat) -> NewBody:
    """Return the datum of a HoodieWriteStat."""
    body: NewBody = {"fileId": stat.file_id}
    for names in (_ALL_COUNTERS, _OPTIONAL_NUMBERS, _OPTIONAL_TEXTS):
        body.update({name: getattr(stat, ours) for name, ours in names.items()})
    body["cdcStats"] = None if stat.cdc_stats is None else dict(stat.cdc_stats)
    body["logFiles"] = None if stat.log_files is None else list(stat.log_files)
    body["runtimeStats"] = None
    if stat.path is not None:
        body["runtimeStats"] = {
            "totalScanTime": stat.scan_time_ms,
            "totalCreateTime": stat.create_time_ms,
            "totalUpsertTime": stat.upsert_time_ms,
        }
    body["tempPath"] = None
    body["numUpdates"] = 0
    return body


def decode_stat(body: object, where: str) -> WriteStat:
    """Decode a stat from either form. Raises CorruptFile when a field has another type."""
    if not isinstance(body, Mapping):
        raise CorruptFile(f"{where}: expected a write stat, found {type(body).__name__}.")
    fields: dict[str, Any] = {"file_id": _value_of(body, "fileId", str, where) or ""}
    # A commit of many files has millions of fields, so the usual ones, whole numbers and nulls, are checked inline.
    for name, ours in _ALL_COUNTERS.items():
        value = body.get(name)
        is_number = type(value) is int and -LONG_MAX <= value <= LONG_MAX
        fields[ours] = value if is_number else _value_of(body, name, int, where) or 0
    for name, ours in _OPTIONAL_NUMBERS.items():
        fields[ours] = None if body.get(name) is None else _value_of(body, name, int, where)
    for name, ours in _OPTIONAL_TEXTS.items():
        value = body.get(name)
        fields[ours] = value if type(value) is str else _value_of(body, name, str, where)
    runtime = _value_of(body, "runtimeStats", dict, where) or {}
    fields["scan_time_ms"] = _value_of(runtime, "totalScanTime", int, where) or 0
    fields["create_time_ms"] = _value_of(runtime, "totalCreateTime", int, where) or 0
    fields["upsert_time_ms"] = _value_of(runtime, "totalUpsertTime", int, where) or 0
    log_files = _value_of(body, "logFiles", list, where)
    if log_files is not None:
        fields["log_files"] = tuple(str(name) for name in log_files)
    cdc_stats = _value_of(body, "cdcStats", dict, where)
    if cdc_stats is not None:
        fields["cdc_stats"] = {str(path): _value_of(cdc_stats, path, int, where) or 0 for path in cdc_stats}
    return WriteStat(**fields)


def sums_of_stats(stats: Sequence[object], where: str) -> tuple[int, ...]:
    """Return the sum of each counter in SUMMED over stats in either form. Raises CorruptFile like `decode_stat`."""
    bodies = [stat for stat in stats if isinstance(stat, dict)]
    if len(bodies) < len(stats):
        raise CorruptFile(f"{where}: expected write stats, found {shown(next(s for s in stats if s not in bodies))}.")
    return tuple(_sum(bodies, name, where) for name in SUMMED)


def _sum(bodies: Sequence[Body], name: str, where: str) -> int:
    numbers = [value for body in bodies if type(value := body.get(name)) is int]
    if len(numbers) < len(bodies) or max(numbers, default=0) > LONG_MAX or min(numbers, default=0) < -LONG_MAX:
        numbers = [_value_of(body, name, int, where) or 0 for body in bodies]
    return sum(numbers)


def _value_of(body: Body, name: str, kind: type[Kind], where: str) -> Kind | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, kind):
        raise CorruptFile(f"{where}: write stat field {name!r:.100} should be {kind.__name__}, found {shown(value)}.")
    if isinstance(value, int) and not -LONG_MAX <= value <= LONG_MAX:
        raise CorruptFile(f"{where}: write stat field {name!r:.100} is a number of more than 64 bits.")
    return value
