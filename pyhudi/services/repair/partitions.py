"""Renames partitions: `rename_partition`, and `deprecated_partition` for the old name of the default partition.

One commit rewrites the rows of the partition with the column values of its new name, and replaces the old file groups.
Before table version 5 rows without a value went to `default`, since then to `__HIVE_DEFAULT_PARTITION__`; rows
whose column has the text "default" stay where they are.
Source: docs/repairs.md, "Partitions"; docs/formats/keys.md, "Partition paths".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.errors import ConfigError, TableError
from pyhudi.keygen.parse import partition_values
from pyhudi.model.keys import HIVE_DEFAULT_PARTITION, OLD_DEFAULT_PARTITION, PLAIN_GENERATORS
from pyhudi.queries.plan import ReadPlan
from pyhudi.queries.read_slice import ReadSlice
from pyhudi.queries.snapshot import read_slice
from pyhudi.services.plan_files import check_logs
from pyhudi.services.repair.findings import deprecated_partitions
from pyhudi.services.repair.result import RepairItem, RepairResult
from pyhudi.services.repair.rewriting import Rewriting, plan_rows
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["deprecated_partition", "rename_partition"]

_RUN = "table.maintenance.repair.deprecated_partition(dry_run=False)"


def rename_partition(context: ActionContext, old: str, new: str, *, dry_run: bool = True) -> RepairResult:
    """Give the rows of a partition the values of another, in one commit.

    Args:    old, new: partition paths; there must be no rows in `new`. dry_run: only return the rows' file groups.
    Raises:  TableError for a partition without rows, or a new one with some; ConfigError for paths that the table's
        partition columns can't have, or a key generator that makes paths otherwise; WriteConflict as `duplicates`.
    """
    meta, root = context.meta, context.meta.storage.root
    config = meta.config
    old, new = old.strip("/"), new.strip("/")
    run = f"table.maintenance.repair.rename_partition({old!r}, {new!r}, dry_run=False)"
    if not config.partition_fields or (config.key_generator or "").upper() not in PLAIN_GENERATORS:
        raise ConfigError(
            f"{root}: the values of a partition's columns are not those of its path (key generator "
            f"{config.key_generator}), so it can't be renamed. Update its rows instead."
        )
    if old == new:
        raise ConfigError(f"{root}: the new name of the partition is its old one, {old!r}.")
    plan = plan_rows(context)
    reads = _of(plan, [old])
    if not reads:
        raise TableError(f"{root}: there are no rows in the partition {old!r}. partitions() lists all.")
    if _of(plan, [new]):
        raise TableError(
            f"{root}: there are rows in {new!r} already, whose keys may be those of {old!r}. Nothing was changed; "
            "delete that partition first, or update the rows."
        )
    values = _values(new, plan.schema, context)
    names = ", ".join(f"{name}={value!r}" for name, value in values.items())
    item = RepairItem(old, f"{len(reads):,} file groups under the old name", f"move to {new} ({names})", _size(reads))
    if dry_run:
        return RepairResult(root, "rename_partition", (item,), run=run)
    check_logs([read.file_slice.group for read in reads], FileSystemView.load(meta), context)

    def renamed(batch: pa.RecordBatch) -> pa.RecordBatch:
        for name, value in values.items():
            position = batch.schema.get_field_index(name)
            field = batch.schema.field(position)
            column = pa.repeat(pa.scalar(value, pa.string()), batch.num_rows).cast(field.type)
            batch = batch.set_column(position, field, column)
        return batch

    time = Rewriting(plan, reads, frozenset({new}), renamed).run(context)
    return RepairResult(root, "rename_partition", (item,), True, time, run)


def deprecated_partition(context: ActionContext, *, dry_run: bool = True) -> RepairResult:
    """Move the rows without a partition value from `default` to `__HIVE_DEFAULT_PARTITION__`, in one commit.

    Args:    dry_run: only return the partitions.
    Raises:  WriteConflict as `duplicates`.
    """
    meta, root = context.meta, context.meta.storage.root
    nothing = RepairResult(root, "deprecated_partition", run=_RUN)
    if not meta.config.partition_fields or not meta.timeline.commits().instants:
        return nothing
    plan = plan_rows(context)
    plan = replace(plan, slices=tuple(map(_as_in_files, plan.slices)))
    paths = deprecated_partitions(
        {read.file_slice.group.partition_path for read in plan.slices}, meta.config.partition_fields
    )
    narrow = plan_rows(context, [name for name in meta.config.partition_fields if name in plan.schema.names])
    items, moved_reads = [], []
    for path in paths:
        batches = (
            batch for read in _of(narrow, [path]) for batch in read_slice(narrow, meta.storage, _as_in_files(read))
        )
        if any(column.null_count for batch in batches for column in batch.columns):
            moved_reads.append(path)
            problem = "rows without a value, under the name of releases before 0.12"
            items.append(RepairItem(path, problem, f"move to {_new_name(path)}", _size(_of(plan, [path]))))
    if dry_run or not items:
        return RepairResult(root, "deprecated_partition", tuple(items), run=_RUN)
    reads = _of(plan, moved_reads)
    check_logs([read.file_slice.group for read in reads], FileSystemView.load(meta), context)
    targets = frozenset(name for path in moved_reads for name in (path, _new_name(path)))
    time = Rewriting(plan, reads, targets).run(context)
    return RepairResult(root, "deprecated_partition", tuple(items), True, time, _RUN)


def _new_name(path: str) -> str:
    def segment(text: str) -> str:
        name, sign, value = text.rpartition("=")
        return f"{name}{sign}{HIVE_DEFAULT_PARTITION}" if value == OLD_DEFAULT_PARTITION else text

    return "/".join(map(segment, path.split("/")))


def _of(plan: ReadPlan, paths: Iterable[str]) -> tuple[ReadSlice, ...]:
    among = frozenset(paths)
    return tuple(read for read in plan.slices if read.file_slice.group.partition_path in among)


def _as_in_files(read: ReadSlice) -> ReadSlice:
    """The slice with the values in its files: null where its path has "default"."""
    return replace(read, parsed_path_values=())


def _size(reads: Iterable[ReadSlice]) -> int:
    slices = [read.file_slice for read in reads]
    bases = sum(one.base_file.size_bytes for one in slices if one.base_file is not None)
    return bases + sum(log.size_bytes for one in slices for log in one.log_files)


def _values(path: str, schema: pa.Schema, context: ActionContext) -> dict[str, str | None]:
    """The values of the partition columns in a path, as texts. Raises ConfigError where they don't fit."""
    config, root = context.meta.config, context.meta.storage.root
    fields = config.partition_fields
    values = partition_values(
        path,
        fields,
        config.hive_style_partitioning,
        config.url_encode_partitioning,
        slash_dates=config.slash_separated_dates,
    )
    if len(values) != len(fields):
        raise ConfigError(f"{root}: a partition has {len(fields)} columns ({', '.join(fields)}); found {path!r}.")
    for name, text in zip(fields, values, strict=True):
        try:
            pa.scalar(text, pa.string()).cast(schema.field(name).type)
        except (pa.ArrowException, KeyError) as error:
            raise ConfigError(f"{root}: {text!r} is no value of {name} ({error}).") from error
    return dict(zip(fields, values, strict=True))
