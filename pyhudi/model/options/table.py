"""What a table is, but for its keys and how its rows merge; and what steps between table versions leave unchecked.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.change_logs import CDC_ENABLED, DATA_BEFORE_AFTER, LOGGING_MODE, LOGGING_MODES
from pyhudi.model.options.declare import option

__all__ = ["BASE_FILE_FORMAT", "TABLE_NAME", "TableOptions", "VersionOptions"]

TABLE_NAME = "hoodie.table.name"
BASE_FILE_FORMAT = "hoodie.table.base.file.format"


@dataclass(frozen=True)  # no slots: WriteOptions has several bases
class TableOptions:
    """What is stored in the table, and is the table's to say when there is one."""

    table_name: str | None = option(
        TABLE_NAME,
        None,
        "Name of the table; needed when the first write creates it.",
        aliases=("hoodie.datasource.write.table.name",),
        keyword="table_name",
    )
    database_name: str | None = option(
        "hoodie.database.name", None, "Database that the table names as its own.", keyword="database_name"
    )
    table_type: str = option(
        "hoodie.datasource.write.table.type",
        "COPY_ON_WRITE",
        "Table type.",
        aliases=("hoodie.datasource.write.storage.type", "hoodie.table.type"),
        choices=("COPY_ON_WRITE", "MERGE_ON_READ"),
        keyword="table_type",
    )
    table_version: int = option(
        "hoodie.write.table.version",
        9,
        "Version of a new table: 6 (Hudi 0.14 and 0.15), 8 (Hudi 1.0) or 9 (Hudi 1.1 and 1.2). A table keeps its own.",
        aliases=("hoodie.table.version",),
        choices=("6", "8", "9"),
        keyword="table_version",
    )
    base_file_format: str = option(
        BASE_FILE_FORMAT,
        "PARQUET",
        "Format of base files.",
        aliases=("hoodie.base.file.format", "hoodie.table.ro.file.format"),
        choices=("PARQUET", "ORC"),
        later=("HFILE", "LANCE"),
        keyword="base_file_format",
    )
    populate_meta_fields: bool = option(
        "hoodie.populate.meta.fields",
        True,
        "Store the five meta columns. false gives virtual keys.",
        keyword="meta_fields",
    )
    cdc_enabled: bool = option(
        CDC_ENABLED,
        False,
        "Writes log what they do to each row, for queries of changes. A table is made with it, or without.",
        keyword="cdc",
    )
    cdc_logging_mode: str = option(
        LOGGING_MODE,
        DATA_BEFORE_AFTER,
        "What change logs hold of a row: its key, also the row before, or the row before and after. What is not there "
        "is looked up in base files when changes are read.",
        choices=LOGGING_MODES,
        keyword="cdc_logging_mode",
    )
    timezone: str = option(
        "hoodie.table.timeline.timezone", "LOCAL", "Zone of instant times in a new table.", choices=("LOCAL", "UTC")
    )


@dataclass(frozen=True, slots=True)
class VersionOptions:
    """Options of `HudiTable.upgrade` and `HudiTable.downgrade`."""

    skip_default_partition_validation: bool = option(
        "hoodie.skip.default.partition.validation",
        False,
        "An upgrade from version 4 takes a partition named `default` as it is.",
    )
    complex_key_validation: bool = option(
        "hoodie.write.complex.keygen.validation.enable",
        True,
        "Steps between versions 8 and 9 refuse tables with the generator COMPLEX and one key field. Writes do not ask.",
    )
