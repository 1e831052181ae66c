"""INSERT: rows of a query, their columns cast to the table's, written by the operation of Hudi's that the options say.

    INSERT INTO [TABLE] t [PARTITION (p = 'x', q)] [(columns) | BY NAME] query
    INSERT OVERWRITE [TABLE] t [PARTITION (p = 'x', q)] [(columns) | BY NAME] query
    WITH a AS (query), … INSERT …

Source: docs/sql-dml.md, "INSERT"; Spark's SQL reference, "INSERT TABLE", "ANSI Compliance"; Hudi's configuration,
"Spark SQL".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast as cast_

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.keygen.parse import partition_values
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.operation import INSERT_INTO_OPERATION, OLD_BULK_INSERT, OLD_INSERT_MODE
from pyhudi.sql.columns import quoted, type_text
from pyhudi.sql.dml.target import Target, cast
from pyhudi.sql.session import NamedTable, SqlFrame, SqlSession
from pyhudi.sql.table_options import options_of
from pyhudi.sql.tokens import Reader, SqlToken, tokens_of

__all__ = ["Insert", "insert_operation", "parse_insert", "parse_with"]


_POLICY = "hoodie.datasource.insert.dup.policy"


def insert_operation(
    overwrites: bool, static: Collection[str], target: Target, session: SqlSession
) -> tuple[str, dict[str, object]]:
    """The operation, and the options that it needs. `static`: partition columns with a value in PARTITION.

    Raises: ConfigError for values that the options don't have.
    """
    options = WriteOptions.parse(options_of(session, target.named), {}, target.config)
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
                "not look for keys that are there."
            )
        return "bulk_insert", {}
    if mode == "strict" and target.keys:
        return "insert", {_POLICY: "fail"}
    return _for(target, "upsert" if mode == "upsert" else "insert"), {}


def _for(target: Target, operation: str) -> str:
    """A table without a key has nothing to upsert by."""
    return "insert" if operation == "upsert" and not target.keys else operation


_STATIC_PARTITIONS = "hoodie.static.overwrite.partition.paths"
_QUERY_WORDS = ("SELECT", "VALUES", "TABLE", "WITH", "FROM", "MAP", "REDUCE")


@dataclass(frozen=True, slots=True)
class Insert:
    """`partition`: the columns of PARTITION with their values, None for those that come from the query. `columns`: the
    list of columns, None without one. `query`: in the user's own characters.
    """

    named: NamedTable
    overwrites: bool
    partition: Mapping[str, Reader | None]
    columns: tuple[str, ...] | None
    by_name: bool
    query: str

    def run(self, session: SqlSession) -> SqlFrame:
        """Write the rows. In Spark it returns none, as in Hudi."""
        target = Target(self.named)
        operation, options = insert_operation(self.overwrites, self._static(target), target, session)
        source = session.query(self.query)
        arrived = session.columns_of(source)
        values = self._values(target, arrived)
        aliases = ", ".join(f"c{number}" for number in range(len(arrived)))
        chosen = ", ".join(f"{text} AS {quoted(name)}" for name, text in values.items())
        options |= self._static_paths(target, operation)
        with session.view_of(source) as view:
            rows = session.query(f"SELECT {chosen} FROM {view} AS q({aliases})")
            result = session.write(self.named, rows, operation, {**options_of(session, self.named), **options})
        return session.frame_of_result(result)

    def _static(self, target: Target) -> dict[str, Reader]:
        """Partition columns with a value in PARTITION. Raises ConfigError for columns that are no partition columns."""
        found = {}
        for name, value in self.partition.items():
            column = target.column(name).name
            if column not in target.partitions:
                fields = ", ".join(target.partitions) or "none"
                raise ConfigError(f"PARTITION ({name}): not a partition column of {self.named.name}; it has {fields}.")
            if value is not None:
                found[column] = value
        return found

    def _values(self, target: Target, arrived: pa.Schema) -> dict[str, str]:
        """For each column of the table the expression that makes it of the query's columns c0, c1, ..."""
        static = self._static(target)
        given: dict[str, str] = {}
        for number, field in enumerate(self._columns(target, arrived, static)):
            _check_assignable(arrived.field(number), field, str(self.named.name))
            given[field.name] = _typed(f"c{number}", arrived.field(number).type, field)
        given |= {name: cast(f"({value.cut(value.at, value.stop)})", target.column(name))
                  for name, value in static.items()}  # fmt: skip
        return {field.name: given.get(field.name, cast("NULL", field)) for field in target.schema}

    def _columns(self, target: Target, arrived: pa.Schema, static: Mapping[str, Reader]) -> Sequence[pa.Field]:
        """The column of the table that each column of the query is for."""
        if self.by_name or self.columns is not None:
            names = arrived.names if self.columns is None else self.columns
            wanted = [target.column(name) for name in names]
            twice = [field.name for field in wanted if wanted.count(field) > 1 or field.name in static]
            if twice:
                raise ConfigError(f"INSERT INTO {self.named.name} gives a value to the column {twice[0]} twice.")
        else:
            wanted = [field for field in target.schema if field.name not in static]
            words = [name.lower() for name in arrived.names]
            if sorted(words) == sorted(field.name.lower() for field in wanted):
                # As in Hudi: a query that has the names of all columns gives each its own, whatever their order.
                wanted = [target.column(name) for name in words]
        if len(wanted) != len(arrived):
            raise ConfigError(
                f"INSERT INTO {self.named.name} needs {len(wanted)} columns ({', '.join(f.name for f in wanted)}), the "
                f"query has {len(arrived)} ({', '.join(arrived.names)})."
            )
        return wanted

    def _static_paths(self, target: Target, operation: str) -> dict[str, object]:
        """The partition that is overwritten also when no rows come for it."""
        static = self._static(target)
        if operation != "insert_overwrite" or not static or len(static) < len(target.config.partition_fields):
            return {}
        wanted = {
            name: Reader(value.text, value.tokens, value.at, value.stop).value() for name, value in static.items()
        }
        config = target.config
        for path in cast_("list[str]", self.named.table.partitions().column("partition_path").to_pylist()):
            stored = partition_values(
                path,
                config.partition_fields,
                config.hive_style_partitioning,
                config.url_encode_partitioning,
                slash_dates=config.slash_separated_dates,
            )
            if dict(zip(config.partition_fields, stored, strict=True)) == wanted and "," not in path:
                return {_STATIC_PARTITIONS: path}
        return {}


