"""Indexes of the metadata table, created and dropped by name, under the table's lock from start to end:

    create    remains of a dead attempt removed → definition → <T>.indexing.requested, .inflight → partition of the
              metadata table → the table's properties list it → <T>.indexing
    drop      the table's properties list it no longer → folder → definition

Only the properties decide which indexes exist. A crash before that leaves a definition and an unused folder, a crash
after it a pending instant; the next call that creates or drops the index removes them.
Source: docs/formats/metadata-table.md, "Index definitions", "Building", "Made and dropped by name".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pyhudi.actions.action import ActionContext
from pyhudi.actions.metadata_participant import METADATA_TABLE
from pyhudi.actions.undo.checks import check_not_being_undone
from pyhudi.errors import ConfigError, CorruptFile, MetadataTableDamaged
from pyhudi.expressions.predicates import Call
from pyhudi.formats.timeline.plans import encode_index_plan
from pyhudi.interrupts import uninterrupted
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.build import add_partition, build
from pyhudi.metadata.index_definitions import (
    IndexDefinition,
    IndexDefinitions,
    expression_index_definition,
    read_index_definitions,
    secondary_index_definition,
    write_index_definitions,
)
from pyhudi.metadata.partitions.expression_index import why_no_expression_index
from pyhudi.metadata.partitions.secondary_index import why_no_secondary_index
from pyhudi.metadata.removal import drop_partitions
from pyhudi.metadata.schema import MetadataKind, keeps_record_index
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.plans import IndexPlan
from pyhudi.model.table_format import TableFormat
from pyhudi.result import Result, ResultList
from pyhudi.transaction.commit import commit_locked
from pyhudi.transaction.instants import drop, drop_if_pending, request, start

__all__ = [
    "IndexInfo",
    "IndexList",
    "IndexRequest",
    "create_index",
    "drop_index",
    "index_info",
    "index_request",
    "load_indexes",
    "prepared",
]

_FILES = MetadataKind.FILES.value.prefix
_COLUMN_STATS, _PARTITION_STATS = MetadataKind.COLUMN_STATS.value.prefix, MetadataKind.PARTITION_STATS.value.prefix
_RECORD_INDEX = MetadataKind.RECORD_INDEX.value.prefix
_SECONDARY = MetadataKind.SECONDARY_INDEX.value.prefix
_SECONDARY_TYPE = "secondary_index"
_EXPRESSION = MetadataKind.EXPRESSION_INDEX.value.prefix
_EXPRESSION_TYPES = (_COLUMN_STATS, MetadataKind.BLOOM_FILTERS.value.prefix)
_BY_TYPE = (_RECORD_INDEX, _COLUMN_STATS, _PARTITION_STATS, MetadataKind.BLOOM_FILTERS.value.prefix)
_NAME = re.compile(r"[A-Za-z0-9_]{1,100}", re.ASCII)  # it becomes a folder name and a part of file names


@dataclass(frozen=True, slots=True, repr=False)
class IndexInfo(Result):
    """`name`: its partition of the metadata table. `kind`: from index.json, else the kind of partition. `function`: the
    function of the columns, "" for none. `is_built`: False while it is being built.
    """

    name: str
    kind: str
    columns: tuple[str, ...] = ()
    function: str = ""
    is_built: bool = True

    def __str__(self) -> str:
        of = f" of {', '.join(self.columns)}" if self.columns else ""
        function = f", {self.function}" if self.function else ""
        return f"{self.name}: {self.kind}{of}{function}, {self._state()}"

    def _state(self) -> str:
        return "built" if self.is_built else "being built"


class IndexList(ResultList[IndexInfo]):
    """A list of indexes that prints as a table."""

    entry_type = IndexInfo
    header = ("index", "type", "columns", "function", "state")

    def _row(self, entry: IndexInfo) -> Sequence[object]:
        return (entry.name, entry.kind, ", ".join(entry.columns), entry.function, entry._state())


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """The index that a call requests. `partition`: of the metadata table."""

    partition: str
    kind: str
    columns: tuple[str, ...]
    expression: Call | None


def load_indexes(meta: MetaClient) -> IndexList:
    """The indexes of a table: all partitions of its metadata table except `files`. Raises CorruptFile."""
    definitions = read_index_definitions(meta.storage).by_name
    built = meta.config.metadata_partitions
    infos = IndexList()
    for name in sorted({*built, *meta.config.metadata_partitions_inflight} - {_FILES}):
        definition = definitions.get(name, IndexDefinition(name, name))
        columns, function = definition.source_fields, definition.function
        infos.append(IndexInfo(name, definition.kind, columns, function, is_built=name in built))
    return infos


def prepared(context: ActionContext, index: IndexRequest) -> tuple[ActionContext, IndexDefinition | None]:
    """The table with a metadata table without this index, and the index's definition if it needs one. Hold the lock.

    Raises ConfigError for an index that can't be built.
    """
    now = context.reloaded()
    check_not_being_undone(now.meta, f"the index {index.partition}")
    definition = _checked(now.meta, index)
    options = now.options.metadata
    if index.partition == _COLUMN_STATS:
        options = replace(options, column_stats_columns=index.columns)
        now = replace(now, options=replace(now.options, metadata=options))
    if not now.meta.config.metadata_partitions:
        now = replace(now, meta=build(now.meta, (_FILES,), options))
    _remove_dead_builds(now.meta, index.partition)
    return now, definition


def create_index(
    context: ActionContext,
    name: str,
    columns: Sequence[str] = (),
    index_type: str | None = None,
    expression: Call | None = None,
) -> IndexInfo:
    """Build an index. See `HudiTable.indexes.create`."""
    index = index_request(name, columns, index_type, expression)
    with context.locked():
        now, definition = prepared(context, index)
        _build(now, index.partition, definition)
        return index_info(now.meta.reload(), index.partition)


def index_info(meta: MetaClient, partition: str) -> IndexInfo:
    """The index with this existing partition of the metadata table."""
    return next(one for one in load_indexes(meta) if one.name == partition)


def drop_index(context: ActionContext, name: str, *, dry_run: bool = False) -> tuple[str, ...]:
    """Remove an index. See `HudiTable.indexes.drop`."""
    if dry_run:
        return _partitions_of(name, context.meta, read_index_definitions(context.meta.storage))
    with context.locked():
        meta = context.meta.reload()
        definitions = read_index_definitions(meta.storage)
        partitions = _partitions_of(name, meta, definitions)
        drop_partitions(meta, partitions)
        write_index_definitions(meta.storage, definitions.without(partitions))
        _remove_dead_builds(meta.reload(), partitions[0])
        return partitions


def _partitions_of(name: str, meta: MetaClient, definitions: IndexDefinitions) -> tuple[str, ...]:
    """The partitions to drop with an index, its own first. Raises ConfigError if it must not be dropped."""
    existing = (*meta.config.metadata_partitions, *meta.config.metadata_partitions_inflight)
    names_in_use = dict.fromkeys((*existing, *definitions.by_name))
    matches = [one for one in (name, f"{_SECONDARY}{name}", f"{_EXPRESSION}{name}") if one in names_in_use]
    if not matches or matches[0] == _FILES:
        names = ", ".join(one for one in names_in_use if one != _FILES) or "none"
        raise ConfigError(f"{meta.storage.root} has no index {name!r}; it has: {names}.")
    needing = [one for one in existing if one.startswith(_SECONDARY)] if matches[0] == _RECORD_INDEX else []
    if needing:
        raise ConfigError(f"{meta.storage.root}: {', '.join(needing)} need the record index; drop them first.")
    if matches[0] == _COLUMN_STATS and _PARTITION_STATS in existing:
        return _COLUMN_STATS, _PARTITION_STATS  # Hudi keeps the second only together with the first
    return (matches[0],)


def index_request(name: str, columns: Sequence[str], index_type: str | None, expression: Call | None) -> IndexRequest:
    """The checked request. Raises ConfigError for an invalid name or an unknown type."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"The name of an index consists of letters, digits and _, found {name!r:.120}.")
    if expression is not None:
        kind = index_type or _COLUMN_STATS
        if kind not in _EXPRESSION_TYPES:
            raise ConfigError(
                f"Indexes of expressions are of the types {' and '.join(_EXPRESSION_TYPES)}, found {kind!r}."
            )
        prefixed = name if name.startswith(_EXPRESSION) else f"{_EXPRESSION}{name}"
        return IndexRequest(prefixed, kind, tuple(columns), expression)
    kind = index_type or (name if name in _BY_TYPE else _SECONDARY_TYPE)
    if kind in _BY_TYPE:
        if name != kind:
            raise ConfigError(
                f"A table has one index of the type {kind}, whose name is {kind!r}; found {name!r}. An index of the "
                f"values of a function is created with expression=."
            )
        return IndexRequest(kind, kind, tuple(columns), None)
    if kind != _SECONDARY_TYPE:
        raise ConfigError(f"Indexes are of the types {', '.join((*_BY_TYPE, _SECONDARY_TYPE))}, found {kind!r}.")
    partition = name if name.startswith(_SECONDARY) else f"{_SECONDARY}{name}"
    return IndexRequest(partition, kind, tuple(columns), None)


