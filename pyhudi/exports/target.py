"""What a format gives to an export: where it is, what it has, and how it takes a commit. And the formats by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pyhudi.errors import WriteConflict
from pyhudi.exports.commits import ExportCommit, ExportedState
from pyhudi.meta_client import MetaClient
from pyhudi.model.options.exporting import ExportOptions
from pyhudi.registry import Registry

__all__ = ["FORMATS", "ExportTarget", "MustBeMadeAgain", "Outrun"]


class Outrun(WriteConflict):
    """Another export has made a version meanwhile. The run looks again at what there is, and goes on."""


class MustBeMadeAgain(Exception):
    """The format can't take this commit on top of what it has; `replace` can. The text says why."""


class ExportTarget(Protocol):
    """The metadata of one format over one table."""

    @property
    def maps_names(self) -> bool:
        """Does the format know the names that columns have in older files?"""
        ...

    @property
    def location(self) -> str:
        """Where readers of the format find the table."""
        ...

    def close(self) -> None:
        """End connections."""
        ...

    def exported(self) -> ExportedState | None:
        """What the newest version has, read anew; None when there is none. Raises StorageError."""
        ...

    def apply(self, commit: ExportCommit) -> None:
        """Make one version of what `exported` returned and this commit.

        Raises: Outrun when somebody else has made one since; MustBeMadeAgain; UnsupportedTable, SchemaMismatch for what
                the format can't say, before anything is written; StorageError.
        """
        ...

    def replace(self, commit: ExportCommit) -> None:
        """Make a version that has the files of this commit and no others. Also of no version. Raises as `apply`."""
        ...


FORMATS: Registry[Callable[[MetaClient, ExportOptions], ExportTarget]] = Registry(
    kind="format of exports",
    entries={"delta": "pyhudi.exports.delta:open_delta", "iceberg": "pyhudi.exports.iceberg:open_iceberg"},
)
