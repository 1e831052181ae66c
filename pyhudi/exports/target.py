"""The interface of a format for exports: its place, its state, and how it applies a commit; and the formats by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pyhudi.errors import WriteConflict
from pyhudi.exports.commits import ExportCommit, ExportedState
from pyhudi.meta_client import MetaClient
from pyhudi.model.options.catalogs.exporting import ExportOptions
from pyhudi.registry import Registry

__all__ = ["FORMATS", "ExportTarget", "MustRecreate", "Overtaken"]


class Overtaken(WriteConflict):
    """Another export has just made a version. The run reads the state again, and continues."""


class MustRecreate(Exception):
    """The format can't apply this commit to its state; `replace` can. The text gives the reason."""


class ExportTarget(Protocol):
    """The metadata of one format over one table."""

    @property
    def maps_names(self) -> bool:
        """True if the format maps the names of columns in older files."""
        ...

    @property
    def location(self) -> str:
        """The table's place for readers of the format."""
        ...

    def close(self) -> None:
        """End connections."""
        ...

    def exported(self) -> ExportedState | None:
        """The state of the newest version, always read again; None if there is none. Raises StorageError."""
        ...

    def apply(self, commit: ExportCommit) -> None:
        """Make one version from the state that `exported` returned and this commit.

        Raises: Overtaken if another process has made one since; MustRecreate; UnsupportedTable, SchemaMismatch if the
                format can't express it, before anything is written; StorageError.
        """
        ...

    def replace(self, commit: ExportCommit) -> None:
        """Make a version with only the files of this commit, even as the first version. Raises as `apply`."""
        ...


FORMATS: Registry[Callable[[MetaClient, ExportOptions], ExportTarget]] = Registry(
    kind="format of exports",
    entries={"delta": "pyhudi.exports.delta:open_delta", "iceberg": "pyhudi.exports.iceberg:open_iceberg"},
)
