"""The table that a statement changes: its columns, and how they are written in the engine's SQL.

Source: docs/sql-dml.md, "Types"; Spark's SQL reference, "ANSI Compliance".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.lazy_property import lazy_property
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.table_config import TableConfig
from pyhudi.sql.session import NamedTable
from pyhudi.sql.tokens import SqlToken

__all__ = ["Target", "cast"]

# Types that both engines call the same; values of others are fitted to the column when they are written.
_TYPE_NAMES: Mapping[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
    pa.timestamp("ms", "UTC"): "TIMESTAMP",
}


@dataclass(frozen=True)
class Target:
    """A table, as it is at the beginning of the statement."""

    named: NamedTable

    @lazy_property
    def config(self) -> TableConfig:
        """The table's properties."""
        return self.named.table.config

    @lazy_property
    def schema(self) -> pa.Schema:
        """The data columns, partition columns last, as Spark's catalog has them."""
        last = set(self.partitions)
        first = [field for field in self._stored if field.name not in last]
        return pa.schema([*first, *(self._stored.field(name) for name in self.partitions)])

    @lazy_property
    def _stored(self) -> pa.Schema:
        """The data columns in the table's own order."""
        return self.named.table.schema

    @lazy_property
    def keys(self) -> tuple[str, ...]:
        """The key fields; none for a table whose rows get keys of their own."""
        return self.config.record_key_fields

    @lazy_property
    def partitions(self) -> tuple[str, ...]:
        """The partition fields that are columns."""
        names = set(self._stored.names)
        return tuple(name for name in self.config.partition_fields if name in names)

    @lazy_property
    def fixed(self) -> tuple[str, ...]:
        """The columns that say who a row is and where it lives."""
        top = (name.partition(".")[0] for name in (*self.keys, *self.config.partition_fields))
        return tuple(dict.fromkeys(name for name in top if name in self.schema.names))

    def column(self, name: str) -> pa.Field:
        """A column by its name in any case. Raises ConfigError naming the nearest."""
        found = self.find(name)
        if found is None:
            near = get_close_matches(name, self.schema.names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ConfigError(
                f"The table {self.named.name} has no column {name!r}.{hint} Columns: {', '.join(self.schema.names)}."
            )
        return self.schema.field(found)

    def find(self, name: str) -> str | None:
        """The name of a column as the table writes it, None when there is none."""
        return self._by_word.get(name.lower())

    @lazy_property
    def _by_word(self) -> Mapping[str, str]:
        return {name.lower(): name for name in self.schema.names}

    def columns_in(self, tokens: Iterable[SqlToken]) -> list[str]:
        """The columns that these tokens may name; all when a star is among them."""
        words = set()
        for token in tokens:
            if token.is_symbol("*"):
                return list(self.schema.names)
            if token.is_name:
                words.add(token.value.lower())
        return [name for name in self.schema.names if name.lower() in words]

    def read_columns(self, names: Iterable[str]) -> list[str]:
        """What a query of the table has to give: these columns, and what tells rows apart."""
        wanted = set(names)
        if not self.config.populate_meta_fields:
            wanted.update(self.fixed)
        metas = META_COLUMNS if self.config.populate_meta_fields else ()
        return [*metas, *(name for name in self.schema.names if name in wanted)]


def cast(expression: str, field: pa.Field) -> str:
    """An expression as a column's type. Values that don't fit are an error of the engine's, or of the write."""
    kind = field.type
    name = f"DECIMAL({kind.precision}, {kind.scale})" if pa.types.is_decimal(kind) else _TYPE_NAMES.get(kind)
    return expression if name is None else f"CAST({expression} AS {name})"
