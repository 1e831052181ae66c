"""The table of a statement and its options: SQL's short names (`primaryKey`) and `hoodie.*` keys.

Source: Hudi's documentation, "SQL DDL", "Table properties".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyhudi.errors import ConfigError, TableNotFound
from pyhudi.model.options import OptionScope, WriteOptions, check_names
from pyhudi.model.table_config import TableConfig
from pyhudi.sql.session import SCHEMA_ON_READ, NamedTable, SqlSession, TableName
from pyhudi.warnings import collected_warnings

__all__ = [
    "MANAGED_KEY",
    "PROVIDER_KEY",
    "check_change",
    "check_properties",
    "check_property_keys",
    "check_values",
    "is_ours",
    "options_of",
    "our_table",
    "sql_properties",
    "write_options",
]


# PyHudi's notes in a catalog's entry: whether files are deleted with the name, and the format that a stand-in hides.
MANAGED_KEY = "hoodie.pyhudi.managed"
PROVIDER_KEY = "hoodie.pyhudi.provider"

_SHORT = {
    "primarykey": "hoodie.datasource.write.recordkey.field",
    "type": "hoodie.datasource.write.table.type",
    "precombinefield": "hoodie.table.ordering.fields",
    "orderingfields": "hoodie.table.ordering.fields",
    "payloadclass": "hoodie.datasource.write.payload.class",
    "recordmergemode": "hoodie.write.record.merge.mode",
    "recordmergestrategyid": "hoodie.write.record.merge.strategy.id",
}
_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}


def check_property_keys(keys: Iterable[str]) -> None:
    """Raise ConfigError for a property that only PyHudi may write."""
    notes = [key for key in keys if key.lower() in (MANAGED_KEY, PROVIDER_KEY)]
    if notes:
        raise ConfigError(
            f"SQL: {', '.join(notes)} is PyHudi's own note in the catalog, which says whose a table and its files are; "
            "leave it out. A table without LOCATION goes with its files, and DROP TABLE … PURGE deletes others."
        )


def write_options(properties: Mapping[str, str]) -> dict[str, object]:
    """The options of the table that these properties describe; other properties only belong to the catalog.

    Raises: ConfigError for an unknown table type, and for a setting with two different values.
    """
    options: dict[str, object] = {}
    for key, value in properties.items():
        short = key.lower()
        if short == "type":
            value = _table_type(value)
        option = _SHORT.get(short) or (key if key.startswith("hoodie.") else None)
        if option is None:
            continue
        if options.get(option, value) != value:
            raise ConfigError(f"SQL: the property {key}={value!r} is given twice, also as {options[option]!r}.")
        options[option] = value
    return options


def _table_type(text: str) -> str:
    word = text.lower()
    if word in _TYPES:
        return _TYPES[word]
    if text.upper() in _TYPES.values():
        return text.upper()
    raise ConfigError(f"SQL: the table type {text!r} is unknown; type is 'cow' or 'mor'.")


def sql_properties(config: TableConfig) -> dict[str, str]:
    """The properties of a table under SQL's short names."""
    properties = {"type": "mor" if config.is_merge_on_read else "cow"}
    if config.record_key_fields:
        properties["primaryKey"] = ",".join(config.record_key_fields)
    if config.ordering_fields:
        properties["preCombineField"] = ",".join(config.ordering_fields)
    return properties


def is_ours(session: SqlSession, name: TableName) -> bool:
    """True if a name means a Hudi table, even if its folder no longer exists."""
    if name.path is not None:
        return session.find_table(name) is not None
    entry = session.catalog.find(name)
    return entry is not None and entry.is_hudi


def our_table(session: SqlSession, name: TableName) -> NamedTable:
    """The table. Raises TableNotFound."""
    table = session.find_table(name)
    if table is None:
        raise TableNotFound(f"There is no Hudi table {name}.")
    return table


def options_of(session: SqlSession, table: NamedTable) -> dict[str, object]:
    """The options of a write: those of the call win over those of the table's definition, which win over the
    session's.

    Raises: ConfigError, like `check_properties`.
    """
    check_properties(table.name, table.properties, table.table.state().config)
    return {**session.settings, **_hudi_properties(table.properties), **table.options}


def _hudi_properties(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in properties.items() if key.startswith("hoodie.") and key != SCHEMA_ON_READ}


def check_properties(name: TableName, properties: Mapping[str, str], config: TableConfig) -> None:
    """Raise ConfigError for catalog properties that make every write fail, naming them and the remedy."""
    options = _hudi_properties(properties)
    error = _refusal(options, config)
    if error is None:
        return
    keys = ", ".join(f"'{key}'" for key in options if key in str(error)) or ", ".join(f"'{key}'" for key in options)
    raise ConfigError(
        f"{error} That is a property of {name} in the catalog, and no statement can write to the table with it: ALTER "
        f"TABLE {name} UNSET TBLPROPERTIES ({keys})."
    )


def check_change(
    name: TableName, set_: Mapping[str, str], before: Mapping[str, str], after: Mapping[str, str], config: TableConfig
) -> None:
    """Raise ConfigError for a change of catalog properties that makes every write fail, or sets an unknown option. A
    change that removes one of several faults is allowed.

    Args: set_: the properties to set; before, after: all properties of the table.
    """
    check_names(_hudi_properties(set_), OptionScope.WRITE)
    if set_ or _refusal(_hudi_properties(before), config) is None:
        check_values(f"ALTER TABLE {name}", after, config)


def check_values(statement: str, properties: Mapping[str, str], config: TableConfig) -> None:
    """Raise ConfigError if every write would fail with the properties that a statement gives a table."""
    error = _refusal(_hudi_properties(properties), config)
    if error is not None:
        raise ConfigError(
            f"SQL: {error} {statement} changed nothing: a property of the table goes with each write to it. Options "
            "that depend on each other can be set, or unset, in one statement."
        )


def _refusal(options: Mapping[str, str], config: TableConfig) -> ConfigError | None:
    """The error of a write with these options, or None. Warnings are left to the write."""
    if not options:
        return None
    try:
        with collected_warnings([]):
            WriteOptions.parse(options, {}, config)
    except ConfigError as error:
        return error
    return None