def _checked(meta: MetaClient, index: IndexRequest) -> IndexDefinition | None:
    """The index's definition, None where the build writes it. Raises ConfigError for an index that can't be built."""
    root, config, partition, columns = meta.storage.root, meta.config, index.partition, index.columns
    if partition in (*config.metadata_partitions, *config.metadata_partitions_inflight):
        raise ConfigError(f"{root} has the index {partition} already; drop it first to rebuild it.")
    names = meta.table_schema().names
    unknown = [column for column in columns if column.partition(".")[0] not in names]
    if unknown:
        raise ConfigError(f"{root} has no column {', '.join(unknown)}; it has {', '.join(names)}.")
    if partition == _PARTITION_STATS and not config.format.has_partition_stats:
        raise ConfigError(
            f"{root}: statistics of partitions need table version {TableFormat.has_partition_stats.first} or later."
        )
    if partition == _RECORD_INDEX and not config.populate_meta_fields:
        raise ConfigError(f"{root}: a record index needs a table that stores its keys (hoodie.populate.meta.fields).")
    if index.expression is not None:
        return _checked_expression(meta, index, index.expression)
    if index.kind != _SECONDARY_TYPE:
        if columns and partition != _COLUMN_STATS:
            raise ConfigError(f"The index {partition} has no columns, found {', '.join(columns)}.")
        return None
    return _checked_secondary(meta, index)


