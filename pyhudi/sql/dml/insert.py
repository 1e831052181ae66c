"""INSERT: casts the rows of a query to the table's columns, and writes them by the operation that the options name.

    INSERT INTO [TABLE] t [PARTITION (p = 'x', q)] [(columns) | BY NAME] query
    INSERT OVERWRITE [TABLE] t [PARTITION (p = 'x', q)] [(columns) | BY NAME] query
    WITH a AS (query), … INSERT …

Source: docs/sql-dml.md, "INSERT"; Spark's SQL reference, "INSERT TABLE", "ANSI Compliance"; Hudi's configuration,
"Spark SQL".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.actions.table_keys import PROBE_TIME, keygen_options
from pyhudi.errors import ConfigError
from pyhudi.keygen import from_options
from pyhudi.keygen.base import BuiltInKey
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.operation import INSERT_INTO_OPERATION, OLD_BULK_INSERT, OLD_INSERT_MODE
from pyhudi.sql.columns import quoted
from pyhudi.sql.dml.assignment import InsertedValue, have_same_names
from pyhudi.sql.dml.target import Target, cast, value_of
from pyhudi.sql.session import NamedTable, SqlFrame, SqlSession
from pyhudi.sql.table_options import options_of
from pyhudi.sql.tokens import Reader, SqlToken, tokens_of

__all__ = ["Insert", "insert_operation", "parse_insert", "parse_with"]


_POLICY = "hoodie.datasource.insert.dup.policy"


def insert_operation(
    overwrites: bool, static: Collection[str], target: Target, session: SqlSession
) -> tuple[str, dict[str, object]]:
    """The operation of an INSERT, and the options that it needs. `static`: partition columns with a value in PARTITION.

    Raises: ConfigError for an unknown value of an option.
    """
    options = WriteOptions.parse(options_of(session, target.table), {}, target.config)
    if overwrites:
        is_dynamic = (options.replacing.overwrite_mode or "STATIC").upper() == "DYNAMIC"
        in_partitions = bool(static) or (is_dynamic and bool(target.config.partition_fields))
        return ("insert_overwrite" if in_partitions else "insert_overwrite_table"), {}
    says_old = {OLD_INSERT_MODE, OLD_BULK_INSERT} & options.explicit
    if INSERT_INTO_OPERATION in options.explicit or not says_old:
        return _for(target, options.statements.insert_into_operation), {}
    return _by_old_options(options, target)


def _by_old_options(options: WriteOptions, target: Target) -> tuple[str, dict[str, object]]:
    mode = options.statements.old_insert_mode
    if options.statements.old_bulk_insert:
        if target.keys and mode != "non-strict":
            raise ConfigError(
                f"{OLD_BULK_INSERT}=true needs {OLD_INSERT_MODE}=non-strict for a table with a key: a bulk insert does "
                "not look for existing keys."
            )
        return "bulk_insert", {}
    if mode == "strict" and target.keys:
        return "insert", {_POLICY: "fail"}
    return _for(target, "upsert" if mode == "upsert" else "insert"), {}


def _for(target: Target, operation: str) -> str:
    """The operation; for a table without a key an upsert becomes an insert."""
    return "insert" if operation == "upsert" and not target.keys else operation


_STATIC_PARTITIONS = "hoodie.static.overwrite.partition.paths"
_QUERY_WORDS = ("SELECT", "VALUES", "TABLE", "WITH", "FROM", "MAP", "REDUCE")


@dataclass(frozen=True, slots=True)
class Insert:
    """An INSERT. `partition`: the columns of PARTITION with their values; None: the value comes from the query.
    `columns`: the list of columns, None without a list. `query`: the user's own text.
    """

    table: NamedTable
    overwrites: bool
    partition: Mapping[str, Reader | None]
    columns: tuple[str, ...] | None
    by_name: bool
    query: str

    def run(self, session: SqlSession) -> SqlFrame:
        """Write the rows. The result has no rows in Spark, as in Hudi."""
        target = Target(self.table)
        operation, options = insert_operation(self.overwrites, self._static(target), target, session)
        source = session.query(self.query)
        query_schema = session.columns_of(source)
        values = self._values(target, query_schema)
        aliases = ", ".join(f"c{number}" for number in range(len(query_schema)))
        select_list = ", ".join(f"{text} AS {quoted(name)}" for name, text in values.items())
        options |= self._static_paths(target, operation, session)
        with session.view_of(source) as view:
            rows = session.query(f"SELECT {select_list} FROM {view} AS q({aliases})")
            result = session.write(self.table, rows, operation, {**options_of(session, self.table), **options})
        return session.frame_of_result(result)

    def _static(self, target: Target) -> dict[str, Reader]:
        """The partition columns with a value in PARTITION. Raises ConfigError for another column."""
        values = {}
        for name, value in self.partition.items():
            column = target.column(name).name
            if column not in target.partitions:
                fields = ", ".join(target.partitions) or "none"
                raise ConfigError(f"PARTITION ({name}): not a partition column of {self.table.name}; it has {fields}.")
            if value is not None:
                values[column] = value
        return values

    def _values(self, target: Target, query_schema: pa.Schema) -> dict[str, str]:
        """Column of the table → its expression over the query's columns c0, c1, ..."""
        static = self._static(target)
        query_fields = _without_meta(query_schema)
        columns, by_name = self._columns(target, pa.schema(list(query_fields.values())), static)
        expressions: dict[str, str] = {}
        keys = frozenset((*target.keys, *target.config.partition_fields))
        for (number, value), field in zip(query_fields.items(), columns, strict=True):
            assignment = InsertedValue(str(self.table.name), value.type, field, field.name, by_name, keys)
            expressions[field.name] = assignment.expression(f"c{number}")
        expressions |= self._static_values(target)
        return {field.name: expressions.get(field.name, cast("NULL", field)) for field in target.schema}

    def _columns(
        self, target: Target, query_schema: pa.Schema, static: Mapping[str, Reader]
    ) -> tuple[Sequence[pa.Field], bool]:
        """The table's column for each column of the query, and whether fields of structs are matched by name."""
        by_name = self.by_name
        if by_name or self.columns is not None:
            names = query_schema.names if self.columns is None else self.columns
            columns = [target.column(name) for name in names]
            twice = [field.name for field in columns if columns.count(field) > 1 or field.name in static]
            if twice:
                raise ConfigError(f"INSERT INTO {self.table.name} gives a value to the column {twice[0]} twice.")
        else:
            columns = [field for field in target.schema if field.name not in static]
            words = [name.lower() for name in query_schema.names]
            if sorted(words) == sorted(field.name.lower() for field in columns):
                columns, by_name = self._all_named(query_schema, [target.column(name) for name in words], columns)
        if len(columns) != len(query_schema):
            column_names = ", ".join(column.name for column in columns)
            raise ConfigError(
                f"INSERT INTO {self.table.name} needs {len(columns)} columns ({column_names}), the query has "
                f"{len(query_schema)} ({', '.join(query_schema.names)})."
            )
        return columns, by_name

    def _all_named(
        self, query_schema: pa.Schema, by_names: list[pa.Field], by_places: list[pa.Field]
    ) -> tuple[list[pa.Field], bool]:
        """The columns for a query that names all of the table's columns: as in Hudi by name, in any order, if fields of
        structs also have the table's names, else by position.
        """
        unlike = [
            field.name
            for given, field in zip(query_schema, by_names, strict=True)
            if not have_same_names(given.type, field.type)
        ]
        if not unlike:
            return by_names, True
        if by_names != by_places:
            raise ConfigError(
                f"INSERT INTO {self.table.name}: the query has all columns of the table in another order, and structs "
                f"of {unlike[0]} have other fields than the table's. Say BY NAME, or use the table's order and names."
            )
        return by_places, False

    def _static_paths(self, target: Target, operation: str, session: SqlSession) -> dict[str, object]:
        """The option for the PARTITION to overwrite even if the query has no rows."""
        static = self._static(target)
        if operation != "insert_overwrite" or not static or len(static) < len(target.config.partition_fields):
            return {}
        options = WriteOptions.parse(options_of(session, target.table), {}, target.config)
        properties = keygen_options(target.config, options)
        generator = from_options(properties, table_version=target.config.table_version, instant_time=PROBE_TIME)
        if not isinstance(generator, BuiltInKey):
            return {}  # only whole rows have a path
        texts = (f"{text} AS {quoted(name)}" for name, text in self._static_values(target).items())
        values = session.rows_of(session.query(f"SELECT {', '.join(texts)}"))
        fields = [target.column(name) for name in values.column_names]
        try:  # a literal has a type of its own: 1.5 in a column of decimal(5, 2) is in the partition 1.50
            columns = [values.column(field.name).combine_chunks().cast(field.type) for field in fields]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return {}  # the write refuses a value that its column would change
        row = pa.RecordBatch.from_arrays(columns, names=values.column_names)
        path = str(generator.partition_path(row)[0])
        return {} if "," in path else {_STATIC_PARTITIONS: path}

    def _static_values(self, target: Target) -> dict[str, str]:
        """Column → its value in PARTITION, as an expression."""
        return {
            name: value_of(f"({value.cut(value.at, value.stop)})", target.column(name), target, None)
            for name, value in self._static(target).items()
        }


