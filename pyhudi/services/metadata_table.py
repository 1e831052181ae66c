"""Calls that rebuild or remove the metadata table.

Source: docs/formats/metadata-table.md, "Building"; docs/writing.md, "The metadata table".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyhudi.actions.action import ActionContext
from pyhudi.errors import ConfigError, HudiError
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.build import build, rebuild_partitions
from pyhudi.metadata.partitions.registry import is_supported_in, partitions_of_options
from pyhudi.metadata.removal import drop_partitions, remove_metadata_table
from pyhudi.metadata.schema import MetadataKind, kind_of
from pyhudi.metadata.table import MetadataTable
from pyhudi.queries.validation import Difference, validate
from pyhudi.result import Result

__all__ = ["MetadataRebuild", "drop_metadata", "rebuild_metadata"]

_FILES = "files"


@dataclass(frozen=True, slots=True, repr=False)
class MetadataRebuild(Result):
    """`partitions`: those that were, or would be, built. `file_groups`: partition → file ids of the existing file
    groups that get new files. `differences`: errors in the metadata table before; if it can't be read, `unreadable`
    says why. `dry_run`: nothing was done.
    """

    table: str
    partitions: tuple[str, ...]
    file_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()
    unreadable: str | None = None
    dry_run: bool = False

    def __str__(self) -> str:
        verb = "would build" if self.dry_run else "built"
        before = self.unreadable or f"{len(self.differences)} differences before"
        return "\n".join(
            [f"metadata table: {verb} {', '.join(self.partitions)}; {before}", *map(str, self.differences)]
        )


def rebuild_metadata(
    context: ActionContext, *, partitions: Sequence[str] | None = None, dry_run: bool = False
) -> MetadataRebuild:
    """Rebuild the metadata table, or partitions of it, from the table's files.

    Args:   partitions: None: the existing ones, or those of the options when none exist. The whole metadata table is
                built when `files` is among them, or it does not exist yet.
    Raises: ConfigError for partitions unknown to this release or to the table's version.
    """
    meta = context.meta
    names = _partitions_to_build(context, partitions)
    differences, unreadable = _state(context)
    groups = _file_groups(meta, names)
    if not dry_run:
        with context.locked():
            _build(context.reloaded(), names)
    return MetadataRebuild(meta.storage.root, names, groups, differences, unreadable, dry_run)


def drop_metadata(
    context: ActionContext, *, partitions: Sequence[str] | None = None, dry_run: bool = False
) -> tuple[str, ...]:
    """Remove the metadata table, or partitions of it; return the names of the removed ones.

    Args:   partitions: None, or `files` among them: all. dry_run: remove nothing.
    Raises: ConfigError for a partition that does not exist.
    """
    if dry_run:
        return _partitions_to_drop(context.meta, partitions)
    with context.locked():
        meta = context.meta.reload()
        going = _partitions_to_drop(meta, partitions)
        if partitions is None or _FILES in partitions:
            remove_metadata_table(meta)
        else:
            drop_partitions(meta, going)
        return going


def _partitions_to_drop(meta: MetaClient, partitions: Sequence[str] | None) -> tuple[str, ...]:
    existing = meta.config.metadata_partitions
    unknown = [name for name in partitions or () if name not in existing]
    if unknown:
        raise ConfigError(
            f"{meta.storage.root}: the metadata table has no partition {unknown[0]!r}; it has "
            f"{', '.join(existing) or 'none'}."
        )
    return existing if partitions is None or _FILES in partitions else tuple(partitions)


def _partitions_to_build(context: ActionContext, partitions: Sequence[str] | None) -> tuple[str, ...]:
    config, options = context.meta.config, context.options.metadata
    if partitions is None:
        existing = (*config.metadata_partitions, *config.metadata_to_build)
        default = tuple(
            name for name in existing if is_supported_in(name, config.table_version)
        ) or partitions_of_options(config, options)
        return tuple(dict.fromkeys((_FILES, *default)))
    unsupported = [name for name in partitions if not is_supported_in(name, config.table_version)]
    if unsupported:
        raise ConfigError(
            f"{context.meta.storage.root}: a partition {unsupported[0]!r} of the metadata table can't be built: this "
            f"release does not update its kind in a table of version {config.table_version}."
        )
    existing = (*config.metadata_partitions, *config.metadata_to_build)
    defined = (MetadataKind.SECONDARY_INDEX, MetadataKind.EXPRESSION_INDEX)
    indexes = [n for n in partitions if kind_of(n) in defined and n not in existing]
    if indexes:
        raise ConfigError(
            f"{context.meta.storage.root}: the metadata table has no index {indexes[0]!r} that could be rebuilt. "
            f"Create it with create_index, which names its columns."
        )
    return tuple(dict.fromkeys(partitions if _FILES in config.metadata_partitions else (_FILES, *partitions)))


def _state(context: ActionContext) -> tuple[tuple[Difference, ...], str | None]:
    try:
        return validate(context.meta, merger_classes=context.options.merger_classes), None
    except HudiError as error:
        return (), str(error)


def _file_groups(meta: MetaClient, partitions: Sequence[str]) -> dict[str, tuple[str, ...]]:
    try:
        table = MetadataTable.open(meta)
        existing = () if table is None else [name for name in partitions if name in table.partitions]
        return {name: tuple(s.group.file_id for s in table.slices(name)) for name in existing} if table else {}
    except HudiError:
        return {}


def _build(context: ActionContext, names: Sequence[str]) -> None:
    meta, options = context.meta, context.options.metadata
    table = MetadataTable.open(meta)
    if _FILES in names or table is None:
        others = (n for n in meta.config.metadata_partitions if is_supported_in(n, meta.config.table_version))
        build(meta, tuple(dict.fromkeys((_FILES, *names, *others))), options)
    else:
        rebuild_partitions(table, names, options)
