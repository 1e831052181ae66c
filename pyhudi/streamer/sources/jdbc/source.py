"""A table of a database as a source: whole in each round, or the rows behind the greatest value of a column.

    checkpoint 17, read up to 30      WHERE n >= 17 AND n <= 30, without the rows at 17 that were read

Hudi's checkpoint is the greatest value that was read, and its next round asks for greater ones. That loses rows: of a
limited batch those whose value is that of its last row; later on those that were committed late, with the same value
or a smaller one. Here a batch ends with all rows of a value, and the commit also notes digests of its newest rows
(`READ_ROWS`): those at the last value, or so far behind it as `lookback` says. The next round reads these values again
and leaves out what the digests name. Where batches end, and which rows they have, says the database, whose order of
texts may not be Python's. Source: Hudi's JdbcSource.
"""

from __future__ import annotations

import base64
import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
import xxhash

from pyhudi.errors import ConfigError, CorruptFile, HudiError
from pyhudi.result import plain
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns
from pyhudi.streamer.sources.jdbc.client import JdbcDatabase, open_database
from pyhudi.streamer.sources.jdbc.rows import DatabaseTable, reflected, streamed
from pyhudi.streamer.sources.source import Batch, SourceSetting

__all__ = ["READ_ROWS", "JdbcSource"]

READ_ROWS = "pyhudi.streamer.read.rows"  # a key of extra metadata
_log = logging.getLogger("pyhudi.streamer")
_LIMIT_ROWS = 1_000_000
_NOTED_MAX = 5_000  # rows of a note, 8 bytes each
_IS_NEW, _IS_NOTED = "pyhudi_is_new", "pyhudi_is_noted"


@dataclass(frozen=True, slots=True)
class _Column:
    """The incrementing column. `is_raw`: SQLite's dates and times, which it compares as the texts that they are."""

    name: str
    sql: Any
    type: pa.DataType
    is_raw: bool

    @property
    def has_zone(self) -> bool:
        """Is it a time with a zone?"""
        return isinstance(self.type, pa.TimestampType) and self.type.tz is not None

    def text(self, value: Any) -> str:
        """A value as Hudi's checkpoint has it."""
        if isinstance(value, datetime):
            zone = "" if value.tzinfo is None else "+00:00"
            text = str(value.replace(tzinfo=None))
            return (text.rstrip("0") if value.microsecond else text) + zone
        return f"{value:f}" if isinstance(value, Decimal) else str(value)

    def came(self, value: Any) -> Any:
        """A value as it came from the database: in UTC where the column has a zone, whatever the driver makes of it."""
        if not isinstance(value, datetime) or not self.has_zone:
            return value
        return value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value.astimezone(timezone.utc)

    def value(self, text: str) -> Any:
        """The value of a checkpoint. Raises ConfigError for a text that is none of the column's type."""
        kind = self.type
        try:
            if self.is_raw or pt.is_string(kind):
                return text
            if pt.is_integer(kind):
                return int(text)
            if pt.is_decimal(kind):
                return Decimal(text)
            if pt.is_floating(kind):
                return float(text)
            if pt.is_date(kind):
                return date.fromisoformat(text)
            return _time(text, has_zone=self.has_zone)
        except (ValueError, InvalidOperation):
            raise ConfigError(
                f"The checkpoint {text!r:.100} is no value of the column {self.name!r}, which is of type {kind}: it "
                "is another source's or column's. Give one by checkpoint, or start over by ignore-checkpoint."
            ) from None

    def before(self, value: Any, distance: int) -> Any:
        """A value so far before another one."""
        if not distance:
            return value
        if not pt.is_temporal(self.type):
            return value - distance
        step = timedelta(days=distance) if pt.is_date(self.type) else timedelta(seconds=distance)
        if not self.is_raw:
            return value - step
        return (datetime.fromisoformat(value) - step).isoformat(sep=value[10:11] or " ")[: max(10, len(value))]


@dataclass(frozen=True, slots=True)
class _Window:
    """The newest values that were read: from `low` on, or `above` it, with a digest for each of their rows."""

    low: str
    is_above: bool
    digests: Sequence[int]

    @classmethod
    def of(cls, start: Start) -> _Window | None:
        """As a commit notes it; None where the checkpoint is Hudi's, or given by hand."""
        text = (start.notes or {}).get(READ_ROWS)
        if not text or start.is_given:
            return None
        try:
            noted = json.loads(text)
            packed = np.frombuffer(base64.b64decode(noted["rows"]), "<u8")
            return cls(noted["low"], noted["above"], packed.tolist())
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFile(f"The commit {start.after}: {READ_ROWS} can't be read: {error}.") from error

    def note(self) -> str:
        packed = np.array(sorted(self.digests), "<u8").tobytes()
        return json.dumps({"low": self.low, "above": self.is_above, "rows": base64.b64encode(packed).decode()})


