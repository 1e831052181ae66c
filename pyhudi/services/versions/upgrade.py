"""Upgrade and downgrade: a table goes from one version to another, step by step, and only on request.

`change_version` works in this order:

    admit: properties and checks of all steps                all refusals come before anything changes
    for each step:
        failed writes undone, plans run, logs compacted      outside the lock; other writers may still be active
        files converted, properties replaced, tidy up        under the lock, if nothing is pending

The properties change last and atomically: a reader sees the table in the old version or in the new one. A dead call
leaves a table in one of the versions on the way. It may also leave files, which the next call deletes.

`VersionChange` reports the steps to the caller.
Source: docs/formats/table-config.md, "Steps between versions".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyhudi.actions.action import ActionContext
from pyhudi.actions.create_table import check_files_writable
from pyhudi.errors import ConfigError, WriteConflict
from pyhudi.metadata.build import rebuild_table
from pyhudi.metadata.removal import remove_metadata_table
from pyhudi.metadata.table import has_metadata_table
from pyhudi.model.filenames import META_FOLDER
from pyhudi.model.table_config import WRITABLE_VERSIONS, TableConfig
from pyhudi.result import Result
from pyhudi.services.versions.steps import STEPS, steps_between
from pyhudi.services.versions.steps.base import (
    PropertyChange,
    RolledBackAndCompacted,
    VersionStep,
    is_ready_for_step,
    rollback_and_compact,
)
from pyhudi.services.versions.steps.timeline_layouts import check_layout
from pyhudi.timeline.table_properties import update_table_config

__all__ = ["StepResult", "VersionChange", "admit_version", "change_version"]


@dataclass(frozen=True, slots=True, repr=False)
class StepResult(Result):
    """One step between two versions. `instants` of the active timeline and `archived` ones were rewritten;
    `properties_set` and `properties_removed` are keys of `hoodie.properties`.
    """

    source: int
    target: int
    instants: int = 0
    archived: int = 0
    properties_set: Mapping[str, str] = field(default_factory=dict)
    properties_removed: tuple[str, ...] = ()

    def __str__(self) -> str:
        properties = f"{len(self.properties_set)} properties set, {len(self.properties_removed)} removed"
        rewritten = f", {self.instants:,} instants and {self.archived:,} archived ones rewritten"
        rewritten = rewritten if self.instants or self.archived else ""
        return f"version {self.source} → {self.target}: {properties}{rewritten}"


@dataclass(frozen=True, slots=True, repr=False)
class VersionChange(Result):
    """From `source` to `target`. `rolled_back`: failed writes that were undone first; `compacted`: compactions that ran
    first. `dry_run`: the steps are a plan; nothing was changed.
    """

    table: str
    source: int
    target: int
    steps: tuple[StepResult, ...] = ()
    rolled_back: tuple[str, ...] = ()
    compacted: tuple[str, ...] = ()
    dry_run: bool = False

    def __str__(self) -> str:
        if self.source == self.target:
            return f"{self.table} has version {self.target} already"
        would = "would go from " if self.dry_run else ""
        lines = [f"{self.table}: {would}version {self.source} → {self.target}", *(f"  {step}" for step in self.steps)]
        lines += [f"  rolled back: {', '.join(self.rolled_back)}"] if self.rolled_back else []
        lines += [f"  compacted: {', '.join(self.compacted)}"] if self.compacted else []
        return "\n".join(lines)


_VERSION = "hoodie.table.version"
_LAYOUT = "hoodie.timeline.layout.version"
_ATTEMPTS = 3  # to find no pending work; a writer may begin after each attempt


def change_version(context: ActionContext, target: int, *, upwards: bool, dry_run: bool = False) -> VersionChange:
    """Take the table to version `target`; if it has that version, only remains of a dead call are deleted.

    Args:   dry_run: only return the steps, with their changes of properties.
    Raises: ConfigError when no steps lead to the target, UnsupportedTable for a table that the target version can't
        hold, WriteConflict while others write.
    """
    meta = context.meta
    source = meta.config.table_version
    path = _path(context, target, upwards)
    if dry_run:
        return VersionChange(meta.storage.root, source, target, _planned(path, context), dry_run=True)
    results, finished = [], RolledBackAndCompacted()
    _finish(context)
    for step in path:
        result, before = _take(step, context)
        finished = RolledBackAndCompacted(
            finished.rolled_back + before.rolled_back, finished.compacted + before.compacted
        )
        results.append(result)
        context = context.reloaded()
    _build_metadata_table(context)
    return VersionChange(meta.storage.root, source, target, tuple(results), finished.rolled_back, finished.compacted)


def admit_version(context: ActionContext, target: int, *, upwards: bool) -> None:
    """Raise the ConfigError or UnsupportedTable of `change_version`, before anything is changed."""
    config = context.meta.config
    path = _path(context, target, upwards)
    check_layout(context.meta)
    if config.table_version in WRITABLE_VERSIONS:
        # Files of versions 4 and 5 are never written: their tables can only be upgraded.
        check_files_writable(config)
    for step in path:
        config = _change(step, config, context).applied(config)
        step.check(context)


def _planned(path: Iterable[VersionStep], context: ActionContext) -> tuple[StepResult, ...]:
    """The steps with the properties that they would change."""
    config, steps = context.meta.config, []
    for step in path:
        change = _change(step, config, context)
        steps.append(StepResult(step.source, step.target, 0, 0, dict(change.set), change.remove))
        config = change.applied(config)
    return tuple(steps)


def _path(context: ActionContext, target: int, upwards: bool) -> tuple[VersionStep, ...]:
    source = context.meta.config.table_version
    path = steps_between(source, target)
    if path is None or (path and (source < target) != upwards):
        raise _no_way(context, target, upwards)
    return path


def _change(step: VersionStep, config: TableConfig, context: ActionContext) -> PropertyChange:
    """All changes of a step to the properties."""
    change = step.properties(config, context.options)
    layout = "2" if step.target >= 8 else "1"
    return PropertyChange({**change.set, _VERSION: str(step.target), _LAYOUT: layout}, change.remove)


def _finish(context: ActionContext) -> None:
    """Finish the deletions of a call that died after its last change of the properties."""
    with context.locked():
        now = context.reloaded()
        update_table_config(now.meta.storage, {}, (), now.clock)  # removes the backup of a dead change
        for step in STEPS:
            if step.target == now.meta.config.table_version:
                step.tidy(now)


def _build_metadata_table(context: ActionContext) -> None:
    """Build the partitions of the metadata table that the first step removed, in the form of the table's version."""
    if not context.meta.config.metadata_to_build:
        return
    with context.locked():
        meta = context.meta.reload()
        if meta.config.metadata_to_build and meta.config.table_version in WRITABLE_VERSIONS:
            rebuild_table(meta, context.options.metadata)


