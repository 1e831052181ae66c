"""Compares a table's entry in a catalog with the table. The catalog is only read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from pyhudi.errors import ConfigError, UnsupportedTable
from pyhudi.model.options.catalogs.syncing import SyncOptions
from pyhudi.sync.catalog import Catalog, CatalogColumn, CatalogTable, PartitionValues
from pyhudi.sync.changes import changes_since
from pyhudi.sync.check.facts import TableFacts
from pyhudi.sync.check.result import Level, SyncFinding
from pyhudi.sync.definitions import COMPLETED, SYNCED, Definitions, definitions_of, same_place
from pyhudi.sync.partitions import values_by_path

__all__ = ["findings_of"]

_ENTRIES_MAX = 1000  # partitions whose whole entries are read; of all others only the names
_NAMED = 3
_SYNC = "table.sync({!r})"


def findings_of(kind: str, catalog: Catalog, facts: TableFacts, options: SyncOptions) -> Iterator[SyncFinding]:
    """The differences. `kind`: the catalog's name for `sync`. Raises StorageError when the catalog does not answer."""

    def finding(level: Level, about: str, text: str, rows: int | None = None, run: str = "") -> SyncFinding:
        return SyncFinding(kind, level, about, text, rows, run=run or _SYNC.format(kind), source=catalog.name)

    try:
        definitions = definitions_of(facts.meta, options)
        values = _partitions(facts, definitions)
    except (ConfigError, UnsupportedTable) as error:
        yield finding("unreadable", "registration", str(error), run="as the message says")
        return
    has_database = catalog.has_database(definitions.database)
    for name, table in definitions.tables.items():
        full = f"{definitions.database}.{name}"
        entry = catalog.table(definitions.database, name) if has_database else None
        if entry is None:
            yield finding("unreadable", "registration", f"{full} is not registered")
        elif entry.is_view or not same_place(entry.location, table.location):
            kind_of_entry = "a view" if entry.is_view else f"a table at {entry.location}"
            yield finding(
                "unreadable", "registration", f"{full} is {kind_of_entry}", run=f"drop it, then {_SYNC.format(kind)}"
            )
        else:
            for level, about, text in _of_table(full, table, entry):
                yield finding(level, about, text)
            for level, about, text, paths in _of_partitions(full, table, entry, values, definitions, catalog, options):
                rows = facts.rows_of([base.path for path in paths for base in facts.view.base_files(path)])
                counted = "" if rows is None or not paths else f", with {rows:,} rows in base files"
                yield finding(level, about, f"{text}{counted}", rows if paths else None)
            behind = _behind(entry, facts)
            if behind:
                yield finding("note", "last sync", f"{full}: {behind}")


def _partitions(facts: TableFacts, definitions: Definitions) -> dict[PartitionValues, str]:
    """The values of the partitions with a visible file → their paths."""
    if not definitions.fields:
        return {}
    paths = sorted(changes_since(facts.meta, None).present)
    return {values: path for path, values in values_by_path(paths, definitions.extractor, definitions.fields).items()}


def _of_table(full: str, table: CatalogTable, entry: CatalogTable) -> Iterator[tuple[Level, str, str]]:
    if [key.name for key in table.partition_keys] != [key.name for key in entry.partition_keys]:
        yield "wrong", "partition columns", f"{full} has other partition columns: {_names(entry.partition_keys)}"
    differences = _differences(table.columns, entry.columns)
    if differences:
        yield "wrong", "columns", f"{full}: {differences}"
    if table.format != entry.format:
        yield "wrong", "format", f"{full} is read by {entry.format.input_format}, not {table.format.input_format}"


def _differences(table_columns: Sequence[CatalogColumn], catalog_columns: Sequence[CatalogColumn]) -> str:
    """The differences of columns as text; "" for none."""
    ours, theirs = ({one.name: one.type for one in columns} for columns in (table_columns, catalog_columns))
    parts = (
        ("not registered: ", [name for name in ours if name not in theirs]),
        ("of another type: ", [name for name in ours if name in theirs and ours[name] != theirs[name]]),
        ("not in the table: ", [name for name in theirs if name not in ours]),
    )
    return "; ".join(f"columns {words}{', '.join(names)}" for words, names in parts if names)


def _of_partitions(
    full: str,
    table: CatalogTable,
    entry: CatalogTable,
    partitions: dict[PartitionValues, str],
    definitions: Definitions,
    catalog: Catalog,
    options: SyncOptions,
) -> Iterator[tuple[Level, str, str, Sequence[str]]]:
    """The differences of partitions, each with the paths of partitions whose rows are affected."""
    if not table.partition_keys or not entry.partition_keys:
        return
    database, _, name = full.partition(".")
    names = set(catalog.partition_names(database, name))
    unregistered, without_files = sorted(partitions.keys() - names), sorted(names - partitions.keys())
    if unregistered:
        paths = [partitions[values] for values in unregistered]
        yield (
            "wrong",
            "partitions",
            f"{full}: {len(unregistered):,} partitions are not registered: {_some(unregistered)}",
            paths,
        )
    if without_files:
        text = f"{full}: {len(without_files):,} registered partitions have no visible file: {_some(without_files)}"
        yield "note", "partitions", text, ()
    sample = sorted(partitions.keys() & names)[:_ENTRIES_MAX]
    located = catalog.locations(database, name, sample, options.batch)
    misplaced = [v for v, place in located.items() if not same_place(place, definitions.location_of(partitions[v]))]
    if misplaced:
        paths = [partitions[values] for values in misplaced]
        yield (
            "wrong",
            "locations",
            f"{full}: {len(misplaced):,} partitions are registered elsewhere: {_some(misplaced)}",
            paths,
        )
    own_columns = catalog.own_columns(database, name, sample, options.batch)
    other = {values: _differences(table.columns, columns) for values, columns in own_columns.items()}
    other = {values: words for values, words in other.items() if words}
    if other:
        words = next(iter(other.values()))
        text = f"{full}: {len(other):,} of {len(own_columns):,} partitions have other columns than the table: {words}"
        yield "wrong", "partitions' columns", text, ()


def _behind(entry: CatalogTable, facts: TableFacts) -> str:
    """The number of commits that the entry lacks, as text; "" if it is up to date."""
    synced = entry.properties.get(SYNCED)
    if not synced:
        return "no sync has stored its newest commit"
    completed = entry.properties.get(COMPLETED) or synced
    commits = facts.meta.timeline.commits().instants
    later = [one for one in commits if one.requested_time > synced or (one.completion_time or "") > completed]
    since = facts.meta.timeline.active_since
    least = "at least " if since is not None and synced < since else ""
    return f"{least}{len(later):,} commits behind, since {later[0].requested_time}" if later else ""


def _names(columns: Collection[CatalogColumn]) -> str:
    return ", ".join(one.name for one in columns) or "none"


def _some(partitions: Sequence[PartitionValues]) -> str:
    more = f" and {len(partitions) - _NAMED:,} more" if len(partitions) > _NAMED else ""
    return ", ".join("/".join(one) for one in partitions[:_NAMED]) + more
