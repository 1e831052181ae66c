"""The sources that a query names, and the resolution of column names in it.

Source: Spark's SQL reference, "Name Resolution".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.functions.nested import field_of
from pyhudi.expressions.text import column_of_field
from pyhudi.expressions.tree import Expression, Form, TypedCall
from pyhudi.expressions.types import fields_named

__all__ = ["QueryScope", "QuerySource"]


@dataclass(frozen=True, slots=True)
class QuerySource:
    """A table, a subquery or the rows of a generator, under the name that a query gives it.

    `alias`: its name in DuckDB; `qualifier`: the parts of its name in the query, in lower case.
    """

    alias: str
    qualifier: tuple[str, ...]
    schema: pa.Schema

    def answers_to(self, parts: Sequence[str]) -> bool:
        """True if these parts before a column name this source."""
        lower = tuple(part.lower() for part in parts)
        return lower == self.qualifier[-len(lower) :] if lower else True


@dataclass
class QueryScope:
    """The sources in their order. `merged`: the columns of a USING, each once, with the value of the bare name."""

    outer: QueryScope | None = None
    sources: list[QuerySource] = field(default_factory=list)
    merged: dict[str, Expression] = field(default_factory=dict)
    aliases: dict[str, Expression] = field(default_factory=dict)
    aliases_first: bool = False

    def resolve(self, parts: Sequence[str]) -> Expression:
        """Find the column, or the field of one, that a name means. Raises ConfigError."""
        column = self._resolve(parts)
        if column is not None:
            return column
        if self.outer is not None:
            return self.outer.resolve(parts)
        names = [name for source in self.sources for name in source.schema.names]
        shown = ", ".join(names[:50]) + (", ..." if len(names) > 50 else "")
        raise ConfigError(f"there is no column {'.'.join(parts)}. Columns: {shown or 'none'}.")

    def _resolve(self, parts: Sequence[str]) -> Expression | None:
        alias = self.aliases.get(parts[0].lower()) if len(parts) == 1 else None
        if alias is not None and self.aliases_first:
            return alias
        merged = self.merged.get(parts[0].lower())
        if merged is not None:
            return _fields(merged, parts[1:])
        for length in range(len(parts) - 1, -1, -1):  # the longest qualifier wins
            columns = list(self._columns(parts[:length], parts[length]))
            if len(columns) > 1:
                raise ConfigError(
                    f"the name {'.'.join(parts)} may mean a column of {len(columns)} tables; write which."
                )
            if columns:
                return _fields(columns[0], parts[length + 1 :])
        return alias

    def _columns(self, qualifier: Sequence[str], name: str) -> Iterator[Expression]:
        for source in self.sources:
            for one in fields_named(source.schema, name) if source.answers_to(qualifier) else ():
                yield column_of_field(one, source.alias)

    def star(self, qualifier: Sequence[str] = ()) -> list[tuple[str, Expression]]:
        """The columns that a `*`, or `t.*`, stands for. Raises ConfigError for an unknown name."""
        sources = [source for source in self.sources if source.answers_to(qualifier)]
        if not sources:
            if len(qualifier) != 1:
                raise ConfigError(f"there is no table {'.'.join(qualifier)} for {'.'.join(qualifier)}.*")
            value = self.resolve(qualifier)
            if not pa.types.is_struct(value.type):
                raise ConfigError(f"{qualifier[0]}.* needs a table or a struct.")
            return [(one.name, field_of(value, one.name)) for one in value.type]
        columns: list[tuple[str, Expression]] = []
        if not qualifier:
            columns += [(name, value) for name, value in self.merged_names()]
        for source in sources:
            columns += [
                (one.name, column_of_field(one, source.alias))
                for one in source.schema
                if qualifier or one.name.lower() not in self.merged
            ]
        return columns

    def merged_names(self) -> Iterator[tuple[str, Expression]]:
        """The columns of USING with their names in the first table."""
        for name, value in self.merged.items():
            shown = next(n for source in self.sources for n in source.schema.names if n.lower() == name)
            yield shown, value

    def merge(self, names: Sequence[str], right: QuerySource, side: str) -> None:
        """Merge the columns of a USING. Raises ConfigError for types that differ."""
        for name in names:
            left = self.merged.get(name.lower()) or self._one(self.sources, name)
            other = self._one([right], name)
            if left.type != other.type:
                raise ConfigError(f"USING ({name}) of {left.type} and {other.type} needs ON with a cast.")
            value = other if side == "RIGHT" else left
            if side == "FULL":
                value = TypedCall(Form("coalesce", "coalesce({0}, {1})"), (left, other), left.type)
            self.merged[name.lower()] = value

    def _one(self, sources: Sequence[QuerySource], name: str) -> Expression:
        columns = [
            column_of_field(one, source.alias)
            for source in sources
            for one in source.schema
            if one.name.lower() == name.lower()
        ]
        if len(columns) != 1:
            raise ConfigError(f"USING ({name}): there {'is no' if not columns else 'is more than one'} such column.")
        return columns[0]


def _fields(value: Expression, names: Sequence[str]) -> Expression:
    for name in names:
        value = field_of(value, name)
    return value
