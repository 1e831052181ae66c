"""Names in the expressions of a statement: which table they mean, and how the query that is built says it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyhudi.sql.clauses import Reader
from pyhudi.sql.column_texts import quoted
from pyhudi.sql.session import NamedTable, SqlSession, TableName
from pyhudi.sql.tokens import SqlToken, TokenKind, dotted_at

__all__ = ["Scope", "read_alias", "read_target"]


@dataclass(frozen=True, slots=True)
class Scope:
    """The table of a statement under its alias. `name`: as written, which expressions may repeat in full."""

    name: TableName
    alias: str

    def without_table(self, name: tuple[str, ...]) -> tuple[str, ...]:
        """A column's name without the table's."""
        length = self._prefix(name)
        return name[length:] if length < len(name) else name

    def _prefix(self, name: tuple[str, ...]) -> int:
        """How many parts of a dotted name are the table's."""
        lower = [part.lower() for part in name]
        if lower[0] == self.alias.lower():
            return 1
        own = [part.lower() for part in self.name.parts]
        return len(own) if lower[: len(own)] == own else 0

    def text(self, reader: Reader, owner: tuple[str, Collection[str]] | None = None) -> str:
        """An expression in the user's own characters, where the table's name in several parts becomes its alias.

        The word DEFAULT alone is null: columns of Hudi's tables have no other default.

        Args: owner: an alias and the columns (in small letters) that mean it without a qualifier.
        """
        tokens, at, pieces = reader.tokens, reader.at, []
        if at >= reader.stop:
            return ""
        if at + 1 == reader.stop and tokens[at].is_word("DEFAULT"):
            return "NULL"
        if any(token.is_word("SELECT") for token in tokens[at : reader.stop]):
            owner = None  # a name in a query may be that query's
        copied = tokens[at].start
        while at < reader.stop:
            token = tokens[at]
            if not token.is_name or (at > reader.at and tokens[at - 1].is_symbol(".")):
                at += 1
                continue
            parts, end = dotted_at(tokens[: reader.stop], at)
            length = self._prefix(parts)
            if 1 < length < len(parts):
                pieces += [reader.text[copied : token.start], quoted(self.alias)]
                copied = tokens[at + 2 * length - 2].end
            elif owner is not None and len(parts) == 1 and parts[0].lower() in owner[1] and _is_column(reader, at):
                pieces += [reader.text[copied : token.start], quoted(owner[0]), "."]
                copied = token.start
            at = end
        pieces.append(reader.text[copied : tokens[reader.stop - 1].end])
        return "".join(pieces)


def _is_column(reader: Reader, at: int) -> bool:
    """Whether a word without a qualifier can be a column: no function, type, alias, unit of an interval."""
    before: SqlToken | None = reader.tokens[at - 1] if at > reader.at else None
    after: SqlToken | None = reader.tokens[at + 1] if at + 1 < reader.stop else None
    if before is not None and (before.is_word("AS") or before.kind in (TokenKind.NUMBER, TokenKind.TEXT)):
        return False
    if after is None:
        return True
    return not (after.is_symbol("(") or after.is_symbol("=>") or after.is_word("FROM") or after.kind is TokenKind.TEXT)


def read_alias(reader: Reader, *ends: str) -> str | None:
    """`[AS] alias` if it comes. `ends`: the words that come when it doesn't."""
    if reader.accept("AS"):
        return reader.identifier("an alias")
    token = reader.peek()
    if token is None or not token.is_name or token.is_word(*ends):
        return None
    reader.at += 1
    return token.value


def read_target(reader: Reader, session: SqlSession, end: str) -> tuple[NamedTable, str] | None:
    """The table that a statement changes, and its alias; None when it is not one of Hudi's.

    Args: end: the word that comes when there is no alias.
    """
    name = reader.table_name()
    named = session.find_table(name)
    return None if named is None else (named, read_alias(reader, end) or name.parts[-1])
