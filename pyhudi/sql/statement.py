"""Which statement a text is: one row per kind of statement, found by its first words; and SET, where Spark has it not.

A kind is one module with one `parse` function. It answers None when, looked at closely, the statement is not about a
Hudi table; the text then goes to the engine unchanged.
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

__all__ = ["STATEMENTS", "Parse", "Setting", "Statement", "is_known", "parse_statement", "setting_of"]


class Statement(Protocol):
    """A statement of ours, ready to run. A frozen dataclass; parsing it has changed nothing."""

    def run(self, session: SqlSession) -> SqlFrame:
        """Run it in the session; the frame is what the statement returns (none: no columns and no rows)."""
        ...


Parse = Callable[[str, Sequence[SqlToken], "SqlSession"], "Statement | None"]

# First words → "module:function". The longest row that fits counts. A row is added by the module that brings it.
_ROWS: Mapping[str, str] = {
    "ALTER TABLE": "pyhudi.sql.alter_table:parse_alter",
    "CALL": "pyhudi.sql.procedures.calling:parse",
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
    """The statement that a text is, or None when the engine is to run it as it is.

    Raises: ConfigError when it is one of ours and its clauses are wrong.
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


def is_known(text: str) -> bool:
    """Whether a text begins as one of our statements; `parse_statement` may still find that it is not."""
    first = _first_words(text)
    return any(" ".join(first[:count]) in STATEMENTS.entries for count in range(1, len(first) + 1))


def _first_words(text: str) -> list[str]:
    """The first words in capitals, of a look at the beginning only: most statements are not ours."""
    return [token.text.upper() for token in tokens_of(text, _LONGEST)]


_SETTING = re.compile(
    r"\s*(?P<verb>SET|RESET)\s+(?:spark\.)?`?(?P<key>hoodie\.[\w.\-]+)`?\s*(?:=\s*(?P<value>.*?))?[\s;]*",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Setting:
    """`value` None: the key is shown, or with `removes` given back its default."""

    key: str
    value: str | None
    removes: bool


def setting_of(text: str) -> Setting | None:
    """The setting that a statement makes or shows, None for another statement.

    A value is taken as it is written, as Spark does; quotations around all of it go.
    """
    found = _SETTING.fullmatch(text)
    if found is None:
        return None
    value = found["value"]
    if value is not None and len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return Setting(found["key"], value, found["verb"].upper() == "RESET")
