"""TableAt: a table as of one moment, for reading. Made by `HudiTable.at`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from pyhudi.errors import ConfigError, TableError
from pyhudi.expressions.binding import Where
from pyhudi.model.instant import Instant
from pyhudi.queries.query import AsOf, check_not_cleaned, commit_at
from pyhudi.table.calls import Options, TableHandle, in_session_zone
from pyhudi.table.readable import Readable
from pyhudi.table.scan import Scan, scan
from pyhudi.table.wrong_names import no_attribute

__all__ = ["TableAt"]

_WRITES = frozenset(
    [
        "alter",
        "bulk_insert",
        "clean",
        "cluster",
        "compact",
        "constraints",
        "delete",
        "delete_partitions",
        "drop",
        "indexes",
        "insert",
        "insert_overwrite",
        "maintenance",
        "merge",
        "metadata",
        "overwrite",
        "restore",
        "rollback",
        "savepoints",
        "update",
        "upsert",
    ]
)


class TableAt(Readable):
    """The rows of a table as a reader saw them at one moment. Later writes don't change it; it can't be written."""

    def __init__(self, handle: TableHandle, commit: Instant) -> None:
        """Use `HudiTable.at`. `commit`: the newest commit at the moment."""
        self._handle = handle
        self._commit = commit

    @classmethod
    def of(cls, handle: TableHandle, moment: AsOf) -> TableAt:
        """`HudiTable.at`."""
        return cls(handle, cls.commit_of(handle, moment))

    @staticmethod
    def commit_of(handle: TableHandle, moment: AsOf | None) -> Instant:
        """The commit that a reader of a moment sees (None: the newest one).

        Raises: TableError without a commit, or if files of that moment were cleaned.
        """
        meta = handle.fresh()
        if moment is None:
            newest = meta.timeline.last_commit()
            if newest is None:
                raise TableError(f"{meta.storage.root} has no commit yet. Write rows first.")
            return newest
        commit = commit_at(in_session_zone(moment, handle.spark), meta)
        check_not_cleaned(meta, commit.requested_time)
        return commit

    @property
    def path(self) -> str:
        """The table's path."""
        return self._handle.storage.root

    @property
    def instant_time(self) -> str:
        """The newest commit that the table had at the moment."""
        return self._commit.requested_time

    @property
    def completion_time(self) -> str | None:
        """The completion time of that commit; None if the table's version does not store it."""
        return self._commit.completion_time

    def schema(self) -> pa.Schema:
        """The data columns at that moment."""
        return self.scan(meta_columns=False).schema

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        *,
        meta_columns: bool = True,
        options: Options | None = None,
    ) -> Scan:
        """A query of the table as of the moment. For the arguments see `HudiTable.scan`."""
        return scan(self._handle, columns, where, self.instant_time, None, None, options, meta_columns)

    def _selected(self, columns: Sequence[str] | None, where: Where, meta_columns: bool | None) -> Scan:
        return self.scan(columns, where, meta_columns=meta_columns is not False)

    def files(self) -> pa.Table:
        """The files at that moment: columns of `inspect.files()`."""
        return self.scan().files()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Refuse writes by name. Raises ConfigError, AttributeError."""
            if name in _WRITES:
                raise ConfigError(
                    f"{self.path} as of {self.instant_time} is read-only; {name} changes the current table: "
                    f"HudiTable.open({self.path!r}).{name}(...)."
                )
            raise no_attribute(self, name)

    def __repr__(self) -> str:
        return f"TableAt({self.path!r}, {self.instant_time!r})"

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_")]
