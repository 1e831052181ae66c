"""Damage as findings of `table.inspect.health()`: by names alone, or by a dry run of each repair.

Source: docs/repairs.md, "Found by health".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pyhudi.errors import HudiError
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import PROPERTIES_BACKUP_PATH, InstantFileName
from pyhudi.model.instant import State
from pyhudi.model.keys import OLD_DEFAULT_PARTITION
from pyhudi.services.repair import REPAIRS
from pyhudi.timeline.listing import list_instant_files

if TYPE_CHECKING:
    from pyhudi.actions.action import ActionContext

__all__ = ["Damage", "damage_by_names", "damage_by_repairs", "deprecated_partitions"]

Damage = tuple[str, str]  # a sentence, and the call that repairs it
_SHOWN = 3


def damage_by_names(meta: MetaClient, partitions: Iterable[str]) -> Iterator[Damage]:
    """The damage that the listings of the table and of its timeline show."""
    empty = []
    for entry in list_instant_files(meta.storage, meta.config):
        name = (
            None if entry.is_dir or entry.size_bytes else InstantFileName.parse(entry.name, meta.config.layout_version)
        )
        if name is not None and name.state is State.COMPLETED:
            empty.append(entry.name)
    if empty:
        yield f"{len(empty):,} completed instants have empty files: {_some(empty)}", _call("empty_instants")
    old = deprecated_partitions(partitions, meta.config.partition_fields)
    if old:
        yield f"partitions have the old name of the default one: {_some(old)}", _call("deprecated_partition")
    if meta.storage.stat(PROPERTIES_BACKUP_PATH) is not None:
        yield "an update of hoodie.properties did not end: there is a backup", _call("properties")


def damage_by_repairs(context: ActionContext) -> Iterator[Damage]:
    """The damage that a dry run of each repair finds."""
    for name in REPAIRS.entries:
        try:
            result = REPAIRS.load(name)(context)
        except HudiError as error:
            yield f"repair {name} can't check the table: {error}", ""
            continue
        if result.items:
            first = result.items[0]
            more = f", and {len(result.items) - 1:,} more" if len(result.items) > 1 else ""
            yield f"{first.where or '.'}: {first.problem}{more}", result.run if result.repairable else ""


def deprecated_partitions(paths: Iterable[str], partition_fields: Iterable[str]) -> tuple[str, ...]:
    """The partitions whose paths have the old name of the default partition."""
    old = {OLD_DEFAULT_PARTITION, *(f"{name}={OLD_DEFAULT_PARTITION}" for name in partition_fields)}
    return tuple(path for path in sorted(paths) if old & set(path.split("/")))


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:_SHOWN]) + (", ..." if len(ordered) > _SHOWN else "")


def _call(name: str) -> str:
    return f"table.maintenance.repair.{name}(dry_run=False)"
