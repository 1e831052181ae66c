"""Which of Hudi's operations an INSERT is: by the options, new ones and old ones.

Source: docs/sql-dml.md, "INSERT"; Hudi's configuration, "Spark SQL".
"""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.errors import ConfigError
from pyhudi.sql.dml.target import Target
from pyhudi.sql.session import SqlSession

__all__ = ["insert_operation"]

_OPERATION = "hoodie.spark.sql.insert.into.operation"
_OLD_MODE, _OLD_BULK = "hoodie.sql.insert.mode", "hoodie.sql.bulk.insert.enable"
_OVERWRITE_MODE = "hoodie.datasource.overwrite.mode"
_POLICY = "hoodie.datasource.insert.dup.policy"
_OPERATIONS = ("insert", "upsert", "bulk_insert")
_OLD_MODES = ("upsert", "strict", "non-strict")


def insert_operation(
    overwrites: bool, static: Mapping[str, object], target: Target, session: SqlSession
) -> tuple[str, dict[str, object]]:
    """The operation, and the options that it needs. `static`: partition columns with a value in PARTITION.

    Raises: ConfigError for words that none of the options knows.
    """
    settings = {**session.settings, **target.named.properties}
    if overwrites:
        mode = _word(settings, _OVERWRITE_MODE, ("static", "dynamic"), "static")
        in_partitions = bool(static) or (mode == "dynamic" and bool(target.config.partition_fields))
        return ("insert_overwrite" if in_partitions else "insert_overwrite_table"), {}
    if _OPERATION in settings or _OLD_MODE not in settings and _OLD_BULK not in settings:
        return _for(target, _word(settings, _OPERATION, _OPERATIONS, "insert")), {}
    return _by_old_options(settings, target)


def _by_old_options(settings: Mapping[str, str], target: Target) -> tuple[str, dict[str, object]]:
    mode = _word(settings, _OLD_MODE, _OLD_MODES, "upsert")
    if settings.get(_OLD_BULK, "false").strip().lower() == "true":
        if target.keys and mode != "non-strict":
            raise ConfigError(
                f"{_OLD_BULK}=true needs {_OLD_MODE}=non-strict for a table with a key: a bulk insert does not look "
                "for keys that are there."
            )
        return "bulk_insert", {}
    if mode == "strict" and target.keys:
        return "insert", {_POLICY: "fail"}
    return _for(target, "upsert" if mode == "upsert" else "insert"), {}


def _for(target: Target, operation: str) -> str:
    """A table without a key has nothing to upsert by."""
    return "insert" if operation == "upsert" and not target.keys else operation


def _word(settings: Mapping[str, str], key: str, words: tuple[str, ...], default: str) -> str:
    found = settings.get(key, default).strip().lower()
    if found not in words:
        raise ConfigError(f"{key}={found!r}: expected {', '.join(words)}.")
    return found
