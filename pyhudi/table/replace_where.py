"""Overwriting the rows that pass a filter, in one commit: `HudiTable.overwrite(data, where=...)`.

The new rows must pass the filter, which is checked before anything is written. How the old ones are removed depends on
the filter and the table:

    only partition columns       their partitions are overwritten; none of their rows is read
    a table with record keys     old rows are deleted and new ones upserted; a new row replaces that of its key
    a table without them         old rows are deleted and new ones inserted
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timezone, tzinfo
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.changes.change import ChangeRows
from pyhudi.actions.changes.clauses import Clause, When, loose_columns
from pyhudi.actions.changes.computed import CLAUSE, Computed, NumberedClause
from pyhudi.actions.changes.values import mask_of
from pyhudi.actions.key_types import with_key_types
from pyhudi.actions.result import WriteResult
from pyhudi.actions.save_modes import canonical_mode
from pyhudi.actions.table_keys import is_automatic
from pyhudi.actions.writes.insert_overwrite import Overwrite, insert_overwrite
from pyhudi.engine.base import Engine, Frame, TaskContext
from pyhudi.engine.local import in_this_process
from pyhudi.errors import ConfigError, OutdatedRows, SchemaMismatch
from pyhudi.expressions.binding import Where, bind
from pyhudi.expressions.filters import truth_of
from pyhudi.expressions.predicates import Predicate, calls_of, columns_of, is_opaque, split_texts
from pyhudi.expressions.where import parse_where
from pyhudi.formats.avro.schema import without_meta
from pyhudi.index.chosen import chosen_index
from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import META_COLUMNS, PLAIN_GENERATORS
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.operation import SCHEMA_MODE
from pyhudi.queries.query import Query
from pyhudi.queries.skip.paths import PathColumns
from pyhudi.schema.projection import project
from pyhudi.storage.base import Storage
from pyhudi.table.calls import Options, TableHandle, session_options, session_zone
from pyhudi.table.input import TableInput, choose_writer, is_spark_frame, to_arrow_rows
from pyhudi.table.save import write, write_rows
from pyhudi.table.scan import Scan
from pyhudi.table.write import change_table
from pyhudi.timeline.table_properties import table_exists

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession

__all__ = ["overwrite", "write_where"]

_OPERATION = "OVERWRITE"
_ROWS = "_pyhudi_rows"  # the number of rows that the example represents
_RUNS = 5  # attempts of a change whose rows are read before it, because others may write in between


def overwrite(
    handle: TableHandle, data: TableInput, where: Where, options: Options | None, arguments: Options
) -> WriteResult:
    """`HudiTable.overwrite`."""
    if where is None:
        return write_rows(handle, data, "insert_overwrite_table", options, arguments)
    return _replaced(handle.storage, data, where, handle.options(options, arguments), handle.spark)


def write_where(
    storage: Storage, data: TableInput, where: Where, options: Options, mode: str, spark: SparkSession | None
) -> WriteResult | None:
    """`write_hudi(where=...)`. A missing table is created."""
    if canonical_mode(mode, has_replace=True) != "overwrite":
        raise ConfigError(f"where= says which rows mode='overwrite' replaces; found mode={mode!r}.")
    session = spark if spark is not None else getattr(data, "sparkSession", None)
    if table_exists(storage):
        return _replaced(storage, data, where, options, session)
    parsed = WriteOptions.parse(options, session_options(session), None)
    frame, engine = _rows(data, None, parsed, options)
    _check_rows_pass(frame, engine, where, without_meta(engine.schema(frame)), session_zone(session))
    rows = data if is_spark_frame(data) else engine.collect(frame)
    return write(storage, rows, options, "append", session)


def _replaced(
    storage: Storage, data: TableInput, where: Where, options: Options, spark: SparkSession | None
) -> WriteResult:
    """Replace the rows that pass `where`.

    Raises: ConfigError for a row of `data` that does not pass; SchemaMismatch for columns that the table does not have;
        WriteConflict if another write has changed the same file groups since.
    """
    meta = MetaClient.load(storage)
    parsed = WriteOptions.parse(options, session_options(spark), meta.config)
    if parsed.schema_mode == "overwrite":
        raise ConfigError(
            f"{storage.root}: schema_mode='overwrite' needs an overwrite of the whole table; rows that don't pass "
            "where= are kept, with the old columns."
        )
    schema, zone = meta.table_schema(), session_zone(spark)
    frame, engine = _rows(data, schema, parsed, options)
    frame = with_key_types(frame, engine, meta)
    unknown = [name for name in without_meta(engine.schema(frame)).names if name not in schema.names]
    if unknown and (SCHEMA_MODE not in parsed.explicit or is_automatic(meta.config)):
        raise _unknown_columns(unknown, meta)
    predicate = _check_rows_pass(frame, engine, where, schema, zone)
    change = _by_partition(frame, predicate, meta, parsed)
    if change is None and is_automatic(meta.config):
        result = _without_keys(frame, engine, where, meta, parsed, spark)
    else:
        keyed = _by_key(frame, engine, where, meta, parsed, unknown, zone) if change is None else change
        result = change_table(storage, keyed, engine, parsed)
    return replace(result, operation=_OPERATION)


def _check_rows_pass(
    frame: Frame, engine: Engine, where: Where, schema: pa.Schema, zone: tzinfo | None = None
) -> Predicate:
    """Raise ConfigError when a row does not pass the filter. Returns the filter for these columns."""
    predicate = bind(parse_where(where), schema, zone)
    work = _Outside(predicate, schema)
    answer = pa.schema([*schema, pa.field(_ROWS, pa.int64())])
    outside = engine.collect(engine.map(frame, work, answer))
    if len(outside):
        count = pc.sum(outside.column(_ROWS)).as_py()
        row = outside.slice(0, 1).drop_columns(_ROWS).to_pylist()[0]
        raise ConfigError(
            f"overwrite(where=...): {count:,} of the new rows don't pass the filter, such as {row!r:.500}. Rows that "
            "pass are replaced, and the new ones must be among them. Nothing was changed."
        )
    return predicate


@dataclass(frozen=True, slots=True)
class _Outside:
    """Stream work: for each batch one row for which the condition is not true, and the number of such rows."""

    condition: Predicate
    schema: pa.Schema

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = pa.Table.from_batches([project(batch.select(_data_columns(batch.schema)), self.schema)])
            fails = ~mask_of(truth_of(self.condition, rows))
            if fails.any():
                first = rows.filter(pa.array(fails)).slice(0, 1)
                yield from first.append_column(_ROWS, pa.array([int(fails.sum())], pa.int64())).to_batches()


def _data_columns(schema: pa.Schema) -> list[str]:
    return [name for name in schema.names if name not in META_COLUMNS]


def _rows(data: TableInput, schema: pa.Schema | None, parsed: WriteOptions, options: Options) -> tuple[Frame, Engine]:
    """The rows as a frame that can be read twice. A stream is read into memory: it is checked before it is written."""
    if not is_spark_frame(data):
        rows = to_arrow_rows(data, schema)
        return in_this_process(rows.read_all() if isinstance(rows, pa.RecordBatchReader) else rows)
    from pyhudi.spark.frame_input import FrameInput  # pyspark is loaded only when it is used

    source = FrameInput(data)
    source.column_names(None)
    return choose_writer(source, parsed, options)


def _unknown_columns(names: Sequence[str], meta: MetaClient) -> SchemaMismatch:
    """The error for columns that the table does not have."""
    by_schema_mode = "" if is_automatic(meta.config) else "by schema_mode='merge', or "
    return SchemaMismatch(
        f"{meta.storage.root}: the new rows have the columns {', '.join(names)}, which the table does not have. Add "
        f"them {by_schema_mode}by table.alter(AddColumn(...)), or leave them out. Nothing was changed."
    )


def _by_partition(frame: Frame, predicate: Predicate, meta: MetaClient, parsed: WriteOptions) -> Overwrite | None:
    """The overwrite of whole partitions; None if the filter has other columns than their paths."""
    config = meta.config
    columns = columns_of(predicate)
    names = {column.path[0] for column in columns if len(column.path) == 1}
    is_plain = bool(columns) and len(names) == len(columns) and not is_opaque(predicate) and not calls_of(predicate)
    if not is_plain or split_texts(predicate)[1] or not names <= set(config.partition_fields):
        return None
    if (config.key_generator or "").upper() not in PLAIN_GENERATORS:
        return None
    matches = _PartitionMatches(PathColumns(config, meta.table_schema()), predicate, meta)
    return replace(insert_overwrite(frame, parsed), matches=matches)


@dataclass(frozen=True, slots=True)
class _PartitionMatches:
    """A test if the filter holds for the rows of a partition. Its columns are those of the path."""

    paths: PathColumns
    predicate: Predicate
    meta: MetaClient

    def __call__(self, partition_path: str) -> bool:
        schema = self.meta.table_schema()
        names = [column.path[0] for column in columns_of(self.predicate)]
        values = dict(self.paths.parsed(partition_path))
        missing = [name for name in names if name not in values]
        if missing:
            raise ConfigError(
                f"{self.meta.storage.root}: the path of the partition {partition_path!r} does not contain the value of "
                f"{missing[0]}, so it is unknown if its rows are to be replaced. Nothing was changed."
            )
        columns = [pa.array([values[name]], pa.string()).cast(schema.field(name).type) for name in names]
        row = pa.table(columns, schema=pa.schema([schema.field(name).with_nullable(True) for name in names]))
        return bool(mask_of(truth_of(self.predicate, row))[0])


def _by_key(
    frame: Frame,
    engine: Engine,
    where: Where,
    meta: MetaClient,
    parsed: WriteOptions,
    unknown: Iterable[str],
    zone: tzinfo | None,
) -> ChangeRows:
    """The change that replaces whole rows of known keys, inserts new ones, and deletes the others that pass the filter.

    `unknown`: new columns of the rows, which the table gets.
    """
    config = meta.config
    names, schema = engine.schema(frame).names, meta.table_schema()
    fixed = {name.partition(".")[0] for name in (*config.record_key_fields, *config.partition_fields)}
    index = chosen_index(parsed, config.record_key_fields)
    fixed -= loose_columns(config, schema, is_global=index.is_global)
    values: dict[str, object] = {
        name: pc.field("source", name) if name in names else None
        for name in (*schema.names, *unknown)
        if name not in fixed
    }
    # Log records win by their ordering values, so rows outside the filter must be seen as well.
    sees_all = config.is_merge_on_read and bool(config.ordering_fields)
    updates = (Clause(When.MATCHED, "update", None, values),) if values else ()
    clauses = (
        *updates,
        Clause(When.NOT_MATCHED, "insert"),
        Clause(When.NOT_MATCHED_BY_SOURCE, "delete", where if sees_all else None),
    )
    joined = None if sees_all else where
    return ChangeRows(clauses, joined, frame, zone=zone, replaces=True, refuses_moves=True, evolves=bool(unknown))


def _without_keys(
    frame: Frame, engine: Engine, where: Where, meta: MetaClient, parsed: WriteOptions, spark: SparkSession | None
) -> WriteResult:
    """Delete old rows by their locations, and insert the new ones with generated keys."""
    for run in range(_RUNS):
        now = meta.reload()
        zone = session_zone(spark)
        old = Scan(now, Query(META_COLUMNS, parse_where(where), zone or timezone.utc)).to_arrow()
        data_names = now.table_schema().names
        new = project(engine.collect(frame).select(_data_columns(engine.schema(frame))), now.table_schema(), exact=True)
        rows = pa.concat_tables(
            [
                old.append_column(CLAUSE, pa.repeat(pa.scalar(0, pa.int32()), len(old))),
                new.append_column(CLAUSE, pa.repeat(pa.scalar(1, pa.int32()), len(new))),
            ],
            promote_options="default",
        )
        clauses = (
            NumberedClause(When.MATCHED, "delete", 0, {}),
            NumberedClause(When.NOT_MATCHED, "insert", 1, {name: name for name in data_names}),
        )
        source, local = in_this_process(rows)
        change = ChangeRows(clauses, source=source, computed=Computed(read=now.timeline.commits()))
        try:
            return change_table(meta.storage, change, local, parsed)
        except OutdatedRows:
            if run == _RUNS - 1:
                raise
    raise AssertionError("unreachable")
