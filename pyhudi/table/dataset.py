"""HudiDataset: a scan as a `pyarrow.dataset.Dataset`, which DuckDB, polars, DataFusion and Ibis can query.

They ask a dataset for columns and for rows that pass a filter. Both narrow the scan: partitions, files, row groups and
columns that the query doesn't need are not read, and merge-on-read slices are merged as they stream. A fragment is one
file slice; it can be pickled and read by another process.

Arrow's own scanner, in C++, knows only files and merges nothing. If it gets a HudiDataset (`Scanner.from_dataset`, a
union of datasets), it raises an error that names the alternative.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timezone, tzinfo
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypedDict, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pyhudi.errors import ConfigError
from pyhudi.expressions.binding import bind
from pyhudi.expressions.filters import top_level_columns
from pyhudi.expressions.foreign import columns_of_expression
from pyhudi.expressions.predicates import conjunction
from pyhudi.expressions.where import parse_where
from pyhudi.formats.base import BATCH_ROWS
from pyhudi.queries.count import count_rows
from pyhudi.queries.plan import ReadPlan, selected
from pyhudi.queries.snapshot import READ_THREADS, read_batches
from pyhudi.schema.projection import project
from pyhudi.storage.base import Storage

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pyhudi.expressions.binding import Where

__all__ = ["HudiDataset", "HudiFragment", "arrow_stream", "whole_batches"]


class Rows(Protocol):
    """A query that can be narrowed and run again: a `Scan`."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def plan(self) -> ReadPlan: ...

    @property
    def storage(self) -> Storage: ...

    @property
    def zone(self) -> tzinfo: ...

    def narrowed(self, columns: Sequence[str] | None = None, where: Where = None) -> Rows: ...

    def to_batches(self) -> pa.RecordBatchReader: ...

    def count(self) -> int: ...


Columns: TypeAlias = "Sequence[str] | Mapping[str, pc.Expression] | None"


class ScannerOptions(TypedDict, total=False):
    """Options of reading: see `HudiDataset.scanner`."""

    batch_size: int
    use_threads: bool
    batch_readahead: int | None
    fragment_readahead: int | None
    fragment_scan_options: object
    cache_metadata: bool | None
    memory_pool: pa.MemoryPool | None


class _Reading:
    """The reading methods of a dataset and of a fragment, as pyarrow has them."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Columns and types of the rows."""

    @abstractmethod
    def _stream(
        self, columns: Sequence[str] | None, filter: pc.Expression | None, batch_size: int, threads: int
    ) -> pa.RecordBatchReader:
        """These columns (None: all) of the rows that pass."""

    def scanner(
        self,
        columns: Columns = None,
        filter: pc.Expression | None = None,
        batch_size: int = BATCH_ROWS,
        *,
        use_threads: bool = True,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        fragment_scan_options: object = None,
        cache_metadata: bool | None = None,
        memory_pool: pa.MemoryPool | None = None,
    ) -> ds.Scanner:
        """The rows as a scanner, to be read once.

        Args:
            columns: names, or new columns as expressions by their names; None: all.
            filter: only rows that pass it. batch_size: the maximum number of rows of a batch.
            use_threads: False reads one file at a time, True as many as `fragment_readahead`.
            batch_readahead, fragment_scan_options, cache_metadata, memory_pool: for Arrow's own scanner of files;
                this one has two batches of a file in memory.
        """
        threads = (fragment_readahead or READ_THREADS) if use_threads else 1
        names = self._needed(columns.values()) if isinstance(columns, Mapping) else columns
        counted = self.schema.names[:1]  # rows without columns must still be counted
        rows = self._stream(counted if names is not None and not names else names, filter, batch_size, threads)
        chosen = dict(columns) if isinstance(columns, Mapping) else None if columns is None else list(columns)
        return ds.Scanner.from_batches(rows, columns=chosen)

    def _needed(self, expressions: Iterable[pc.Expression]) -> list[str] | None:
        names = [columns_of_expression(expression) for expression in expressions]
        if any(part is None for part in names):
            return None
        named_columns = set().union(*(part for part in names if part is not None))
        return [name for name in self.schema.names if name in named_columns]

    def to_batches(
        self, columns: Columns = None, filter: pc.Expression | None = None, **options: Unpack[ScannerOptions]
    ) -> Iterator[pa.RecordBatch]:
        """The rows as a stream, in bounded memory. Arguments: as for `scanner`."""
        scanner = self.scanner(columns=columns, filter=filter, **options)
        return iter(scanner.to_reader())

    def to_table(
        self, columns: Columns = None, filter: pc.Expression | None = None, **options: Unpack[ScannerOptions]
    ) -> pa.Table:
        """The rows in memory. Arguments: as for `scanner`."""
        return self.scanner(columns=columns, filter=filter, **options).to_reader().read_all()

    def head(
        self,
        num_rows: int,
        columns: Columns = None,
        filter: pc.Expression | None = None,
        **options: Unpack[ScannerOptions],
    ) -> pa.Table:
        """The first rows; only the files that hold them are read."""
        reader, batches, rows = (
            self.scanner(columns=columns, filter=filter, **options).to_reader(),
            list[pa.RecordBatch](),
            0,
        )
        while rows < num_rows:
            batch = next(reader, None)
            if batch is None:
                break
            batches.append(batch.slice(0, num_rows - rows))
            rows += len(batches[-1])
        return pa.Table.from_batches(batches, reader.schema)

    def take(self, indices: object, **options: Unpack[ScannerOptions]) -> pa.Table:
        """The rows at these positions of the stream."""
        return self.to_table(**options).take(cast("pa.Array", indices))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """All rows, by Arrow's C stream."""
        return self._stream(None, None, BATCH_ROWS, READ_THREADS).__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]


