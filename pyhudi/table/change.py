"""Changes of a table by the public API without incoming rows: update, delete, whole partitions, columns, checkpoints.

table.update("status = 'open'", set={"status": "'late'", "fare": "fare * 2"})
table.delete(where="day < DATE '2023-01-01'")
table.delete_partitions("2023-01-01")
table.alter(AddColumn("note", pa.string()))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.actions.alter import AlterSchema
from pyhudi.actions.changes.change import ChangeRows
from pyhudi.actions.changes.clauses import Clause, When, set_values
from pyhudi.actions.changes.computed import Computed, NumberedClause
from pyhudi.actions.result import WriteResult
from pyhudi.actions.writes.delete_partition import DeletePartitions
from pyhudi.engine.base import Engine, Frame
from pyhudi.engine.local import in_this_process
from pyhudi.errors import ConfigError
from pyhudi.expressions.binding import Where
from pyhudi.expressions.values import Literal as Constant
from pyhudi.model.options import WriteOptions
from pyhudi.queries.history import load_table_history
from pyhudi.result import Result
from pyhudi.schema.changes import SchemaChange
from pyhudi.table.calls import Options, TableHandle, WithHandle, engine_for, session_zone
from pyhudi.table.input import TableInput, choose_writer, is_spark_frame, to_arrow_rows
from pyhudi.table.reports import data_schema
from pyhudi.table.save import write_rows
from pyhudi.table.write import change_table

__all__ = [
    "STREAMER_KEYS",
    "Checkpoint",
    "alter",
    "change_computed",
    "checkpoint",
    "delete",
    "delete_partitions",
    "set_checkpoint",
    "static_partitions",
    "update",
]

_PARTITIONS_TO_DELETE = "hoodie.datasource.write.partitions.to.delete"
_STATIC_PARTITIONS = "hoodie.static.overwrite.partition.paths"


def update(
    handle: TableHandle,
    where: Where,
    set_: Mapping[str, object] | None,
    values: Mapping[str, object] | None,
    options: Options | None,
) -> WriteResult:
    """`HudiTable.update`."""
    if set_ is None and values is None:
        raise ConfigError("update changes columns; name them, such as set={'n': 'n + 1'} or values={'city': 'rome'}.")
    assigned = (set_values("update", set_) if set_ is not None else None) or {}
    constants = (set_values("update", values) if values is not None else None) or {}
    duplicates = sorted(map(str, set(assigned) & set(constants)))
    if duplicates:
        raise ConfigError(f"update names {', '.join(duplicates)} in set= and in values=; give each column once.")
    assigned |= {name: Constant(value) if isinstance(value, str) else value for name, value in constants.items()}
    clause = Clause(When.NOT_MATCHED_BY_SOURCE, "update", None, assigned)
    change = ChangeRows((clause,), where, zone=session_zone(handle.spark))
    return _change(handle, change, handle.write_options(handle.options(options)), "UPDATE")


def delete(handle: TableHandle, data: TableInput | None, where: Where, options: Options | None) -> WriteResult:
    """`HudiTable.delete`."""
    if (data is None) == (where is None):
        raise ConfigError("delete takes rows with the keys to delete, or where=; give one of them.")
    if isinstance(data, str):
        raise ConfigError(f"delete takes rows with the keys to delete, found a text; delete(where={data!r}) filters.")
    if data is not None:
        return write_rows(handle, data, "delete", options)
    change = ChangeRows((Clause(When.NOT_MATCHED_BY_SOURCE, "delete"),), where, zone=session_zone(handle.spark))
    return _change(handle, change, handle.write_options(handle.options(options)), "DELETE")


def _change(
    handle: TableHandle,
    change: ChangeRows | DeletePartitions | AlterSchema,
    parsed: WriteOptions,
    word: str | None = None,
) -> WriteResult:
    """Run a change that needs no rows from outside the table. `word`: its name in the result, if not the commit's."""
    with engine_for(handle.spark, parsed) as engine:
        result = change_table(handle.storage, change, engine, parsed)
    return result if word is None else replace(result, operation=word)


def delete_partitions(
    handle: TableHandle,
    partitions: str | Iterable[str],
    matching: str | Iterable[str],
    options: Options | None,
) -> WriteResult:
    """`HudiTable.delete_partitions`."""
    write_options = handle.options(options)
    write_options.setdefault("hoodie.datasource.write.operation", "delete_partition")
    parsed = handle.write_options(write_options)
    action = DeletePartitions(_names(partitions), _names(matching))
    if not (action.paths or action.patterns):
        raise ConfigError("No partitions are named; give their paths, or patterns with * for any text as matching.")
    if parsed.replacing.partitions_to_delete:
        raise ConfigError(f"{_PARTITIONS_TO_DELETE}: name the partitions in the call instead, and once.")
    return _change(handle, action, parsed)