def _without_meta(query_schema: pa.Schema) -> dict[int, pa.Field]:
    """The query's columns by number. As in Hudi, the meta columns of a `SELECT *` from a Hudi table are left out: the
    write creates its own. A meta column that is selected separately is an ordinary value.
    """
    is_whole_row = set(META_COLUMNS) <= set(query_schema.names)
    return {
        number: field for number, field in enumerate(query_schema) if not (is_whole_row and field.name in META_COLUMNS)
    }


def parse_insert(text: str, tokens: Sequence[SqlToken], session: SqlSession) -> Insert | None:
    """Parse an INSERT; None for a table that is not Hudi's."""
    reader = Reader(text, tokens)
    reader.expect("INSERT")
    overwrites = reader.accept("OVERWRITE")
    if not overwrites:
        reader.expect("INTO")
    reader.accept("TABLE")
    table = session.find_table(reader.table_name())
    if table is None:
        return None
    partition: dict[str, Reader | None] = {}
    if reader.accept("PARTITION"):
        for part in reader.parts():
            name = part.identifier("a partition column")
            partition[name] = part if part.accept_symbol("=") else None
    if reader.sees("IF NOT EXISTS"):
        raise reader.error("a query: IF NOT EXISTS is not supported")
    by_name = reader.accept("BY NAME")
    columns = None
    if not by_name and reader.sees_symbol("(") and not _opens_query(reader):
        columns = reader.names()
    if reader.at_end:
        raise reader.error("a query")
    return Insert(table, overwrites, partition, columns, by_name, _query(reader))