class HudiDataset(_Reading, ds.UnionDataset):  # type: ignore[misc]  # pyarrow's methods, as they are used
    """The rows of a scan, as of its moment, for any number of queries. Made by `to_dataset`."""

    def __init__(self, scan: Rows, schema: pa.Schema | None = None) -> None:
        """`schema`: columns and types instead of the scan's own."""
        self._scan, self._shape = scan, schema
        columns = scan.schema if schema is None else schema
        ds.UnionDataset.__init__(self, columns, [_for_arrow_s_scanner(columns)])  # type: ignore[call-arg]

    @property
    def schema(self) -> pa.Schema:
        return self._scan.schema if self._shape is None else self._shape

    @property
    def partition_expression(self) -> pc.Expression:
        """True: no condition holds for every row."""
        return pc.scalar(True)

    def _stream(
        self, columns: Sequence[str] | None, filter: pc.Expression | None, batch_size: int, threads: int
    ) -> pa.RecordBatchReader:
        names = self.schema.names if columns is None else list(columns)
        column_names = set(self._scan.schema.names)
        stored = names if self._shape is None else [name for name in names if name in column_names]
        plan = self._scan.narrowed(stored or self._scan.schema.names[:1], filter).plan
        rows = read_batches(plan, self._scan.storage, threads=threads, batch_rows=batch_size)
        if self._shape is None:
            return pa.RecordBatchReader.from_batches(plan.schema, whole_batches(rows))
        shape = selected(self._shape, names)
        return pa.RecordBatchReader.from_batches(shape, (project(batch, shape) for batch in whole_batches(rows)))

    def count_rows(self, filter: pc.Expression | None = None, **options: Unpack[ScannerOptions]) -> int:  # type: ignore[override]
        """The number of rows that pass; without a filter from the files' footers."""
        return self._scan.narrowed(self._scan.schema.names[:1], filter).count()

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[HudiFragment]:
        """The file slices that may have rows which pass, in the scan's order, each with all of its rows."""
        plan = self._scan.plan
        for read in self._scan.narrowed(None, filter).plan.slices:
            yield HudiFragment(replace(plan, slices=(read,)), self._scan.storage, self._scan.zone)

    def filter(self, expression: pc.Expression) -> HudiDataset:
        """The dataset of the rows that pass."""
        return HudiDataset(self._scan.narrowed(None, expression), self._shape)

    def replace_schema(self, schema: pa.Schema) -> HudiDataset:  # type: ignore[override]
        """The dataset with these columns and types; columns that the scan lacks are null."""
        return HudiDataset(self._scan, schema)

    def sort_by(self, sorting: str | Sequence[tuple[str, str]], **options: object) -> ds.InMemoryDataset:
        """The rows in order, in memory. Arguments: as for pyarrow's `Dataset.sort_by`."""
        return _in_memory(self.to_table().sort_by(sorting, **options))  # type: ignore[arg-type]

    def join(self, right_dataset: ds.Dataset, *arguments: object, **options: object) -> ds.InMemoryDataset:
        """Both datasets joined, in memory. Arguments: as for pyarrow's `Dataset.join`."""
        return _in_memory(self.to_table().join(right_dataset.to_table(), *arguments, **options))  # type: ignore[arg-type]

    def join_asof(self, right_dataset: ds.Dataset, *arguments: object, **options: object) -> ds.InMemoryDataset:
        """Both datasets joined by the nearest value, in memory. Arguments: as for pyarrow's `Dataset.join_asof`."""
        rows = self.to_table().join_asof(right_dataset.to_table(), *arguments, **options)  # type: ignore[arg-type]
        return _in_memory(rows)

    def __reduce__(self) -> tuple[type[HudiDataset], tuple[object, ...]]:
        return HudiDataset, (self._scan, self._shape)

    def __repr__(self) -> str:
        return f"HudiDataset({self._scan!r})"


