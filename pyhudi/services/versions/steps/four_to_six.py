"""Versions 4 to 5 and 5 to 6: no data and no timeline file changes.

Version 5 renamed the partition of null values from `default` to `__HIVE_DEFAULT_PARTITION__`; the owner has to rewrite
rows in a partition with the old name. Version 6 no longer copies compaction plans to `.aux`.
Source: docs/formats/table-config.md, "Table versions", "Steps between versions".
"""

from __future__ import annotations

from pyhudi.actions.action import ActionContext
from pyhudi.errors import UnsupportedTable
from pyhudi.model.filenames import AUXILIARY_FOLDER
from pyhudi.model.keys import OLD_DEFAULT_PARTITION
from pyhudi.services.versions.steps.base import VersionStep

__all__ = ["FIVE_TO_SIX", "FOUR_TO_FIVE"]

_PLAN = ".compaction.requested"


def _check_default_partition(context: ActionContext) -> None:
    config = context.meta.config
    if not config.partition_fields or context.options.versions.skip_default_partition_validation:
        return
    prefix = f"{config.partition_fields[0]}=" if config.hive_style_partitioning else ""
    name = f"{prefix}{OLD_DEFAULT_PARTITION}"
    if context.meta.storage.list(name):
        raise UnsupportedTable(
            f"{context.meta.storage.root}: the table has a partition {name!r}. Up to version 4 it held the rows "
            f"without a partition value, from version 5 on they are in '__HIVE_DEFAULT_PARTITION__'. Write its rows "
            f"to that partition and delete them here, or, if {OLD_DEFAULT_PARTITION!r} is a value of yours, upgrade "
            f"with hoodie.skip.default.partition.validation=true. Nothing was changed."
        )


def _delete_plan_copies(context: ActionContext) -> None:
    storage = context.meta.storage
    for entry in storage.list(AUXILIARY_FOLDER):
        if not entry.is_dir and entry.name.endswith(_PLAN):
            storage.delete(entry.path)


FOUR_TO_FIVE = VersionStep(4, 5, check=_check_default_partition)
FIVE_TO_SIX = VersionStep(5, 6, tidy=_delete_plan_copies)
