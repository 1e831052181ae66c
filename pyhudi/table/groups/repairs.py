"""TableRepairs and LockAudit: `table.maintenance.repair` and `table.maintenance.lock_audit`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyhudi.actions.open_table import table_lock
from pyhudi.errors import ConfigError
from pyhudi.locks import hold
from pyhudi.locks.audit import (
    AuditCleanup,
    AuditStatus,
    AuditValidation,
    audit_status,
    clean_audit,
    set_audit,
    validate_audit,
)
from pyhudi.model.instant import ActionKind
from pyhudi.model.options import OptionScope, WriteOptions, check_names
from pyhudi.services.repair import REPAIRS
from pyhudi.storage import with_sync
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import SystemClock
from pyhudi.table.calls import Options, PathLike, TableHandle, open_place
from pyhudi.table.wrong_names import checked_call, checked_methods

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyhudi.services.repair.result import RepairResult

__all__ = ["LockAudit", "TableRepairs", "repair_properties"]


@checked_methods
class TableRepairs:
    """The repairs of a table. `dry_run=True`, the default, only returns the damage and its repairs."""

    def __init__(self, handle: TableHandle) -> None:
        """Use `table.maintenance.repair`."""
        self._handle = handle

    def orphans(self, *, dry_run: bool = True, options: Options | None = None) -> RepairResult:
        """Delete data files that no completed instant owns, such as those of a rollback that died, by one clean.

        Files of pending writes are kept, as are files from before the archived timeline.
        Raises: WriteConflict while a restore or another clean is running.
        """
        return self._call("orphans", dry_run, options)

    def duplicates(
        self,
        *,
        partitions: Sequence[str] | None = None,
        dry_run: bool = True,
        options: Options | None = None,
    ) -> RepairResult:
        """Keep one row of each key, by the table's merge rules, in one commit. Keys are compared in their partition, or
        in the table if it has a record index that is not partitioned, or the options name a global index.

        Args:   partitions: paths of the partitions to search; None: all.
        Raises: WriteConflict if another write has completed since, or a pending plan rewrites the file groups;
            ConfigError for buckets whose options are missing.
        """
        paths = None if partitions is None else tuple(path.strip("/") for path in partitions)
        call = partial(REPAIRS.load("duplicates"), dry_run=dry_run, partitions=paths)
        return self._handle.serve(call, options, dry_run=dry_run)

    def partition_metadata(self, *, dry_run: bool = True, options: Options | None = None) -> RepairResult:
        """Write missing or wrong `.hoodie_partition_metadata`, without which rows of a folder don't count."""
        return self._call("partition_metadata", dry_run, options)

    def empty_instants(
        self,
        *,
        actions: Sequence[str] | None = None,
        dry_run: bool = True,
        options: Options | None = None,
    ) -> RepairResult:
        """Repair instants whose files are empty or damaged. Completed writes with data files are shown, but kept.

        Args:   actions: the actions to check, such as "clean"; None: all.
        Raises: ConfigError for no such action.
        """
        call = partial(REPAIRS.load("empty_instants"), dry_run=dry_run, actions=_kinds(actions))
        return self._handle.serve(call, options, dry_run=dry_run)

    def deprecated_partition(self, *, dry_run: bool = True, options: Options | None = None) -> RepairResult:
        """Move rows without a partition value from `default` to `__HIVE_DEFAULT_PARTITION__`, in one commit.

        Raises: WriteConflict as `duplicates`.
        """
        return self._call("deprecated_partition", dry_run, options)

    def log_checksums(self, *, dry_run: bool = True, options: Options | None = None) -> RepairResult:
        """Find log files that lack bytes of completed writes; rewrite the remaining rows of their file groups in one
        commit. Raises: WriteConflict as `duplicates`.
        """
        return self._call("log_checksums", dry_run, options)

    def rename_partition(
        self,
        old: str,
        new: str,
        *,
        dry_run: bool = True,
        options: Options | None = None,
    ) -> RepairResult:
        """Give the rows of a partition the values of another path, in one commit.

        Args:   old, new: partition paths; there must be no rows in `new`.
        Raises: TableError for a partition without rows, or a new one with some; ConfigError for a path that the
            partition columns can't have; WriteConflict as `duplicates`.
        """
        from pyhudi.services.repair.partitions import rename_partition

        call = partial(rename_partition, old=old, new=new, dry_run=dry_run)
        return self._handle.serve(call, options, dry_run=dry_run)

    def properties(
        self, *, properties: Mapping[str, str] | None = None, dry_run: bool = True, options: Options | None = None
    ) -> RepairResult:
        """Rebuild damaged `hoodie.properties`, under the table's lock. `pyhudi.repair_properties` does it for a table
        that can't be opened.

        Args:   properties: they override all others.
        Raises: ConfigError when files don't show enough; LockTimeout.
        """
        handle = self._handle
        merged = {**handle.session_options(), **handle.options(options)}
        return _properties(handle.storage, properties, dry_run, merged)

    def _call(self, name: str, dry_run: bool, options: Options | None) -> RepairResult:
        call = partial(REPAIRS.load(name), dry_run=dry_run)
        return self._handle.serve(call, options, dry_run=dry_run)

    def __repr__(self) -> str:
        names = [name for name in vars(type(self)) if not name.startswith("_")]
        return f"Repairs({', '.join(names)})"


