"""Finds log files that lack bytes of completed writes, and keeps the rows that can still be read.

The rows of whole blocks and of the base file are written to new base files, which replace the damaged file groups in
one commit. Lost bytes can't be recovered: if there is a copy of the file, restore it before this repair.
Source: docs/repairs.md, "Damaged log files"; docs/formats/log.md, "Damaged log files".
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from dataclasses import replace

from pyhudi.actions.action import ActionContext
from pyhudi.errors import CorruptFile
from pyhudi.filegroup.read.log_blocks import find_damage
from pyhudi.formats.log.envelope import CorruptRange
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.model.file_group import FileGroupId
from pyhudi.services.repair.result import RepairItem, RepairResult
from pyhudi.services.repair.rewriting import Rewriting, plan_rows
from pyhudi.view.committed_logs import damage_rules, with_committed_bytes
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["log_checksums"]

_RUN = "table.maintenance.repair.log_checksums(dry_run=False)"


def log_checksums(context: ActionContext, *, dry_run: bool = True) -> RepairResult:
    """Find log files of the newest slices that lack bytes, and rewrite the remaining rows of their file groups.

    Args:    dry_run: only return the log files.
    Raises:  WriteConflict as `duplicates`.
    """
    root = context.meta.storage.root
    damaged = _find(context)
    items = tuple(item for group in damaged.values() for item in group)
    if dry_run or not items:
        return RepairResult(root, "log_checksums", items, run=_RUN)
    options = replace(context.options, damage=replace(context.options.damage, on_read="warn", rewrite=True))
    context = replace(context, options=options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the result reports the losses
        plan = plan_rows(context)
        reads = tuple(read for read in plan.slices if read.file_slice.group in damaged)
        targets = frozenset(group.partition_path for group in damaged)
        time = Rewriting(plan, reads, targets).run(context)
    return RepairResult(root, "log_checksums", items, True, time, _RUN)


def _find(context: ActionContext) -> dict[FileGroupId, list[RepairItem]]:
    """The damaged log files, by file group."""
    meta = context.meta
    rules = damage_rules(meta, raises=False, advice="")
    damaged: dict[FileGroupId, list[RepairItem]] = defaultdict(list)
    for file_slice in with_committed_bytes(meta, FileSystemView.load(meta).all_slices()):
        for log in file_slice.log_files:
            try:
                parts: list[LogBlock | CorruptRange] = [] if log.is_missing else list(scan_log(meta.storage, log.path))
            except CorruptFile:
                parts = []
            text = find_damage(meta.storage, log, parts, rules)
            if text is not None:
                problem = text.split(" is damaged: ", 1)[-1].rstrip(".")
                whole = sum(isinstance(part, LogBlock) for part in parts)
                keep = f"keep {whole:,} whole blocks and the base file, in a new file group"
                damaged[file_slice.group].append(RepairItem(log.path, problem, keep, log.size_bytes))
    return damaged
