"""Registers a table in a catalog, or updates its entry there.

        new entries                       definitions.py       refused before anything is changed
        existing entries                  read once per table
        changed partitions                changes.py           by the timeline since `last_commit_time_sync`
        database, table, partitions       created, altered, added, dropped
        last_commit_time_sync             last: after an error the next sync repeats everything

Several syncs may run at once, and none waits for another. One that saw an older timeline may remove entries of another.
So after any change a sync reloads the timeline, and continues with newer commits: the last sync to change anything has
seen all commits that were complete before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from pyhudi.errors import ConfigError, HudiError, SchemaMismatch, StorageError, TableExists
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import Instant
from pyhudi.model.options.catalogs.syncing import SyncOptions
from pyhudi.sync.catalog import Alteration, Catalog, CatalogTable, Located, PartitionValues
from pyhudi.sync.changes import Changes, Synced, changes_since
from pyhudi.sync.definitions import COMPLETED, SPARK_PART, SYNCED, Definitions, definitions_of, same_place
from pyhudi.sync.partitions import values_by_path
from pyhudi.sync.result import SyncedTable, SyncResult

__all__ = ["sync_to"]

_ROUNDS_MAX = 5  # commits may come faster than partitions are registered; the next sync catches up
_ENTRIES_MAX = 1000  # partitions whose whole entries are read, with their locations; for more only the names


@dataclass(frozen=True, slots=True)
class _Plan:
    """The work for one table. `entry`: its existing entry; `without_files`: partitions to drop."""

    name: str
    table: CatalogTable
    entry: CatalogTable | None
    changes: Changes
    present: Located
    without_files: frozenset[PartitionValues]
    drops_first: bool = False


@dataclass(frozen=True, slots=True)
class _Work:
    """One pass over the table. `created`: names of tables that this call has created."""

    meta: MetaClient
    options: SyncOptions
    catalog: Catalog
    definitions: Definitions
    newest: Synced | None
    created: list[str] = field(default_factory=list)

    @property
    def database(self) -> str:
        return self.definitions.database


def sync_to(catalog: Catalog, meta: MetaClient, options: SyncOptions) -> SyncResult:
    """Register a table, or update its entries.

    Raises: UnsupportedTable, SchemaMismatch and ConfigError for what can't be registered, TableExists for a table of
        the same name at another place, StorageError when the catalog refuses. After an error, entries that this call
        has created are removed.
    """
    result = _sync(catalog, meta, options)
    for _ in range(_ROUNDS_MAX - 1):
        if all(table.action == "unchanged" for table in result.tables):
            break
        newer = meta.reload()
        if newer.timeline.completed() == meta.timeline.completed():
            break
        meta, later = newer, _sync(catalog, newer, options)
        tables = tuple(before.then(after) for before, after in zip(result.tables, later.tables, strict=True))
        result = replace(later, tables=tables, database_created=result.database_created)
    return result


def _sync(catalog: Catalog, meta: MetaClient, options: SyncOptions) -> SyncResult:
    work = _Work(meta, options, catalog, definitions_of(meta, options), _newest(meta))
    has_database = catalog.has_database(work.database)
    if not has_database and not options.auto_create_database:
        raise ConfigError(
            f"{catalog.name} has no database {work.database!r}, and {options.key_of('auto_create_database')} is false. "
            "Create it, or leave the option out. Nothing was registered."
        )
    changes_by_sync: dict[Synced | None, tuple[Changes, Located, frozenset[PartitionValues]]] = {}
    plans = [_plan(name, has_database, work, changes_by_sync) for name in work.definitions.tables]
    made_database = not has_database and catalog.create_database(work.database)
    with _removed_on_error(work, made_database):
        tables = tuple(_execute(plan, work) for plan in plans)
    time = None if work.newest is None else work.newest.requested_time
    return SyncResult(meta.storage.root, catalog.name, tables, time, made_database)


def _newest(meta: MetaClient) -> Synced | None:
    """The newest commit that the next sync need not compare again.

    Without stored completion times, a pending write may complete with an older time than existing commits. The next
    sync compares everything after it again.
    """
    commits = meta.timeline.commits().instants
    if not meta.config.format.has_completion_times:
        first = next((one.requested_time for one in meta.timeline.pending() if _may_bring_partitions(one, meta)), None)
        commits = tuple(one for one in commits if first is None or one.requested_time < first)
    if not commits:
        return None
    return Synced(commits[-1].requested_time, max(one.completion_time or one.requested_time for one in commits))


def _may_bring_partitions(pending: Instant, meta: MetaClient) -> bool:
    """True for a write. Plans of compactions and clusterings may be pending for days, and add no partition."""
    return pending.action.is_commit and meta.reader.clustering_plan(pending) is None


@contextmanager
def _removed_on_error(work: _Work, made_database: bool) -> Iterator[None]:
    """After an error, remove everything that this call has created."""
    try:
        yield
    except BaseException:
        with suppress(HudiError):  # the catalog may be unavailable, as the error says
            for name in work.created:
                work.catalog.drop_table(work.database, name)
            if made_database:
                work.catalog.drop_database(work.database)
        raise


# ---- planning


def _plan(
    name: str,
    has_database: bool,
    work: _Work,
    changes_by_sync: dict[Synced | None, tuple[Changes, Located, frozenset[PartitionValues]]],
) -> _Plan:
    table = work.definitions.tables[name]
    entry = work.catalog.table(work.database, name) if has_database else None
    drops_first = entry is not None and not _fits(entry, table, f"{work.database}.{name}", work)
    synced = None if entry is None or drops_first or not work.options.is_incremental else _synced(entry)
    if synced not in changes_by_sync:
        changes_by_sync[synced] = _changed(work, synced)
    return _Plan(name, table, entry, *changes_by_sync[synced], drops_first=drops_first)


def _fits(entry: CatalogTable, table: CatalogTable, name: str, work: _Work) -> bool:
    """True if the entry can be altered to this table; False if it has to be recreated, which an option allows."""
    other = _other_format(entry)
    if other or not same_place(entry.location, table.location):
        difference = f"is {other}" if other else f"is at {entry.location}"
        raise TableExists(
            f"{work.catalog.name}: {name} {difference}, and the table to register is at {table.location}. Nothing was "
            f"changed; drop that one, or name another by {work.options.key_of('table')}."
        )
    before, after = ([key.name for key in one.partition_keys] for one in (entry, table))
    if before == after:
        return True
    if work.options.recreates:
        return False
    raise SchemaMismatch(
        f"{work.catalog.name}: {name} has the partition columns ({', '.join(before)}), and the table to register has "
        f"({', '.join(after)}), which can't be changed there. Nothing was changed; drop that one, or set "
        f"{work.options.key_of('recreates')}=true."
    )


def _other_format(entry: CatalogTable) -> str | None:
    """The kind of an entry that is no Hudi table: an exported one of the same name may be in the folder."""
    if entry.is_view:
        return "a view"
    kind = entry.properties.get("table_type") or entry.properties.get("spark.sql.sources.provider", "hudi")
    return None if kind.lower() == "hudi" else f"a table of {kind.lower()}"


def _synced(entry: CatalogTable) -> Synced | None:
    time = entry.properties.get(SYNCED)
    return None if not time else Synced(time, entry.properties.get(COMPLETED) or time)


def _changed(work: _Work, synced: Synced | None) -> tuple[Changes, Located, frozenset[PartitionValues]]:
    fields = work.definitions.fields
    if not fields:
        return Changes(frozenset()), {}, frozenset()
    changes = changes_since(work.meta, synced)
    values = values_by_path(sorted(changes.present | changes.without_files), work.definitions.extractor, fields)
    present = {values[path]: work.definitions.location_of(path) for path in sorted(changes.present)}
    return changes, present, frozenset(values[path] for path in changes.without_files)


# ---- execution


def _execute(plan: _Plan, work: _Work) -> SyncedTable:
    catalog, database = work.catalog, work.database
    if plan.entry is not None and not plan.drops_first:
        try:
            return _update(plan, plan.entry, work)
        except StorageError:
            if not work.options.recreates:
                raise
            changes, present, without_files = _changed(work, None)
            plan = replace(plan, changes=changes, present=present, without_files=without_files, drops_first=True)
    if plan.drops_first:
        catalog.drop_table(database, plan.name)
    if not catalog.create_table(database, plan.name, plan.table):
        entry = catalog.table(database, plan.name)  # another sync was faster
        if entry is None:
            raise StorageError(f"{catalog.name}: {database}.{plan.name} is created and dropped by others. Sync again.")
        _fits(entry, plan.table, f"{database}.{plan.name}", work)
        return _update(plan, entry, work)
    work.created.append(plan.name)
    catalog.add_partitions(database, plan.name, plan.table, plan.present, work.options.batch)
    if work.newest is not None:
        catalog.alter_table(database, plan.name, Alteration(properties=_times(work.newest)))
    return SyncedTable(
        f"{database}.{plan.name}",
        "recreated" if plan.drops_first else "created",
        partitions_added=len(plan.present),
        compared_all=bool(plan.table.partition_keys),
    )


def _times(newest: Synced) -> dict[str, str]:
    return {SYNCED: newest.requested_time, COMPLETED: newest.completion_time}


def _update(plan: _Plan, entry: CatalogTable, work: _Work) -> SyncedTable:
    catalog, database, name = work.catalog, work.database, plan.name
    change = _alteration(plan.table, entry, work.options)
    added, moved, dropped = _partition_work(plan, work)
    has_partition_work = bool(added or moved or dropped)
    times = {} if work.newest is None else _changed_items(_times(work.newest), entry.properties)
    if work.options.is_conditional and change.is_empty and not has_partition_work:
        times = {}
    if has_partition_work:
        if not change.is_empty:
            catalog.alter_table(database, name, change)
        catalog.add_partitions(database, name, plan.table, added, work.options.batch)
        catalog.move_partitions(database, name, moved, work.options.batch)
        catalog.drop_partitions(database, name, dropped, work.options.batch)
        if times:
            catalog.alter_table(database, name, Alteration(properties=times))
    else:
        last = replace(change, properties={**change.properties, **times})
        if not last.is_empty:
            catalog.alter_table(database, name, last)
    catalog.index_partitions(database, name, entry)
    before, after = ({one.name: one for one in columns} for columns in (entry.columns, change.columns or entry.columns))
    return SyncedTable(
        f"{database}.{name}",
        "unchanged" if change.is_empty and not has_partition_work else "changed",
        tuple(one for one in after if one not in before),
        tuple(one for one in after if one in before and after[one] != before[one]),
        tuple(one for one in before if one not in after),
        len(added),
        len(moved),
        len(dropped),
        plan.changes.are_all,
    )


def _alteration(table: CatalogTable, entry: CatalogTable, options: SyncOptions) -> Alteration:
    """The alteration of the entry to this table, without partitions and the times of the last sync."""
    columns = table.columns
    if not options.has_comments:  # existing ones are kept
        comments = {column.name: column.comment for column in entry.columns}
        columns = tuple(replace(column, comment=comments.get(column.name, "")) for column in columns)
    is_other = [(one.name, one.type) for one in columns] != [(one.name, one.type) for one in entry.columns]
    parts = {f"{SPARK_PART}{number}" for number in range(len(entry.properties))}
    stale = {key for key in entry.properties.keys() & parts if options.is_datasource and key not in table.properties}
    return Alteration(
        columns if columns != entry.columns else None,
        table.format if table.format != entry.format else None,
        _changed_items(table.serde_properties, entry.serde_properties),
        _changed_items(table.properties, entry.properties),
        frozenset(stale),
        cascades=is_other and bool(entry.partition_keys),
    )


def _changed_items(target: Mapping[str, str], existing: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in target.items() if existing.get(key) != value}


def _partition_work(plan: _Plan, work: _Work) -> tuple[Located, Located, list[PartitionValues]]:
    """Partitions to add, to move or touch, and to drop."""
    if not plan.table.partition_keys or not (plan.changes.are_all or plan.present or plan.without_files):
        return {}, {}, []
    catalog, database, batch = work.catalog, work.database, work.options.batch
    requested = [*plan.present, *plan.without_files]
    by_name = plan.changes.are_all or len(requested) > _ENTRIES_MAX
    names = frozenset(catalog.partition_names(database, plan.name)) if by_name else frozenset()
    needs_locations = not by_name or (plan.changes.are_all and not plan.changes.is_same_table)
    among = [one for one in requested if not by_name or one in names]
    located = catalog.locations(database, plan.name, among, batch) if needs_locations else {}
    existing = names if by_name else located.keys()
    touches = work.options.touches_partitions and not plan.changes.are_all
    dropped = names - plan.present.keys() if plan.changes.are_all else plan.without_files & existing
    return (
        {values: place for values, place in plan.present.items() if values not in existing},
        {
            values: place
            for values, place in plan.present.items()
            if values in existing and (touches or not same_place(located.get(values, place), place))
        },
        sorted(dropped),
    )