class JdbcSource:
    """`reads_all`: each round reads the whole table, and notes no checkpoint."""

    writes_v2 = False

    def __init__(self, setting: SourceSetting) -> None:
        settings = setting.settings
        self._options = options = settings.options.jdbc
        for key, given in (("url", options.url), ("table.name", options.table)):
            if given is None:
                raise ConfigError(f"{settings.place}: hoodie.streamer.jdbc.{key} is missing.")
        if options.is_incremental and options.column is None:
            raise ConfigError(f"{settings.place}: hoodie.streamer.jdbc.table.incr.column.name is missing.")
        self.reads_all = not options.is_incremental
        if self.reads_all and settings.options.source_limit is not None:
            raise ConfigError(
                f"{settings.place}: source-limit would leave rows out where each round reads the whole table. Add "
                "hoodie.streamer.jdbc.incr.pull=true and the incrementing column, or leave source-limit out."
            )
        self._database: JdbcDatabase = open_database(settings)
        self._table: DatabaseTable | None = None

    def read(self, start: Start, limit: int | None, columns: RowColumns) -> Batch | None:
        """The whole table, or the rows behind the checkpoint, in the types of the database."""
        known, self._table = self._table, None
        if known is not None:
            try:
                return self._read(known, start, limit)
            except HudiError as error:
                _log.info("again, as the table may have other columns by now: %s", error)
        return self._read(None, start, limit)

    def close(self) -> None:
        """Close the connection."""
        self._database.engine.dispose()

    def _read(self, table: DatabaseTable | None, start: Start, limit: int | None) -> Batch | None:
        with self._database.connection() as connection:
            table = table or self._reflected(connection)
            while True:
                if self.reads_all:
                    batch = self._whole(connection, table, limit)
                else:
                    batch = self._next(connection, table, start, limit)
                # Rows may have a column that came since the table was looked at.
                now = table if batch is None else self._reflected(connection)
                if now.schema == table.schema:
                    self._table = table
                    return batch
                table = now

    def _reflected(self, connection: Any) -> DatabaseTable:
        assert self._options.table is not None
        return reflected(self._database, connection, self._options.table)

    def _whole(self, connection: Any, table: DatabaseTable, limit: int | None) -> Batch | None:
        asked = self._database.library.select(table.table)
        rows = self._rows(connection, asked if limit is None else asked.limit(limit), table.schema)
        return Batch(rows, None) if rows.num_rows else None

    def _next(self, connection: Any, table: DatabaseTable, start: Start, limit: int | None) -> Batch | None:
        column = self._column(table)
        try:
            after = column.value(start.text) if start.text else None
            return self._behind(connection, table, column, after, _Window.of(start), limit or _LIMIT_ROWS)
        except HudiError as error:
            if not (self._options.falls_back and start.text):
                raise
            connection.rollback()
            batch = self._behind(connection, table, column, None, None, limit or _LIMIT_ROWS)
            said = f"{self._database.where}: started over with the first row, as rows behind the checkpoint: {error}"
            return None if batch is None else Batch(batch.rows, batch.checkpoint, (), batch.notes, (said, *batch.said))

    def _behind(
        self, connection: Any, table: DatabaseTable, column: _Column, after: Any, window: _Window | None, limit: int
    ) -> Batch | None:
        """The rows behind a value, and those of the window that were not read. None when there are none."""
        sql = self._database.library
        bound = self._bound(connection, table, column, after, limit)
        if bound is None and window is None:
            return None
        moved, bound = bound is not None, after if bound is None else bound
        low = _low_after(column, bound, self._options.lookback, after, window)
        lowest = column.sql >= column.value(window.low) if window is not None and not window.is_above else None
        if lowest is None and (window is not None or after is not None):
            lowest = column.sql > (after if window is None else column.value(window.low))
        is_new = sql.literal(1) if after is None else sql.case((column.sql > after, 1), else_=0)
        noted_from = column.sql > low[0] if low[1] else column.sql >= low[0]
        where = column.sql <= bound if lowest is None else sql.and_(lowest, column.sql <= bound)
        # Rows without a value come with the first ones, as in Hudi.
        where = sql.or_(where, column.sql.is_(None)) if after is None else where
        asked = sql.select(
            *table.table.c, is_new.label(_IS_NEW), sql.case((noted_from, 1), else_=0).label(_IS_NOTED)
        ).where(where)
        flags = [pa.field(_IS_NEW, pa.int32()), pa.field(_IS_NOTED, pa.int32())]
        rows = self._rows(connection, asked, pa.schema([*table.schema, *flags]))
        return _batch(rows, column.text(bound), window, low, moved, column)

    def _bound(self, connection: Any, table: DatabaseTable, column: _Column, after: Any, limit: int) -> Any:
        """The greatest value of the next batch, which has so many rows or, with rows of the same value, more."""
        sql = self._database.library
        with self._database.errors():
            asked = sql.select(sql.func.max(column.sql)).select_from(table.table)
            asked = asked if after is None else asked.where(column.sql > after)
            greatest = connection.execute(asked).scalar()
            if greatest is None:
                return None
            cut = sql.select(column.sql).where(column.sql.is_not(None)).order_by(column.sql)
            cut = cut if after is None else cut.where(column.sql > after)
            at = connection.execute(cut.offset(limit - 1).limit(1)).first()
        return column.came(greatest if at is None else at[0])

    def _column(self, table: DatabaseTable) -> _Column:
        assert self._options.column is not None
        sql, kind = table.column(self._options.column)
        library = self._database.library
        kinds = library.types
        # Floats of four bytes are other numbers, and enumerations have another order, where they are compared.
        grows = pt.is_integer(kind) or pt.is_decimal(kind) or pt.is_float64(kind) or pt.is_date(kind)
        is_text = isinstance(sql.type, kinds.String) and not isinstance(sql.type, kinds.Enum)
        if not (grows or is_text or pt.is_timestamp(kind)):
            raise ConfigError(
                f"hoodie.streamer.jdbc.table.incr.column.name={self._options.column}: its type {sql.type!r:.60} is "
                "none that grows: expected integers, decimals, doubles, texts, dates or times."
            )
        is_raw = self._database.is_sqlite and pt.is_temporal(kind)
        if self._options.lookback and pt.is_string(kind):
            raise ConfigError(
                f"hoodie.pyhudi.streamer.jdbc.lookback is for numbers, dates and times; the column "
                f"{self._options.column!r} has texts."
            )
        return _Column(
            self._options.column, library.type_coerce(sql, library.String()) if is_raw else sql, kind, is_raw
        )

    def _rows(self, connection: Any, asked: Any, schema: pa.Schema) -> pa.Table:
        with self._database.errors():
            result = connection.execution_options(yield_per=self._options.rows_a_fetch).execute(asked)
            return streamed(result, schema, self._database.where)