def _names(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def static_partitions(partitions: str | Iterable[str] | None) -> dict[str, object]:
    """The partitions to overwrite, as an option; {} for None, which means those that get rows.

    Raises: ConfigError for an empty list, and for a path that can't be in a list.
    """
    if partitions is None:
        return {}
    paths = _names(partitions)
    if not paths:
        raise ConfigError("No partitions are named; give their paths.")
    invalid = [path for path in paths if "," in path or path != path.strip()]
    if invalid:
        raise ConfigError(
            f"The partition path {invalid[0]!r} has a comma or outer blanks, which a list of paths can't hold. Leave "
            "partitions out: those that get rows are overwritten."
        )
    return {_STATIC_PARTITIONS: ",".join(paths)}


def alter(
    handle: TableHandle,
    changes: tuple[SchemaChange, ...],
    schema_on_read: bool | None,
    options: Options | None,
) -> WriteResult:
    """`HudiTable.alter`."""
    if not changes:
        raise ConfigError("alter takes changes of columns, such as pyhudi.schema.AddColumn; found none.")
    others = [change for change in changes if not isinstance(change, SchemaChange)]
    if others:
        raise ConfigError(
            f"alter takes changes of columns, such as AddColumn('tip', pa.float64()) of pyhudi.schema; found "
            f"{others[0]!r:.100}. SQL text is for pyhudi.sql: ALTER TABLE ... ADD COLUMNS (...)."
        )
    parsed = handle.write_options(handle.options(options))
    return _change(handle, AlterSchema(changes, schema_on_read), parsed)


def change_computed(
    table: WithHandle,
    rows: TableInput,
    clauses: tuple[NumberedClause, ...],
    computed: Computed,
    options: Options,
    word: str,
) -> WriteResult:
    """Commit rows that a query of the table computed. `word`: the name of the change, for the result.

    Raises: OutdatedRows if the table has changed since `computed` was read; nothing is written then.
    """
    handle = table._handle
    parsed = handle.write_options(options)

    def run(frame: Frame, engine: Engine) -> WriteResult:
        return change_table(handle.storage, ChangeRows(clauses, source=frame, computed=computed), engine, parsed)

    if not is_spark_frame(rows):
        arrived = to_arrow_rows(rows)
        try:
            return replace(run(*in_this_process(arrived)), operation=word)
        finally:
            # Unread rows would keep their engine's query open, and block all others.
            if isinstance(arrived, pa.RecordBatchReader):
                arrived.close()
    from pyhudi.spark.failures import translated  # pyspark is loaded only when it is used
    from pyhudi.spark.frame_input import FrameInput

    with translated():
        return replace(run(*choose_writer(FrameInput(rows), parsed, options)), operation=word)


# ---- checkpoints of ingestion jobs
#
# A job stores its progress under a key of the commit's extra metadata; the newest commit with the key counts, and
# later commits of others do not hide it. Hudi's Streamer has two keys: a table written by 1.0 and 1.1 may have the
# second form. Source: docs/formats/timeline.md, "Commit metadata".


STREAMER_KEYS = ("streamer.checkpoint.key.v2", "deltastreamer.checkpoint.key")
_PREFIX = "hoodie.datasource.write.commitmeta.key.prefix"


@dataclass(frozen=True, slots=True, repr=False)
class Checkpoint(Result):
    """`value`: of `key` in the commit `instant_time`; all None if no commit has a checkpoint."""

    instant_time: str | None = None
    key: str | None = None
    value: str | None = None

    def __str__(self) -> str:
        return "no checkpoint" if self.value is None else f"{self.value} ({self.key} of {self.instant_time})"


def checkpoint(handle: TableHandle, key: str | None) -> Checkpoint:
    """`TableInspection.checkpoint`."""
    keys = STREAMER_KEYS if key is None else (key,)
    for entry in load_table_history(handle.fresh()):
        for name in keys:
            if entry.state == "completed" and name in entry.extra:
                return Checkpoint(entry.instant_time, name, entry.extra[name])
    return Checkpoint()


def set_checkpoint(
    handle: TableHandle, value: str, key: str | None, dry_run: bool, options: Options | None
) -> Checkpoint:
    """`Maintenance.set_checkpoint`."""
    name = key or checkpoint(handle, None).key or STREAMER_KEYS[-1]
    if not name.strip() or "=" in name:
        raise ConfigError(f"{name!r:.100} can't be the key of a checkpoint.")
    if dry_run:
        return Checkpoint(None, name, value)
    extra = {_PREFIX: name, name: value, "hoodie.allow.empty.commit": "true"}
    empty = data_schema(handle.fresh()).empty_table()
    write_rows(handle, empty, "bulk_insert", {**(options or {}), **extra})
    return checkpoint(handle, name)
