"""ALTER TABLE of a Hudi table.

    ADD COLUMN[S] (name type [COMMENT '…'] [FIRST | AFTER other], …)     RENAME COLUMN a TO b      RENAME TO other
    ALTER | CHANGE [COLUMN] name TYPE type | COMMENT '…' | FIRST | AFTER other | DROP NOT NULL
    CHANGE [COLUMN] name name type [COMMENT '…'] [FIRST | AFTER other]   DROP COLUMN[S] (a, b.c)
    SET | UNSET TBLPROPERTIES (…)       DROP [IF EXISTS] PARTITION (…)

Source: Hudi's documentation, "SQL DDL", "Schema evolution"; Spark's SQL reference, "ALTER TABLE".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.errors import ConfigError, TableExists
from pyhudi.schema.changes import (
    FIRST,
    AddColumn,
    ChangeType,
    DropColumn,
    DropNotNull,
    MoveColumn,
    RenameColumn,
    SchemaChange,
    SetComment,
)
from pyhudi.sql.columns import comment_of, quoted
from pyhudi.sql.partitions import PartitionSpec, matching_paths, partition_spec
from pyhudi.sql.session import NO_ROWS, SCHEMA_ON_READ, CatalogEntry, SqlFrame, SqlSession, TableName
from pyhudi.sql.table_options import check_change, check_property_keys, is_ours, options_of, our_table, write_options
from pyhudi.sql.tokens import Reader, SqlToken

__all__ = ["AlterColumns", "AlterProperties", "DropPartitions", "RenameTable", "parse_alter"]

_FORMS = "ADD COLUMNS, RENAME, ALTER COLUMN, DROP COLUMN, DROP PARTITION, SET or UNSET TBLPROPERTIES"
Alter = Callable[[Reader, TableName], "AlterColumns | AlterProperties | DropPartitions | RenameTable"]


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column as the statement defines it; its type is read when the statement runs. `name`: its new name."""

    path: tuple[str, ...]
    text: str | None = None
    comment: str | None = None
    after: str | None = None
    nullable: bool = False
    is_new: bool = False
    name: str | None = None

    def changes(self, session: SqlSession) -> list[SchemaChange]:
        """The schema changes. Raises ConfigError for a type that can't be read."""
        field = None
        if self.text is not None:
            schema = session.schema_of(f"{quoted(self.path[-1])} {self.text}")
            if len(schema) != 1:
                raise ConfigError(f"SQL: {self.text!r:.200} is not the type of one column.")
            field = schema.field(0)
        comment = self.comment if field is None else comment_of(field) or self.comment
        path = ".".join(self.path)
        if self.is_new:
            assert field is not None
            return [AddColumn(path, field.type, field.nullable, comment or "", self.after)]
        changes: list[SchemaChange] = [] if field is None else [ChangeType(path, field.type)]
        if comment is not None:
            changes.append(SetComment(path, comment))
        if self.nullable:
            changes.append(DropNotNull(path))
        if self.after is not None:
            changes.append(MoveColumn(path, self.after))
        if self.name is not None and self.name != self.path[-1]:
            changes.append(RenameColumn(path, self.name))
        return changes


@dataclass(frozen=True, slots=True)
class AlterColumns:
    """Column changes, made in one commit: first `columns`, whose types the session reads, then `changes`."""

    name: TableName
    columns: tuple[NewColumn, ...] = ()
    changes: tuple[SchemaChange, ...] = ()

    def run(self, session: SqlSession) -> SqlFrame:
        """Make the changes. Raises ConfigError for a change that the table refuses; the table is then unchanged."""
        table = our_table(session, self.name)
        options = options_of(session, table)
        column_changes = (change for column in self.columns for change in column.changes(session))
        changes = [
            *(change for change in column_changes if not _says_nothing(change, table.table.schema())),
            *self.changes,
        ]
        if not changes:
            return session.frame_from(NO_ROWS)
        setting = table.properties.get(SCHEMA_ON_READ, session.schema_on_read)
        by_id = None if setting is None else setting.lower() == "true"
        table.table.alter(*changes, schema_on_read=by_id, options=options)
        _update(session, self.name)
        return session.frame_from(NO_ROWS)


