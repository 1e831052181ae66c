"""Checkpoints of ingestion jobs in the commits of a table: `HudiTable.checkpoint` and `set_checkpoint`.

A job stores where it stands under a key of the commit's extra metadata; the newest commit with the key counts, and
commits of others between do not hide it. Hudi's Streamer has two keys: that of a table written by 1.0 and 1.1 may be
the second form.
Source: docs/formats/timeline.md, "Commit metadata".
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.errors import ConfigError
from pyhudi.queries.history import load_table_history
from pyhudi.result import Result
from pyhudi.table.calls import Options, TableHandle
from pyhudi.table.reports import data_schema
from pyhudi.table.write import write_rows

__all__ = ["STREAMER_KEYS", "Checkpoint", "checkpoint", "set_checkpoint"]

STREAMER_KEYS = ("streamer.checkpoint.key.v2", "deltastreamer.checkpoint.key")
_PREFIX = "hoodie.datasource.write.commitmeta.key.prefix"


@dataclass(frozen=True, slots=True, repr=False)
class Checkpoint(Result):
    """`value`: of `key` in the commit `instant_time`; all None when no commit has one."""

    instant_time: str | None = None
    key: str | None = None
    value: str | None = None

    def __str__(self) -> str:
        return "no checkpoint" if self.value is None else f"{self.value} ({self.key} of {self.instant_time})"


def checkpoint(handle: TableHandle, key: str | None) -> Checkpoint:
    """`HudiTable.checkpoint`."""
    keys = STREAMER_KEYS if key is None else (key,)
    for entry in load_table_history(handle.fresh()):
        for name in keys:
            if entry.state == "completed" and name in entry.extra:
                return Checkpoint(entry.instant_time, name, entry.extra[name])
    return Checkpoint()


def set_checkpoint(
    handle: TableHandle, value: str, key: str | None, dry_run: bool, options: Options | None, more: Options
) -> Checkpoint:
    """`HudiTable.set_checkpoint`."""
    name = key or checkpoint(handle, None).key or STREAMER_KEYS[-1]
    if not name.strip() or "=" in name:
        raise ConfigError(f"{name!r:.100} is no key of a checkpoint.")
    if dry_run:
        return Checkpoint(None, name, value)
    extra = {_PREFIX: name, name: value, "hoodie.allow.empty.commit": "true"}
    empty = data_schema(handle.fresh()).empty_table()
    write_rows(handle, empty, "bulk_insert", {**(options or {}), **extra}, more)
    return checkpoint(handle, name)
