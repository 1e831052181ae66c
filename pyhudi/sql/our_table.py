"""The table that a statement is about, looked up again when it runs."""

from __future__ import annotations

from pyhudi.errors import TableNotFound
from pyhudi.sql.session import SCHEMA_ON_READ, NamedTable, SqlSession, TableName

__all__ = ["is_ours", "options_of", "our_table"]


def is_ours(session: SqlSession, name: TableName) -> bool:
    """Whether a name means a Hudi table, also one whose folder holds none any more."""
    if name.path is not None:
        return session.find_table(name) is not None
    entry = session.catalog.find(name)
    return entry is not None and entry.is_hudi


def our_table(session: SqlSession, name: TableName) -> NamedTable:
    """The table. Raises TableNotFound."""
    found = session.find_table(name)
    if found is None:
        raise TableNotFound(f"There is no Hudi table {name}.")
    return found


def options_of(session: SqlSession, named: NamedTable) -> dict[str, object]:
    """Options of a write: those of the table's definition come before those of the session."""
    own = {key: v for key, v in named.properties.items() if key.startswith("hoodie.") and key != SCHEMA_ON_READ}
    return {**session.settings, **own}