def _check_assignable(given: pa.Field, column: pa.Field, table: str) -> None:
    """Raises ConfigError for what Spark's ANSI rules of assignment refuse, such as texts for numbers."""
    found, wanted = _family(given.type), _family(column.type)
    if found in (wanted, "null") or (wanted == "text" and found not in ("nested", "binary")):
        return
    if {found, wanted} == {"time"} or wanted == "nested" or found == "nested":
        return
    raise ConfigError(
        f"INSERT INTO {table}: the query gives {given.type} for the column {column.name}, which is of type "
        f"{column.type}; that is no safe assignment. Write CAST(… AS …) if it is meant."
    )


def _typed(expression: str, given: pa.DataType, column: pa.Field) -> str:
    """An expression as a column's type; `array()` and its like, whose type is open inside, as the whole one."""
    has_untyped = pa.types.is_nested(given) and "null" in str(given)
    if not has_untyped or (pa.types.is_struct(given) and given.num_fields != column.type.num_fields):
        return cast(expression, column)
    return f"CAST({expression} AS {type_text(column.type, quotes=True)})"


def _family(kind: pa.DataType) -> str:
    if pa.types.is_null(kind):
        return "null"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "binary"
    return "nested" if pa.types.is_nested(kind) else "time"


def parse_insert(text: str, tokens: Sequence[SqlToken], session: SqlSession) -> Insert | None:
    """An INSERT; None when its table is not one of Hudi's."""
    reader = Reader(text, tokens)
    reader.expect("INSERT")
    overwrites = reader.accept("OVERWRITE")
    if not overwrites:
        reader.expect("INTO")
    reader.accept("TABLE")
    named = session.find_table(reader.table_name())
    if named is None:
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
    return Insert(named, overwrites, partition, columns, by_name, _query(reader))


def _query(reader: Reader) -> str:
    """What is left; in VALUES the word DEFAULT is null, for columns of Hudi's tables have no other default."""
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
    """An INSERT behind a WITH; None for a query, and when the table is not one of Hudi's."""
    reader = Reader(text, tokens)
    found = reader.find("INSERT INTO", "INSERT OVERWRITE")
    if found is None or not tokens[found - 1].is_symbol(")"):
        return None
    insert = parse_insert(text, tokens[found:], session)
    if insert is None:
        return None
    query = insert.query
    if tokens_of(query, 1)[0].is_word("WITH"):
        query = f"SELECT * FROM ({query}\n)"  # its own names see the outer ones
    return replace(insert, query=f"{reader.cut(0, found)} {query}")


def _opens_query(reader: Reader) -> bool:
    """Whether the parentheses that come hold a query, not names of columns."""
    ahead = 0
    while (token := reader.peek(ahead)) is not None and token.is_symbol("("):
        ahead += 1
    return ahead > 1 or (token is not None and token.is_word(*_QUERY_WORDS))
