"""How events are applied to a table (`ChangeFlow`): which columns are keys and sequence, which rows delete, what is
stored.

The words are those of `create_auto_cdc_flow` of Spark's declarative pipelines. All that can be wrong with them, with
the events and with the table is refused here, before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyhudi.actions.applied_changes import AppliedChanges
from pyhudi.actions.changes.values import mask_of
from pyhudi.actions.create_table import new_table
from pyhudi.actions.key_types import with_key_types
from pyhudi.engine.local import in_this_process
from pyhudi.errors import ConfigError
from pyhudi.expressions.binding import Where, bind
from pyhudi.expressions.filters import truth_of
from pyhudi.expressions.where import parse_where
from pyhudi.formats.avro.schema import arrow_from_avro, avro_from_arrow
from pyhudi.merge.change_events import END_AT, SEQUENCE, START_AT
from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import DELETE_FLAG_COLUMN, IS_DELETE, META_COLUMNS
from pyhudi.model.new_table import new_table_properties
from pyhudi.model.options import WriteOptions, canonical_keys
from pyhudi.model.options.merging import ORDERING_FIELDS
from pyhudi.model.options.operation import OPERATION
from pyhudi.model.options.table import RECORD_KEY, TABLE_NAME
from pyhudi.model.table_config import TableConfig
from pyhudi.schema.evolution import evolve
from pyhudi.schema.projection import project

__all__ = ["ChangeFlow", "names_of"]

_TIMES = (START_AT, END_AT)


def names_of(names: str | Iterable[str] | None) -> tuple[str, ...]:
    """Column names of a caller, as a text or several."""
    return (names,) if isinstance(names, str) else tuple(names or ())


@dataclass(frozen=True, slots=True)
class ChangeFlow:
    """How events become rows. `columns`, `except_columns`: what the table stores. `tracked`, `untracked`: of SCD type
    2, whose changes open a row. () means not given. `deletes`: the condition of a delete; `zone`: of times in it.
    """

    keys: tuple[str, ...]
    sequence: str
    scd_type: int = 1
    deletes: Where = None
    columns: tuple[str, ...] = ()
    except_columns: tuple[str, ...] = ()
    tracked: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    zone: tzinfo | None = None

    def __post_init__(self) -> None:
        """Raises ConfigError for words that don't go together."""
        if self.scd_type not in (1, 2):
            raise ConfigError(f"scd_type: expected 1 (the newest row) or 2 (history), found {self.scd_type!r:.100}.")
        if not self.keys:
            raise ConfigError("keys is empty: name the columns that identify a row, such as keys='id'.")
        if not isinstance(self.sequence, str) or not self.sequence:
            raise ConfigError(
                f"sequence_by: expected the name of one column, found {self.sequence!r:.200}. Compute a column that "
                "orders the events of a key first."
            )
        for one, other, names in (
            ("column_list", "except_column_list", (self.columns, self.except_columns)),
            ("track_history_column_list", "track_history_except_column_list", (self.tracked, self.untracked)),
        ):
            if all(names):
                raise ConfigError(f"{one} and {other} are both given; give one of them.")
        if self.scd_type == 1 and (self.tracked or self.untracked):
            raise ConfigError("track_history_... goes with scd_type=2: type 1 has no history.")

    # ---- what the commit notes, and what a new table is made with

    @property
    def record_key(self) -> tuple[str, ...]:
        """The table's record key: of type 2 a key has many rows."""
        return self.keys if self.scd_type == 1 else (*self.keys, START_AT)

    @property
    def times(self) -> tuple[str, ...]:
        """The columns that the table has besides those of the events."""
        return () if self.scd_type == 1 else _TIMES

    def note(self, data: Sequence[str]) -> AppliedChanges:
        """The note of a commit without hidden events. `data`: the columns that the table stores."""
        is_chosen = bool(self.tracked or self.untracked)
        return AppliedChanges(
            self.scd_type, list(self.keys), self.sequence, list(self.tracked_of(data)) if is_chosen else None
        )

    def tracked_of(self, data: Sequence[str]) -> tuple[str, ...]:
        """The columns whose changes open a new row. `data`: the columns that the table stores."""
        return self.tracked or tuple(name for name in data if name not in {*self.keys, *self.untracked})

    def creating(self) -> dict[str, object]:
        """Options of a new table."""
        created: dict[str, object] = {RECORD_KEY: ",".join(self.record_key)}
        return created | ({ORDERING_FIELDS: self.sequence} if self.scd_type == 1 else {})

    def options(self, given: Mapping[str, object]) -> dict[str, object]:
        """A caller's options without those that the flow sets. Raises ConfigError where they say something else."""
        expected: dict[str, list[tuple[str, ...]]] = {}
        expected[RECORD_KEY], expected[ORDERING_FIELDS] = [self.keys, self.record_key], [(self.sequence,)]
        options = {}
        for key, value in given.items():
            canonical = next(iter(canonical_keys([key])), key)
            if canonical == OPERATION and str(value).lower() not in ("upsert", "none"):
                raise ConfigError(f"{key}={value}: apply_changes inserts, updates and deletes as the events say.")
            if canonical in expected and value:
                names = names_of(value.split(",") if isinstance(value, str) else cast("Iterable[str]", value))
                if tuple(name.strip() for name in names) not in expected[canonical]:
                    raise ConfigError(
                        f"{key}={value}: keys and sequence_by say {', '.join(expected[canonical][-1])}; leave it out."
                    )
            if canonical not in {*expected, OPERATION}:
                options[key] = value
        return options

    # ---- the table

    def check_new(self, options: Mapping[str, object], root: str) -> None:
        """Raise ConfigError for options of a new table that events can't be applied to. `root`: its path."""
        parsed = WriteOptions.parse({TABLE_NAME: "new", **self.creating(), **options})
        self._check_config(TableConfig(new_table_properties(new_table(parsed))), root)

    def check_table(self, meta: MetaClient) -> None:
        """Raise ConfigError for a table that events can't be applied to in this way."""
        root = meta.storage.root
        self._check_config(meta.config, root)
        missing = [name for name in self.times or (self.sequence,) if name not in meta.table_schema().names]
        if missing:
            raise ConfigError(f"{root}: the table lacks {', '.join(missing)}, by which changes are applied.")

    def _check_config(self, config: TableConfig, root: str) -> None:
        if set(config.record_key_fields) != set(self.record_key):
            raise ConfigError(
                f"{root}: changes of type {self.scd_type} by {', '.join(self.keys)} need a table with the record key "
                f"{', '.join(self.record_key)}; this one has {', '.join(config.record_key_fields) or 'none'}."
            )
        moving = [name for name in config.partition_fields if name not in self.record_key]
        if moving:
            raise ConfigError(
                f"{root}: the table is partitioned by {', '.join(moving)}, which an event can change, or leave out. "
                f"Changes are applied to tables that are partitioned by columns of {', '.join(self.record_key)}, or "
                "not at all."
            )
        ordering = config.ordering_fields
        if config.record_merge_mode == "CUSTOM" or not set(ordering) <= {self.sequence, START_AT}:
            raise ConfigError(
                f"{root}: the table merges rows by {', '.join(ordering) or config.record_merge_mode}, and changes by "
                f"{self.sequence}. Use a table without ordering fields, or with {self.sequence}."
            )
        if not config.populate_meta_fields:
            raise ConfigError(f"{root}: changes are applied to tables with meta columns; this one has none.")

    def check_same(self, theirs: AppliedChanges, data: Sequence[str], root: str) -> None:
        """Raise ConfigError when changes have been applied to the table in another way. `data`: as in `note`."""
        ours = self.note(data)
        for what, found, expected in (
            ("scd_type", ours.type, theirs.type),
            ("keys", sorted(ours.keys), sorted(theirs.keys)),
            ("sequence_by", ours.sequence, theirs.sequence),
            ("the tracked columns", ours.tracked, theirs.tracked),
        ):
            if found != expected and not (what == "the tracked columns" and self.untracked):
                raise ConfigError(
                    f"{root}: changes have been applied with {what} = {expected} so far (commit "
                    f"{theirs.instant_time}), and now with {found}: the rows would not be those of one history."
                )

    # ---- the events

    def events(self, rows: pa.Table, meta: MetaClient | None, options: WriteOptions | None) -> pa.Table:
        """Events with the columns of the table (without its times), SEQUENCE and IS_DELETE.

        Args:    meta: None for a new table. options: of the write to the table.
        Raises:  ConfigError; SchemaMismatch for columns that don't fit.
        """
        names = rows.schema.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ConfigError(f"The events have several columns called {', '.join(twice)}. Rename or drop the others.")
        rows = rows.select([name for name in names if name not in META_COLUMNS])
        self._check_columns(rows.schema)
        self._check_values(rows)
        deletes = _deletes(rows, self.deletes, self.zone)
        events = rows.select(self._stored(rows.schema.names)).append_column(SEQUENCE, rows.column(self.sequence))
        if meta is None:
            columns = _as_stored(events.schema)
        else:
            events, columns = self._in_table(events, meta, options)
        columns = pa.schema([field.with_nullable(True) for field in columns])  # deletes may have nothing but keys
        return project(events, columns, exact=True).append_column(pa.field(IS_DELETE, pa.bool_()), deletes)

    def _in_table(self, events: pa.Table, meta: MetaClient, options: WriteOptions | None) -> tuple[pa.Table, pa.Schema]:
        """Events with the types of the table in keys and sequence, and the columns that they have after this batch."""
        table = meta.table_schema()
        in_rows = START_AT if self.times else self.sequence
        named = events.drop_columns(SEQUENCE)
        if self.times:
            named = named.append_column(START_AT, events.column(SEQUENCE))  # a part of the record key
        frame, engine = in_this_process(named)
        named = engine.collect(with_key_types(frame, engine, meta))
        schema_mode = None if options is None else options.schema_mode
        columns = evolve(
            pa.schema([field for field in table if field.name != END_AT]),
            named.schema,
            null_for_missing=True,
            protected=self.record_key,
            schema_mode=schema_mode,
        )
        sequence = columns.field(in_rows).with_name(SEQUENCE)
        data = [field for field in columns if field.name not in self.times]
        return named.append_column(SEQUENCE, named.column(in_rows)), pa.schema([*data, sequence])

    def _stored(self, names: Sequence[str]) -> list[str]:
        stored = [name for name in names if name not in self.except_columns]
        return [name for name in stored if name in self.columns] if self.columns else stored

    def _check_columns(self, schema: pa.Schema) -> None:
        lists = (self.columns, self.except_columns, self.tracked, self.untracked)
        named = [*self.keys, self.sequence, *(name for names in lists for name in names)]
        missing = [name for name in dict.fromkeys(named) if name not in schema.names]
        if missing:
            raise ConfigError(f"The events lack {', '.join(missing)}. Their columns: {', '.join(schema.names)}.")
        stored = self._stored(schema.names)
        lost = [name for name in (*self.keys, *self.tracked) if name not in stored]
        if lost:
            raise ConfigError(f"{', '.join(lost)}: the table needs this column; don't exclude it.")
        if self.scd_type == 1 and self.sequence not in stored:
            raise ConfigError(
                f"{self.sequence}: the table of type 1 stores the sequence, by which Hudi orders rows, so that late "
                "events are told from new ones. Don't exclude it."
            )
        reserved = [name for name in stored if name in (*_TIMES, SEQUENCE, IS_DELETE)]
        if reserved:
            raise ConfigError(f"{', '.join(reserved)}: apply_changes uses this name itself; rename the column.")
        if DELETE_FLAG_COLUMN in stored:
            raise ConfigError(
                f"{DELETE_FLAG_COLUMN}: Hudi would delete by this column. Say apply_as_deletes={DELETE_FLAG_COLUMN!r} "
                f"and except_column_list={DELETE_FLAG_COLUMN!r}."
            )
        for name in (*self.keys, self.sequence):
            kind = schema.field(name).type
            if pt.is_nested(kind) or (name == self.sequence and (pt.is_boolean(kind) or pt.is_null(kind))):
                raise ConfigError(f"{name} is of type {kind}, which has no order that events could be told by.")

    def _check_values(self, rows: pa.Table) -> None:
        for name in (*self.keys, self.sequence):
            column = rows.column(name)
            bad = pc.is_null(column)
            if pt.is_floating(column.type):
                bad = pc.or_kleene(bad, pc.is_nan(column))
            count = pc.sum(bad).as_py() or 0
            if count:
                row = rows.filter(bad).slice(0, 1).to_pylist()[0]
                what = "sequence_by" if name == self.sequence else "keys"
                raise ConfigError(f"{count:,} events have no value in {name} ({what}), such as {row!r:.500}.")


def _deletes(rows: pa.Table, condition: Where, zone: tzinfo | None) -> pa.Array:
    if condition is None:
        return pa.repeat(False, len(rows))
    try:
        predicate = bind(parse_where(condition), rows.schema, zone)
        return pa.array(mask_of(truth_of(predicate, rows, "apply_as_deletes")))
    except ConfigError as error:
        raise ConfigError(f"apply_as_deletes: {error}") from error


def _as_stored(schema: pa.Schema) -> pa.Schema:
    """The types that columns of a new table get. Raises SchemaMismatch for those that no table has."""
    return arrow_from_avro(avro_from_arrow(schema, "events", with_meta=False))