def _low_after(column: _Column, bound: Any, lookback: int, after: Any, window: _Window | None) -> tuple[Any, bool]:
    """Where the next window begins, and whether above that value: not before what this batch knows to be read."""
    low = column.before(bound, lookback)
    if not lookback or (window is None and after is None):
        return low, False
    floor, is_above = (after, True) if window is None else (column.value(window.low), window.is_above)
    return (floor, is_above) if low <= floor else (low, False)


def _batch(
    rows: pa.Table, text: str, window: _Window | None, low: tuple[Any, bool], moved: bool, column: _Column
) -> Batch | None:
    """The rows that were not read, and the note of the newest ones. None when there are none."""
    is_new = rows.column(_IS_NEW).to_numpy() == 1
    is_noted = rows.column(_IS_NOTED).to_numpy() == 1
    rows = rows.drop_columns([_IS_NEW, _IS_NOTED])
    digests = np.zeros(len(is_new), np.uint64)
    # Rows that are neither new nor noted need a digest, too: they are of the window.
    at = np.flatnonzero(~is_new | is_noted) if is_noted.sum() <= _NOTED_MAX else np.flatnonzero(~is_new)
    digests[at] = [_digest(row) for row in rows.take(pa.array(at)).to_pylist()]
    unread = Counter(window.digests if window is not None else ())
    for number in np.flatnonzero(~is_new):  # of the window, so few; equal rows count one by one
        digest = int(digests[number])
        is_new[number] = not unread[digest]
        unread[digest] -= unread[digest] > 0
    if not moved and not is_new.any():
        return None
    taken = rows.filter(pa.array(is_new))
    if is_noted.sum() > _NOTED_MAX:
        said = (
            f"more than {_NOTED_MAX:,} rows have the newest values of {column.name!r}: rows that are committed later "
            f"with a value up to {text} will not be found"
        )
        return Batch(taken, text, said=[said])
    next_window = _Window(column.text(low[0]), low[1], digests[is_noted].tolist())
    return Batch(taken, text, notes={READ_ROWS: next_window.note()})


def _digest(row: Mapping[str, object]) -> int:
    """Of the values; a column that is added later, and null, changes nothing."""
    values = {name: plain(value) for name, value in row.items() if value is not None}
    return xxhash.xxh64_intdigest(json.dumps(values, sort_keys=True).encode())


def _time(text: str, *, has_zone: bool) -> datetime:
    """A time as a checkpoint has it: 2026-08-10 12:00:00.5, with +00:00 for a column with a zone."""
    zone = text.endswith("+00:00")
    if zone != has_zone:
        raise ValueError(text)
    head, _, fraction = text.removesuffix("+00:00").partition(".")
    if not (fraction.isdecimal() or not fraction) or len(fraction) > 9:
        raise ValueError(text)
    time = datetime.fromisoformat(head).replace(microsecond=int(fraction[:6].ljust(6, "0") or 0))
    return time.replace(tzinfo=timezone.utc) if has_zone else time
