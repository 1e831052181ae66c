"""Replaces a table by a new one, so that one of the two is whole at every moment.

    build           the new table, in .hoodie/.temp/replacement-<id>      the old table is as it was
    name            that folder in .hoodie/.temp/replaced_by              the old table is as it was
    switch          the old table's properties are deleted                 the new table counts, and is read where it is
    put in place    old files are deleted, new ones copied, properties last
    tidy            replaced_by is deleted, then the folder

No store needs to rename anything. A death before the switch leaves the old table; the next writer deletes the files
built so far. After the switch readers find the new table (`storage/staged_table.py`), and the next writer puts it in
place. From `name` on, everything happens under the table's lock. If two processes replace one table at once, the first
to switch wins, and the other's new table is deleted.

Apache Hudi deletes the folder before it writes the first row. Its readers find no table between the switch and the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace

from pyhudi.actions.save_modes import OF_LOCKS
from pyhudi.errors import CorruptFile, WriteConflict, add_note
from pyhudi.interrupts import uninterrupted
from pyhudi.locks import LockOptions, hold, open_lock
from pyhudi.model.filenames import (
    HEARTBEAT_FOLDER,
    META_FOLDER,
    PROPERTIES_BACKUP_PATH,
    PROPERTIES_PATH,
    REPLACEMENT_PATH,
    REPLACEMENT_PREFIX,
    TEMPORARY_FOLDER,
)
from pyhudi.model.options import WriteOptions
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.storage.clock import Clock
from pyhudi.storage.paths import child
from pyhudi.storage.place import copy_file, is_local
from pyhudi.storage.staged_table import StagedTable, place_of, replacement_name, staged_table
from pyhudi.timeline.heartbeat import Heartbeat
from pyhudi.timeline.table_properties import has_properties, load_table_config, make_folders, settle_properties
from pyhudi.warnings import warn_caller

__all__ = ["aside", "discard_replacement", "finish_replacement", "replacing"]

_AT_ONCE = 16  # requests to a store


def aside(options: WriteOptions) -> WriteOptions:
    """The options of the write that fills a staged table, which no other process can reach."""
    return replace(options, lock=replace(options.lock, provider="IN_PROCESS"))


@contextmanager
def replacing(storage: Storage, options: WriteOptions, clock: Clock) -> Iterator[StagedTable]:
    """Build a new table in the block; when it ends, the new table takes the place of the old one.

    An error in the block leaves the old table as it was. Raises LockTimeout, StorageError, and WriteConflict if another
    process has replaced the table in between; the old table then remains, too.
    """
    storage = place_of(storage)
    if not has_properties(storage):
        finish_replacement(storage, options.lock, clock)
    storage.check_deletable("")
    name = f"{REPLACEMENT_PREFIX}{clock.new_uuid()}"
    staged = StagedTable(storage, child(TEMPORARY_FOLDER, name))
    heartbeat = Heartbeat(storage, name, clock, options.heartbeat_interval_ms)
    with heartbeat.beating(True):
        try:
            yield staged
            with uninterrupted():
                _put_in_place_of_old(staged, heartbeat, options, clock)
        except BaseException as error:
            with uninterrupted():
                _take_back(staged, error)
            raise
    _after_the_end(staged, heartbeat.stop)


def finish_replacement(storage: Storage, options: LockOptions, clock: Clock) -> None:
    """Put a new table in place whose process died after the switch. Raises LockTimeout, StorageError."""
    with hold(open_lock(options, storage, clock), options.wait_timeout_s):
        _finish(storage, clock)


def discard_replacement(storage: Storage, name: str) -> None:
    """Delete the new table of a process that died before the switch."""
    _tidy(StagedTable(storage, child(TEMPORARY_FOLDER, name)))


def _finish(storage: Storage, clock: Clock) -> None:
    staged = None if has_properties(storage) else staged_table(storage)
    if staged is not None:
        building = replace(staged, is_complete=False)
        _put_in_place(building, clock)
        _tidy(building)


def _put_in_place_of_old(staged: StagedTable, heartbeat: Heartbeat, options: WriteOptions, clock: Clock) -> None:
    storage = staged.storage
    lock = open_lock(options.lock, storage, clock)
    with hold(lock, options.lock.wait_timeout_s):
        _finish(storage, clock)  # of another process, which died in the meantime
        with suppress(CorruptFile):  # a table that is replaced need not be readable
            settle_properties(storage)
        if heartbeat.is_expired(options.heartbeat_misses) or staged.stat(PROPERTIES_PATH) is None or not lock.is_held:
            raise WriteConflict(
                f"{storage.root}: another process has replaced or dropped the table in between, or considered this "
                "one dead. Nothing of the new table is visible; look at the table, and replace it again if needed."
            )
        storage.delete(REPLACEMENT_PATH)  # it would be one of a process that died before the switch
        storage.create_synced(REPLACEMENT_PATH, staged.name.encode("ascii"))
        for path in (PROPERTIES_BACKUP_PATH, PROPERTIES_PATH):
            storage.delete(path)  # from now on the new table counts
        storage.sync([PROPERTIES_PATH])
        _put_in_place(staged, clock)
        _after_the_end(staged, lambda: _tidy(staged))


def _put_in_place(staged: StagedTable, clock: Clock) -> None:
    """Move the new table's files into place. Any process may repeat this, even two at once: files that the new table
    has are never deleted.
    """
    storage = staged.storage
    old = list(_old_files(staged, ""))
    _for_all(
        storage, old, lambda entry: storage.delete_tree(entry.path) if entry.is_dir else storage.delete(entry.path)
    )
    storage.sync([entry.path for entry in old])  # in the new table they would count as committed
    new = [entry for entry in staged.walk("") if entry.path != PROPERTIES_PATH]
    _for_all(
        storage, new, lambda entry: copy_file(storage, child(staged.folder, entry.path), entry.path, entry.size_bytes)
    )
    config = load_table_config(staged, clock)
    make_folders(storage, config)
    storage.sync([entry.path for entry in new])
    storage.create_synced(PROPERTIES_PATH, staged.read(PROPERTIES_PATH))
    storage.sync([config.timeline_path, config.history_path, ""])


def _old_files(staged: StagedTable, folder: str) -> Iterator[FileInfo]:
    """Files, and whole folders, that the new table does not have, except locks and the new table itself."""
    new = {entry.name: entry for entry in staged.list(folder)}
    stay = (REPLACEMENT_PATH, staged.folder, child(HEARTBEAT_FOLDER, staged.name))
    for entry in staged.storage.list(folder):
        counterpart = new.get(entry.name)
        is_lock = folder == META_FOLDER and entry.name.startswith(OF_LOCKS)
        if entry.path in stay or is_lock:
            continue
        # A link is deleted, its target is kept.
        is_shared = counterpart is not None and counterpart.is_dir and entry.is_dir and entry.leads_to is None
        if is_shared or any(path.startswith(f"{entry.path}/") for path in stay):
            yield from _old_files(staged, entry.path)
        elif counterpart is None or counterpart.is_dir or entry.is_dir:
            yield entry


def _for_all(storage: Storage, entries: Sequence[FileInfo], act: Callable[[FileInfo], object]) -> None:
    if is_local(storage):
        for entry in entries:
            act(entry)
        return
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="hudi-replace") as pool:
        for _ in pool.map(act, entries):
            """Raise the error of a failed deletion."""


def _tidy(staged: StagedTable) -> None:
    """Delete the remaining files in the folder of a new table; the file that names it is deleted first."""
    storage = staged.storage
    if replacement_name(storage) == staged.name:
        storage.delete(REPLACEMENT_PATH)
        storage.sync([REPLACEMENT_PATH])
    storage.delete_tree(staged.folder)


def _after_the_end(staged: StagedTable, work: Callable[[], object]) -> None:
    try:
        work()
    except Exception as error:
        warn_caller(
            f"{staged.root}: the table is replaced, but files of the work on it could not be deleted; the next write "
            f"does it. {type(error).__name__}: {error}"
        )


def _take_back(staged: StagedTable, error: BaseException) -> None:
    """Delete the files of the new table, unless it counts already."""
    try:
        if has_properties(staged.storage) or replacement_name(staged.storage) != staged.name:
            _tidy(staged)
            return
        why = "The old table is gone and the new one complete: it can be read, and the next write puts it in place."
    except Exception as second:
        why = f"The new table's files could not be deleted yet ({second}); the next write to the table does it."
    add_note(error, f"{staged.root}: {why}")
