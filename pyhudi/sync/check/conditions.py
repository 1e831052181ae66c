"""Conditions of rules: functions of the facts of a table and of the rule's argument. Each describes its observation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyhudi.sync.check.facts import TableFacts

__all__ = ["CONDITIONS", "Seen"]

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Seen:
    """The observation of a condition, as text after a colon. `rows`, `is_bound`, `since`: as in a SyncFinding."""

    text: str
    rows: int | None = None
    is_bound: bool = False
    since: str | None = None


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


# ---- properties of the table


def _version_above(facts: TableFacts, most: int) -> Seen | None:
    version = facts.config.table_version
    return Seen(f"version {version}") if version > most else None


def _version_is(facts: TableFacts, versions: Collection[int]) -> Seen | None:
    version = facts.config.table_version
    return Seen(f"version {version}") if version in versions else None


def _version_not_in(facts: TableFacts, versions: Collection[int]) -> Seen | None:
    return None if _version_is(facts, versions) else Seen(f"version {facts.config.table_version}")


def _merge_on_read(facts: TableFacts, _: None) -> Seen | None:
    return Seen("merge-on-read") if facts.config.is_merge_on_read else None


def _base_files_not(facts: TableFacts, formats: Collection[str]) -> Seen | None:
    kind = facts.config.base_file_format
    return Seen(f"{kind} base files") if kind not in formats else None


def _drops_partition_columns(facts: TableFacts, _: None) -> Seen | None:
    dropped = facts.config.dropped_partition_fields
    return Seen(_some(dropped)) if dropped else None


def _not_hive_style(facts: TableFacts, _: None) -> Seen | None:
    fields = facts.config.partition_fields
    return (
        Seen(f"{_some(fields)} without {fields[0]}=") if fields and not facts.config.hive_style_partitioning else None
    )


def _merge_mode(facts: TableFacts, mode: str) -> Seen | None:
    config = facts.config
    if config.record_merge_mode != mode or not config.is_merge_on_read:
        return None
    return Seen(config.payload_class or config.legacy_payload_class or config.merge_strategy_id or mode)


def _equals_in_property(facts: TableFacts, _: None) -> Seen | None:
    invalid = [line.partition("=")[0] for line in facts.property_lines if line.count("=") != 1]
    return Seen(_some(invalid)) if invalid else None


def _lacks_property(facts: TableFacts, keys: Sequence[str]) -> Seen | None:
    stored = {line.partition("=")[0] for line in facts.property_lines}
    lacking = [key for key in keys if key not in stored]
    return Seen(_some(lacking)) if lacking else None


def _has_columns(facts: TableFacts, kind: str) -> Seen | None:
    columns = facts.columns_by_kind.get(kind)
    return Seen(_some(columns)) if columns else None


def _timestamps_in_merge_on_read(facts: TableFacts, _: None) -> Seen | None:
    columns = [name for kind in ("timestamp", "local timestamp") for name in facts.columns_by_kind.get(kind, ())]
    return Seen(_some(columns)) if facts.config.is_merge_on_read and columns else None


# ---- its files


def _rows_in_logs(facts: TableFacts, _: None) -> Seen | None:
    logs = facts.log_rows
    if not logs.files or logs.total == 0:
        return None
    since = f" since {logs.since}" if logs.since else ""
    files = _counted(logs.files, "log file")
    if logs.total is None:
        return Seen(f"rows in {files}{since}, not counted", since=logs.since)
    if logs.is_bound:
        rows = f"at most {_counted(logs.total, 'row')}"
        return Seen(f"{rows} in {files}{since}", logs.total, True, logs.since)
    parts = ((logs.missing, "missing"), (logs.stale, "old"), (logs.deleted, "deleted"))
    kinds = ", ".join(f"{count:,} {word}" for count, word in parts if count)
    return Seen(f"{_counted(logs.total, 'row')} ({kinds}) in {files}{since}", logs.total, False, logs.since)


def _codec_not_in(facts: TableFacts, codecs: Collection[str]) -> Seen | None:
    others = sorted(facts.codecs - set(codecs))
    return Seen(_some(others)) if others else None


def _encrypted(facts: TableFacts, _: None) -> Seen | None:
    files = facts.encrypted_files
    return Seen(_some(files)) if files else None


def _bootstrapped(facts: TableFacts, _: None) -> Seen | None:
    files = facts.skeletons
    return Seen(_counted(len(files), "base file"), facts.rows_of(files)) if files else None


def _shows_other_files(facts: TableFacts, engine: str) -> Seen | None:
    extra = facts.shown_by(engine).extra
    if not extra:
        return None
    rows = facts.rows_of(extra)
    counted = "" if rows is None else f" with {_counted(rows, 'row')}"
    return Seen(f"{_counted(len(extra), 'file')}{counted}: {_some(extra)}", rows)


def _hides_files(facts: TableFacts, engine: str) -> Seen | None:
    hidden = facts.shown_by(engine).hidden
    if not hidden:
        return None
    rows = facts.rows_of(hidden)
    counted = "" if rows is None else f" with {_counted(rows, 'row')}"
    return Seen(f"{_counted(len(hidden), 'file')}{counted}: {_some(hidden)}", rows)


def _odd_names(facts: TableFacts, _: None) -> Seen | None:
    return Seen(_some(facts.odd_names)) if facts.odd_names else None


def _other_folders(facts: TableFacts, _: None) -> Seen | None:
    return Seen(_some(facts.other_folders)) if facts.other_folders else None


def _history_in_parquet(facts: TableFacts, _: None) -> Seen | None:
    files = facts.history_files
    return Seen(_counted(len(files), "file")) if files else None


def _newest_commit_without_file(facts: TableFacts, _: None) -> Seen | None:
    path = facts.newest_commit_path
    if path is None:
        return Seen("no commit on the active timeline")
    if not path:
        return Seen("it wrote no file")
    return None if facts.meta.storage.stat(path) is not None else Seen(f"{path} no longer exists")


CONDITIONS: Mapping[str, Callable[[TableFacts, Any], Seen | None]] = {
    "version above": _version_above,
    "version": _version_is,
    "version not among": _version_not_in,
    "merge-on-read": _merge_on_read,
    "base files not": _base_files_not,
    "dropped partition columns": _drops_partition_columns,
    "not hive style": _not_hive_style,
    "merge mode": _merge_mode,
    "= in a property": _equals_in_property,
    "lacks property": _lacks_property,
    "columns of type": _has_columns,
    "timestamps in merge-on-read": _timestamps_in_merge_on_read,
    "rows in log files": _rows_in_logs,
    "codec not among": _codec_not_in,
    "encrypted": _encrypted,
    "bootstrapped": _bootstrapped,
    "shows other files": _shows_other_files,
    "hides files": _hides_files,
    "odd file names": _odd_names,
    "other folders": _other_folders,
    "history in Parquet": _history_in_parquet,
    "newest commit without file": _newest_commit_without_file,
}
