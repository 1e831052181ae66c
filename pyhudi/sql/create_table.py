"""CREATE TABLE … USING hudi: creates a table's folder and its name, with rows if there is a query.

    CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name [(columns)] USING hudi [OPTIONS (…)] [PARTITIONED BY (…)]
        [COMMENT '…'] [LOCATION '…'] [TBLPROPERTIES (…)] [AS query]

The folder may already hold a table. Then its columns and properties count, and only the name is new.
Source: Hudi's documentation, "SQL DDL"; Spark's SQL reference, "CREATE TABLE".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pyhudi.actions.create_table import check_fields, new_table
from pyhudi.errors import ConfigError, TableExists
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.new_table import new_table_properties
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.table import PARTITION_FIELDS, RECORD_KEY
from pyhudi.sql.session import NO_ROWS, CatalogEntry, NamedTable, SqlFrame, SqlSession, TableName
from pyhudi.sql.table_options import check_property_keys, check_values, is_ours, sql_properties, write_options
from pyhudi.sql.tokens import Reader, SqlToken
from pyhudi.table import HudiTable

__all__ = ["CreateTable", "parse_create"]

_FORMATS = ("HUDI", "ORG.APACHE.HUDI")
_CLAUSES = ("USING", "OPTIONS", "PARTITIONED BY", "COMMENT", "LOCATION", "TBLPROPERTIES", "AS")
_SQL_DEFAULTS: Mapping[str, object] = {"hoodie.datasource.write.hive_style_partitioning": "true"}
_TABLE_NAME, _DATABASE = "hoodie.table.name", "hoodie.database.name"


@dataclass(frozen=True)
class CreateTable:
    """A CREATE TABLE. `columns`: their text, None without a list; `partitions`: names, or new columns with types."""

    name: TableName
    columns: str | None = None
    partitions: tuple[str, ...] = ()
    partition_columns: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    location: str | None = None
    query: str | None = None
    or_replace: bool = False
    if_not_exists: bool = False

    def run(self, session: SqlSession) -> SqlFrame:
        """Create the table and its name.

        Raises: TableExists for a name in use, ConfigError, SchemaMismatch. Nothing is created then.
        """
        return self.run_with(session, None if self.query is None else session.query(self.query))

    def run_with(self, session: SqlSession, frame: SqlFrame | None) -> SqlFrame:
        """Create the table with the rows of the query."""
        if self.name.path is not None:
            raise ConfigError(f"SQL: {self.name} is a path; a new table needs a name, and LOCATION says where it is.")
        check_property_keys(self.properties)
        entry = session.catalog.find(self.name)
        if entry is not None:
            if self.if_not_exists:
                return session.frame_from(NO_ROWS)
            if not self.or_replace:
                raise TableExists(f"There is a table or view {self.name} already. Drop it, or say IF NOT EXISTS.")
            if not entry.is_hudi:
                raise TableExists(f"{self.name} is no Hudi table; CREATE OR REPLACE leaves it alone. Drop it first.")
        location = self.location or (entry.location if entry is not None else None)
        place = location or session.catalog.place_of(self.name)
        existing = session.open(place)
        if entry is not None:
            self._replace(session, entry, place, existing, frame)
        elif existing is None:
            self._make(session, place, frame)
        elif frame is not None:
            raise TableExists(f"{place} holds a Hudi table already; CREATE TABLE … AS SELECT makes a new one.")
        else:
            self._register_existing(session, place, existing)
        return session.frame_from(NO_ROWS)

    # ---- the table

    def _schema(self, session: SqlSession, frame: SqlFrame | None) -> pa.Schema:
        """The columns of the table. As in Spark, those of PARTITIONED BY are last, in its order."""
        if frame is not None:
            if self.columns is not None:
                raise ConfigError("SQL: CREATE TABLE … AS SELECT takes the columns of its query; leave the list out.")
            columns = session.columns_of(frame)
        else:
            columns = session.schema_of(", ".join(filter(None, (self.columns, self.partition_columns))))
        data_columns = [column for column in columns if column.name not in META_COLUMNS]
        last = [name.lower() for name in self.partitions]
        first = [column for column in data_columns if column.name.lower() not in last]
        by_word = {column.name.lower(): column for column in data_columns}
        return pa.schema([*first, *(by_word[name] for name in last if name in by_word)])

    def _options(self, session: SqlSession) -> dict[str, object]:
        table_options = write_options(self.properties)
        settings = {key: text for key, text in session.settings.items() if key.startswith("hoodie.")}
        names: dict[str, object] = {_TABLE_NAME: self.name.parts[-1]}
        if len(self.name.parts) > 1:
            names[_DATABASE] = self.name.parts[-2]
        # The table stores the catalog's name, unless the statement names another.
        options: dict[str, object] = {**_SQL_DEFAULTS, **settings, **names, **table_options}
        if self.partitions:
            options.setdefault(PARTITION_FIELDS, ",".join(self.partitions))
        return options

    def _make(self, session: SqlSession, place: str, frame: SqlFrame | None) -> None:
        schema, options = self._checked(session, place, frame)
        table = session.create(place, schema, options)
        try:
            if frame is not None:
                session.write(NamedTable(self.name, place, table, self.properties), frame, "bulk_insert", {})
            self._register(session, place, schema)
        except BaseException:
            table.drop()
            raise

    def _replace(
        self, session: SqlSession, old_entry: CatalogEntry, place: str, old: HudiTable | None, frame: SqlFrame | None
    ) -> None:
        """OR REPLACE: put a new table under the name. The old table is kept until the new one is complete."""
        schema, options = self._checked(session, place, frame)
        if frame is not None and old is not None:
            session.write(NamedTable(self.name, place, old), frame, "bulk_insert", options, mode="overwrite")
        else:
            table = session.create(place, schema, options, replaces_table=old is not None)
            if frame is not None:
                session.write(NamedTable(self.name, place, table, self.properties), frame, "bulk_insert", {})
        entry = replace(self._entry(place, self.properties), catalog_deletes=old_entry.catalog_deletes)
        session.catalog.update(entry, schema, self.partitions)

    def _checked(self, session: SqlSession, place: str, frame: SqlFrame | None) -> tuple[pa.Schema, dict[str, object]]:
        """Check the columns and options of a new table, and return them."""
        schema, options = self._schema(session, frame), self._options(session)
        if not len(schema):
            raise ConfigError(f"SQL: CREATE TABLE {self.name} has no columns, and no Hudi table is at {place}.")
        parsed = WriteOptions.parse(options, {}, None)
        new_table_properties(new_table(parsed))
        check_fields(parsed, schema.names)
        return schema, options

    def _register(self, session: SqlSession, place: str, schema: pa.Schema) -> None:
        session.catalog.register(self._entry(place, self.properties), schema, self.partitions)

    def _entry(self, place: str, properties: Mapping[str, str]) -> CatalogEntry:
        return CatalogEntry(
            self.name,
            is_hudi=True,
            location=place,
            properties=properties,
            comment=self.comment,
            is_managed=self.location is None,
        )

    def _register_existing(self, session: SqlSession, place: str, table: HudiTable) -> None:
        """Register a name for an existing table. Every clause of the statement must agree with the table."""
        schema, config = table.schema(), table.state().config
        fields = tuple(name.partition(":")[0] for name in config.partition_fields)
        if self.columns is not None:
            column_names = set(schema.names)
            missing = [name for name in self._schema(session, None).names if name not in column_names]
            if missing:
                raise ConfigError(
                    f"SQL: the Hudi table at {place} has no column {', '.join(missing)}; its columns are "
                    f"{', '.join(schema.names)}. Leave the list of columns out."
                )
        if self.partitions and self.partitions != fields:
            raise ConfigError(
                f"SQL: the Hudi table at {place} is partitioned by {', '.join(fields) or 'nothing'}, "
                f"not by {', '.join(self.partitions)}."
            )
        key_text = str(write_options(self.properties).get(RECORD_KEY) or "")
        if key_text and tuple(key.strip() for key in key_text.split(",")) != config.record_key_fields:
            keys = ", ".join(config.record_key_fields) or "generated"
            raise ConfigError(f"SQL: the record key of the Hudi table at {place} is {keys}, not {key_text}.")
        check_values(f"CREATE TABLE {self.name}", self.properties, config)
        properties = {**sql_properties(config), **self.properties}
        session.catalog.register(self._entry(place, properties), schema, fields)


def parse_create(text: str, tokens: Sequence[SqlToken], session: SqlSession) -> CreateTable | None:
    """Parse CREATE TABLE and CREATE OR REPLACE TABLE; None for a table of another format."""
    reader = Reader(text, tokens)
    reader.expect("CREATE")
    or_replace = reader.accept("OR REPLACE")
    reader.accept("EXTERNAL")
    reader.expect("TABLE")
    _check_no_copy(reader, session)
    if not _uses_hudi(reader):
        return None
    if_not_exists = reader.accept("IF NOT EXISTS")
    if or_replace and if_not_exists:
        raise ConfigError("SQL: OR REPLACE and IF NOT EXISTS contradict each other.")
    name = reader.table_name()
    columns = reader.parenthesised().words() if reader.sees_symbol("(") else None
    table = CreateTable(name, columns or None, or_replace=or_replace, if_not_exists=if_not_exists)
    while not reader.at_end:
        table = _with_clause(reader, table)
    return table


def _check_no_copy(reader: Reader, session: SqlSession) -> None:
    """Raise ConfigError for CREATE TABLE … LIKE a Hudi table: Spark copies no properties, hence no key."""
    look = Reader(reader.text, reader.tokens, reader.at)
    look.accept("IF NOT EXISTS")
    look.table_name()
    if not look.accept("LIKE"):
        return
    source = look.table_name()
    if _uses_hudi(look) or (look.find("USING") is None and is_ours(session, source)):
        raise ConfigError(
            f"SQL: CREATE TABLE … LIKE makes no Hudi table, as it copies no properties of {source}, such as its key. "
            "Run what SHOW CREATE TABLE says, with another name."
        )


def _uses_hudi(reader: Reader) -> bool:
    using = reader.find("USING")
    query = reader.find("AS")
    if using is None or (query is not None and query < using):
        return False
    provider = Reader(reader.text, reader.tokens, using + 1)
    token = provider.peek()
    if token is None or not token.is_name:
        return False
    return ".".join(provider.dotted()).upper() in _FORMATS


def _with_clause(reader: Reader, table: CreateTable) -> CreateTable:
    """Read the next clause of the table."""
    if reader.accept("USING"):
        reader.dotted()
        return table
    if reader.accept("OPTIONS") or reader.accept("TBLPROPERTIES"):
        return replace(table, properties={**table.properties, **reader.properties()})
    if reader.accept("PARTITIONED BY"):
        return _with_partitions(reader, table)
    if reader.accept("COMMENT"):
        return replace(table, comment=reader.value("the comment"))
    if reader.accept("LOCATION"):
        return replace(table, location=reader.value("the location"))
    reader.accept("AS")
    if any(reader.sees(word) for word in ("SELECT", "WITH", "FROM", "TABLE", "VALUES")) or reader.sees_symbol("("):
        return replace(table, query=reader.words())
    raise reader.error(f"one of {', '.join(_CLAUSES)}")


def _with_partitions(reader: Reader, table: CreateTable) -> CreateTable:
    """Read PARTITIONED BY: names of columns, or new columns with types."""
    names, typed = [], []
    for part in reader.parts():
        start = part.at
        name = part.identifier("the name of a partition column")
        if part.sees_symbol("("):
            raise ConfigError(
                f"SQL: PARTITIONED BY ({part.cut(start, part.stop)}): Hudi partitions by columns; key generators make "
                "partitions of parts of a time."
            )
        names.append(name)
        if not part.at_end:
            typed.append(part.cut(start, part.stop))
    if typed and len(typed) != len(names):
        raise ConfigError("SQL: PARTITIONED BY takes names of columns, or columns with types; not both.")
    return replace(table, partitions=tuple(names), partition_columns=", ".join(typed) or None)