def _take(step: VersionStep, context: ActionContext) -> tuple[StepResult, RolledBackAndCompacted]:
    finished = RolledBackAndCompacted()
    for _ in range(_ATTEMPTS):
        if step.rolls_back_and_compacts:
            more = rollback_and_compact(context.reloaded())
            finished = RolledBackAndCompacted(
                finished.rolled_back + more.rolled_back, finished.compacted + more.compacted
            )
        with context.locked():
            now = context.reloaded()
            if now.meta.config.table_version != step.source:
                raise WriteConflict(
                    f"{now.meta.storage.root}: another process has taken the table from version {step.source} to "
                    f"{now.meta.config.table_version} during this call. Call again if you want another version."
                )
            if has_metadata_table(now.meta):
                partitions = (*now.meta.config.metadata_partitions, *now.meta.config.metadata_to_build)
                remove_metadata_table(now.meta, to_build=tuple(dict.fromkeys(partitions)))
                now = now.reloaded()
            if not step.rolls_back_and_compacts or is_ready_for_step(now):
                return _convert(step, now), finished
    raise WriteConflict(
        f"{context.meta.storage.root}: other writers interfered {_ATTEMPTS} times. The version of a table "
        f"changes only while no process writes to it: stop its writers, then call again."
    )


def _convert(step: VersionStep, now: ActionContext) -> StepResult:
    """Take one step. Hold the lock."""
    meta = now.meta
    change = _change(step, meta.config, now)
    converted = step.convert(now, change.applied(meta.config))
    meta.storage.sync(entry.path for entry in meta.storage.walk(META_FOLDER))  # all converted files
    config = update_table_config(meta.storage, change.set, change.remove, now.clock)
    assert config.table_version == step.target
    step.tidy(now.reloaded())
    return StepResult(step.source, step.target, converted.instants, converted.archived, dict(change.set), change.remove)


def _no_way(context: ActionContext, target: int, upwards: bool) -> ConfigError:
    source = context.meta.config.table_version
    word = "upgraded" if upwards else "downgraded"
    targets = sorted({s.target for s in STEPS if (s.target > source) == upwards and s.target != source})
    versions = [version for version in targets if steps_between(source, version) is not None]
    return ConfigError(
        f"{context.meta.storage.root}: a table of version {source} can't be {word} to version {target}; expected "
        f"{' or '.join(map(str, versions)) or 'nothing: there is no such version here'}. Nothing was changed."
    )