class LockAudit:
    """The audit of the storage-based lock: who held it, and how long. Real Hudi 1.1 and later writes and reads it."""

    def __init__(self, handle: TableHandle) -> None:
        """Use `table.maintenance.lock_audit`."""
        self._storage = handle.storage

    def status(self) -> AuditStatus:
        """The state of the audit and the number of journals. Raises: CorruptFile if the state can't be read."""
        return audit_status(self._storage)

    def enable(self) -> AuditStatus:
        """Let every writer that takes the table's storage-based lock write a journal from now on."""
        return set_audit(self._storage, True)

    def disable(self) -> AuditStatus:
        """Stop writing journals; existing ones are kept, see `cleanup`."""
        return set_audit(self._storage, False)

    def validate(self) -> AuditValidation:
        """Check the journals for simultaneous holders of the lock, and for holders that did not release it."""
        return validate_audit(self._storage, SystemClock())

    def cleanup(self, days: int = 7, *, dry_run: bool = False) -> AuditCleanup:
        """Delete journals that were last written more than this many days ago.

        Args:   dry_run: only return them. Raises: ConfigError for less than 0 days.
        """
        return clean_audit(self._storage, SystemClock(), days, dry_run=dry_run)

    def __repr__(self) -> str:
        return repr(self.status())


def _kinds(actions: Sequence[str] | None) -> frozenset[ActionKind] | None:
    words = {kind.value: kind for kind in ActionKind}
    unknown = sorted(set(actions or ()) - words.keys())
    if unknown:
        raise ConfigError(f"actions are {', '.join(words)}; found {unknown[0]!r:.100}.")
    return None if actions is None else frozenset(words[action] for action in actions)


def _properties(
    storage: Storage, properties: Mapping[str, str] | None, dry_run: bool, options: Options | None
) -> RepairResult:
    """Repair the properties of the table at a storage."""
    from pyhudi.services.repair.properties import repair_properties as repair

    check_names(options or {}, OptionScope.WRITE)
    parsed, clock = WriteOptions.parse(options or {}), SystemClock()
    storage = with_sync(storage, parsed.storage_sync)
    lock = hold(table_lock(parsed, storage, clock), parsed.lock.wait_timeout_s)
    return repair(storage, clock, lock, properties, dry_run=dry_run)


@checked_call
def repair_properties(
    path: PathLike | Storage,
    *,
    properties: Mapping[str, str] | None = None,
    dry_run: bool = True,
    options: Options | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> RepairResult:
    """Rebuild missing or damaged `hoodie.properties`, without which a table can't be opened.

    A whole backup has precedence, then the remains of the file, then the table's files. The table's lock
    is held during the repair.

    Args:
        properties: they override all others; needed for ordering columns, which files don't show.
        dry_run: only return the difference.
        options: Hudi's own keys, such as those of the lock that the table's writers use.
    Raises: TableNotFound for a folder without `.hoodie`; ConfigError when files don't show enough; LockTimeout.
    """
    return _properties(open_place(path, storage_options, None), properties, dry_run, options)