@dataclass(frozen=True)
class HudiFragment(_Reading):
    """One file slice of a dataset, for any reader. `plan`: of this slice alone."""

    plan: ReadPlan
    storage: Storage
    zone: tzinfo = timezone.utc

    @property
    def schema(self) -> pa.Schema:
        return self.plan.schema

    @property
    def physical_schema(self) -> pa.Schema:
        """Columns and types of the rows in the table."""
        return self.plan.schema

    @property
    def path(self) -> str:
        """The path of the base file, relative to the table; for a slice without one its partition and file id."""
        file_slice = self.plan.slices[0].file_slice
        return file_slice.group.file_id if file_slice.base_file is None else file_slice.base_file.path

    @property
    def partition_expression(self) -> pc.Expression:
        """The condition that holds for every row by the partition's path."""
        parts = [
            pc.field(name).is_null()
            if text is None
            else pc.field(name) == pa.scalar(text).cast(self.schema.field(name).type)
            for name, text in self.plan.slices[0].from_path.items()
            if name in self.schema.names
        ]
        return reduce(and_, parts) if parts else pc.scalar(True)

    def scanner(  # type: ignore[override]
        self,
        schema: pa.Schema | None = None,
        columns: Columns = None,
        filter: pc.Expression | None = None,
        **options: Unpack[ScannerOptions],
    ) -> ds.Scanner:
        """The rows as a scanner, to be read once. `schema`: the dataset's; others: as for `HudiDataset.scanner`."""
        return super().scanner(columns, filter, **options)

    def count_rows(self, filter: pc.Expression | None = None, **options: Unpack[ScannerOptions]) -> int:
        """The number of rows that pass; without a filter from the file's footer."""
        return count_rows(self._narrowed(self.schema.names[:1], filter), self.storage)

    def _stream(
        self, columns: Sequence[str] | None, filter: pc.Expression | None, batch_size: int, threads: int
    ) -> pa.RecordBatchReader:
        plan = self._narrowed(columns, filter)
        rows = read_batches(plan, self.storage, threads=1, batch_rows=batch_size)
        return pa.RecordBatchReader.from_batches(plan.schema, whole_batches(rows))

    def _narrowed(self, columns: Sequence[str] | None, filter: pc.Expression | None) -> ReadPlan:
        plan = self.plan
        schema = plan.schema if columns is None else selected(plan.schema, columns)
        predicate = plan.predicate
        if filter is not None:
            more = bind(parse_where(filter), plan.schema, self.zone)
            predicate = more if plan.keeps_all_rows else conjunction((predicate, more))
        if plan.changes is not None:
            return replace(plan, schema=schema, predicate=predicate)
        needed = {*schema.names, *top_level_columns(predicate, plan.read_schema)}
        read_schema = pa.schema([column for column in plan.read_schema if column.name in needed])
        return replace(plan, schema=schema, read_schema=read_schema, predicate=predicate)


def arrow_stream(scan: Rows, requested_schema: object) -> object:
    """The rows of a scan by Arrow's C stream, in the columns and types that the caller asks for."""
    schema = None if requested_schema is None else pa.Schema._import_from_c_capsule(requested_schema)
    if schema is not None and set(schema.names) < set(scan.schema.names):
        scan = scan.narrowed(schema.names)
    rows = scan.to_batches()
    rows = pa.RecordBatchReader.from_batches(rows.schema, whole_batches(rows))
    return (rows if schema is None else rows.cast(schema)).__arrow_c_stream__()  # type: ignore[no-untyped-call]


def whole_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Copy slices of batches to whole ones: DuckDB refuses structs in a slice of a batch."""
    for batch in batches:
        is_nested = any(pa.types.is_nested(field.type) for field in batch.schema)
        yield pa.ipc.read_record_batch(batch.serialize(), batch.schema) if is_nested else batch


def _in_memory(rows: pa.Table) -> ds.InMemoryDataset:
    return ds.InMemoryDataset(rows)  # type: ignore[call-arg]


class _NoFile:
    """The placeholder that Arrow's scanner gets instead of the files of a HudiDataset."""

    closed = False

    def _refuse(self, *_: object) -> int:
        raise ConfigError(
            "Arrow's own scanner merges no log files and knows no commits, so it can't read a Hudi table. Call the "
            "dataset's scanner(), to_batches() or to_table(), and pass their result instead of the dataset."
        )

    read = seek = tell = size = _refuse

    def close(self) -> None:
        """Do nothing: no file is open."""


def _for_arrow_s_scanner(schema: pa.Schema) -> ds.Dataset:
    format = ds.IpcFileFormat()
    fragment = format.make_fragment(pa.PythonFile(_NoFile(), mode="r"))  # type: ignore[arg-type]  # its methods are enough
    return ds.FileSystemDataset([fragment], schema, format)