@dataclass(frozen=True, slots=True)
class AlterProperties:
    """Changes of catalog properties. `removed`: keys to remove; `if_exists`: missing keys are no error."""

    name: TableName
    set: Mapping[str, str]
    removed: tuple[str, ...] = ()
    if_exists: bool = False

    def run(self, session: SqlSession) -> SqlFrame:
        """Change the properties.

        Raises: ConfigError for a property that can never be changed, a missing key, an unknown option, and for values
            that would make every write fail.
        """
        entry = _entry(session, self.name)
        check_property_keys((*self.set, *self.removed))
        fixed = [key for key in (*self.set, *self.removed) if not key.startswith("hoodie.") and _is_fixed(key)]
        if fixed:
            raise ConfigError(f"SQL: {', '.join(fixed)} of {self.name} can't change: the table was made with it.")
        missing = [key for key in self.removed if key not in entry.properties]
        if missing and not self.if_exists:
            raise ConfigError(f"SQL: {self.name} has no property {', '.join(missing)}; say UNSET … IF EXISTS.")
        remaining = {key: value for key, value in entry.properties.items() if key not in self.removed}
        comment = self.set.get("comment", entry.comment)
        set_ = {key: value for key, value in self.set.items() if key != "comment"}
        properties = {**remaining, **set_}
        config = our_table(session, self.name).table.state().config
        check_change(self.name, set_, entry.properties, properties, config)
        _update(session, self.name, replace(entry, properties=properties, comment=comment))
        return session.frame_from(NO_ROWS)


@dataclass(frozen=True, slots=True)
class DropPartitions:
    """Deletes whole partitions in one commit."""

    name: TableName
    specs: tuple[PartitionSpec, ...]
    if_exists: bool = False

    def run(self, session: SqlSession) -> SqlFrame:
        """Delete the partitions. Raises ConfigError for a missing partition, or if a column is no partition column."""
        table = our_table(session, self.name).table
        paths = matching_paths(table, self.specs)
        if paths:
            table.delete_partitions(paths, options=dict(session.settings))
        elif not self.if_exists:
            partitions = ", ".join("/".join(f"{key}={value}" for key, value in spec.items()) for spec in self.specs)
            raise ConfigError(f"SQL: {self.name} has no partition {partitions}; say DROP IF EXISTS PARTITION.")
        return session.frame_from(NO_ROWS)


@dataclass(frozen=True, slots=True)
class RenameTable:
    """Renames a table in the catalog; its folder is kept."""

    name: TableName
    new: TableName

    def run(self, session: SqlSession) -> SqlFrame:
        """Rename the table. Raises TableExists for a name in use."""
        new = self.new if len(self.new.parts) > 1 else TableName((*self.name.parts[:-1], *self.new.parts))
        if session.catalog.find(new) is not None:
            raise TableExists(f"There is a table or view {new} already.")
        session.catalog.rename(self.name, new)
        return session.frame_from(NO_ROWS)


def _says_nothing(change: SchemaChange, schema: pa.Schema) -> bool:
    """True if a column already has the type. CHANGE COLUMN always names a type, even to change only the comment."""
    if not isinstance(change, ChangeType):
        return False
    fields: Sequence[pa.Field] = list(schema)
    *outer, last = change.path.lower().split(".")
    for name in outer:
        inside = next((field.type for field in fields if field.name.lower() == name), None)
        fields = list(inside.fields) if inside is not None and pa.types.is_struct(inside) else []
    return any(field.name.lower() == last and field.type.equals(change.type) for field in fields)


def _is_fixed(key: str) -> bool:
    return bool(write_options({key: "cow" if key.lower() == "type" else "x"}))


def _entry(session: SqlSession, name: TableName) -> CatalogEntry:
    entry = session.catalog.find(name) if name.path is None else None
    if entry is None:
        raise ConfigError(f"SQL: {name} is a path, which no catalog keeps properties for.")
    return entry


def _update(session: SqlSession, name: TableName, entry: CatalogEntry | None = None) -> None:
    """Write the table's current columns and properties to the catalog."""
    if name.path is not None:
        return
    table = our_table(session, name).table
    fields = [field.partition(":")[0] for field in table.state().config.partition_fields]
    session.catalog.update(entry or _entry(session, name), table.schema(), fields)


# ---- reading it


def parse_alter(
    text: str, tokens: Sequence[SqlToken], session: SqlSession
) -> AlterColumns | AlterProperties | DropPartitions | RenameTable | None:
    """Parse ALTER TABLE …; None for a table that is not Hudi's."""
    reader = Reader(text, tokens)
    reader.expect("ALTER TABLE")
    name = reader.table_name()
    if not is_ours(session, name):
        return None
    for words, parse in _PARSERS.items():
        if reader.accept(words):
            statement = parse(reader, name)
            reader.expect_end()
            return statement
    raise reader.error(_FORMS)


def _add(reader: Reader, name: TableName) -> AlterColumns:
    parts = list(reader.parts()) if reader.sees_symbol("(") else list(reader.split())
    return AlterColumns(name, columns=tuple(_definition(part, is_new=True) for part in _whole_items(parts)))


