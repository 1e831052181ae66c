"""What other processes do to a small table while somebody reads it, and every state that it has meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pyhudi.actions.undo.restore import restore, roll_back
from pyhudi.engine.local import LocalEngine
from pyhudi.model.options import WriteOptions
from pyhudi.services.archive.archiving import archive
from pyhudi.services.clean.cleaning import clean
from pyhudi.services.savepoint import savepoint
from pyhudi.table.calls import serve
from tests.support.tables.clustered import Clustered
from tests.support.tables.small import TestTable, rows_of
from tests.support.tables.versioned import take_to
from tests.support.writers.dying import on_clone

Rows = list[tuple[Any, ...]]
Step = Callable[[Clustered], object]
_ARCHIVING = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


def made(version: str, table_type: str) -> Clustered:
    """Two partitions, one of two groups, versions to clean, log files where there are any; nothing runs by itself."""
    options = {"clean_automatic": "false", "archive_automatic": "false"}
    table = Clustered(version, table_type, **options)
    table.engine = LocalEngine(1)
    table.bulk_insert(("a", "x", 1, 1), ("c", "y", 1, 3))
    table.insert(("b", "x", 1, 2))
    table.upsert(("a", "x", 2, 10))
    table.upsert(("c", "y", 2, 30), ("b", "x", 2, 20))
    return table


def rows(table: TestTable, as_of: str | None = None) -> Rows:
    """The snapshot through the query side, for a table of either type."""
    return TestTable.rows(table, as_of=as_of)


def _serve(service: Callable[..., Any], table: Clustered, options: dict[str, str] | None = None) -> object:
    parsed = WriteOptions.parse(options or {}, table=table.meta.config)
    return serve(table.storage, service, parsed, table.engine)


def cleaned(table: Clustered) -> object:
    return _serve(partial(clean), table, {"hoodie.clean.commits.retained": "1"})


def cleaned_by_versions(table: Clustered) -> object:
    by_versions = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    return _serve(partial(clean), table, by_versions)


def archived(table: Clustered) -> object:
    return _serve(archive, table, _ARCHIVING)


def updated(table: Clustered) -> object:
    count = max(row[2] for row in rows(table)) + 1
    return table.upsert(("a", "x", count, count), ("b", "x", count, count), ("c", "y", count, count))


def compacted(table: Clustered) -> object:
    return table.compact_now()


def clustered(table: Clustered) -> object:
    return table.cluster()


def overwritten(table: Clustered) -> object:
    return table.write("insert_overwrite", rows_of(("d", "x", 1, 4)))


def dropped(table: Clustered) -> object:
    return table.write("delete_partition", rows_of(("c", "y", 1, 1)))


def deleted(table: Clustered) -> object:
    return table.delete(("a", "x"))


def rolled_back(table: Clustered) -> object:
    return _serve(partial(roll_back), table)


def restored(table: Clustered) -> object:
    return _serve(partial(restore, to=table.meta.timeline.commits().instants[1].requested_time), table)


def saved(table: Clustered) -> object:
    last = table.meta.timeline.last_commit()
    assert last is not None
    return _serve(partial(savepoint, instant_time=last.requested_time), table)


def changed_version(table: Clustered) -> object:
    target = 6 if table.meta.config.table_version == 9 else 9
    table.options = {**table.options, "hoodie.write.table.version": str(target)}
    return take_to(table.storage, target)


NEW_THEN_CLEAN = (updated, updated, cleaned)
MEANWHILE: dict[str, tuple[Step, ...]] = {
    "commit": (updated,),
    "delete": (deleted,),
    "clean": (cleaned,),
    "clean by versions": (cleaned_by_versions,),
    "commits, clean": NEW_THEN_CLEAN,
    "commits, clean by versions": (updated, cleaned_by_versions),
    "commits, compaction, clean": (updated, compacted, updated, cleaned),
    "clustering": (clustered,),
    "clustering, clean": (clustered, updated, updated, cleaned),
    "overwrite, clean": (overwritten, updated, cleaned),
    "dropped partition, clean": (dropped, deleted, cleaned),
    "dropped partition, clean by versions": (dropped, cleaned_by_versions),
    "rollback": (rolled_back,),
    "two rollbacks, commit": (rolled_back, rolled_back, updated),
    "restore": (restored,),
    "restore, commit": (restored, updated),
    "archive": (cleaned, archived),
    "commits, clean, archive": (updated, updated, updated, cleaned, archived, updated, cleaned, archived),
    "other version": (changed_version,),
    "other version and back": (changed_version, updated, changed_version),
}


def states(table: Clustered, steps: tuple[Step, ...]) -> list[Rows]:
    """The rows before, and after each of the steps."""
    copy = on_clone(table)
    found = [rows(copy)]
    for step in steps:
        step(copy)
        found.append(rows(copy))
    return found


def do(table: Clustered, steps: tuple[Step, ...]) -> None:
    for step in steps:
        step(table)
