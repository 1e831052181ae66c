"""Options of a table's Iceberg export: the catalog, the table's name there, and how long its snapshots stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyhudi.errors import ConfigError
from pyhudi.model.options.declare import Values, computed, key_of, option, parse, row
from pyhudi.model.options.spec import Kind

__all__ = ["ICEBERG_CATALOG_PREFIX", "IcebergOptions", "iceberg_options", "key_of_iceberg"]

ICEBERG_CATALOG_PREFIX = "hoodie.pyhudi.export.iceberg.catalog."
_CATALOG_ROW = row(
    "hoodie.pyhudi.export.iceberg.catalog",
    "default",
    "The Iceberg catalog's name, as in pyiceberg's own configuration (`~/.pyiceberg.yaml`, `PYICEBERG_CATALOG__...`). "
    "Its properties may be given as options, too: `hoodie.pyhudi.export.iceberg.catalog.<property>`, such as `type` "
    "(`sql`, `rest`, `hive`, `glue`), `uri`, `warehouse`.",
    Kind.TEXT,
)
_TABLE = "hoodie.pyhudi.export.iceberg.table"


def _identifier(text: str) -> str:
    if "." not in text.strip(".") or not all(text.split(".")):
        raise ConfigError(f"{_TABLE}={text}: expected a namespace and a name, such as lake.rides.")
    return text


@dataclass(frozen=True, slots=True)
class IcebergOptions:
    """`properties`: pyiceberg's own, of the catalog. `table`: None for the table's own database and name."""

    catalog: str = computed(lambda: "default", _CATALOG_ROW)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)  # keys and passwords may be among them
    table: str | None = option(
        _TABLE,
        None,
        "The Iceberg table's name, `namespace.name`. Unset: `hoodie.database.name` (`default` where there is none) and "
        "`hoodie.table.name`.",
        Kind.TEXT,
        convert=_identifier,
    )
    location: str | None = option(
        "hoodie.pyhudi.export.iceberg.location",
        None,
        "Where the Iceberg metadata of a new table lie, outside of the Hudi table. Unset: as the catalog says, below "
        "its warehouse.",
        Kind.TEXT,
    )
    snapshots_retained: int = option(
        "hoodie.pyhudi.export.iceberg.snapshots.retained",
        10,
        "So many Iceberg snapshots stay, the newest ones; older ones expire with the next export. The cleaner deletes "
        "files that only expired ones have.",
        minimum=1,
    )


def key_of_iceberg(name: str) -> str:
    """The key of the option of a field."""
    return key_of(IcebergOptions, name)


def iceberg_options(values: Values) -> IcebergOptions:
    """The options of a call. Raises ConfigError for a name without a namespace."""
    prefix = ICEBERG_CATALOG_PREFIX
    properties = {key.removeprefix(prefix): text for key, text in values.texts.items() if key.startswith(prefix)}
    return replace(parse(IcebergOptions, values), catalog=values.text(_CATALOG_ROW) or "default", properties=properties)
