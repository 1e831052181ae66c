"""Top-level columns by their literal names, dots and all."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

__all__ = ["column", "quoted"]


def column(name: str) -> Column:
    """The column of this name."""
    return F.col(quoted(name))


def quoted(name: str) -> str:
    """The name as Spark's expressions say it."""
    return "`" + name.replace("`", "``") + "`"
