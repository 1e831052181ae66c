"""The kinds of statements: one row for each, by its first words. Also SET, for sessions without Spark.

Each kind has one module with a `parse` function. It returns None for a statement that is not about a Hudi table; the
text then goes to the engine unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pyhudi.registry import Registry
from pyhudi.sql.tokens import SqlToken, tokens_of

if TYPE_CHECKING:
    from pyhudi.sql.session import SqlFrame, SqlSession

__all__ = ["STATEMENTS", "Parse", "Setting", "Statement", "may_be_statement", "parse_statement", "setting_of"]


class Statement(Protocol):
    """A parsed statement, ready to run: a frozen dataclass. Parsing changes nothing."""

    def run(self, session: SqlSession) -> SqlFrame:
        """Run the statement in the session. The frame is its result; it has no columns if there is no result."""
        ...


Parse = Callable[[str, Sequence[SqlToken], "SqlSession"], "Statement | None"]

# First words → "module:function". The longest matching row counts.
_ROWS: Mapping[str, str] = {
    "ALTER TABLE": "pyhudi.sql.alter_table:parse_alter",
    "CALL": "pyhudi.sql.procedures.registry:parse",
    "CREATE EXTERNAL TABLE": "pyhudi.sql.create_table:parse_create",
    "CREATE INDEX": "pyhudi.sql.index_statements:parse",
    "CREATE OR REPLACE TABLE": "pyhudi.sql.create_table:parse_create",
    "CREATE TABLE": "pyhudi.sql.create_table:parse_create",
    "DELETE FROM": "pyhudi.sql.dml.update:parse_delete",
    "DESC": "pyhudi.sql.show:parse_describe",
    "DESCRIBE": "pyhudi.sql.show:parse_describe",
    "DROP INDEX": "pyhudi.sql.index_statements:parse",
    "DROP TABLE": "pyhudi.sql.drop_table:parse_drop",
    "INSERT INTO": "pyhudi.sql.dml.insert:parse_insert",
    "INSERT OVERWRITE": "pyhudi.sql.dml.insert:parse_insert",
    "MERGE INTO": "pyhudi.sql.dml.merge:parse_merge",
    "REFRESH INDEX": "pyhudi.sql.index_statements:parse",
    "REFRESH TABLE": "pyhudi.sql.drop_table:parse_refresh",
    "SHOW COLUMNS": "pyhudi.sql.show:parse_show",
    "SHOW CREATE TABLE": "pyhudi.sql.show:parse_show",
    "SHOW INDEXES": "pyhudi.sql.index_statements:parse",
    "SHOW PARTITIONS": "pyhudi.sql.show:parse_show",
    "SHOW TBLPROPERTIES": "pyhudi.sql.show:parse_show",
    "TRUNCATE TABLE": "pyhudi.sql.drop_table:parse_truncate",
    "UPDATE": "pyhudi.sql.dml.update:parse_update",
    "WITH": "pyhudi.sql.dml.insert:parse_with",
}

STATEMENTS: Registry[Parse] = Registry("SQL statement", _ROWS)
_LONGEST = 4  # words of the longest row


def parse_statement(text: str, session: SqlSession) -> Statement | None:
    """Parse the Hudi statement in a text; None if the engine has to run the text unchanged.

    Raises: ConfigError for wrong clauses of a Hudi statement.
    """
    first = _first_words(text)
    for count in range(len(first), 0, -1):
        words = " ".join(first[:count])
        if words in STATEMENTS.entries:
            tokens = tokens_of(text)
            while tokens and tokens[-1].is_symbol(";"):
                tokens.pop()
            parsed = STATEMENTS.load(words)(text, tokens, session)
            if parsed is not None:
                return parsed
    return None


def may_be_statement(text: str) -> bool:
    """True if a text begins like a Hudi statement; `parse_statement` decides."""
    first = _first_words(text)
    return any(" ".join(first[:count]) in STATEMENTS.entries for count in range(1, len(first) + 1))


def _first_words(text: str) -> list[str]:
    """The first words in upper case. Only the beginning is read, as most statements are the engine's."""
    return [token.text.upper() for token in tokens_of(text, _LONGEST)]


_SETTING = re.compile(
    r"\s*(?P<verb>SET|RESET)\s+(?:spark\.)?`?(?P<key>hoodie\.[\w.\-]+)`?\s*(?:=\s*(?P<value>.*?))?[\s;]*",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Setting:
    """A SET or RESET. Without a `value` it shows the key or, with `removes`, resets it to its default."""

    key: str
    value: str | None
    removes: bool


def setting_of(text: str) -> Setting | None:
    """Parse the SET or RESET in a text; None for any other statement.

    As in Spark, a value is kept as written, except for quotes around the whole value.
    """
    match = _SETTING.fullmatch(text)
    if match is None:
        return None
    value = match["value"]
    if value is not None and len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return Setting(match["key"], value, match["verb"].upper() == "RESET")