def _checked_secondary(meta: MetaClient, index: IndexRequest) -> IndexDefinition:
    root, config, columns = meta.storage.root, meta.config, index.columns
    if len(columns) != 1:
        name = index.partition.removeprefix(_SECONDARY)
        raise ConfigError(
            f"{root}: the secondary index {name} needs one column, found {', '.join(columns) or 'none'}. Name its "
            f"column. Indexes without columns are {', '.join(_BY_TYPE)}."
        )
    if not keeps_record_index(config):
        raise ConfigError(
            f"{root}: a secondary index leads to record keys, and the record index from there to files. Create the "
            f"record index first: create_index('{_RECORD_INDEX}')."
        )
    definition = secondary_index_definition(config.table_version, index.partition, columns[0])
    why = why_no_secondary_index(meta, index.partition, definition)
    if why is not None:
        raise ConfigError(f"{root} can't have the index {index.partition}: {why}.")
    return definition


def _checked_expression(meta: MetaClient, index: IndexRequest, expression: Call) -> IndexDefinition:
    root, config = meta.storage.root, meta.config
    if index.columns not in ((), (str(expression.column),)):
        raise ConfigError(
            f"An index of {expression.function}({expression.column}) has the column {expression.column}, found "
            f"{', '.join(index.columns)}."
        )
    definition = expression_index_definition(config.table_version, index.partition, index.kind, expression)
    why = why_no_expression_index(meta, index.partition, definition)
    if why is None and index.kind != _COLUMN_STATS and config.is_merge_on_read:
        why = "Apache Hudi can't keep bloom filters of expressions up in merge-on-read tables, whose writes then fail"
    if why is not None:
        raise ConfigError(f"{root} can't have the index {index.partition}: {why}.")
    return definition


def _build(now: ActionContext, partition: str, definition: IndexDefinition | None) -> None:
    meta, options = now.meta, now.options.metadata
    before = read_index_definitions(meta.storage)
    if definition is not None:
        write_index_definitions(meta.storage, before.merged([definition]))
    newest = meta.timeline.last_commit()
    plan = IndexPlan((partition,), "" if newest is None else newest.requested_time)
    requested = request(ActionKind.INDEXING, encode_index_plan(plan), now)
    try:
        inflight = start(requested, meta)
        table = MetadataTable.open(meta.reload())
        if table is None:
            raise MetadataTableDamaged(f"{meta.storage.root}: the metadata table has no partition {_FILES!r}.")
        add_partition(table, partition, options)
        commit_locked(inflight, now, lambda _: plan, participant=METADATA_TABLE)
    except BaseException:
        with uninterrupted(), suppress(Exception):  # the original error says more
            _undo_failed(now.reloaded(), requested, partition, before)
        raise


def _undo_failed(now: ActionContext, requested: Instant, partition: str, before: IndexDefinitions) -> None:
    """Undo the instant of a failed build. The index exists when the table's properties list it."""
    meta = now.meta
    if partition not in meta.config.metadata_partitions:
        write_index_definitions(meta.storage, before)
    drop_if_pending(requested, meta)


def _remove_dead_builds(meta: MetaClient, partition: str) -> None:
    """Remove pending instants that were to build this partition. Hudi lists a partition while it builds it."""
    if partition in meta.config.metadata_partitions_inflight:
        return
    for instant in meta.timeline.pending().of([ActionKind.INDEXING]):
        try:
            names = meta.reader.index_plan(instant).partitions
        except CorruptFile:
            continue  # its writer died before the plan was complete, or it is unknown
        if names == (partition,):
            drop(instant, meta)
