"""StatementOptions: what an INSERT of SQL does.

Source: Hudi's documented keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.declare import option

__all__ = ["INSERT_INTO_OPERATION", "OLD_BULK_INSERT", "OLD_INSERT_MODE", "StatementOptions"]

INSERT_INTO_OPERATION = "hoodie.spark.sql.insert.into.operation"
OLD_INSERT_MODE = "hoodie.sql.insert.mode"
OLD_BULK_INSERT = "hoodie.sql.bulk.insert.enable"


@dataclass(frozen=True, slots=True)
class StatementOptions:
    """Options of statements."""

    insert_into_operation: str = option(
        INSERT_INTO_OPERATION,
        "insert",
        "The operation of INSERT INTO.",
        choices=("insert", "upsert", "bulk_insert"),
    )
    old_insert_mode: str = option(
        OLD_INSERT_MODE,
        "upsert",
        "The older way to say it, where `hoodie.spark.sql.insert.into.operation` is not set; strict refuses keys that "
        "are in the table.",
        choices=("upsert", "strict", "non-strict"),
    )
    old_bulk_insert: bool = option(
        OLD_BULK_INSERT, False, "The older way to say bulk_insert, with `hoodie.sql.insert.mode=non-strict`."
    )
