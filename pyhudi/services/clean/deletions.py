"""Deletions: the slices that a clean deletes, as columns. There may be a million of them, and most are only counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast, overload

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.view.stored_slices import STORED_SLICES

__all__ = ["Deletion", "Deletions"]

_SCHEMA = pa.schema(
    [
        ("partition_path", pa.dictionary(pa.int32(), pa.string())),
        *STORED_SLICES,
        ("reason", pa.string()),
        ("superseded", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Deletion:
    """A slice that goes. `reason`: in words, for the one who asks. `superseded`: the instant from which on no query
    reads it.
    """

    partition_path: str
    file_id: str
    base_instant: str
    names: tuple[str, ...]
    reason: str
    superseded: str


@dataclass(frozen=True, slots=True)
class Deletions(Sequence[Deletion]):
    """Slices to delete, partition by partition. A `Deletion` is made on access."""

    rows: pa.Table = field(default_factory=_SCHEMA.empty_table)

    @classmethod
    def of(cls, partition_path: str, slices: pa.Table, reasons: pa.Array, superseded: pa.Array) -> Deletions:
        """Those of a partition. `slices`: rows of STORED_SLICES; the arrays have a value for each of them."""
        paths = pa.DictionaryArray.from_arrays(
            pa.repeat(pa.scalar(0, pa.int32()), len(reasons)), pa.array([partition_path])
        )
        return cls(pa.Table.from_arrays([paths, *slices.columns, reasons, superseded], schema=_SCHEMA))

    @classmethod
    def together(cls, parts: Iterable[Deletions]) -> Deletions:
        """Those of several partitions."""
        return cls(pa.concat_tables([_SCHEMA.empty_table(), *(part.rows for part in parts if part)]))

    @property
    def file_count(self) -> int:
        return pc.sum(pc.list_value_length(self.rows.column("names"))).as_py() or 0

    @property
    def last_superseded(self) -> str:
        """The newest instant that took one of them out of every query, "" for none."""
        return pc.max(self.rows.column("superseded")).as_py() or ""

    def names_by_partition(self) -> Iterator[tuple[str, list[str]]]:
        """Partition paths, and names of the files that go there; a path may come several times."""
        for batch in self.rows.to_batches():
            if batch.num_rows:
                names = cast("pa.ListArray", batch.column("names"))
                yield batch.column("partition_path")[0].as_py(), cast("list[str]", names.flatten().to_pylist())

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def __iter__(self) -> Iterator[Deletion]:
        for batch in self.rows.to_batches():
            yield from _made(batch)

    @overload
    def __getitem__(self, place: int) -> Deletion: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Deletion, ...]: ...

    def __getitem__(self, place: int | slice) -> Deletion | tuple[Deletion, ...]:
        places = range(len(self))[place]
        found = tuple(_made(self.rows.take([places] if isinstance(places, int) else list(places))))
        return found[0] if isinstance(places, int) else found


def _made(rows: pa.Table | pa.RecordBatch) -> Iterator[Deletion]:
    for path, file_id, instant, names, reason, superseded in zip(
        *(column.to_pylist() for column in rows.columns), strict=True
    ):
        yield Deletion(path, file_id, instant, tuple(names), reason, superseded)
