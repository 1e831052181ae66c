"""No plan takes damaged log files: what they lack would be lost for good, and the files with it.

Source: docs/formats/log.md, "Damaged log files".
"""

from __future__ import annotations

from collections.abc import Iterable

from pyhudi.actions.action import ActionContext
from pyhudi.filegroup.read.log_blocks import REWRITING, tell_damage
from pyhudi.model.file_group import FileGroupId
from pyhudi.view.committed_logs import damage_rules, with_committed_bytes
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["check_logs"]


def check_logs(groups: Iterable[FileGroupId], view: FileSystemView, context: ActionContext) -> None:
    """Look at the log files of file groups that a plan would rewrite.

    Raises DamagedLog for files that lack bytes of completed writes; it is a warning where the options say so.
    """
    planned = frozenset(groups)
    slices = with_committed_bytes(context.meta, [s for s in view.all_slices() if s.group in planned])
    rules = damage_rules(context.meta, raises=not context.options.damage.rewrite, advice=REWRITING)
    tell_damage(context.engine, context.meta.storage, slices, rules)
