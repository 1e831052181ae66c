"""Lists of a table that are called, or looked at as they are: `table.history`, `table.savepoints`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic

from pyhudi.queries.history import History, HistoryEntry
from pyhudi.queries.query import AsOf
from pyhudi.result import EntryT, ResultList
from pyhudi.services.savepoint import Savepoint, Savepoints, load_savepoints
from pyhudi.table.calls import TableHandle
from pyhudi.table.named_arguments import named
from pyhudi.table.reports import history

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["HistoryGroup", "SavepointGroup"]


class _CalledList(ABC, Generic[EntryT]):
    """A list that is loaded at each look. It prints and counts as the whole list does."""

    def __init__(self, handle: TableHandle) -> None:
        """Use the property of the table."""
        self._handle = handle

    @abstractmethod
    def __call__(self) -> ResultList[EntryT]: ...

    def __iter__(self) -> Iterator[EntryT]:
        return iter(self())

    def __len__(self) -> int:
        return len(self())

    def __repr__(self) -> str:
        return repr(self())

    def _repr_html_(self) -> str:
        return self()._repr_html_()


class SavepointGroup(_CalledList[Savepoint]):
    """The savepoints of a table: `table.savepoints()` and `list()` load them; it prints as they do."""

    def __call__(self) -> Savepoints:
        """The savepoints, oldest first; prints as a table."""
        return load_savepoints(self._handle.fresh())

    def list(self) -> Savepoints:
        """The savepoints, oldest first; prints as a table."""
        return self()


class HistoryGroup(_CalledList[HistoryEntry]):
    """What happened to a table: `table.history()` loads it, whole or a stretch; it prints as the whole does."""

    @named
    def __call__(
        self,
        limit: int | None = None,
        *,
        archived: bool = True,
        since: AsOf | None = None,
        until: AsOf | None = None,
    ) -> History:
        """The newest `limit` instants (None: all), newest first; prints as a table.

        Args:
            archived: also those that archiving took off the active timeline.
            since, until: only instant times in this range, both ends included: moments as `as_of` of `scan` takes them,
                so a date is its first moment. With them a long history is read in part.
        """
        return history(self._handle, limit, archived, since, until)

    def to_arrow(self) -> pa.Table:
        """The whole history: its entries as rows, their fields as columns."""
        return self().to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """`to_arrow` as a pandas DataFrame."""
        return self().to_pandas()
