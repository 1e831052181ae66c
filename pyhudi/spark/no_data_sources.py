"""What stands in for Spark's classes of Python data sources where there are none (3.5): whoever makes one is told."""

from __future__ import annotations

from pyhudi.errors import ConfigError
from pyhudi.spark.capabilities import NO_DATA_SOURCES

__all__ = ["DataSource", "DataSourceReader", "DataSourceStreamReader", "InputPartition"]


class DataSource:
    """Raises ConfigError when one is made."""

    def __init__(self, options: dict[str, str]) -> None:
        raise ConfigError(NO_DATA_SOURCES)


class DataSourceReader:
    """The parent of a reader."""


class DataSourceStreamReader:
    """The parent of a reader of streams."""


class InputPartition:
    """A part of what is read."""

    def __init__(self, value: object) -> None:
        self.value = value
