"""Which of Hudi's operations an INSERT is: by the options, new ones and old ones.

Source: docs/sql-dml.md, "INSERT"; Hudi's configuration, "Spark SQL".
"""

from __future__ import annotations

from collections.abc import Collection

from pyhudi.errors import ConfigError
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.operation import INSERT_INTO_OPERATION, OLD_BULK_INSERT, OLD_INSERT_MODE
from pyhudi.sql.dml.target import Target
from pyhudi.sql.our_table import options_of
from pyhudi.sql.session import SqlSession

__all__ = ["insert_operation"]

_POLICY = "hoodie.datasource.insert.dup.policy"


def insert_operation(
    overwrites: bool, static: Collection[str], target: Target, session: SqlSession
) -> tuple[str, dict[str, object]]:
    """The operation, and the options that it needs. `static`: partition columns with a value in PARTITION.

    Raises: ConfigError for values that the options don't have.
    """
    options = WriteOptions.parse(options_of(session, target.named), {}, target.config)
    if overwrites:
        is_dynamic = (options.replacing.overwrite_mode or "STATIC").upper() == "DYNAMIC"
        in_partitions = bool(static) or (is_dynamic and bool(target.config.partition_fields))
        return ("insert_overwrite" if in_partitions else "insert_overwrite_table"), {}
    says_old = {OLD_INSERT_MODE, OLD_BULK_INSERT} & options.explicit
    if INSERT_INTO_OPERATION in options.explicit or not says_old:
        return _for(target, options.statements.insert_into_operation), {}
    return _by_old_options(options, target)


def _by_old_options(options: WriteOptions, target: Target) -> tuple[str, dict[str, object]]:
    mode = options.statements.old_insert_mode
    if options.statements.old_bulk_insert:
        if target.keys and mode != "non-strict":
            raise ConfigError(
                f"{OLD_BULK_INSERT}=true needs {OLD_INSERT_MODE}=non-strict for a table with a key: a bulk insert does "
                "not look for keys that are there."
            )
        return "bulk_insert", {}
    if mode == "strict" and target.keys:
        return "insert", {_POLICY: "fail"}
    return _for(target, "upsert" if mode == "upsert" else "insert"), {}


def _for(target: Target, operation: str) -> str:
    """A table without a key has nothing to upsert by."""
    return "insert" if operation == "upsert" and not target.keys else operation