def _query(reader: Reader) -> str:
    """Read the query. DEFAULT in VALUES becomes NULL, as columns of Hudi's tables have no other default."""
    if not reader.sees("VALUES"):
        return reader.words()
    pieces, copied = [], reader.tokens[reader.at].start
    reader.accept("VALUES")
    for row in reader.split():
        if not row.sees_symbol("("):
            continue
        for value in row.parts():
            if value.at + 1 == value.stop and value.sees("DEFAULT"):
                token = value.take("a value")
                pieces += [reader.text[copied : token.start], "NULL"]
                copied = token.end
    return "".join([*pieces, reader.text[copied : reader.tokens[reader.stop - 1].end]])


def parse_with(text: str, tokens: Sequence[SqlToken], session: SqlSession) -> Insert | None:
    """Parse an INSERT after a WITH; None for a query, and for a table that is not Hudi's."""
    reader = Reader(text, tokens)
    start = reader.find("INSERT INTO", "INSERT OVERWRITE")
    if start is None or not tokens[start - 1].is_symbol(")"):
        return None
    insert = parse_insert(text, tokens[start:], session)
    if insert is None:
        return None
    query = insert.query
    if tokens_of(query, 1)[0].is_word("WITH"):
        query = f"SELECT * FROM ({query}\n)"  # so that its own WITH sees the outer names
    return replace(insert, query=f"{reader.cut(0, start)} {query}")


def _opens_query(reader: Reader) -> bool:
    """True if the next parentheses hold a query, not names of columns."""
    ahead = 0
    while (token := reader.peek(ahead)) is not None and token.is_symbol("("):
        ahead += 1
    return ahead > 1 or (token is not None and token.is_word(*_QUERY_WORDS))