def _whole_items(parts: Sequence[Reader]) -> list[Reader]:
    """Rejoin the items of a list that were split at a comma inside the `<…>` of a type."""
    whole: list[Reader] = []
    depth = 0
    for part in parts:
        if depth:
            whole[-1] = Reader(part.text, part.tokens, whole[-1].at, part.stop)
        else:
            whole.append(part)
        for token in part.tokens[part.at : part.stop]:
            depth += token.is_symbol("<") - token.is_symbol(">")
    return whole


def _definition(reader: Reader, *, is_new: bool) -> NewColumn:
    path = reader.dotted("a column")
    return _typed(reader, NewColumn(path, is_new=is_new))


def _typed(reader: Reader, column: NewColumn) -> NewColumn:
    """Read a column's type, NOT NULL, comment and place."""
    text = reader.until("FIRST", "AFTER").words()
    if not text:
        raise reader.error("the type of the column")
    return replace(column, text=text, after=_place(reader))


def _place(reader: Reader) -> str | None:
    """Read AFTER column, or FIRST; None if there is neither."""
    if reader.accept("FIRST"):
        return FIRST
    return reader.identifier("the column before") if reader.accept("AFTER") else None


def _change(reader: Reader, name: TableName) -> AlterColumns:
    """Read ALTER COLUMN and CHANGE COLUMN in the forms of Spark and Hive."""
    path = reader.dotted("a column")
    column = NewColumn(path)
    if reader.accept("TYPE"):
        column = _typed(reader, column)
    elif reader.accept("COMMENT"):
        column = replace(column, comment=reader.value("the comment"))
    elif reader.accept("DROP NOT NULL"):
        column = replace(column, nullable=True)
    elif reader.accept("SET NOT NULL"):
        raise ConfigError(f"SQL: {'.'.join(path)} can't become NOT NULL: older rows may be null.")
    elif reader.sees("FIRST") or reader.sees("AFTER"):
        column = replace(column, after=_place(reader))
    else:
        column = _typed(reader, replace(column, name=reader.identifier("TYPE, COMMENT, FIRST, AFTER or a new name")))
    return AlterColumns(name, columns=(column,))


def _rename_column(reader: Reader, name: TableName) -> AlterColumns:
    path = reader.dotted("a column")
    reader.expect("TO")
    return AlterColumns(name, changes=(RenameColumn(".".join(path), reader.identifier("the new name")),))


def _drop_columns(reader: Reader, name: TableName) -> AlterColumns:
    parts = reader.parts() if reader.sees_symbol("(") else reader.split()
    drops = []
    for part in parts:
        drops.append(DropColumn(".".join(part.dotted("a column"))))
        part.expect_end()
    return AlterColumns(name, changes=tuple(drops))


def _rename_table(reader: Reader, name: TableName) -> RenameTable:
    return RenameTable(name, reader.table_name())


def _set_properties(reader: Reader, name: TableName) -> AlterProperties:
    return AlterProperties(name, reader.properties())


def _unset_properties(reader: Reader, name: TableName) -> AlterProperties:
    if_exists = reader.accept("IF EXISTS")
    keys = []
    for part in reader.parts():
        keys.append(part.property_key())
        part.expect_end()
    return AlterProperties(name, {}, tuple(keys), if_exists)


def _drop_partitions(reader: Reader, name: TableName) -> DropPartitions:
    specs = [partition_spec(reader)]
    while reader.accept_symbol(","):
        reader.expect("PARTITION")
        specs.append(partition_spec(reader))
    reader.accept("PURGE")
    return DropPartitions(name, tuple(specs))


def _drop_partitions_if_there(reader: Reader, name: TableName) -> DropPartitions:
    return replace(_drop_partitions(reader, name), if_exists=True)


def _add_partition(reader: Reader, name: TableName) -> RenameTable:
    raise ConfigError(f"SQL: partitions of {name} come with their first rows; ADD PARTITION has nothing to add.")


_PARSERS: Mapping[str, Alter] = {
    "ADD COLUMNS": _add,
    "ADD COLUMN": _add,
    "ADD IF NOT EXISTS PARTITION": _add_partition,
    "ADD PARTITION": _add_partition,
    "RENAME COLUMN": _rename_column,
    "RENAME TO": _rename_table,
    "ALTER COLUMN": _change,
    "CHANGE COLUMN": _change,
    "CHANGE": _change,
    "DROP COLUMNS": _drop_columns,
    "DROP COLUMN": _drop_columns,
    "DROP IF EXISTS PARTITION": _drop_partitions_if_there,
    "DROP PARTITION": _drop_partitions,
    "SET TBLPROPERTIES": _set_properties,
    "UNSET TBLPROPERTIES": _unset_properties,
}
