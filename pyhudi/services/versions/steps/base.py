"""VersionStep: one upgrade or downgrade between two table versions.

    properties   which keys of hoodie.properties change: a pure function, called for all steps before anything changes
    convert      files that only readers of the target version look at; nobody reads them yet
    (the properties are replaced: from here the table has the target version)
    tidy         files that only readers of the source version looked at

Every part may be repeated, so a step that died anywhere is simply taken again. Source: docs/formats/table-config.md,
"Steps between versions".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyhudi.actions.action import ActionContext
from pyhudi.model.options import WriteOptions
from pyhudi.model.table_config import TableConfig

__all__ = ["Converted", "PropertyChange", "VersionStep"]


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """Keys of `hoodie.properties` to set, and to take out."""

    set: Mapping[str, str] = field(default_factory=dict)
    remove: tuple[str, ...] = ()

    def applied(self, config: TableConfig) -> TableConfig:
        """The config with the change."""
        return config.with_changes(self.set, self.remove)


@dataclass(frozen=True, slots=True)
class Converted:
    """How many instants of the active timeline and of the archive were rewritten."""

    instants: int = 0
    archived: int = 0


def _no_change(config: TableConfig, options: WriteOptions) -> PropertyChange:
    return PropertyChange()


def _nothing(context: ActionContext, target: TableConfig) -> Converted:
    return Converted()


def _tidy_nothing(context: ActionContext) -> None:
    return None


@dataclass(frozen=True, slots=True)
class VersionStep:
    """One step.

    `properties` raises UnsupportedTable for a table that the target version can't hold; version and timeline layout
    are set by the caller. `check` may look at the table and raises too. `rolls_back_and_compacts`: failed writes
    are undone and log files compacted first. `convert` is called under the table's lock with the table as it is and
    the config that it is going to have, `tidy` with the table as it has become (also when the step was taken by an
    earlier call).
    """

    source: int
    target: int
    properties: Callable[[TableConfig, WriteOptions], PropertyChange] = _no_change
    check: Callable[[ActionContext], None] = lambda context: None
    rolls_back_and_compacts: bool = False
    convert: Callable[[ActionContext, TableConfig], Converted] = _nothing
    tidy: Callable[[ActionContext], None] = _tidy_nothing
