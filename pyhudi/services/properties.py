"""Changes of a table's properties by its owner, with the differences and a backup of the file.

Properties that decide how files are read (type, version, layout, keys, partitioning, formats) can't be set: the table's
files would not change with them. Separate calls change these.
Source: docs/formats/table-config.md, "Changing the file".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from pyhudi.actions.action import ActionContext
from pyhudi.actions.constraints import CONSTRAINT_PREFIX
from pyhudi.errors import ConfigError
from pyhudi.model.filenames import META_FOLDER, PROPERTIES_PATH
from pyhudi.model.instant import format_instant_time
from pyhudi.model.new_table import CHECKSUM_KEY
from pyhudi.model.table_config import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT
from pyhudi.redaction import is_text
from pyhudi.result import Result
from pyhudi.timeline.table_properties import update_table_config

__all__ = ["PropertiesChange", "PropertyDifference", "set_properties"]

_ELSEWHERE = {
    "hoodie.table.type": "change_type",
    "hoodie.table.version": "upgrade or downgrade",
    METADATA_PARTITIONS: "metadata.rebuild or metadata.drop",
    METADATA_PARTITIONS_INFLIGHT: "metadata.rebuild or metadata.drop",
}
# How files were written, or where they are: another value makes them unreadable, or some of their rows invisible.
_FIXED = frozenset(
    {
        CHECKSUM_KEY,
        "hoodie.archivelog.folder",
        "hoodie.bootstrap.base.path",
        "hoodie.datasource.write.drop.partition.columns",
        "hoodie.datasource.write.hive_style_partitioning",
        "hoodie.datasource.write.partitionpath.urlencode",
        "hoodie.datasource.write.slash.separated.date.partitioning",
        "hoodie.populate.meta.fields",
        "hoodie.table.base.file.format",
        "hoodie.table.index.defs.path",
        "hoodie.table.initial.version",
        "hoodie.table.keygenerator.class",
        "hoodie.table.keygenerator.type",
        "hoodie.table.log.file.format",
        "hoodie.table.multiple.base.file.formats.enable",
        "hoodie.table.name",
        "hoodie.table.partition.fields",
        "hoodie.table.recordkey.fields",
        "hoodie.table.relative.index.defs.path",
        "hoodie.table.timeline.timezone",
        "hoodie.timeline.history.path",
        "hoodie.timeline.layout.version",
        "hoodie.timeline.path",
    }
)


@dataclass(frozen=True, slots=True, repr=False)
class PropertyDifference(Result):
    """One property: its values before and after, None if it is absent."""

    key: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        lines = [f"- {self.key}={self.before}"] if self.before is not None else []
        lines += [f"+ {self.key}={self.after}"] if self.after is not None else []
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, repr=False)
class PropertiesChange(Result):
    """`differences`: the changed properties (dry run: those to change). `backup`: its path, relative to the table."""

    table: str
    differences: tuple[PropertyDifference, ...] = ()
    backup: str | None = None
    dry_run: bool = False

    def __str__(self) -> str:
        if not self.differences:
            return f"{self.table}: the properties have these values already"
        before = [f"the file before: {self.backup}"] if self.backup else []
        would = "would change " if self.dry_run else ""
        return "\n".join([f"{self.table}: {would}{PROPERTIES_PATH}", *map(str, self.differences), *before])


def set_properties(
    context: ActionContext, set: Mapping[str, str], unset: Iterable[str] = (), *, dry_run: bool = False
) -> PropertiesChange:
    """Set and remove properties under the table's lock, after a backup of the file.

    Raises: ConfigError for keys that separate calls change, and for keys and values that are not text.
    """
    removed = tuple(unset)
    _check(set, removed)
    if dry_run:
        return PropertiesChange(context.meta.storage.root, _differences(context, set, removed), dry_run=True)
    with context.locked():
        now = context.reloaded()
        storage, differences = now.meta.storage, _differences(now, set, removed)
        if not differences:
            return PropertiesChange(storage.root)
        backup = f"{META_FOLDER}/hoodie.properties.{_time_now(now)}.bak"
        storage.create_synced(backup, storage.read(PROPERTIES_PATH))
        update_table_config(storage, set, removed, now.clock)
    return PropertiesChange(storage.root, differences, backup)


def _differences(
    context: ActionContext, set: Mapping[str, str], unset: Iterable[str]
) -> tuple[PropertyDifference, ...]:
    before = context.meta.config.properties
    after = {**dict.fromkeys(unset), **set}
    return tuple(
        PropertyDifference(key, before.get(key), value)
        for key, value in sorted(after.items())
        if before.get(key) != value
    )


def _check(set: Mapping[str, str], unset: tuple[str, ...]) -> None:
    both = sorted(set.keys() & {*unset})
    if both:
        raise ConfigError(f"{', '.join(both)}: to be set and to be removed. Nothing was changed.")
    for key, value in {**dict.fromkeys(unset, ""), **set}.items():
        if not isinstance(key, str) or not isinstance(value, str) or not is_text(key + value) or not key.strip():
            raise ConfigError(f"A property is text and its value is text, found {key!r:.100}={value!r:.100}.")
        if key in _ELSEWHERE:
            raise ConfigError(f"{key} is not set by hand: use {_ELSEWHERE[key]}. Nothing was changed.")
        if key.startswith(CONSTRAINT_PREFIX):
            raise ConfigError(f"{key} is a constraint: use add_constraint or drop_constraint. Nothing was changed.")
        if key in _FIXED:
            raise ConfigError(f"{key} says how the table's files are written, and they stay. Nothing was changed.")


def _time_now(context: ActionContext) -> str:
    moment = datetime.fromtimestamp(context.clock.now_ms() / 1000, timezone.utc)
    return format_instant_time(moment, context.meta.config.timeline_zone)
