"""The interface of catalogs: tables and partitions in Hive's form, and the calls of a sync.

A catalog is one class with these calls. Values of a partition are a tuple of texts, one for each partition column.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar

__all__ = [
    "Alteration",
    "Catalog",
    "CatalogColumn",
    "CatalogTable",
    "FileFormat",
    "Located",
    "PartitionValues",
    "in_batches",
]

PartitionValues: TypeAlias = tuple[str, ...]
Located: TypeAlias = Mapping[PartitionValues, str]  # partition → its location
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class CatalogColumn:
    """A column in Hive's terms. `type` is text such as `map<string,array<int>>`."""

    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """The Java classes with which Hive reads and writes files of a table."""

    input_format: str
    output_format: str
    serde: str


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table in a catalog. A view has no files. `partition_serde`: a new partition's serde properties."""

    columns: tuple[CatalogColumn, ...]
    partition_keys: tuple[CatalogColumn, ...]
    location: str
    format: FileFormat
    serde_properties: Mapping[str, str]
    properties: Mapping[str, str]
    is_managed: bool = False
    is_view: bool = False
    partition_serde: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alteration:
    """Changes of a registered table; everything else, including other programs' properties, is kept. `columns`,
    `format`: None for no change. `cascades`: the partitions' own columns change, too.
    """

    columns: tuple[CatalogColumn, ...] | None = None
    format: FileFormat | None = None
    serde_properties: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    removed_properties: frozenset[str] = frozenset()
    cascades: bool = False

    @property
    def is_empty(self) -> bool:
        """True if it changes nothing."""
        return self == Alteration()


class Catalog(Protocol):
    """A catalog of tables. Every call raises StorageError when the catalog refuses, or does not answer."""

    @property
    def name(self) -> str:
        """The kind and place of the catalog, for messages."""
        ...

    def has_database(self, database: str) -> bool: ...

    def create_database(self, database: str) -> bool:
        """Create an empty database; False if it exists already."""
        ...

    def drop_database(self, database: str) -> None:
        """Drop an empty database."""
        ...

    def table(self, database: str, name: str) -> CatalogTable | None: ...

    def create_table(self, database: str, name: str, table: CatalogTable) -> bool:
        """Register a table; False if it exists already."""
        ...

    def alter_table(self, database: str, name: str, change: Alteration) -> None: ...

    def drop_table(self, database: str, name: str) -> None:
        """Remove a table and its partitions; its files are kept."""
        ...

    def index_partitions(self, database: str, name: str, entry: CatalogTable) -> None:
        """Update the partition indexes of an existing table, if the catalog has any."""
        ...

    def partition_names(self, database: str, name: str) -> Collection[PartitionValues]:
        """The values of all partitions."""
        ...

    def locations(self, database: str, name: str, partitions: Sequence[PartitionValues], batch: int) -> Located:
        """The locations of those of these partitions that exist."""
        ...

    def own_columns(
        self, database: str, name: str, partitions: Sequence[PartitionValues], batch: int
    ) -> Mapping[PartitionValues, tuple[CatalogColumn, ...]]:
        """The own columns of those of these partitions that exist; engines read by them."""
        ...

    def add_partitions(self, database: str, name: str, table: CatalogTable, added: Located, batch: int) -> None:
        """Add partitions with the table's columns; existing ones are not changed."""
        ...

    def move_partitions(self, database: str, name: str, moved: Located, batch: int) -> None:
        """Give partitions these locations, or touch those that have them."""
        ...

    def drop_partitions(self, database: str, name: str, partitions: Sequence[PartitionValues], batch: int) -> None:
        """Remove partitions; missing ones are no error, and files are kept."""
        ...

    def close(self) -> None: ...


def in_batches(items: Sequence[Item], batch: int) -> Iterator[Sequence[Item]]:
    """The items in batches of this size."""
    return (items[start : start + batch] for start in range(0, len(items), batch))
