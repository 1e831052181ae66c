"""What a catalog has of a table, against what is here. The catalog is only asked, and nothing is changed there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from pyhudi.errors import ConfigError, UnsupportedTable
from pyhudi.model.options.syncing import SyncOptions
from pyhudi.sync.catalog import Catalog, CatalogColumn, CatalogTable, PartitionValues
from pyhudi.sync.changes import changes_since
from pyhudi.sync.check.facts import TableFacts
from pyhudi.sync.check.result import Level, SyncFinding
from pyhudi.sync.definitions import COMPLETED, SYNCED, Definitions, definitions_of, same_place
from pyhudi.sync.partitions import values_by_path

__all__ = ["findings_of"]

_LOOKED_AT = 1000  # partitions whose whole entries are asked for; of all others only the names
_NAMED = 3
_SYNC = "table.sync({!r})"


def findings_of(kind: str, catalog: Catalog, facts: TableFacts, options: SyncOptions) -> Iterator[SyncFinding]:
    """What differs. `kind`: the catalog's name for `sync`. Raises StorageError when the catalog does not answer."""

    def finding(level: Level, about: str, text: str, rows: int | None = None, run: str = "") -> SyncFinding:
        return SyncFinding(kind, level, about, text, rows, run=run or _SYNC.format(kind), source=catalog.name)

    try:
        definitions = definitions_of(facts.meta, options)
        values = _here(facts, definitions)
    except (ConfigError, UnsupportedTable) as error:
        yield finding("unreadable", "registration", str(error), run="as the message says")
        return
    has_database = catalog.has_database(definitions.database)
    for name, table in definitions.tables.items():
        full = f"{definitions.database}.{name}"
        there = catalog.table(definitions.database, name) if has_database else None
        if there is None:
            yield finding("unreadable", "registration", f"{full} is not registered")
        elif there.is_view or not same_place(there.location, table.location):
            what = "a view" if there.is_view else f"a table at {there.location}"
            yield finding("unreadable", "registration", f"{full} is {what}", run=f"drop it, then {_SYNC.format(kind)}")
        else:
            for level, about, text in _of_table(full, table, there):
                yield finding(level, about, text)
            for level, about, text, paths in _of_partitions(full, table, there, values, definitions, catalog, options):
                rows = facts.rows_of([base.path for path in paths for base in facts.view.base_files(path)])
                counted = "" if rows is None or not paths else f", with {rows:,} rows in base files"
                yield finding(level, about, f"{text}{counted}", rows if paths else None)
            behind = _behind(there, facts)
            if behind:
                yield finding("note", "last sync", f"{full}: {behind}")


def _here(facts: TableFacts, definitions: Definitions) -> dict[PartitionValues, str]:
    """The partitions with a visible file: their values, and their paths."""
    if not definitions.fields:
        return {}
    paths = sorted(changes_since(facts.meta, None).present)
    return {values: path for path, values in values_by_path(paths, definitions.extractor, definitions.fields).items()}


def _of_table(full: str, table: CatalogTable, there: CatalogTable) -> Iterator[tuple[Level, str, str]]:
    if [key.name for key in table.partition_keys] != [key.name for key in there.partition_keys]:
        yield "wrong", "partition columns", f"{full} has other partition columns: {_names(there.partition_keys)}"
    differences = _differences(table.columns, there.columns)
    if differences:
        yield "wrong", "columns", f"{full}: {differences}"
    if table.format != there.format:
        yield "wrong", "format", f"{full} is read by {there.format.input_format}, not {table.format.input_format}"


def _differences(here: Sequence[CatalogColumn], there: Sequence[CatalogColumn]) -> str:
    """The columns that differ in words; "" for none."""
    ours, theirs = ({one.name: one.type for one in columns} for columns in (here, there))
    parts = (
        ("not registered: ", [name for name in ours if name not in theirs]),
        ("of another type: ", [name for name in ours if name in theirs and ours[name] != theirs[name]]),
        ("not here: ", [name for name in theirs if name not in ours]),
    )
    return "; ".join(f"columns {words}{', '.join(names)}" for words, names in parts if names)


def _of_partitions(
    full: str,
    table: CatalogTable,
    there: CatalogTable,
    here: dict[PartitionValues, str],
    definitions: Definitions,
    catalog: Catalog,
    options: SyncOptions,
) -> Iterator[tuple[Level, str, str, Sequence[str]]]:
    """Each with the paths of partitions whose rows are concerned."""
    if not table.partition_keys or not there.partition_keys:
        return
    database, _, name = full.partition(".")
    names = set(catalog.partition_names(database, name))
    absent, gone = sorted(here.keys() - names), sorted(names - here.keys())
    if absent:
        paths = [here[values] for values in absent]
        yield "wrong", "partitions", f"{full}: {len(absent):,} partitions are not registered: {_some(absent)}", paths
    if gone:
        text = f"{full}: {len(gone):,} partitions are registered that have no visible file: {_some(gone)}"
        yield "note", "partitions", text, ()
    looked_at = sorted(here.keys() & names)[:_LOOKED_AT]
    located = catalog.locations(database, name, looked_at, options.batch)
    moved = [v for v, place in located.items() if not same_place(place, definitions.location_of(here[v]))]
    if moved:
        paths = [here[values] for values in moved]
        yield "wrong", "locations", f"{full}: {len(moved):,} partitions are elsewhere: {_some(moved)}", paths
    own = catalog.own_columns(database, name, looked_at, options.batch)
    other = {values: _differences(table.columns, columns) for values, columns in own.items()}
    other = {values: words for values, words in other.items() if words}
    if other:
        words = next(iter(other.values()))
        text = f"{full}: {len(other):,} of {len(own):,} partitions have other columns than the table: {words}"
        yield "wrong", "partitions' columns", text, ()


def _behind(there: CatalogTable, facts: TableFacts) -> str:
    """How far the registration is behind, in words; "" when it is not."""
    synced = there.properties.get(SYNCED)
    if not synced:
        return "no sync has said up to which commit it is"
    completed = there.properties.get(COMPLETED) or synced
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
